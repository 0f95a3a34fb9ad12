/* http/peers.h - open TCP connections by source address, and the longest idle one of each.
 *
 * Limits:   connections_max over all, connections_per_address for each network (IPv4: the address, IPv6: its
 *           /64). At a limit the longest idle connection of the address, or of all, closes for the new one;
 *           only where none is idle the new one is refused. So no caller keeps others out by holding
 *           connections.
 * Idle:     between two requests, and before the first, until a head is whole. A client that sends heads
 *           which never end counts as idle since its last whole head. A loop notes this in the connection,
 *           without a lock; the heaps here are updated when a connection needs room.
 * Bounded:  an address is known while it has a connection; looks are bounded (LOOKS_MAX).
 * Threads:  any loop's; one lock, taken when a connection opens, closes or has to make room. A connection of
 *           another loop is closed by that loop, in its next round. */
#ifndef WEIR_HTTP_PEERS_H
#define WEIR_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "http/server.h"

struct http_conn;
struct http_loop;
struct peers;

enum { PEERS_NOT_IDLE = -1 };

/* Of a connection; guarded by the lock. */
struct conn_place {
    struct http_address network;
    struct peer *peer; /* NULL: not in */
    struct heap_node among_all, among_peer;
    struct http_conn *next, *prev; /* of its peer; next also in the loop's `evicted` */
    bool evicted;
};

enum peers_verdict { PEERS_ADMITTED, PEERS_ADDRESS_FULL, PEERS_ALL_FULL };

struct peers *peers_new(uint32_t connections_max, uint32_t per_address);
struct peers *peers_free(struct peers *p); /* after all connections; NULL is fine; always returns NULL */
/* Is there room for one more from there? Makes some. A connection that is admitted has a place from then on,
 * which peers_add fills or peers_give_back leaves: loops that accept at the same time never take one place
 * twice. */
enum peers_verdict peers_ask(struct http_loop *l, const struct http_address *from);
void peers_give_back(struct http_loop *l, const struct http_address *from);
/* Closes the longest idle connection of all, for its descriptor; false: none is idle. */
bool peers_close_one(struct http_loop *l);
void peers_add(struct http_conn *c);
void peers_remove(struct http_conn *c);        /* no-op when it is not in */
void peers_close_evicted(struct http_loop *l); /* those of this loop that make room for others */

#endif
