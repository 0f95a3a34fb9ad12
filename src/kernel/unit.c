#include "kernel/unit_internal.h"

#include "base/hash.h"
#include "base/must.h"
#include "store/row_rules.h"

#include "base/banned.h"

void unit_start(struct unit *u)
{
    struct unit fresh = {.store = u->store,
                         .arena = u->arena,
                         .settings = u->settings,
                         .ids = u->ids,
                         .reader = u->reader,
                         .tells_attempts = u->tells_attempts,
                         .census = u->census,
                         .rows = u->rows,
                         .asked = {.known = u->asked.known, .next_due_ms = INT64_MAX},
                         .nearest_timer_ms = INT64_MAX};
    *u = fresh;
    arena_reset(u->arena);
    map_clear(&u->rows);
    map_clear(&u->asked.known);
    u->row_tail = &u->row_list;
    log_builder_start(&u->log, u->arena, u->store->next_chunk);
}

static uint64_t key_hash(const struct table *t, const void *row)
{
    uint64_t h = HASH_FNV_START ^ t->number;
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            h = hash_mix(h ^ (uint64_t)row_int(row, c));
        } else {
            struct str s = row_str(row, c);
            h = hash_fnv1a(h, s.ptr, s.len);
        }
    }
    return hash_mix(h);
}

static bool same_key(const struct table *t, const void *a, const void *b)
{
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        bool same =
            c->type == COLUMN_INT ? row_int(a, c) == row_int(b, c) : str_equal(row_str(a, c), row_str(b, c));
        if (!same)
            return false;
    }
    return true;
}

struct unit_row *unit_find_row(const struct unit *u, const struct table *t, const void *key)
{
    for (struct map_node *n = map_first(&u->rows, key_hash(t, key)); n; n = map_next(n)) {
        struct unit_row *r = CONTAINER_OF(n, struct unit_row, node);
        if (r->table == t && same_key(t, r->row, key))
            return r;
    }
    return NULL;
}

struct unit_row *unit_add_row(struct unit *u, const struct table *t, void *row)
{
    struct unit_row *r = ARENA_NEW(u->arena, struct unit_row);
    r->table = t;
    r->row = row;
    map_put(&u->rows, &r->node, key_hash(t, row));
    *u->row_tail = r;
    u->row_tail = &r->next;
    return r;
}

bool unit_knows(struct unit *u, const struct table *t, const void *key)
{
    return unit_find_row(u, t, key) != NULL;
}

void unit_want(struct unit *u, const struct table *t, const void *key)
{
    if (unit_find_row(u, t, key))
        return;
    void *row = arena_alloc(u->arena, t->row_size);
    memcpy(row, key, t->row_size);
    if (u->store->shared) {
        unit_want_later(u, t, row);
        return;
    }
    bool found = false;
    struct err err;
    if (u->store->ops->fetch(u->store, t, row, u->arena, &found, &err) != ERR_OK) {
        if (u->load_err.code == ERR_OK)
            u->load_err = err;
        return;
    }
    struct unit_row *r = unit_add_row(u, t, row);
    r->stored = r->exists = found;
}

void *unit_row(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = unit_find_row(u, t, key);
    MUST(r);
    if (r->pending)
        unit_load_wanted(u);
    return r->exists ? r->row : NULL;
}

void unit_insert(struct unit *u, const struct table *t, void *row)
{
    struct unit_row *r = unit_find_row(u, t, row);
    if (!r) {
        r = unit_add_row(u, t, row);
    } else {
        MUST(!r->exists);
        r->row = row;
        r->replaced = r->stored;
    }
    r->exists = r->dirty = true;
}

void unit_update(struct unit *u, const struct table *t, void *row)
{
    struct unit_row *r = unit_find_row(u, t, row);
    MUST(r && r->exists);
    r->row = row;
    r->dirty = true;
}

void unit_delete(struct unit *u, const struct table *t, const void *key)
{
    struct unit_row *r = unit_find_row(u, t, key);
    MUST(r && r->exists);
    r->exists = false;
}

