#include "jobs/purge_early.h"

#include "jobs/purge_internal.h"

#include "base/banned.h"

enum { EARLY_A_TURN = 200, LATE_AGAIN_MS = 60000, FLOWS_A_TURN = 500, FLOWS_KEPT_MS = 3600000 };

/* --- jobs ---------------------------------------------------------------------------------------- */

static void list_at(struct unit *u, int64_t job, int64_t due_ms)
{
    int64_t slot = (due_ms + EARLY_SLOT_MS - 1) / EARLY_SLOT_MS;
    unit_list(u, slot, LIST_EARLY, job, false);
    if (u->early_slot != slot)
        unit_list(u, 0, LIST_EARLY_SLOTS, slot, false);
    u->early_slot = slot;
}

void purge_list_early(struct unit *u, const struct task_row *t, int64_t finished_ms)
{
    const struct queue_row *set = queue_settings_find(&u->store->queues, t->client, t->queue);
    if (set && set->retention_ms)
        list_at(u, t->id, finished_ms + set->retention_ms);
}

/* False: it could not be read; it stays in its slot. */
static bool purge_listed(struct unit *u, int64_t id)
{
    struct job_row job_key = {.id = id};
    struct end_row end_key = {.id = id};
    bool late = false;
    const struct job_row *job = unit_fetch(u, &table_job_row, &job_key);
    const struct end_row *end = unit_fetch(u, &table_end_row, &end_key);
    if (u->load_err.code != ERR_OK)
        return false;
    const struct queue_row *set =
        job ? queue_settings_find(&u->store->queues, job->client, job->queue) : NULL;
    if (!job || !end || !set || !set->retention_ms) /* a job that lives is listed anew when it ends */
        return true;
    int64_t due_ms = end->finished_ms + set->retention_ms;
    enum purged done =
        due_ms > u->now_ms ? PURGE_KEEPS : purge_one(u, id, u->now_ms - set->retention_ms, &late);
    if (due_ms > u->now_ms || late)
        list_at(u, id, late ? u->now_ms + LATE_AGAIN_MS : due_ms);
    return done != PURGE_WAITS;
}

/* The newest slot that is over. 0: there is none. */
static enum err_code find_slot(struct unit *u, int64_t *ret_slot, int64_t *ids, size_t *ret_count,
                               struct err *err)
{
    struct reader *r = u->reader;
    size_t slots = 0;
    struct list_query over = {.bucket = LIST_EARLY_SLOTS, .below_id = u->now_ms / EARLY_SLOT_MS, .limit = 1};
    if (r->ops->reader_begin(r, err) != ERR_OK)
        return err->code;
    *ret_slot = 0;
    *ret_count = 0;
    enum err_code code = r->ops->reader_list(r, &over, ret_slot, &slots, err);
    if (code == ERR_OK && slots) {
        struct list_query jobs = {
            .owner_key = *ret_slot, .bucket = LIST_EARLY, .below_id = INT64_MAX, .limit = EARLY_A_TURN};
        code = r->ops->reader_list(r, &jobs, ids, ret_count, err);
    }
    r->ops->reader_end(r);
    return code;
}

bool purge_early(struct unit *u)
{
    struct err err;
    int64_t ids[EARLY_A_TURN], slot = 0;
    size_t count = 0, waiting = 0;
    if (find_slot(u, &slot, ids, &count, &err) != ERR_OK || !slot)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (purge_listed(u, ids[i]))
            unit_list(u, slot, LIST_EARLY, ids[i], true);
        else
            waiting++;
    }
    if (count < EARLY_A_TURN && !waiting)
        unit_list(u, 0, LIST_EARLY_SLOTS, slot, true);
    return !waiting;
}

/* --- flows --------------------------------------------------------------------------------------- */

struct old_flows {
    struct arena *arena;
    int64_t below_slot;
    struct queue_flow_row rows[FLOWS_A_TURN];
    size_t count;
};

static bool note_old(const void *row, void *arg)
{
    struct old_flows *o = arg;
    const struct queue_flow_row *r = row;
    if (r->slot < o->below_slot)
        o->rows[o->count++] =
            (struct queue_flow_row){.client = r->client, .queue = arena_str(o->arena, r->queue)};
    return o->count < FLOWS_A_TURN;
}

bool purge_flows(struct unit *u)
{
    struct err err;
    struct old_flows *o = ARENA_NEW(u->arena, struct old_flows);
    o->arena = u->arena;
    o->below_slot = (u->now_ms - FLOWS_KEPT_MS) / FLOW_SLOT_MS;
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_scan(u->reader, &table_queue_flow_row, note_old, o, &err);
    u->reader->ops->reader_end(u->reader);
    for (size_t i = 0; code == ERR_OK && i < o->count; i++) {
        const struct queue_flow_row *row = unit_fetch(u, &table_queue_flow_row, &o->rows[i]);
        if (row && row->slot < o->below_slot)
            unit_delete(u, &table_queue_flow_row, row);
    }
    return o->count == FLOWS_A_TURN;
}
