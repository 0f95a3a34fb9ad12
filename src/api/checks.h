/* api/checks.h - what a request has to pass before its handler sees it, in the order that dispatch.c asks.
 *
 * Each answers with its problem and says false when the request does not pass. All but the last go by the
 * head alone, before a byte of the body is read. */
#ifndef WEIR_API_CHECKS_H
#define WEIR_API_CHECKS_H

#include "api/api.h"

bool check_host(struct call *c);   /* see host_check.h; HTTP/1.0 needs no Host, and no browser speaks it */
bool check_route(struct call *c);  /* path and method */
bool check_open(struct call *c);   /* routes of ops/ need no store, but for those about clients and jobs */
bool check_auth(struct call *c);   /* credentials as the route needs them; sets c->who, c->claims */
bool check_rate(struct call *c);   /* limits.requests_per_minute of a client */
bool check_scope(struct call *c);  /* the scopes of a key; a warning when it ends soon */
bool check_accept(struct call *c); /* sets c->accept */
bool check_query(struct call *c);  /* a list refuses parameters that its contract does not name */
/* Type, coding and size of the body as the head has them. Of a chunked one they are looked at again when it
 * is whole: an empty body needs no type. */
bool check_body_head(struct call *c);
/* JSON as the contract has it; sets c->body. An optional member that is null is as if it were absent. */
bool check_body(struct call *c);

/* Is the caller unknown (no valid credentials)? */
bool call_is_anonymous(const struct call *c);

#endif
