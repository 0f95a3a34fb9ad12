/* RT1 of a batch: BEGIN and everything it asks for, in one pipeline.
 *
 * Locks are taken in an order: jobs by id, then what nobody holds (claims and timers skip what is locked, so
 * they wait for nobody), then streams by id, then rows table by table in the order of their keys. Two batches
 * that want the same wait for each other; when they deadlock all the same, one of them is told to load
 * again. */
#include <stdlib.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"
#include "store/row_rules.h"

#include "base/banned.h"

enum { BLOCK_AGE_MS = 1000 };

/* Which results of the pipeline are what. */
struct load_plan {
    size_t hooks, block, keys, tasks, due, due_timers, next_due, lapsed, expired, streams;
    bool has_block, has_keys, has_tasks, has_due, has_streams;
    struct pg_claims *claims;
    struct pg_row_groups rows;
};

/* --- log numbers ----------------------------------------------------------------------------------- */

/* A block is given up after a while, so that numbers of all handles stay near each other. */
bool postgres_wants_block(const struct postgres_store *s, int64_t used)
{
    return s->block_end - s->base.next_chunk - used < PG_CHUNKS_MAX ||
           (!used && pg_mono_ms() - s->block_since_ms > BLOCK_AGE_MS);
}

size_t postgres_send_block(struct postgres_store *s)
{
    params_int(link_params(&s->link), postgres_node());
    return link_send(&s->link, PG_BLOCK);
}

void postgres_take_block(struct postgres_store *s, size_t result)
{
    const PGresult *r = link_result(&s->link, result);
    s->base.next_chunk = value_int(r, 0, 0);
    s->others = value_int(r, 0, 1) != 0;
    s->block_end = s->base.next_chunk + PG_BLOCK_NUMBERS;
    s->block_since_ms = pg_mono_ms();
}

/* --- sending --------------------------------------------------------------------------------------- */

static void send_keys(struct postgres_store *s, const struct load_set *l, struct load_plan *plan)
{
    if (!l->key_count)
        return;
    struct pg_params *p = link_params(&s->link);
    params_array(p, COLUMN_INT, l->key_count);
    for (size_t i = 0; i < l->key_count; i++)
        params_add_int(p, l->keys[i].client);
    params_array_end(p);
    params_array(p, COLUMN_TEXT, l->key_count);
    for (size_t i = 0; i < l->key_count; i++)
        params_add_text(p, l->keys[i].key);
    params_array_end(p);
    plan->keys = link_send(&s->link, PG_KEYS);
    plan->has_keys = true;
}

static void send_tasks(struct postgres_store *s, const struct load_set *l, struct load_plan *plan)
{
    if (!l->task_count && !l->key_count)
        return;
    params_ints(link_params(&s->link), l->tasks, l->task_count);
    plan->tasks = link_send(&s->link, PG_TASKS);
    plan->has_tasks = true;
}

static size_t send_timers(struct postgres_store *s, const struct load_set *l, enum pg_statement statement)
{
    struct pg_params *p = link_params(&s->link);
    params_int(p, l->now_ms);
    params_int(p, l->due_max);
    return link_send(&s->link, statement);
}

static void send_streams(struct postgres_store *s, const struct load_set *l, struct load_plan *plan)
{
    if (!l->task_count && !l->key_count && !l->claim_count && !l->due_max)
        return;
    bool asked = false;
    for (size_t i = 0; i < l->task_count; i++)
        asked |= !task_id_is_job(l->tasks[i]);
    params_ints(link_params(&s->link), l->tasks, l->task_count);
    plan->streams = link_send(&s->link, asked ? PG_STREAMS : PG_STREAMS_ABOUT);
    plan->has_streams = true;
}

static void send_all(struct postgres_store *s, const struct load_set *l, struct load_plan *plan)
{
    struct pg_link *link = &s->link;
    link_begin(link);
    link_params(link);
    plan->hooks = link_send(link, PG_HOOKS_VERSION);
    if ((plan->has_block = postgres_wants_block(s, 0)))
        plan->block = postgres_send_block(s);
    send_keys(s, l, plan);
    send_tasks(s, l, plan);
    if (l->claim_count)
        plan->claims = postgres_send_claims(s, l);
    if ((plan->has_due = l->due_max > 0)) {
        plan->due = send_timers(s, l, PG_DUE);
        plan->due_timers = send_timers(s, l, PG_DUE_TIMERS);
        params_int(link_params(link), l->now_ms);
        plan->next_due = link_send(link, PG_NEXT_DUE);
        plan->lapsed = send_timers(s, l, PG_LAPSED);
        plan->expired = send_timers(s, l, PG_EXPIRED);
    }
    send_streams(s, l, plan);
    plan->rows = (struct pg_row_groups){.locks = true, .bytes_max = l->row_bytes_max};
    postgres_send_rows(link, l->rows, l->row_count, &plan->rows, s->scratch);
}

/* --- taking ---------------------------------------------------------------------------------------- */

enum err_code postgres_add_task(struct postgres_store *s, const PGresult *r, int row, struct task **ret_task,
                                struct err *err)
{
    struct task_row t;
    value_row(r, row, 0, &table_task_row, &t, s->scratch, false);
    *ret_task = live_find(s->base.live, t.id);
    if (*ret_task)
        return ERR_OK;
    const char *broken = task_broken_rule(&t);
    if (broken)
        return err_set(err, ERR_STORE_CORRUPT,
                       "row %lld of tasks is damaged (broken rule: %s); restore a backup", (long long)t.id,
                       broken);
    struct task *task = live_task_new(s->base.live, &t);
    live_set_worker(s->base.live, task, t.worker, 0);
    task->run_until_ms = INT64_MAX; /* the kernel knows the limit */
    task->about_loaded = true;      /* PG_STREAMS is in the same pipeline */
    live_place(s->base.live, task, s->load_now_ms);
    *ret_task = task;
    return ERR_OK;
}

