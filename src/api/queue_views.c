#include "api/queue_views.h"

#include <stdlib.h>

#include "base/hash.h"
#include "lifecycle/key_power.h"

#include "base/banned.h"

struct collecting {
    struct arena *arena;
    struct str queues;
    struct map by_name;
    int64_t client;
};

static struct queue_view *find(const struct map *m, struct str queue)
{
    for (struct map_node *n = map_first(m, hash_secret(queue.ptr, queue.len)); n; n = map_next(n)) {
        struct queue_view *v = CONTAINER_OF(n, struct queue_view, node);
        if (str_equal(v->sum.queue, queue))
            return v;
    }
    return NULL;
}

/* NULL: the caller may not see it. */
static struct queue_view *need(struct collecting *c, struct str queue)
{
    if (!key_queues_have(c->queues, queue))
        return NULL;
    struct queue_view *v = find(&c->by_name, queue);
    if (v)
        return v;
    v = ARENA_NEW(c->arena, struct queue_view);
    v->sum.queue = arena_str(c->arena, queue);
    v->defaults = queue_defaults_of(NULL);
    map_put(&c->by_name, &v->node, hash_secret(queue.ptr, queue.len));
    return v;
}

static bool add_sum(const struct queue_sum *q, void *arg)
{
    struct queue_view *v = need(arg, q->queue);
    if (!v)
        return true;
    v->sum.queued += q->queued;
    v->sum.running += q->running;
    v->sum.scheduled += q->scheduled;
    if (q->oldest_us && (!v->sum.oldest_us || q->oldest_us < v->sum.oldest_us))
        v->sum.oldest_us = q->oldest_us;
    return true;
}

static bool add_settings(const void *row, void *arg)
{
    const struct queue_row *r = row;
    struct collecting *c = arg;
    struct queue_view *v = need(c, r->queue);
    if (!v)
        return true;
    v->is_set = true;
    v->paused |= r->paused != 0;
    if (c->client)
        v->defaults = queue_defaults_of(r);
    return true;
}

static void add_flow(int64_t client, struct str queue, const struct queue_flow *flow, void *arg)
{
    (void)client;
    struct queue_view *v = flow_is_empty(flow) ? NULL : need(arg, queue);
    if (v)
        flow_merge(&v->flow, flow);
}

static bool add_stored_flow(const void *row, void *arg)
{
    const struct queue_flow_row *r = row;
    struct queue_flow flow = flow_from_bytes(r->slot, r->counts);
    add_flow(r->client, r->queue, &flow, arg);
    return true;
}

static enum err_code read_rows(struct reader *r, const struct table *t, int64_t client, store_row_fn *fn,
                               struct collecting *c, struct err *err)
{
    return client ? r->ops->reader_of_client(r, t, client, fn, c, err)
                  : r->ops->reader_scan(r, t, fn, c, err);
}

static int by_name(const void *a, const void *b)
{
    struct str x = (*(struct queue_view *const *)a)->sum.queue,
               y = (*(struct queue_view *const *)b)->sum.queue;
    int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

struct filling {
    struct queue_views *views;
    int64_t now_ms;
};

/* Attempts that ended more than a minute ago make no queue. */
static void put_view(struct map_node *n, void *arg)
{
    const struct filling *f = arg;
    struct queue_view *v = CONTAINER_OF(n, struct queue_view, node);
    flow_per_minute(&v->flow, f->now_ms, &v->completed_per_minute, &v->failed_per_minute);
    if (v->is_set || v->sum.queued || v->sum.running || v->sum.scheduled || v->completed_per_minute ||
        v->failed_per_minute)
        f->views->list[f->views->count++] = v;
}

enum err_code queue_views_read(struct queue_flows *flows, struct reader *r, struct arena *a, int64_t client,
                               struct str queues, int64_t now_ms, struct queue_views *ret, struct err *err)
{
    struct collecting c = {.arena = a, .queues = queues, .client = client};
    *err = (struct err){.code = ERR_OK};
    if (r->ops->reader_queues(r, client, add_sum, &c, err) == ERR_OK &&
        read_rows(r, &table_queue_row, client, add_settings, &c, err) == ERR_OK && r->store->shared)
        (void)!read_rows(r, &table_queue_flow_row, client, add_stored_flow, &c, err);
    if (err->code == ERR_OK) {
        queue_flows_each(flows, client, add_flow, &c);
        *ret = (struct queue_views){.list = ARENA_ARRAY(a, struct queue_view *, c.by_name.count + 1)};
        map_each(&c.by_name, put_view, &(struct filling){ret, now_ms});
        qsort(ret->list, ret->count, sizeof(struct queue_view *), by_name);
    }
    map_free(&c.by_name);
    return err->code;
}

const struct queue_view *queue_views_find(const struct queue_views *v, struct str queue)
{
    for (size_t i = 0; i < v->count; i++)
        if (str_equal(v->list[i]->sum.queue, queue))
            return v->list[i];
    return NULL;
}