/* --- live tasks -------------------------------------------------------------------------------- */

struct task *unit_task(struct unit *u, int64_t id)
{
    struct task *t = live_find(u->store->live, id);
    return t || !u->store->shared ? t : unit_fetch_task(u, id);
}

struct task *unit_task_about(struct unit *u, int64_t id, int64_t subject)
{
    const struct task *about = subject ? live_find(u->store->live, subject) : NULL;
    return about && about->about_loaded ? live_find(u->store->live, id) : unit_task(u, id);
}

static struct task_touch *touch(struct unit *u, struct task *t)
{
    if (t->touch)
        return t->touch;
    struct task_touch *x = ARENA_NEW(u->arena, struct task_touch);
    x->task = t;
    x->before = t->row;
    x->worker_before = t->row.worker;
    x->run_until_before = t->run_until_ms;
    x->next = u->touches;
    u->touches = x;
    t->touch = x;
    return x;
}

struct task *unit_task_add(struct unit *u, const struct task_row *row)
{
    struct task *t = live_task_new(u->store->live, row);
    unit_know_task(u, row->id);
    touch(u, t)->is_new = true;
    return t;
}

void unit_task_touch(struct unit *u, struct task *t)
{
    touch(u, t);
}

void unit_task_place(struct unit *u, struct task *t)
{
    live_place(u->store->live, t, u->now_ms);
}

void unit_task_end(struct unit *u, struct task *t)
{
    touch(u, t)->ended = true;
    unit_know_task(u, t->row.id);
    live_take(u->store->live, t);
}

static void undo(struct unit *u, struct task_touch *x)
{
    struct task *t = x->task;
    t->touch = NULL;
    live_take(u->store->live, t);
    if (x->is_new) {
        live_task_free(u->store->live, t);
        return;
    }
    struct str refs = {t->row.refs.ptr, x->before.refs.len}; /* refs only grow; the buffer may have moved */
    t->row = x->before;
    t->row.refs = refs;
    t->run_until_ms = x->run_until_before;
    live_set_worker(u->store->live, t, x->worker_before, 0);
    live_place(u->store->live, t, u->now_ms);
}

/* --- the rest ---------------------------------------------------------------------------------- */

int64_t unit_new_id(struct unit *u)
{
    int64_t id = uuid_v7_next_key(u->ids, u->now_ms);
    if (u->store->shared) { /* every lane of every node has ids of its own */
        id += (u->store->id_slot - id % STORE_ID_SLOTS + STORE_ID_SLOTS) % STORE_ID_SLOTS;
        u->ids->last_key = id;
    }
    u->store->last_id = id;
    return id;
}

void *unit_grow(struct unit *u, void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t want = *capacity ? *capacity * 2 : 64;
    void *bigger = arena_alloc(u->arena, want * size);
    if (count)
        memcpy(bigger, array, count * size);
    *capacity = want;
    return bigger;
}

void unit_list(struct unit *u, int64_t client, uint8_t bucket, int64_t id, bool removed)
{
    u->list = unit_grow(u, u->list, u->list_count, &u->list_capacity, sizeof *u->list);
    u->list[u->list_count++] = (struct list_entry){client, id, bucket, removed};
}

void unit_idem_add(struct unit *u, uint64_t hash, int64_t job)
{
    u->idem_add = unit_grow(u, u->idem_add, u->idem_add_count, &u->idem_add_capacity, sizeof *u->idem_add);
    u->idem_add[u->idem_add_count++] = (struct idem_entry){hash, job};
    idem_put(&u->store->idem, hash, job);
}

void unit_idem_drop(struct unit *u, uint64_t hash, int64_t job)
{
    u->idem_drop =
        unit_grow(u, u->idem_drop, u->idem_drop_count, &u->idem_drop_capacity, sizeof *u->idem_drop);
    u->idem_drop[u->idem_drop_count++] = (struct idem_entry){hash, job};
    idem_remove(&u->store->idem, hash, job);
}

