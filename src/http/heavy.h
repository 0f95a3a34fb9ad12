/* http/heavy.h - connections whose last body was large, and how many of their requests are under way. Part
 * of a loop (http_internal.h); its thread's own. */
#ifndef WEIR_HTTP_HEAVY_H
#define WEIR_HTTP_HEAVY_H

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct http_conn;
struct http_loop;

enum { HEAVY_BODY_BYTES = 32 * 1024 }; /* senders of large bodies wait for all others */

/* Of a connection. */
struct heavy_conn {
    bool is;          /* its last body was large */
    uint64_t sender;  /* of that */
    int64_t since_ms; /* in the queue */
};

/* Of a loop. */
struct heavy {
    struct http_conn *first, *last;
    uint32_t under_way;
    uint64_t sender; /* of the last one that was served */
};

void heavy_queue(struct http_conn *c);  /* conn_on_turn() when it is its turn */
void heavy_begins(struct http_conn *c); /* a request that is whole; most are not heavy */
void heavy_ends(struct http_loop *l,
                struct exchange *ex);             /* its request is answered, or the connection is gone */
int64_t heavy_next_ms(const struct http_loop *l); /* when one may be served; INT64_MAX: none waits */
void heavy_run(struct http_loop *l);              /* one, if it may */
void heavy_drop_all(struct http_loop *l);         /* at the end */

#endif
