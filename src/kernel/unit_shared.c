/* The additional part of a unit on a store with other writers: its part of the store in memory. The rows that
 * the load steps want come together, in one round trip; rows that they forgot are fetched when they are
 * looked for. */
#include "base/hash.h"
#include "base/must.h"
#include "kernel/task_owner.h"
#include "kernel/unit_internal.h"

#include "base/banned.h"

/* A task that was looked for, by its id; or who wanted something that is brought once. */
struct known_thing {
    struct map_node node;
    int64_t task;
    const void *asker;
    uint32_t loads; /* when it was wanted: with the next load it is there */
};

static uint64_t thing_hash(int64_t task, const void *asker)
{
    return hash_mix((uint64_t)task ^ (uint64_t)(uintptr_t)asker);
}

static const struct known_thing *find_known(const struct unit *u, int64_t task, const void *asker)
{
    for (struct map_node *n = map_first(&u->wanted.known, thing_hash(task, asker)); n; n = map_next(n)) {
        const struct known_thing *k = CONTAINER_OF(n, struct known_thing, node);
        if (k->task == task && k->asker == asker)
            return k;
    }
    return NULL;
}

/* False: it is known already. */
static bool get_to_know(struct unit *u, int64_t task, const void *asker)
{
    if (find_known(u, task, asker))
        return false;
    struct known_thing *k = ARENA_NEW(u->arena, struct known_thing);
    k->task = task;
    k->asker = asker;
    k->loads = u->wanted.loads;
    map_put(&u->wanted.known, &k->node, thing_hash(task, asker));
    return true;
}

void unit_know_task(struct unit *u, int64_t id)
{
    if (u->store->shared)
        (void)get_to_know(u, id, NULL);
}

/* --- wanting --------------------------------------------------------------------------------------- */

struct task *unit_prefetch_task(struct unit *u, int64_t id)
{
    struct unit_wanted *w = &u->wanted;
    struct task *t = live_find(u->store->live, id);
    if (t || !u->store->shared)
        return t;
    if (w->at_once)
        return unit_fetch_task(u, id);
    if (get_to_know(u, id, NULL)) {
        w->tasks = unit_grow(u, w->tasks, w->task_count, &w->task_capacity, sizeof *w->tasks);
        w->tasks[w->task_count++] = id;
        w->has_new = true;
    }
    return NULL;
}

bool unit_task_is_gone(const struct unit *u, int64_t id)
{
    if (live_find(u->store->live, id))
        return false;
    const struct known_thing *k = u->store->shared ? find_known(u, id, NULL) : NULL;
    return !u->store->shared || (k && (k->loads < u->wanted.loads || u->wanted.at_once));
}

void unit_prefetch_claim(struct unit *u, const void *asker, const struct load_claim *claim)
{
    struct unit_wanted *w = &u->wanted;
    if (!u->store->shared || !claim->max || !get_to_know(u, 0, asker))
        return;
    w->claims = unit_grow(u, w->claims, w->claim_count, &w->claim_capacity, sizeof *w->claims);
    w->claims[w->claim_count++] = *claim;
    w->has_new = true;
}

void unit_prefetch_key(struct unit *u, int64_t client, struct str key)
{
    struct unit_wanted *w = &u->wanted;
    if (!u->store->shared || !get_to_know(u, 0, key.ptr))
        return;
    w->keys = unit_grow(u, w->keys, w->key_count, &w->key_capacity, sizeof *w->keys);
    w->keys[w->key_count++] = (struct load_key){client, key};
    w->has_new = true;
    if (w->at_once)
        unit_load_all(u, 0);
}

struct unit_row *unit_prefetch_later(struct unit *u, const struct table *t, void *row)
{
    struct unit_wanted *w = &u->wanted;
    struct unit_row *r = unit_add_row(u, t, row);
    r->pending = true;
    w->rows = unit_grow(u, w->rows, w->row_count, &w->row_capacity, sizeof *w->rows);
    w->rows[w->row_count++] = (struct load_row){.table = t, .row = row};
    w->has_new = true;
    return r;
}

/* --- loading --------------------------------------------------------------------------------------- */

/* Runtime limits are not stored: they follow from the start. */
static void resume(struct task *t, void *arg)
{
    struct unit *u = arg;
    if (t->phase != TASK_RUNNING || t->touch)
        return;
    t->run_until_ms = t->row.started_ms + task_runtime_limit_ms(u->settings, t);
    unit_task_place(u, t);
}

