#include "http/held.h"

#include "http/http_internal.h"

#include "base/banned.h"

static void count(struct http_loop *l, size_t before, size_t now)
{
    int64_t old =
        atomic_load_explicit(&l->held_bytes, memory_order_relaxed); /* one writer: nothing is locked */
    atomic_store_explicit(&l->held_bytes, old + (int64_t)now - (int64_t)before, memory_order_relaxed);
}

bool held_has_room(const struct http_conn *c, size_t more)
{
    if (c->over_unix_socket)
        return true;
    const struct http_server *s = c->loop->server;
    int64_t max = s->config.limits.bodies_max_bytes;
    bool small = !c->x || (c->x->pub.body_declared >= 0 && c->x->pub.body_declared < HEAVY_BODY_BYTES);
    return http_server_held_bytes(s) + (int64_t)more <= (small ? max : max - max / 8);
}

void held_by_exchange(struct exchange *ex, size_t bytes)
{
    if (ex->held_bytes != bytes)
        count(ex->pub.loop, ex->held_bytes, bytes);
    ex->held_bytes = bytes;
}

void held_by_input(struct http_conn *c)
{
    if (c->held_bytes != c->in.cap)
        count(c->loop, c->held_bytes, c->in.cap);
    c->held_bytes = c->in.cap;
}
