#include "http/unsent.h"

#include "http/http_internal.h"

#include "base/banned.h"

static void count(struct exchange *ex, size_t bytes)
{
    _Atomic int64_t *all = &ex->pub.loop->unsent_bytes; /* one writer: nothing is locked */
    int64_t old = atomic_load_explicit(all, memory_order_relaxed);
    atomic_store_explicit(all, old + (int64_t)bytes - (int64_t)ex->unsent.bytes, memory_order_relaxed);
    ex->unsent.bytes = bytes;
}

static void append(struct unsent *all, struct exchange *ex)
{
    ex->unsent.prev = all->last;
    if (all->last)
        all->last->unsent.next = ex;
    else
        all->first = ex;
    all->last = ex;
}

void unsent_waits(struct http_conn *c)
{
    struct exchange *ex = c->x;
    struct unsent *all = &c->loop->unsent;
    const struct http_server *s = c->loop->server;
    if (c->over_unix_socket)
        return;
    if (!ex->unsent.bytes)
        append(all, ex);
    count(ex, arena_bytes(ex->pub.arena) + ex->out.cap + ex->pub.reply_body.cap);
    while (all->first != ex && http_server_unsent_bytes(s) > s->config.limits.bodies_max_bytes / 4)
        conn_lost(all->first->pub.conn);
}

void unsent_ends(struct exchange *ex)
{
    struct unsent *all = &ex->pub.loop->unsent;
    if (!ex->unsent.bytes)
        return;
    count(ex, 0);
    if (ex->unsent.prev)
        ex->unsent.prev->unsent.next = ex->unsent.next;
    else
        all->first = ex->unsent.next;
    if (ex->unsent.next)
        ex->unsent.next->unsent.prev = ex->unsent.prev;
    else
        all->last = ex->unsent.prev;
    ex->unsent.next = ex->unsent.prev = NULL;
}
