/* http/held.h - bytes of requests that are in memory, over all loops, and who may add to them.
 *
 * Counted:  bodies from their first byte until the exchange ends, and what else was received and not yet
 *           taken (a head in pieces, requests behind one that is being answered); by the buffers' capacity.
 * Bound:    limits.bodies_max_bytes. A body of at least HEAVY_BODY_BYTES, or of an unknown length, may fill
 *           seven eighths of it. The last eighth is for smaller ones: heartbeats, results, cancels and
 *           signals find room while large bodies are refused.
 * Exempt:   the Unix socket, whose senders are our own processes: counted, never refused.
 * Threads:  each loop counts for itself; any thread may add the counts up. A loop that has not seen the
 *           others' last addition can go beyond the bound by one recv(). */
#ifndef WEIR_HTTP_HELD_H
#define WEIR_HTTP_HELD_H

#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct http_conn;

bool held_has_room(const struct http_conn *c, size_t more); /* for the request that c receives */
void held_by_exchange(struct exchange *ex, size_t bytes);   /* so much now; 0: given back */
void held_by_input(struct http_conn *c);                    /* after c->in has changed */

#endif
