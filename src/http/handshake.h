/* http/handshake.h - connections whose TLS handshake is under way. Part of a loop (http_internal.h); its
 * thread's own.
 *
 * Bounds:  handshake_ms from accept to the end of it; HANDSHAKE_BYTES_MAX (tls_conn.c); handshakes_max a
 *          loop, and one too many ends the oldest, which is the one that has shown the least haste;
 *          HANDSHAKES_PER_ROUND, since each costs up to a millisecond: then the others get their turn. */
#ifndef WEIR_HTTP_HANDSHAKE_H
#define WEIR_HTTP_HANDSHAKE_H

#include <stdatomic.h>
#include <stdint.h>

struct http_conn;
struct http_loop;
struct tls_conn;

/* Of a loop. */
struct handshakes {
    struct tls_conn *first, *last; /* the oldest first */
    uint32_t count;
    uint32_t in_round;
};

void handshake_begin(struct http_conn *c); /* accepted by a TLS listener */
void handshake_step(struct http_conn *c);  /* an event, or its turn */
void handshake_late(struct http_conn *c);
void handshake_ends(struct http_conn *c); /* well or not; also for one that has none under way */

#endif