struct client_counts *unit_counts(struct unit *u, int64_t client)
{
    struct stats_row key = {.client = client};
    struct unit_row *r = unit_find_row(u, &table_stats_row, &key);
    if (!r) {
        struct stats_row *row = ARENA_NEW(u->arena, struct stats_row);
        struct client_counts *copy = ARENA_NEW(u->arena, struct client_counts);
        *copy = *counts_of(&u->store->counts, client);
        row->client = client;
        row->counts = counts_bytes(copy);
        r = unit_add_row(u, &table_stats_row, row);
        r->stored = r->exists = true; /* inserted with the client, never deleted */
    }
    r->dirty = true;
    return (struct client_counts *)(uintptr_t)((struct stats_row *)r->row)->counts.ptr;
}

void unit_count_move(struct unit *u, int64_t client, enum job_state from, enum job_state to)
{
    struct client_counts *counts = unit_counts(u, client);
    if (from != JOB_NO_STATE) {
        counts->by_state[from]--;
        u->counted.moved[from]--;
    }
    if (to != JOB_NO_STATE) {
        counts->by_state[to]++;
        u->counted.moved[to]++;
    }
}

void unit_disabled(struct unit *u, const struct webhook_row *webhook)
{
    struct webhook_notice *n = ARENA_NEW(u->arena, struct webhook_notice);
    *n = (struct webhook_notice){webhook, u->disabled};
    u->disabled = n;
}

struct notice *unit_notice(struct unit *u)
{
    u->notices = unit_grow(u, u->notices, u->notice_count, &u->notice_capacity, sizeof *u->notices);
    struct notice *n = &u->notices[u->notice_count++];
    *n = (struct notice){.ran_ms = -1};
    return n;
}

struct attempt_notice *unit_attempt(struct unit *u)
{
    u->attempts = unit_grow(u, u->attempts, u->attempt_count, &u->attempt_capacity, sizeof *u->attempts);
    return &u->attempts[u->attempt_count++];
}

/* --- commit ------------------------------------------------------------------------------------ */

static bool is_inserted(const struct unit_row *r)
{
    return r->exists && (!r->stored || r->replaced);
}

void unit_each_inserted(const struct unit *u, const struct table *t, void (*fn)(const void *row, void *arg),
                        void *arg)
{
    for (const struct unit_row *r = u->row_list; r; r = r->next)
        if (r->table == t && is_inserted(r))
            fn(r->row, arg);
}

static size_t row_changes(const struct unit_row *r, struct row_change *out)
{
    size_t n = 0;
    if (r->stored && (!r->exists || r->replaced))
        out[n++] = (struct row_change){r->table, ROW_DELETE, r->row};
    if (is_inserted(r))
        out[n++] = (struct row_change){r->table, ROW_INSERT, r->row};
    else if (r->exists && r->dirty)
        out[n++] = (struct row_change){r->table, ROW_UPDATE, r->row};
    return n;
}

static size_t touch_changes(const struct task_touch *x, struct row_change *out)
{
    if (x->is_new && x->ended)
        return 0;
    MUST(x->ended || !task_broken_rule(&x->task->row));
    enum row_op op = x->is_new ? ROW_INSERT : x->ended ? ROW_DELETE : ROW_UPDATE;
    *out = (struct row_change){&table_task_row, op, &x->task->row};
    return 1;
}

