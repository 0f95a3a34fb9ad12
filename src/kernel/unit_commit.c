/* The end of a unit: what it changed goes into the store as one change set, and then into memory; or all of
 * it is undone. */
#include "base/hash.h"
#include "base/must.h"
#include "lifecycle/client_lifecycle.h"
#include "kernel/unit_internal.h"
#include "store/row_rules.h"

#include "base/banned.h"

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
    struct row_change *changes = ARENA_ROOM(u->arena, struct row_change, max + touch_count + 1);
    size_t n = 0;
    for (const struct unit_row *r = u->row_list; r; r = r->next)
        n += row_changes(r, changes + n);
    const struct task_touch **oldest_first = ARENA_ROOM(u->arena, const struct task_touch *, touch_count + 1);
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

static void publish_timer(struct unit *u, const struct unit_row *r)
{
    const struct timer_row *row = r->row;
    if (!r->exists) {
        timers_remove(&u->store->timers, row);
        return;
    }
    timers_put(&u->store->timers, row);
    if (row->due_ms < u->nearest_timer_ms)
        u->nearest_timer_ms = row->due_ms;
}

/* A new client without jobs costs no memory. */
static void publish_counts(struct unit *u, const struct unit_row *r)
{
    const struct stats_row *row = r->row;
    struct client_counts counts;
    counts_from_bytes(&counts, row->counts);
    if (!is_inserted(r) || counts_unfinished(&counts))
        *counts_of(&u->store->counts, row->client) = counts;
}

/* A client that was resumed may have work that parked claims wait for. */
static void publish_client_state(struct unit *u, const struct client_state_row *row)
{
    live_suspend(u->store->live, row->client, row->state == CLIENT_SUSPENDED);
    if (row->state == CLIENT_ACTIVE)
        u->made_ready = UINT64_MAX;
}

/* A queue that goes on may have work that parked claims wait for. */
static void publish_queue(struct unit *u, const struct unit_row *r)
{
    const struct queue_row *row = r->row;
    bool paused = r->exists && row->paused;
    if (live_is_paused(u->store->live, row->client, row->queue) && !paused)
        u->made_ready |= queue_bit(row->queue);
    live_pause(u->store->live, row->client, row->queue, paused);
    if (r->exists)
        queue_settings_put(&u->store->queues, row);
    else
        queue_settings_remove(&u->store->queues, row);
}

static void publish(struct unit *u)
{
    if (u->census)
        census_end(u->census, &u->counted, true);
    for (struct task_touch *x = u->touches; x; x = x->next) {
        x->task->touch = NULL;
        if (x->before.progress.ptr != x->task->row.progress.ptr)
            live_free_str(x->before.progress);
        if (x->ended)
            live_task_free(u->store->live, x->task);
        else
            note_made(u, x->task);
    }
    for (const struct unit_row *r = u->row_list; r; r = r->next) {
        if (r->table == &table_stats_row && r->dirty && r->exists) {
            publish_counts(u, r);
        } else if (r->table == &table_webhook_row && r->exists && (r->dirty || is_inserted(r))) {
            hooks_put(&u->store->hooks, r->row);
        } else if (r->table == &table_webhook_row && r->stored && !r->exists) {
            hooks_remove(&u->store->hooks, r->row);
        } else if (r->table == &table_client_state_row && r->exists && (r->dirty || is_inserted(r))) {
            publish_client_state(u, r->row);
        } else if (r->table == &table_queue_row &&
                   (r->dirty || is_inserted(r) || (r->stored && !r->exists))) {
            publish_queue(u, r);
        } else if (r->table == &table_timer_row && (r->dirty || r->exists != r->stored || r->replaced)) {
            publish_timer(u, r);
        }
    }
}

enum err_code unit_commit(struct unit *u, struct err *err)
{
    log_builder_finish(&u->log);
    struct change_set c = {.chunks = u->log.chunks,
                           .chunk_count = u->log.chunk_count,
                           .first_chunk = u->log.first_chunk,
                           .first_offset = u->log.first_offset,
                           .drop_chunks_below = u->drop_chunks_below,
                           .list = u->list,
                           .list_count = u->list_count,
                           .idem_add = u->idem_add,
                           .idem_add_count = u->idem_add_count,
                           .idem_drop = u->idem_drop,
                           .idem_drop_count = u->idem_drop_count};
    c.rows = collect(u, &c.row_count);
    bool empty = !c.row_count && !c.chunk_count && !c.list_count && !c.idem_add_count && !c.idem_drop_count &&
                 !c.drop_chunks_below && !(u->store->shared && live_has_news_of_slots(u->store->live));
    u->wrote = !empty;
    if (u->census)
        census_begin(u->census, &u->counted);
    if (!empty && u->store->ops->commit(u->store, &c, err) != ERR_OK)
        return err->code;
    if (empty && u->store->ops->abandon)
        u->store->ops->abandon(u->store);
    publish(u);
    return ERR_OK;
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
    if (t->row.progress.ptr != x->before.progress.ptr)
        live_free_str(t->row.progress);
    t->row = x->before;
    t->row.refs = refs;
    t->run_until_ms = x->run_until_before;
    live_set_worker(u->store->live, t, x->worker_before, 0);
    live_place(u->store->live, t, u->now_ms);
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
    if (u->store->ops->abandon)
        u->store->ops->abandon(u->store);
    if (u->store->shared)
        store_forget(u->store);
}
