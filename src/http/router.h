/* http/router.h - routes as data. Patterns have literal segments and {name} segments; a last segment may
 * carry a literal suffix: /v1/webhooks/{webhook_id}:test and /v1/jobs:batch are patterns too.
 *
 * Literal beats {name}. The table is compiled once; a clash is a programming error (MUST). */
#ifndef WEIR_HTTP_ROUTER_H
#define WEIR_HTTP_ROUTER_H

#include "http/server.h"

struct route_info;
struct route {
    enum http_method method;
    const char *pattern;
    const char *operation_id;      /* the one in contracts/openapi */
    const struct route_info *info; /* of the api layer: its needs, its handler */
};

struct route_match {
    const struct route *route; /* NULL: path known but not this method, or path unknown */
    struct str path;
    bool path_known;
    char allow[64]; /* "GET, POST" when path_known and route is NULL */
};

struct router;
struct router *router_new(const struct route *routes, size_t count);
struct router *router_free(struct router *r);
void router_find(const struct router *r, enum http_method method, struct str path,
                 struct route_match *ret_match);
/* The text in the path where the pattern has {name}; absent when it has none. */
struct str route_param(const struct route_match *m, const char *name);

#endif
