#include "http/peers.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "http/http_internal.h"

#include "base/banned.h"

enum { LOOKS_MAX = 1024, LOOK_AGAIN_MS = 10, SLOTS_MIN = 64, SLOTS_MAX = 65536 };

struct idle_heap {
    struct heap nodes;
    int64_t look_again_ms;
};

/* One network. The heap is made when it first meets its limit: most never do. */
struct peer {
    struct http_address network;
    uint32_t count;
    bool crowded;
    struct idle_heap idle;
    struct http_conn *first;
    struct peer *next;
};

struct peers {
    uint32_t connections_max, per_address;
    pthread_mutex_t lock; /* guards what follows, and what connections have of it */
    uint32_t count, slot_count;
    struct idle_heap idle; /* all of them */
    struct peer **slots;
};

struct peers *peers_new(uint32_t connections_max, uint32_t per_address)
{
    struct peers *p = must_alloc(sizeof *p);
    p->connections_max = connections_max;
    p->per_address = per_address;
    p->slot_count = SLOTS_MIN;
    while (p->slot_count < connections_max / 2 && p->slot_count < SLOTS_MAX)
        p->slot_count *= 2;
    p->slots = must_alloc(p->slot_count * sizeof *p->slots);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

struct peers *peers_free(struct peers *p)
{
    if (!p)
        return NULL;
    MUST(!p->count);
    heap_free(&p->idle.nodes);
    free(p->slots);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

/* Where the peer's pointer is, or would be. */
static struct peer **find(struct peers *p, const struct http_address *network)
{
    uint64_t hash = hash_secret(network->bytes, sizeof network->bytes);
    struct peer **at = &p->slots[hash & (p->slot_count - 1)];
    while (*at && memcmp((*at)->network.bytes, network->bytes, sizeof network->bytes) != 0)
        at = &(*at)->next;
    return at;
}

static struct http_conn *of_all(struct heap_node *n)
{
    return CONTAINER_OF(n, struct http_conn, place.among_all);
}
static struct http_conn *of_peer(struct heap_node *n)
{
    return CONTAINER_OF(n, struct http_conn, place.among_peer);
}

/* Keys are from the last look, so none is later than the truth: the first one that is true is the
 * longest idle. NULL: none is idle, or too many were in use since. Then there is no look for a while.
 * A connection in use goes behind all idle ones, so that no look meets it twice. The clock says where that
 * is: the loop that asks may have begun its round long before others became idle. */
static struct http_conn *longest_idle(const struct http_loop *l, struct idle_heap *h,
                                      struct http_conn *(*conn_of)(struct heap_node *n))
{
    if (l->now_ms < h->look_again_ms)
        return NULL;
    for (uint32_t looks = 0; looks <= h->nodes.count && looks < LOOKS_MAX; looks++) {
        struct heap_node *n = heap_first(&h->nodes);
        if (!n)
            return NULL;
        struct http_conn *c = conn_of(n);
        int64_t since = atomic_load_explicit(&c->idle_since_ms, memory_order_relaxed);
        if (since == (int64_t)n->key)
            return c;
        if (since == PEERS_NOT_IDLE)
            since = clock_mono_ms(l->server->config.clock) + 1;
        heap_put(&h->nodes, n, (uint64_t)since);
    }
    h->look_again_ms = l->now_ms + LOOK_AGAIN_MS;
    return NULL;
}

static uint64_t key_of(const struct http_conn *c)
{
    int64_t since = atomic_load_explicit(&c->idle_since_ms, memory_order_relaxed);
    return since == PEERS_NOT_IDLE ? 0 : (uint64_t)since;
}

static void take_place(struct peers *p, const struct http_address *network)
{
    struct peer **at = find(p, network), *peer = *at;
    if (!peer) {
        *at = peer = must_alloc(sizeof *peer);
        peer->network = *network;
    }
    peer->count++;
    p->count++;
}

static void leave_place(struct peers *p, const struct http_address *network)
{
    struct peer **at = find(p, network), *peer = *at;
    p->count--;
    if (--peer->count)
        return;
    *at = peer->next;
    heap_free(&peer->idle.nodes);
    free(peer);
}

/* Puts a connection into the place that was taken for it. */
static void link_conn(struct peers *p, struct http_conn *c)
{
    struct peer *peer = *find(p, &c->place.network);
    MUST(peer);
    c->place.peer = peer;
    c->place.prev = NULL;
    c->place.next = peer->first;
    if (peer->first)
        peer->first->place.prev = c;
    peer->first = c;
    heap_put(&p->idle.nodes, &c->place.among_all, key_of(c));
    if (peer->crowded)
        heap_put(&peer->idle.nodes, &c->place.among_peer, key_of(c));
}

static void unlink_conn(struct peers *p, struct http_conn *c)
{
    struct peer *peer = c->place.peer;
    if (c->place.prev)
        c->place.prev->place.next = c->place.next;
    else
        peer->first = c->place.next;
    if (c->place.next)
        c->place.next->place.prev = c->place.prev;
    heap_remove(&p->idle.nodes, &c->place.among_all);
    heap_remove(&peer->idle.nodes, &c->place.among_peer);
    c->place.peer = NULL;
    leave_place(p, &c->place.network);
}

/* Its loop closes it; one of this loop at once. With the lock held. */
static void evict(struct peers *p, struct http_conn *c)
{
    struct http_loop *owner = c->loop;
    unlink_conn(p, c);
    c->place.evicted = true;
    c->place.next = owner->evicted;
    owner->evicted = c;
    atomic_store(&owner->evicts, true);
    loop_wake(owner);
}

static struct http_conn *longest_idle_of(const struct http_loop *l, struct peer *peer)
{
    for (struct http_conn *c = peer->crowded ? NULL : peer->first; c; c = c->place.next)
        heap_put(&peer->idle.nodes, &c->place.among_peer, key_of(c));
    peer->crowded = true;
    return longest_idle(l, &peer->idle, of_peer);
}

enum peers_verdict peers_ask(struct http_loop *l, const struct http_address *from)
{
    struct peers *p = l->server->peers;
    struct http_address network = http_address_network(from);
    enum peers_verdict verdict = PEERS_ADMITTED;
    struct http_conn *victim = NULL;
    pthread_mutex_lock(&p->lock);
    struct peer *peer = *find(p, &network);
    if (peer && peer->count >= p->per_address) {
        victim = longest_idle_of(l, peer);
        verdict = victim ? PEERS_ADMITTED : PEERS_ADDRESS_FULL;
    } else if (p->count >= p->connections_max) {
        victim = longest_idle(l, &p->idle, of_all);
        verdict = victim ? PEERS_ADMITTED : PEERS_ALL_FULL;
    }
    if (victim)
        evict(p, victim);
    if (verdict == PEERS_ADMITTED)
        take_place(p, &network);
    pthread_mutex_unlock(&p->lock);
    peers_close_evicted(l);
    return verdict;
}

void peers_give_back(struct http_loop *l, const struct http_address *from)
{
    struct peers *p = l->server->peers;
    struct http_address network = http_address_network(from);
    pthread_mutex_lock(&p->lock);
    leave_place(p, &network);
    pthread_mutex_unlock(&p->lock);
}

bool peers_close_one(struct http_loop *l)
{
    struct peers *p = l->server->peers;
    pthread_mutex_lock(&p->lock);
    struct http_conn *victim = longest_idle(l, &p->idle, of_all);
    bool here = victim && victim->loop == l;
    if (victim)
        evict(p, victim);
    pthread_mutex_unlock(&p->lock);
    peers_close_evicted(l);
    return here;
}

void peers_add(struct http_conn *c)
{
    struct peers *p = c->loop->server->peers;
    c->place.network = http_address_network(&c->peer);
    pthread_mutex_lock(&p->lock);
    link_conn(p, c);
    pthread_mutex_unlock(&p->lock);
}

static void take_from_evicted(struct http_conn *c)
{
    struct http_conn **at = &c->loop->evicted;
    while (*at != c)
        at = &(*at)->place.next;
    *at = c->place.next;
    c->place.evicted = false;
}

void peers_remove(struct http_conn *c)
{
    struct peers *p = c->loop->server->peers;
    if (c->over_unix_socket)
        return;
    pthread_mutex_lock(&p->lock);
    if (c->place.evicted)
        take_from_evicted(c);
    else if (c->place.peer)
        unlink_conn(p, c);
    pthread_mutex_unlock(&p->lock);
}

/* The next one, back in its place when it is idle no more. */
static struct http_conn *next_evicted(struct http_loop *l)
{
    struct peers *p = l->server->peers;
    pthread_mutex_lock(&p->lock);
    struct http_conn *c = l->evicted;
    if (c)
        take_from_evicted(c);
    if (c && c->idle_since_ms == PEERS_NOT_IDLE) {
        take_place(p, &c->place.network);
        link_conn(p, c);
    }
    pthread_mutex_unlock(&p->lock);
    return c;
}

void peers_close_evicted(struct http_loop *l)
{
    if (!atomic_load_explicit(&l->evicts, memory_order_relaxed))
        return;
    atomic_store(&l->evicts, false);
    for (struct http_conn *c; (c = next_evicted(l));)
        if (c->idle_since_ms != PEERS_NOT_IDLE)
            conn_close(c);
}
