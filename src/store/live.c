#include "store/live.h"

#include <stdlib.h>

#include "base/must.h"
#include "lifecycle/delivery_lifecycle.h"
#include "store/live_internal.h"
#include "store/log.h"

#include "base/banned.h"

enum { REFS_FIRST = 8 * sizeof(uint64_t) }; /* most jobs have fewer events in their life */

struct live *live_new(void)
{
    struct live *l = must_alloc(sizeof *l);
    l->receivers.slots = UINT32_MAX;
    return l;
}

void live_free_str(struct str s)
{
    free((char *)(uintptr_t)s.ptr);
}

struct str live_copy_str(struct str s)
{
    if (!s.ptr)
        return s;
    char *p = must_alloc(s.len + 1);
    memcpy(p, s.ptr, s.len);
    return (struct str){p, s.len};
}

/* One block holds the task, its first refs and its queue's name; refs that outgrow it move out. */
struct task *live_task_new(struct live *l, const struct task_row *row)
{
    (void)l;
    uint32_t capacity = row->refs.len > REFS_FIRST ? (uint32_t)row->refs.len : REFS_FIRST;
    struct task *t = must_alloc(sizeof *t + capacity + row->queue.len + 1);
    char *refs = (char *)t->room, *queue = refs + capacity;
    t->row = *row;
    t->row.worker = STR_ABSENT;
    t->refs_capacity = capacity;
    memcpy(queue, row->queue.ptr, row->queue.len);
    t->row.queue = (struct str){queue, row->queue.len};
    if (row->refs.len)
        memcpy(refs, row->refs.ptr, row->refs.len);
    t->row.refs = (struct str){refs, row->refs.len};
    t->row.progress = live_copy_str(row->progress);
    return t;
}

static bool refs_moved_out(const struct task *t)
{
    return t->row.refs.ptr != (const char *)t->room;
}

static void leave_worker(struct task *t)
{
    if (t->worker)
        t->worker->tasks--;
    t->worker = NULL;
    t->row.worker = STR_ABSENT;
}

void live_task_free(struct live *l, struct task *t)
{
    (void)l;
    leave_worker(t);
    if (refs_moved_out(t))
        live_free_str(t->row.refs);
    live_free_str(t->row.progress);
    free(t);
}

void task_add_ref(struct task *t, uint64_t ref)
{
    char *refs = (char *)(uintptr_t)t->row.refs.ptr;
    if (t->row.refs.len + sizeof ref > t->refs_capacity) {
        bool moved = refs_moved_out(t);
        t->refs_capacity *= 2;
        char *bigger = must_realloc(moved ? refs : NULL, t->refs_capacity);
        if (!moved)
            memcpy(bigger, refs, t->row.refs.len);
        refs = bigger;
    }
    memcpy(refs + t->row.refs.len, &ref, sizeof ref);
    t->row.refs = (struct str){refs, t->row.refs.len + sizeof ref};
}

/* --- placing ----------------------------------------------------------------------------------- */

static void timers_remove(struct live *l, struct task *t)
{
    if (!heap_holds(&t->timer))
        return;
    heap_remove(heap_has(&l->steady_timers, &t->timer) ? &l->steady_timers : &l->wall_timers, &t->timer);
}

/* Out of every index but the one by id, which no change of a task moves it in. */
static void leave_phase(struct live *l, struct task *t)
{
    ready_remove(l, t);
    timers_remove(l, t);
    if (t->placed) {
        l->jobs_by_phase[t->phase] -= task_is_job(&t->row);
        l->deliveries -= t->deliveries;
    }
}

void live_take(struct live *l, struct task *t)
{
    leave_phase(l, t);
    if (t->placed)
        map_remove(&l->by_id, &t->node);
    t->placed = false;
    if (t->receiver) {
        ready_admit(l, t->receiver);
        receivers_leave(&l->receivers, t->receiver);
        t->receiver = NULL;
    }
}

enum task_phase task_row_phase(const struct task_row *row)
{
    return (enum task_phase)row->state;
}

static uint32_t deliveries_of(const struct task_row *row)
{
    return task_is_stream(row) ? (uint32_t)(log_ref_count(row->refs) - (size_t)row->done) : 0;
}

void live_place(struct live *l, struct task *t, int64_t wall_ms)
{
    leave_phase(l, t);
    t->phase = task_row_phase(&t->row);
    MUST(t->phase != TASK_ENDED);
    if (!t->placed)
        map_put(&l->by_id, &t->node, live_id_hash(t->row.id));
    t->placed = true;
    l->jobs_by_phase[t->phase] += task_is_job(&t->row);
    t->deliveries = deliveries_of(&t->row);
    l->deliveries += t->deliveries;
    if (t->row.target && !t->receiver)
        t->receiver = receivers_join(&l->receivers, t->row.target);
    bool leased = t->phase == TASK_LEASED || t->phase == TASK_RUNNING;
    if (leased) {
        int64_t at = t->row.lease_ms;
        if (t->phase == TASK_RUNNING && t->run_until_ms < at)
            at = t->run_until_ms;
        heap_put(&l->steady_timers, &t->timer, (uint64_t)(at < 0 ? 0 : at));
        ready_claimed(l, t);
    } else if (t->phase == TASK_WAITING || t->row.due_ms > wall_ms) {
        heap_put(&l->wall_timers, &t->timer, (uint64_t)(t->row.due_ms < 0 ? 0 : t->row.due_ms));
    } else {
        ready_put(l, t);
        if (t->row.expire_ms)
            heap_put(&l->steady_timers, &t->timer, (uint64_t)(t->row.expire_ms < 0 ? 0 : t->row.expire_ms));
    }
    if (t->receiver)
        ready_admit(l, t->receiver);
}

