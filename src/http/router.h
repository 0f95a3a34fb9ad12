/* http/router.h - routes as data. Patterns have literal segments and {name} segments; a last segment may
 * carry a literal suffix: /v1/webhooks/{webhook_id}:test and /v1/jobs:batch are patterns too.
 *
 * Literal beats {name}. The table is compiled once; a clash is a programming error (MUST). */
#ifndef WEIR_HTTP_ROUTER_H
#define WEIR_HTTP_ROUTER_H

#include "http/server.h"

enum { ROUTE_PARAMS_MAX = 4 };

struct route {
    enum http_method method;
    const char *pattern;
    const char *operation_id; /* the one in contracts/openapi */
    const void *info;         /* the api layer's row: auth, limits, handler */
};

struct route_match {
    const struct route *route; /* NULL: path known but not this method, or path unknown */
    bool path_known;
    char allow[64]; /* "GET, POST" when path_known and route is NULL */
    uint32_t param_count;
    struct {
        struct str name, value;
    } params[ROUTE_PARAMS_MAX];
};

struct router;
struct router *router_new(const struct route *routes, size_t count);
struct router *router_free(struct router *r);
void router_find(const struct router *r, enum http_method method, struct str path,
                 struct route_match *ret_match);
struct str route_param(const struct route_match *m, const char *name);

#endif
