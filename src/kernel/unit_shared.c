/* A shared store's part in memory: what a batch asked for comes in one round trip, the rows that its load
 * steps want in another; and whatever was forgotten to ask for is fetched when it is looked for. So asking is
 * a matter of speed, never of being right. */
#include "base/hash.h"
#include "base/must.h"
#include "kernel/task_owner.h"
#include "kernel/unit_internal.h"

#include "base/banned.h"

struct known_task {
    struct map_node node;
    int64_t id;
};

static bool is_known(const struct unit *u, int64_t id)
{
    for (struct map_node *n = map_first(&u->asked.known, hash_mix((uint64_t)id)); n; n = map_next(n))
        if (CONTAINER_OF(n, struct known_task, node)->id == id)
            return true;
    return false;
}

void unit_know_task(struct unit *u, int64_t id)
{
    if (!u->store->shared || is_known(u, id))
        return;
    struct known_task *k = ARENA_NEW(u->arena, struct known_task);
    k->id = id;
    map_put(&u->asked.known, &k->node, hash_mix((uint64_t)id));
}

/* --- asking ---------------------------------------------------------------------------------------- */

void unit_ask_task(struct unit *u, int64_t id)
{
    struct unit_asked *a = &u->asked;
    if (!u->store->shared || is_known(u, id))
        return;
    a->tasks = unit_grow(u, a->tasks, a->task_count, &a->task_capacity, sizeof *a->tasks);
    a->tasks[a->task_count++] = id;
    unit_know_task(u, id);
}

void unit_ask_claim(struct unit *u, const struct load_claim *claim)
{
    struct unit_asked *a = &u->asked;
    if (!u->store->shared || !claim->max)
        return;
    a->claims = unit_grow(u, a->claims, a->claim_count, &a->claim_capacity, sizeof *a->claims);
    a->claims[a->claim_count++] = *claim;
}

void unit_ask_key(struct unit *u, int64_t client, struct str key)
{
    struct unit_asked *a = &u->asked;
    if (!u->store->shared || !key.ptr)
        return;
    a->keys = unit_grow(u, a->keys, a->key_count, &a->key_capacity, sizeof *a->keys);
    a->keys[a->key_count++] = (struct load_key){client, key};
}

struct unit_row *unit_want_later(struct unit *u, const struct table *t, void *row)
{
    struct unit_asked *a = &u->asked;
    struct unit_row *r = unit_add_row(u, t, row);
    r->pending = true;
    a->rows = unit_grow(u, a->rows, a->row_count, &a->row_capacity, sizeof *a->rows);
    a->rows[a->row_count++] = (struct load_row){.table = t, .row = row};
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
    for (size_t i = 0; i < u->asked.row_count; i++) {
        const struct load_row *l = &u->asked.rows[i];
        if (l->later && u->load_err.code == ERR_OK) {
            u->asked.rows[later++] = *l;
            continue;
        }
        struct unit_row *r = unit_find_row(u, l->table, l->row);
        MUST(r && r->pending);
        r->pending = false;
        r->stored = r->exists = l->found;
    }
    u->asked.row_count = later;
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

void unit_load_asked(struct unit *u, uint32_t due_max)
{
    struct unit_asked *a = &u->asked;
    struct load_set set = {.tasks = a->tasks,
                           .task_count = a->task_count,
                           .claims = a->claims,
                           .claim_count = a->claim_count,
                           .keys = a->keys,
                           .key_count = a->key_count,
                           .rows = a->rows,
                           .row_count = a->row_count,
                           .row_bytes_max = unit_room(u),
                           .due_max = due_max,
                           .now_ms = u->now_ms,
                           .next_due_ms = INT64_MAX};
    struct err err = {.code = ERR_OK};
    if (!a->task_count && !a->claim_count && !a->key_count && !a->row_count && !due_max)
        return;
    if (u->store->ops->load(u->store, &set, u->arena, &err) != ERR_OK)
        failed(u, &err);
    rows_loaded(u);
    a->next_due_ms = set.next_due_ms;
    a->task_count = a->claim_count = a->key_count = 0;
    live_each(u->store->live, resume, u); /* all are placed: the table that is walked does not change */
}

void unit_load_wanted(struct unit *u)
{
    if (u->asked.row_count)
        unit_load_asked(u, 0);
}

struct task *unit_fetch_task(struct unit *u, int64_t id)
{
    struct task_row row = {.id = id};
    struct err err = {.code = ERR_OK};
    bool found = false;
    if (is_known(u, id))
        return NULL;
    unit_know_task(u, id);
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

void unit_suspect(struct unit *u, const struct err *err)
{
    if (!u->store->shared || u->believes)
        return;
    struct err suspected = *err;
    suspected.conflict = true;
    failed(u, &suspected);
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