void live_set_worker(struct live *l, struct task *t, struct str worker_id, int64_t steady_ms)
{
    leave_worker(t);
    if (!worker_id.ptr)
        return;
    t->worker = live_worker(l, worker_id, steady_ms);
    t->worker->tasks++;
    t->row.worker = t->worker->id;
}

/* --- questions --------------------------------------------------------------------------------- */

struct task *live_find(const struct live *l, int64_t id)
{
    for (struct map_node *n = map_first(&l->by_id, live_id_hash(id)); n; n = map_next(n)) {
        struct task *t = CONTAINER_OF(n, struct task, node);
        if (t->row.id == id)
            return t;
    }
    return NULL;
}

struct task *live_best(const struct live *l, const struct live_claim *claim)
{
    struct heap_node *best = NULL;
    for (size_t i = 0; i < claim->queue_count; i++) {
        const struct ready_queue *q = ready_find_queue(l, claim->queues[i]);
        if (!q)
            continue;
        struct heap_node *first = heap_first(&q->lists);
        const struct ready_list *list = claim->client ? ready_find_list(q, claim->client)
                                        : first       ? CONTAINER_OF(first, struct ready_list, place)
                                                      : NULL;
        struct heap_node *task = list && !list->suspended ? heap_first(&list->tasks) : NULL;
        if (task && (!best || task->key < best->key))
            best = task;
    }
    return best ? CONTAINER_OF(best, struct task, ready) : NULL;
}

static struct task *due(const struct heap *h, int64_t now)
{
    struct heap_node *n = heap_first(h);
    return n && n->key <= (uint64_t)now ? CONTAINER_OF(n, struct task, timer) : NULL;
}

struct task *live_due_wall(const struct live *l, int64_t wall_ms)
{
    return due(&l->wall_timers, wall_ms);
}

struct task *live_due_steady(const struct live *l, int64_t steady_ms)
{
    return due(&l->steady_timers, steady_ms);
}

static int64_t next_key(const struct heap *h)
{
    struct heap_node *n = heap_first(h);
    return n ? (int64_t)n->key : INT64_MAX;
}

int64_t live_next_wall(const struct live *l)
{
    return next_key(&l->wall_timers);
}
int64_t live_next_steady(const struct live *l)
{
    return next_key(&l->steady_timers);
}
uint32_t live_size(const struct live *l)
{
    return (uint32_t)l->by_id.count;
}
uint32_t live_count(const struct live *l)
{
    uint32_t n = 0;
    for (int p = 0; p < TASK_ENDED; p++)
        n += l->jobs_by_phase[p];
    return n;
}
uint32_t live_phase_count(const struct live *l, enum task_phase p)
{
    return l->jobs_by_phase[p];
}
uint64_t live_deliveries(const struct live *l)
{
    return l->deliveries;
}
bool live_has_ready(const struct live *l)
{
    return l->queues.count != 0;
}

/* --- all of them ------------------------------------------------------------------------------- */

struct each {
    void (*fn)(struct task *t, void *arg);
    void *arg;
};

static void each_task(struct map_node *n, void *arg)
{
    const struct each *e = arg;
    e->fn(CONTAINER_OF(n, struct task, node), e->arg);
}

void live_each(const struct live *l, void (*fn)(struct task *t, void *arg), void *arg)
{
    struct each e = {fn, arg};
    map_each(&l->by_id, each_task, &e);
}

static void drain_task(struct map_node *n, void *arg)
{
    struct live *l = arg;
    struct task *t = CONTAINER_OF(n, struct task, node);
    ready_remove(l, t);
    timers_remove(l, t);
    if (t->receiver)
        receivers_leave(&l->receivers, t->receiver);
    live_task_free(l, t);
}

void live_clear(struct live *l)
{
    map_drain(&l->by_id, drain_task, l);
    memset(l->jobs_by_phase, 0, sizeof l->jobs_by_phase);
    l->deliveries = 0;
    receivers_clear(&l->receivers);
}

struct live *live_free(struct live *l)
{
    if (!l)
        return NULL;
    map_drain(&l->by_id, drain_task, l);
    live_workers_free(l);
    live_suspended_free(l);
    receivers_free(&l->receivers);
    map_free(&l->by_id);
    map_free(&l->queues);
    heap_free(&l->wall_timers);
    heap_free(&l->steady_timers);
    free(l);
    return NULL;
}