/* In the order of registration: rows first, then tasks oldest touch first, so that inserts append. */
static struct row_change *collect(struct unit *u, size_t *ret_count)
{
    size_t max = 0;
    for (const struct unit_row *r = u->row_list; r; r = r->next)
        max += 2;
    size_t touch_count = 0;
    for (const struct task_touch *x = u->touches; x; x = x->next)
        touch_count++;
    struct row_change *changes = ARENA_ARRAY(u->arena, struct row_change, max + touch_count + 1);
    size_t n = 0;
    for (const struct unit_row *r = u->row_list; r; r = r->next)
        n += row_changes(r, changes + n);
    const struct task_touch **oldest_first =
        ARENA_ARRAY(u->arena, const struct task_touch *, touch_count + 1);
    size_t at = touch_count;
    for (const struct task_touch *x = u->touches; x; x = x->next)
        oldest_first[--at] = x;
    for (size_t i = 0; i < touch_count; i++)
        n += touch_changes(oldest_first[i], changes + n);
    *ret_count = n;
    return changes;
}

uint64_t queue_bit(struct str name)
{
    return UINT64_C(1) << (hash_fnv1a(HASH_FNV_START, name.ptr, name.len) % 64);
}

/* What others may wait for, told by the tasks that were changed. */
static void note_made(struct unit *u, const struct task *t)
{
    if (t->phase == TASK_READY && t->row.due_ms <= u->now_ms)
        u->made_ready |= queue_bit(t->row.queue);
    else if ((t->phase == TASK_WAITING || t->phase == TASK_READY) && t->row.due_ms < u->nearest_timer_ms)
        u->nearest_timer_ms = t->row.due_ms;
}

static void publish(struct unit *u)
{
    if (u->census)
        census_end(u->census, &u->counted, true);
    for (struct task_touch *x = u->touches; x; x = x->next) {
        x->task->touch = NULL;
        if (x->ended)
            live_task_free(u->store->live, x->task);
        else
            note_made(u, x->task);
    }
    for (const struct unit_row *r = u->row_list; r; r = r->next) {
        if (r->table == &table_stats_row && r->dirty && r->exists) {
            const struct stats_row *row = r->row;
            counts_from_bytes(counts_of(&u->store->counts, row->client), row->counts);
        } else if (r->table == &table_webhook_row && r->exists && (r->dirty || is_inserted(r))) {
            hooks_put(&u->store->hooks, r->row);
        } else if (r->table == &table_webhook_row && r->stored && !r->exists) {
            hooks_remove(&u->store->hooks, r->row);
        }
    }
}

enum err_code unit_commit(struct unit *u, struct err *err)
{
    log_builder_finish(&u->log);
    struct change_set c = {.chunks = u->log.chunks,
                           .chunk_count = u->log.chunk_count,
                           .first_chunk = u->log.first_chunk,
                           .drop_chunks_below = u->drop_chunks_below,
                           .list = u->list,
                           .list_count = u->list_count,
                           .idem_add = u->idem_add,
                           .idem_add_count = u->idem_add_count,
                           .idem_drop = u->idem_drop,
                           .idem_drop_count = u->idem_drop_count};
    c.rows = collect(u, &c.row_count);
    bool empty = !c.row_count && !c.chunk_count && !c.list_count && !c.idem_add_count && !c.idem_drop_count &&
                 !c.drop_chunks_below;
    u->wrote = !empty;
    if (u->census)
        census_begin(u->census, &u->counted);
    if (!empty && u->store->ops->commit(u->store, &c, err) != ERR_OK)
        return err->code;
    if (empty && u->store->shared)
        u->store->ops->abandon(u->store);
    publish(u);
    return ERR_OK;
}

void unit_abort(struct unit *u)
{
    for (struct task_touch *x = u->touches; x; x = x->next)
        undo(u, x);
    for (size_t i = 0; i < u->idem_add_count; i++)
        idem_remove(&u->store->idem, u->idem_add[i].hash, u->idem_add[i].job);
    for (size_t i = 0; i < u->idem_drop_count; i++)
        idem_put(&u->store->idem, u->idem_drop[i].hash, u->idem_drop[i].job);
    if (u->census)
        census_end(u->census, &u->counted, false);
    if (!u->store->shared)
        return;
    u->store->ops->abandon(u->store);
    store_forget(u->store);
}

void unit_free_rows(struct unit *u)
{
    map_free(&u->rows);
    map_free(&u->asked.known);
}
