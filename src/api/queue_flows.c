#include "api/queue_flows.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "jobs/job_notices.h"

#include "base/banned.h"

enum { SAVED_A_TURN = 500, SAVE_MS = 5000, SWEEP_MS = 30000 };

struct flow_entry {
    struct map_node node;
    int64_t client;
    struct queue_flow flow;   /* the part that is in no row yet */
    struct queue_flow saving; /* a part of it that is on its way into the row */
    bool is_saving;
    size_t queue_len;
    char queue[];
};

struct queue_flows {
    pthread_mutex_t lock;
    struct map entries;
    int64_t saved_ms, swept_ms;
};

struct queue_flows *queue_flows_new(void)
{
    struct queue_flows *f = must_alloc(sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void free_entry(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct flow_entry, node));
}

struct queue_flows *queue_flows_free(struct queue_flows *f)
{
    if (!f)
        return NULL;
    map_drain(&f->entries, free_entry, NULL);
    map_free(&f->entries);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}

static struct str queue_of(const struct flow_entry *e)
{
    return (struct str){e->queue, e->queue_len};
}

static struct flow_entry *need_entry(struct queue_flows *f, int64_t client, struct str queue)
{
    uint64_t hash = hash_mix((uint64_t)client ^ hash_secret(queue.ptr, queue.len));
    for (struct map_node *n = map_first(&f->entries, hash); n; n = map_next(n)) {
        struct flow_entry *e = CONTAINER_OF(n, struct flow_entry, node);
        if (e->client == client && str_equal(queue_of(e), queue))
            return e;
    }
    if (f->entries.count >= FLOWS_MAX)
        return NULL;
    struct flow_entry *e = must_alloc(sizeof *e + queue.len + 1);
    e->client = client;
    e->queue_len = queue.len;
    memcpy(e->queue, queue.ptr, queue.len);
    map_put(&f->entries, &e->node, hash);
    return e;
}

void queue_flows_committed(struct queue_flows *f, const struct unit *u)
{
    const struct job_notice *n;
    pthread_mutex_lock(&f->lock);
    for (size_t at = 0; (n = job_notices_next_end(&u->notices, &at));) {
        struct flow_entry *e = need_entry(f, n->client, n->queue);
        bool success = job_notice_is_success(n);
        if (e)
            flow_add(&e->flow, u->now_ms, success, !success);
    }
    pthread_mutex_unlock(&f->lock);
}

/* --- saving ---------------------------------------------------------------------------------------- */

struct sweep {
    int64_t slot;
    struct flow_entry **idle;
    size_t count;
};

static void note_idle(struct map_node *n, void *arg)
{
    struct sweep *s = arg;
    struct flow_entry *e = CONTAINER_OF(n, struct flow_entry, node);
    if (!e->is_saving && (e->flow.slot <= s->slot - FLOW_SLOTS || flow_is_empty(&e->flow)))
        s->idle[s->count++] = e;
}

static void sweep(struct queue_flows *f, int64_t now_ms)
{
    if (now_ms - f->swept_ms < SWEEP_MS && now_ms >= f->swept_ms)
        return;
    f->swept_ms = now_ms;
    struct sweep s = {.slot = now_ms / FLOW_SLOT_MS};
    s.idle = must_alloc((f->entries.count + 1) * sizeof(void *));
    map_each(&f->entries, note_idle, &s);
    for (size_t i = 0; i < s.count; i++) {
        map_remove(&f->entries, &s.idle[i]->node);
        free(s.idle[i]);
    }
    free(s.idle);
}

struct some {
    struct arena *arena;
    struct queue_flow_row rows[SAVED_A_TURN]; /* the amounts to be added */
    size_t count;
};

static void take_some(struct map_node *n, void *arg)
{
    struct some *s = arg;
    struct flow_entry *e = CONTAINER_OF(n, struct flow_entry, node);
    if (s->count == SAVED_A_TURN || flow_is_empty(&e->flow))
        return;
    e->saving = e->flow;
    e->is_saving = true;
    s->rows[s->count++] = (struct queue_flow_row){
        .client = e->client,
        .queue = arena_str(s->arena, queue_of(e)),
        .slot = e->flow.slot,
        .counts = arena_str(s->arena, flow_bytes(&e->flow.counts)),
    };
}

static void add_to_row(struct unit *u, const struct queue_flow_row *more)
{
    struct queue_flow_row *row = unit_row(u, &table_queue_flow_row, more);
    struct queue_flow sum = row ? flow_from_bytes(row->slot, row->counts) : (struct queue_flow){0};
    struct queue_flow add = flow_from_bytes(more->slot, more->counts);
    flow_merge(&sum, &add);
    bool is_new = !row;
    if (is_new) {
        row = ARENA_NEW(u->arena, struct queue_flow_row);
        *row = *more;
    }
    row->slot = sum.slot;
    row->counts = arena_str(u->arena, flow_bytes(&sum.counts));
    if (is_new)
        unit_insert(u, &table_queue_flow_row, row);
    else
        unit_update(u, &table_queue_flow_row, row);
}

bool queue_flows_save(struct queue_flows *f, struct unit *u)
{
    struct some *some = ARENA_NEW(u->arena, struct some);
    some->arena = u->arena;
    pthread_mutex_lock(&f->lock);
    sweep(f, u->now_ms);
    bool is_time = u->store->shared && (u->now_ms - f->saved_ms >= SAVE_MS || u->now_ms < f->saved_ms);
    if (is_time)
        map_each(&f->entries, take_some, some);
    if (is_time && some->count < SAVED_A_TURN)
        f->saved_ms = u->now_ms;
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < some->count; i++)
        unit_prefetch(u, &table_queue_flow_row, &some->rows[i]);
    (void)unit_load(u);
    for (size_t i = 0; i < some->count && u->load_err.code == ERR_OK; i++)
        add_to_row(u, &some->rows[i]);
    return some->count == SAVED_A_TURN;
}

static void end_saving(struct map_node *n, void *arg)
{
    struct flow_entry *e = CONTAINER_OF(n, struct flow_entry, node);
    if (e->is_saving && *(const bool *)arg)
        flow_subtract(&e->flow, &e->saving);
    e->is_saving = false;
}

void queue_flows_saved(struct queue_flows *f, bool stored)
{
    pthread_mutex_lock(&f->lock);
    map_each(&f->entries, end_saving, &stored);
    pthread_mutex_unlock(&f->lock);
}

/* --- asking ---------------------------------------------------------------------------------------- */

struct asking {
    int64_t client;
    queue_flow_fn *fn;
    void *arg;
};

static void tell_one(struct map_node *n, void *arg)
{
    const struct asking *a = arg;
    const struct flow_entry *e = CONTAINER_OF(n, struct flow_entry, node);
    if (!a->client || e->client == a->client)
        a->fn(e->client, queue_of(e), &e->flow, a->arg);
}

void queue_flows_each(struct queue_flows *f, int64_t client, queue_flow_fn *fn, void *arg)
{
    struct asking a = {client, fn, arg};
    pthread_mutex_lock(&f->lock);
    map_each(&f->entries, tell_one, &a);
    pthread_mutex_unlock(&f->lock);
}
