/* Large bodies (32 KB and more) take milliseconds to read, check, store and answer.
 *
 * The sender of a large body is served after all other connections: one such connection a round, and few at a
 * time. Sixty-four connections of one client then take no more of the server than a handful, and the bodies
 * that are not read yet wait in their sockets. The senders take turns; a sender is told by its Authorization
 * header. */
#include "http/heavy.h"

#include "base/hash.h"
#include "base/must.h"
#include "http/http_internal.h"

#include "base/banned.h"

enum {
    UNDER_WAY_MAX = 2,   /* a loop: one is read while another is stored */
    WAIT_MS_MAX = 1000,  /* the one under way may be stuck: the next one goes on after this time */
    LOOKED_THROUGH = 64, /* for another sender */
};

void heavy_queue(struct http_conn *c)
{
    struct heavy *h = &c->loop->heavy;
    if (c->queued)
        return;
    c->queued = true;
    c->heavy.since_ms = c->loop->now_ms;
    c->next_queued = NULL;
    if (h->last)
        h->last->next_queued = c;
    else
        h->first = c;
    h->last = c;
}

void heavy_begins(struct http_conn *c)
{
    c->heavy.is = c->x->pub.body.len >= HEAVY_BODY_BYTES;
    if (!c->heavy.is)
        return;
    struct str sender = http_header(&c->x->pub, "Authorization");
    c->heavy.sender = hash_fnv1a(HASH_FNV_START, sender.ptr, sender.len);
    c->x->heavy = true;
    c->loop->heavy.under_way++;
}

void heavy_ends(struct http_loop *l, struct exchange *ex)
{
    l->heavy.under_way -= ex->heavy;
    ex->heavy = false;
}

int64_t heavy_next_ms(const struct http_loop *l)
{
    const struct heavy *h = &l->heavy;
    if (!h->first)
        return INT64_MAX;
    return h->under_way < UNDER_WAY_MAX ? l->now_ms : h->first->heavy.since_ms + WAIT_MS_MAX;
}

/* NULL: the first of the queue. */
static struct http_conn *take_behind(struct heavy *h, struct http_conn *before)
{
    struct http_conn *c = before ? before->next_queued : h->first;
    if (before)
        before->next_queued = c->next_queued;
    else
        h->first = c->next_queued;
    if (h->last == c)
        h->last = before;
    c->queued = false;
    return c;
}

/* The first of another sender than the last one; else the first. */
static struct http_conn *take_next(struct heavy *h)
{
    struct http_conn *before = NULL;
    uint32_t looked = 0;
    for (struct http_conn *c = h->first; c && looked < LOOKED_THROUGH; c = c->next_queued, looked++) {
        if (c->heavy.sender != h->sender)
            return take_behind(h, before);
        before = c;
    }
    return take_behind(h, NULL);
}

/* They would be freed only when their turn has come. */
static void drop_closed(struct heavy *h)
{
    struct http_conn *before = NULL;
    for (struct http_conn *c = h->first; c;) {
        struct http_conn *next = c->next_queued;
        if (c->state == CONN_CLOSED)
            (void)take_behind(h, before);
        else
            before = c;
        c = next;
    }
}

void heavy_run(struct http_loop *l)
{
    struct heavy *h = &l->heavy;
    if (l->closed)
        drop_closed(h);
    if (heavy_next_ms(l) > l->now_ms)
        return;
    struct http_conn *c = take_next(h);
    h->sender = c->heavy.sender;
    conn_on_turn(c);
}

void heavy_drop_all(struct http_loop *l)
{
    while (l->heavy.first)
        (void)take_behind(&l->heavy, NULL);
}