static enum err_code take_tasks(struct postgres_store *s, size_t result, struct err *err)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        struct task *t;
        if (postgres_add_task(s, r, i, &t, err) != ERR_OK)
            return err->code;
        postgres_want_receiver(t);
    }
    return ERR_OK;
}

/* A task whose time has come by the clock alone still stands as waiting in its row: the kernel's timers make
 * it ready for all nodes, or postpone it. */
static enum err_code take_due(struct postgres_store *s, size_t result, struct err *err)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        struct task *t;
        if (postgres_add_task(s, r, i, &t, err) != ERR_OK)
            return err->code;
        if (t->phase == TASK_READY)
            live_place(s->base.live, t, t->row.due_ms - 1);
        postgres_want_receiver(t);
    }
    return ERR_OK;
}

static enum err_code take_streams(struct postgres_store *s, size_t result, struct err *err)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        struct task *stream;
        if (postgres_add_task(s, r, i, &stream, err) != ERR_OK)
            return err->code;
        struct task *about = stream->row.subject ? live_find(s->base.live, stream->row.subject) : NULL;
        if (about && stream->row.target < 0)
            about->has_callback = true;
    }
    return ERR_OK;
}

/* Two commands of a batch may ask for the same key. */
static bool is_known_key(const struct idem_index *x, uint64_t hash, int64_t job)
{
    size_t cursor = 0;
    for (int64_t known; (known = idem_find(x, hash, &cursor));)
        if (known == job)
            return true;
    return false;
}

static void take_keys(struct postgres_store *s, size_t result)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        uint64_t hash = idem_hash(value_int(r, i, 0), value_text(r, i, 1, s->scratch));
        int64_t job = value_int(r, i, 2);
        if (!is_known_key(&s->base.idem, hash, job))
            idem_put(&s->base.idem, hash, job);
    }
}

static void take_due_timers(struct postgres_store *s, size_t result)
{
    const PGresult *r = link_result(&s->link, result);
    for (int i = 0; i < PQntuples(r); i++) {
        struct timer_row row;
        value_row(r, i, 0, &table_timer_row, &row, s->scratch, false);
        timers_put(&s->base.timers, &row);
    }
}

static enum err_code take_timers(struct postgres_store *s, struct load_set *l, const struct load_plan *plan,
                                 struct err *err)
{
    if (take_due(s, plan->due, err) != ERR_OK || take_tasks(s, plan->lapsed, err) != ERR_OK ||
        take_tasks(s, plan->expired, err) != ERR_OK)
        return err->code;
    take_due_timers(s, plan->due_timers);
    const PGresult *next = link_result(&s->link, plan->next_due);
    bool more = PQntuples(link_result(&s->link, plan->due_timers)) >= (int)l->due_max ||
                PQntuples(link_result(&s->link, plan->due)) >= (int)l->due_max ||
                PQntuples(link_result(&s->link, plan->lapsed)) >= (int)l->due_max ||
                PQntuples(link_result(&s->link, plan->expired)) >= (int)l->due_max;
    l->next_due_ms = more ? l->now_ms : PQgetisnull(next, 0, 0) ? INT64_MAX : value_int(next, 0, 0);
    return ERR_OK;
}

static enum err_code take_all(struct postgres_store *s, struct load_set *l, const struct load_plan *plan,
                              struct arena *a, struct err *err)
{
    if (plan->has_block)
        postgres_take_block(s, plan->block);
    if (plan->has_keys)
        take_keys(s, plan->keys);
    if (plan->has_tasks && take_tasks(s, plan->tasks, err) != ERR_OK)
        return err->code;
    if (plan->claims && postgres_take_claims(s, plan->claims, err) != ERR_OK)
        return err->code;
    if (plan->has_due && take_timers(s, l, plan, err) != ERR_OK)
        return err->code;
    if (plan->has_streams && take_streams(s, plan->streams, err) != ERR_OK)
        return err->code;
    for (size_t i = 0; i < l->task_count; i++) /* those that were asked for, not all about a job */
        postgres_want_receiver(live_find(s->base.live, l->tasks[i]));
    postgres_take_rows(&s->link, l->rows, l->row_count, &plan->rows, a);
    return ERR_OK;
}

enum err_code postgres_load(struct store *base, struct load_set *l, struct arena *a, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    bool begins = !s->link.in_transaction;
    if (begins) {
        s->batch_broken = false;
        s->batch_since_ms = pg_mono_ms();
    }
    if (s->batch_broken)
        return err_conflict(err, "the batch's transaction is gone");
    bool led = s->base.leads;
    if (postgres_ready_anew(s, err) != ERR_OK)
        return err->code;
    if (l->due_max && led && !s->base.leads) /* ended leases: only after `lead` */
        return err_conflict(err, "the duties went with the connection");
    struct load_plan plan = {0};
    s->load_now_ms = l->now_ms;
    send_all(s, l, &plan);
    if (link_run(&s->link, "reading", err) != ERR_OK || take_all(s, l, &plan, a, err) != ERR_OK)
        return postgres_failed(s, err);
    const PGresult *hooks = link_result(&s->link, plan.hooks);
    int64_t version = PQntuples(hooks) ? value_int(hooks, 0, 0) : 0;
    link_clear(&s->link);
    /* Not in the middle of a batch, which may be walking over them. The next batch sees the changes. */
    if (begins && version != s->hooks_version && postgres_read_hooks(s, version, err) != ERR_OK)
        return postgres_failed(s, err);
    if (postgres_load_targets(s, err) != ERR_OK)
        return postgres_failed(s, err);
    arena_reset(s->scratch);
    return ERR_OK;
}
