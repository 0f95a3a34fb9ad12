#include "store/live.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { REFS_FIRST = 8 * sizeof(uint64_t) }; /* most jobs have fewer events in their life */

/* Ready tasks of one client in one queue. Its key in the queue's heap is its first task's key, so
 * "the best of this client" and "the best of all" are both one look. */
struct ready_list {
    struct map_node node;
    struct heap_node place;
    struct heap tasks;
    struct ready_queue *queue;
    int64_t client;
};

struct ready_queue {
    struct map_node node;
    struct heap lists;
    struct map by_client;
    char *name;
};

struct live {
    struct map by_id, queues, workers;
    struct heap wall_timers, steady_timers;
    uint32_t phase_counts[TASK_ENDED + 1];
    uint64_t seed[2];
};

struct live *live_new(void)
{
    struct live *l = must_alloc(sizeof *l);
    l->seed[0] = UINT64_C(0x77656972); /* names are bounded and few: no need for secrecy here */
    return l;
}

static uint64_t id_hash(int64_t id)
{
    return hash_mix((uint64_t)id);
}

static uint64_t text_hash(const struct live *l, struct str s)
{
    return hash_sip(l->seed, s.ptr, s.len);
}

static void free_str(struct str s)
{
    free((char *)(uintptr_t)s.ptr);
}

static struct str copy_str(struct str s)
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
        free_str(t->row.refs);
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

/* --- ready queues ------------------------------------------------------------------------------ */

static struct ready_queue *find_queue(const struct live *l, struct str name)
{
    for (struct map_node *n = map_first(&l->queues, text_hash(l, name)); n; n = map_next(n)) {
        struct ready_queue *q = CONTAINER_OF(n, struct ready_queue, node);
        if (str_is(name, q->name))
            return q;
    }
    return NULL;
}

static struct ready_list *find_list(const struct ready_queue *q, int64_t client)
{
    for (struct map_node *n = map_first(&q->by_client, id_hash(client)); n; n = map_next(n)) {
        struct ready_list *list = CONTAINER_OF(n, struct ready_list, node);
        if (list->client == client)
            return list;
    }
    return NULL;
}

static struct ready_list *need_list(struct live *l, struct str queue, int64_t client)
{
    struct ready_queue *q = find_queue(l, queue);
    if (!q) {
        q = must_alloc(sizeof *q);
        q->name = (char *)(uintptr_t)copy_str(queue).ptr;
        map_put(&l->queues, &q->node, text_hash(l, queue));
    }
    struct ready_list *list = find_list(q, client);
    if (!list) {
        list = must_alloc(sizeof *list);
        list->queue = q;
        list->client = client;
        map_put(&q->by_client, &list->node, id_hash(client));
    }
    return list;
}

/* The list's place among its queue's lists follows its first task; an empty list and an empty queue go
 * away, so names invented by clients cost nothing once their jobs are gone. */
static void list_changed(struct live *l, struct ready_list *list)
{
    struct ready_queue *q = list->queue;
    struct heap_node *first = heap_first(&list->tasks);
    if (first) {
        heap_put(&q->lists, &list->place, first->key);
        return;
    }
    heap_remove(&q->lists, &list->place);
    map_remove(&q->by_client, &list->node);
    heap_free(&list->tasks);
    free(list);
    if (q->by_client.count)
        return;
    map_remove(&l->queues, &q->node);
    map_free(&q->by_client);
    heap_free(&q->lists);
    free(q->name);
    free(q);
}

static uint64_t ready_key(const struct task *t)
{
    return (uint64_t)(9 - t->row.priority) << 60 | (uint64_t)t->row.id;
}

static void ready_put(struct live *l, struct task *t)
{
    t->list = need_list(l, t->row.queue, t->row.client);
    heap_put(&t->list->tasks, &t->ready, ready_key(t));
    list_changed(l, t->list);
}

static void ready_remove(struct live *l, struct task *t)
{
    if (!t->list)
        return;
    heap_remove(&t->list->tasks, &t->ready);
    list_changed(l, t->list);
    t->list = NULL;
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
    if (t->placed)
        l->phase_counts[t->phase]--;
}