/* Those for which there was no room are wanted on. */
static void rows_loaded(struct unit *u)
{
    size_t later = 0;
    for (size_t i = 0; i < u->wanted.row_count; i++) {
        const struct load_row *l = &u->wanted.rows[i];
        if (l->later && u->load_err.code == ERR_OK) {
            u->wanted.rows[later++] = *l;
            continue;
        }
        struct unit_row *r = unit_find_row(u, l->table, l->row);
        MUST(r && r->pending);
        r->pending = false;
        r->stored = r->exists = l->found;
    }
    u->wanted.row_count = later;
}

static void failed(struct unit *u, const struct err *err)
{
    if (u->load_err.code == ERR_OK)
        u->load_err = *err;
}

static int64_t unit_room(const struct unit *u)
{
    size_t used = arena_bytes(u->arena);
    return used < UNIT_BYTES_MAX ? UNIT_BYTES_MAX - (int64_t)used : 1;
}

void unit_load_all(struct unit *u, uint32_t due_max)
{
    struct unit_wanted *w = &u->wanted;
    struct load_set set = {.tasks = w->tasks,
                           .task_count = w->task_count,
                           .claims = w->claims,
                           .claim_count = w->claim_count,
                           .keys = w->keys,
                           .key_count = w->key_count,
                           .rows = w->rows,
                           .row_count = w->row_count,
                           .row_bytes_max = unit_room(u),
                           .due_max = due_max,
                           .now_ms = u->now_ms,
                           .next_due_ms = INT64_MAX};
    struct err err = {.code = ERR_OK};
    if (u->store->ops->load(u->store, &set, u->arena, &err) != ERR_OK)
        failed(u, &err);
    rows_loaded(u);
    if (due_max)
        w->next_due_ms = set.next_due_ms;
    w->task_count = w->claim_count = w->key_count = 0;
    w->has_new = false;
    w->loads++;
    live_each(u->store->live, resume, u); /* all are placed: the table that is walked does not change */
}

bool unit_load(struct unit *u)
{
    bool loads = u->wanted.has_new && u->load_err.code == ERR_OK;
    if (loads)
        unit_load_all(u, 0);
    return loads;
}

struct task *unit_fetch_task(struct unit *u, int64_t id)
{
    struct task_row row = {.id = id};
    struct err err = {.code = ERR_OK};
    bool found = false;
    if (!get_to_know(u, id, NULL))
        return NULL;
    if (u->store->ops->fetch(u->store, &table_task_row, &row, u->arena, &found, &err) != ERR_OK)
        failed(u, &err);
    if (!found)
        return NULL;
    struct task *t = live_task_new(u->store->live, &row);
    live_set_worker(u->store->live, t, row.worker, 0);
    unit_task_place(u, t);
    resume(t, u);
    return t;
}

void unit_report_inconsistent(struct unit *u, const struct err *err)
{
    if (!u->store->shared || u->trusts_reads)
        return;
    struct err conflict = *err;
    conflict.conflict = true;
    failed(u, &conflict);
}

/* --- tasks --------------------------------------------------------------------------------------- */

bool unit_has_all_about(const struct unit *u, const struct task *t)
{
    return !u->store->shared || t->about_loaded;
}

void unit_task_touch_times(struct unit *u, struct task *t)
{
    if (u->store->shared)
        unit_task_touch(u, t);
}

/* Of a running task none goes beyond the limit of the run where others look through the leases. */
int64_t unit_lease_until_ms(const struct unit *u, const struct task *t)
{
    int64_t until = u->steady_ceil_ms + u->settings->queue_lease_ms;
    return u->store->shared && t->run_until_ms < until ? t->run_until_ms : until;
}

/* --- numbers --------------------------------------------------------------------------------------- */

bool unit_take_room(struct unit *u, struct room *r)
{
    if (u->census)
        return census_take(u->census, &u->counted, r);
    r->live = live_count(u->store->live);
    r->ready = live_phase_count(u->store->live, TASK_READY);
    return (r->live_max < 0 || r->live < r->live_max) && (r->ready_max < 0 || r->ready < r->ready_max);
}

void unit_give_room_back(struct unit *u, const struct room *r)
{
    if (u->census)
        census_give_back(u->census, &u->counted, r);
}