void live_take(struct live *l, struct task *t)
{
    leave_phase(l, t);
    if (t->placed)
        map_remove(&l->by_id, &t->node);
    t->placed = false;
}

void live_place(struct live *l, struct task *t, int64_t wall_ms)
{
    leave_phase(l, t);
    t->phase = job_state_phase((enum job_state)t->row.state);
    MUST(t->phase != TASK_ENDED);
    if (!t->placed)
        map_put(&l->by_id, &t->node, id_hash(t->row.id));
    t->placed = true;
    l->phase_counts[t->phase]++;
    bool leased = t->phase == TASK_LEASED || t->phase == TASK_RUNNING;
    if (leased) {
        int64_t at = t->row.lease_ms;
        if (t->phase == TASK_RUNNING && t->run_until_ms < at)
            at = t->run_until_ms;
        heap_put(&l->steady_timers, &t->timer, (uint64_t)(at < 0 ? 0 : at));
    } else if (t->phase == TASK_WAITING || t->row.due_ms > wall_ms) {
        heap_put(&l->wall_timers, &t->timer, (uint64_t)(t->row.due_ms < 0 ? 0 : t->row.due_ms));
    } else {
        ready_put(l, t);
    }
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
    for (struct map_node *n = map_first(&l->by_id, id_hash(id)); n; n = map_next(n)) {
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
        const struct ready_queue *q = find_queue(l, claim->queues[i]);
        if (!q)
            continue;
        struct heap_node *first = heap_first(&q->lists);
        const struct ready_list *list = claim->client ? find_list(q, claim->client)
                                        : first       ? CONTAINER_OF(first, struct ready_list, place)
                                                      : NULL;
        struct heap_node *task = list ? heap_first(&list->tasks) : NULL;
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
uint32_t live_count(const struct live *l)
{
    return (uint32_t)l->by_id.count;
}
uint32_t live_phase_count(const struct live *l, enum task_phase p)
{
    return l->phase_counts[p];
}
bool live_has_ready(const struct live *l)
{
    return l->queues.count != 0;
}

/* --- workers ----------------------------------------------------------------------------------- */

struct worker_seen *live_worker(struct live *l, struct str id, int64_t steady_ms)
{
    uint64_t hash = text_hash(l, id);
    for (struct map_node *n = map_first(&l->workers, hash); n; n = map_next(n)) {
        struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
        if (str_equal(w->id, id)) {
            if (steady_ms > w->last_seen_ms)
                w->last_seen_ms = steady_ms;
            return w;
        }
    }
    struct worker_seen *w = must_alloc(sizeof *w);
    w->id = copy_str(id);
    w->last_seen_ms = steady_ms;
    map_put(&l->workers, &w->node, hash);
    return w;
}

struct worker_count {
    int64_t after;
    uint32_t count;
};

static void count_worker(struct map_node *n, void *arg)
{
    struct worker_count *c = arg;
    c->count += CONTAINER_OF(n, struct worker_seen, node)->last_seen_ms >= c->after;
}

uint32_t live_worker_count(const struct live *l, int64_t seen_after_steady_ms)
{
    struct worker_count c = {seen_after_steady_ms, 0};
    map_each(&l->workers, count_worker, &c);
    return c.count;
}

static void free_worker(struct map_node *n, void *arg)
{
    (void)arg;
    struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
    free_str(w->id);
    free(w);
}

void live_forget_workers(struct live *l, int64_t seen_before_steady_ms)
{
    for (size_t i = 0; i < l->workers.slot_count; i++)
        for (struct map_node *n = l->workers.slots[i], *next; n; n = next) {
            next = n->next;
            struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
            if (w->tasks || w->last_seen_ms >= seen_before_steady_ms)
                continue;
            map_remove(&l->workers, n);
            free_worker(n, NULL);
        }
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
    live_task_free(l, t);
}

struct live *live_free(struct live *l)
{
    if (!l)
        return NULL;
    map_drain(&l->by_id, drain_task, l);
    map_drain(&l->workers, free_worker, NULL);
    map_free(&l->by_id);
    map_free(&l->queues);
    map_free(&l->workers);
    heap_free(&l->wall_timers);
    heap_free(&l->steady_timers);
    free(l);
    return NULL;
}
