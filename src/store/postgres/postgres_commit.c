/* RT2 of a batch: every write and COMMIT in one pipeline; one statement per table and kind of change, however
 * many rows there are. Statements that change or delete check in the database that every row was there, since
 * COMMIT is on its way before anybody here could look. */
#include <stdlib.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

/* --- rows ------------------------------------------------------------------------------------------ */

/* The phase by which the indexes find a task: one that is ready but not yet due waits, and whoever holds one
 * changes no index by starting it. */
static int64_t stored_phase(const struct postgres_store *s, const struct task_row *t, int64_t now_ms)
{
    if (t->state < TASK_WAITING || t->state >= TASK_ENDED)
        return TASK_WAITING; /* the schema refuses such a row */
    enum task_phase phase = task_row_phase(t);
    if (phase == TASK_RUNNING)
        return TASK_LEASED;
    if (phase == TASK_READY && t->due_ms > now_ms)
        return TASK_WAITING;
    return phase == TASK_READY && postgres_waits_for_slot(s, t) ? postgres_slot_wait_phase() : (int64_t)phase;
}

static void add_task_places(const struct postgres_store *s, struct pg_params *p, const void *const *rows,
                            size_t count, int64_t now_ms)
{
    params_array(p, COLUMN_INT, count);
    for (size_t i = 0; i < count; i++)
        params_add_int(p, stored_phase(s, rows[i], now_ms));
    params_array_end(p);
    params_array(p, COLUMN_INT, count);
    for (size_t i = 0; i < count; i++)
        params_add_int(p, task_row_order(rows[i]));
    params_array_end(p);
}

static void send_group(struct postgres_store *s, const struct table *t, enum row_op op,
                       const void *const *rows, size_t count, int64_t now_ms)
{
    static const enum pg_row_statement kinds[] = {
        [ROW_INSERT] = PG_INSERT, [ROW_UPDATE] = PG_UPDATE, [ROW_DELETE] = PG_DELETE};
    unsigned from = op == ROW_INSERT ? t->key_count : op == ROW_UPDATE ? t->fixed_count : t->column_count;
    struct pg_params *p = link_params(&s->link);
    for (unsigned c = 0; c < t->column_count; c++) {
        if (c >= t->key_count && c < from)
            continue;
        params_array(p, t->columns[c].type, count);
        for (size_t i = 0; i < count; i++)
            params_add_column(p, &t->columns[c], rows[i]);
        params_array_end(p);
    }
    if (t == &table_task_row && op != ROW_DELETE)
        add_task_places(s, p, rows, count, now_ms);
    if (op != ROW_INSERT)
        params_int(p, (int64_t)count);
    link_send(&s->link, pg_of_table(t, kinds[op]));
}

/* A changed counter is a delta: what the batch adds to whatever there is. */
static void send_counts(struct postgres_store *s, const void *const *rows, size_t count)
{
    struct pg_params *p = link_params(&s->link);
    for (size_t c = 0; c < table_stats_row.column_count; c++) {
        params_array(p, table_stats_row.columns[c].type, count);
        for (size_t i = 0; i < count; i++)
            params_add_column(p, &table_stats_row.columns[c], rows[i]);
        params_array_end(p);
    }
    link_send(&s->link, PG_COUNTS_CHANGE);
}

static bool counts_something(const struct stats_row *row)
{
    for (size_t i = 0; i < row->counts.len; i++)
        if (row->counts.ptr[i])
            return true;
    return false;
}

/* A copied client comes with counts. They go in as deltas, so that the sum over all clients gets them too. */
static void send_new_counts(struct postgres_store *s, const void *const *rows, size_t count)
{
    const void **empty = ARENA_ARRAY(s->scratch, const void *, count);
    const void **counted = ARENA_ARRAY(s->scratch, const void *, count);
    size_t counted_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct stats_row *row = ARENA_NEW(s->scratch, struct stats_row);
        *row = (struct stats_row){.client = ((const struct stats_row *)rows[i])->client, .counts = STR("")};
        empty[i] = row;
        if (counts_something(rows[i]))
            counted[counted_count++] = rows[i];
    }
    send_group(s, &table_stats_row, ROW_INSERT, empty, count, 0);
    if (counted_count)
        send_counts(s, counted, counted_count);
}

static size_t collect_group(struct postgres_store *s, const struct change_set *c, const struct table *t,
                            enum row_op op)
{
    size_t n = 0;
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == t && c->rows[i].op == op)
            s->group[n++] = c->rows[i].row;
    return n;
}

/* Gives whether webhooks, states of clients or settings of queues are among them. */
static bool send_rows(struct postgres_store *s, const struct change_set *c, int64_t now_ms)
{
    static const enum row_op order[] = {ROW_DELETE, ROW_UPDATE, ROW_INSERT};
    size_t counts[TABLES_MAX][LENGTH_OF(order)] = {0};
    if (c->row_count > s->group_capacity) {
        s->group_capacity = c->row_count * 2;
        s->group = must_realloc(s->group, s->group_capacity * sizeof *s->group);
    }
    bool hooks_changed = false;
    for (size_t i = 0; i < c->row_count; i++) {
        counts[c->rows[i].table->number][c->rows[i].op]++;
        hooks_changed |= c->rows[i].table == &table_webhook_row ||
                         c->rows[i].table == &table_client_state_row || c->rows[i].table == &table_queue_row;
    }
    for (size_t o = 0; o < LENGTH_OF(order); o++)
        for (size_t t = 0; t < table_count; t++) {
            if (!counts[t][order[o]])
                continue;
            size_t n = collect_group(s, c, tables[t], order[o]);
            if (tables[t] == &table_stats_row && order[o] == ROW_UPDATE)
                send_counts(s, s->group, n);
            else if (tables[t] == &table_stats_row && order[o] == ROW_INSERT)
                send_new_counts(s, s->group, n);
            else
                send_group(s, tables[t], order[o], s->group, n, now_ms);
        }
    return hooks_changed;
}

/* --- the rest ---------------------------------------------------------------------------------------- */

static void send_log(struct postgres_store *s, const struct change_set *c)
{
    MUST(c->chunk_count <= PG_CHUNKS_MAX);
    struct pg_params *p = link_params(&s->link);
    if (c->chunk_count) {
        params_array(p, COLUMN_INT, c->chunk_count);
        for (size_t i = 0; i < c->chunk_count; i++)
            params_add_int(p, c->first_chunk + (int64_t)i);
        params_array_end(p);
        params_array(p, COLUMN_BLOB, c->chunk_count);
        for (size_t i = 0; i < c->chunk_count; i++)
            params_add_bytes(p, c->chunks[i]);
        params_array_end(p);
        link_send(&s->link, PG_LOG_ADD);
    }
    if (c->drop_chunks_below) {
        params_int(link_params(&s->link), c->drop_chunks_below);
        link_send(&s->link, PG_LOG_DROP);
    }
}

/* The buckets below are indexes of jobs and ends. */
static bool is_stored(const struct list_entry *e)
{
    return e->bucket >= LIST_DELIVERIES;
}

static int by_entry(const void *a, const void *b)
{
    const struct list_entry *x = *(const struct list_entry *const *)a,
                            *y = *(const struct list_entry *const *)b;
    if (x->owner_key != y->owner_key)
        return x->owner_key < y->owner_key ? -1 : 1;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x < y ? -1 : x > y; /* they stand in one array: the later word is behind */
}

static bool is_same_place(const struct list_entry *x, const struct list_entry *y)
{
    return x->owner_key == y->owner_key && x->bucket == y->bucket && x->id == y->id;
}

static void send_entries(struct postgres_store *s, const struct list_entry **entries, size_t count,
                         bool removed)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += entries[i]->removed == removed;
    if (!n)
        return;
    struct pg_params *p = link_params(&s->link);
    for (int part = 0; part < 3; part++) {
        params_array(p, COLUMN_INT, n);
        for (size_t i = 0; i < count; i++)
            if (entries[i]->removed == removed)
                params_add_int(p, part == 0   ? entries[i]->owner_key
                                  : part == 1 ? entries[i]->bucket
                                              : entries[i]->id);
        params_array_end(p);
    }
    link_send(&s->link, removed ? PG_LIST_DROP : PG_LIST_ADD);
}

/* Only the last word on each place, in the order of places. */
static void send_list(struct postgres_store *s, const struct change_set *c)
{
    const struct list_entry **entries = ARENA_ARRAY(s->scratch, const struct list_entry *, c->list_count + 1);
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < c->list_count; i++)
        if (is_stored(&c->list[i]))
            entries[n++] = &c->list[i];
    qsort(entries, n, sizeof *entries, by_entry);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || !is_same_place(entries[i], entries[i + 1]))
            entries[kept++] = entries[i];
    send_entries(s, entries, kept, true);
    send_entries(s, entries, kept, false);
}

/* --- the commit -------------------------------------------------------------------------------------- */

/* Which results of the pipeline are what. */
struct pipeline {
    size_t hooks, block, commit;
    bool changes_hooks, takes_block;
};

static int64_t now_of_batch(const struct postgres_store *s)
{
    return s->load_now_ms ? s->load_now_ms : (pg_mono_us() + s->base.clock_minus_mono_us) / 1000;
}

/* A batch that loaded has seen the webhooks as they are now. One that did not must have decided by them too:
 * if they have changed, it is decided again. */
static void send_hooks(struct postgres_store *s, bool changed, struct pipeline *p)
{
    if (!s->load_now_ms) {
        params_int(link_params(&s->link), s->hooks_version);
        link_send(&s->link, PG_HOOKS_UNCHANGED);
    }
    p->changes_hooks = changed;
    if (changed)
        p->hooks = link_send(&s->link, PG_HOOKS_CHANGED);
}

static void send_all(struct postgres_store *s, const struct change_set *c, struct pipeline *p)
{
    link_begin(&s->link);
    bool hooks_changed = send_rows(s, c, now_of_batch(s));
    postgres_send_targets(s, now_of_batch(s));
    send_log(s, c);
    send_list(s, c);
    postgres_send_numbers(s, c);
    postgres_send_lane_batch(s);
    send_hooks(s, hooks_changed, p);
    p->takes_block = postgres_wants_block(s, (int64_t)c->chunk_count + 1);
    if (p->takes_block)
        p->block = postgres_send_block(s);
    link_params(&s->link);
    p->commit = link_send(&s->link, PG_COMMIT);
}

/* The callers have an answer by then: loading, writing and finding out share the time. */
static int64_t answer_by_ms(const struct postgres_store *s)
{
    enum { TIMES_TIMEOUT = 2 };
    return (s->load_now_ms ? s->batch_since_ms : pg_mono_ms()) + s->link.timeout_ms * TIMES_TIMEOUT;
}

/* What the answers say besides that it is done. The kernel puts the batch's own webhooks into memory. */
static void take_answers(struct postgres_store *s, const struct pipeline *p)
{
    if (p->takes_block)
        postgres_take_block(s, p->block);
    if (!p->changes_hooks)
        return;
    int64_t version = value_int(link_result(&s->link, p->hooks), 0, 0);
    if (version == s->hooks_version + 1)
        s->hooks_version = version;
}

static void done(struct postgres_store *s, const struct change_set *c)
{
    struct store *b = &s->base;
    int64_t next = c->first_chunk + (int64_t)c->chunk_count;
    if (next > b->next_chunk && next <= s->block_end) /* else they were of a block that is done with */
        b->next_chunk = next;
    if (c->drop_chunks_below)
        b->first_chunk = c->drop_chunks_below;
    s->link.in_transaction = false;
    s->load_now_ms = 0;
}

static enum err_code not_done(struct postgres_store *s, struct err *err)
{
    link_rollback(&s->link);
    arena_reset(s->scratch);
    s->load_now_ms = 0;
    s->lane_in_doubt = s->shared_in_doubt = true;
    struct err ignored; /* who decides again does so by what is there now; what cannot be read, later */
    if (err->conflict)
        (void)!postgres_ready_anew(s, &ignored);
    return err->code;
}

static bool is_committed(const struct pg_link *l, size_t commit)
{
    return str_is(str_of(PQcmdStatus((PGresult *)(uintptr_t)link_result(l, commit))), "COMMIT");
}

enum err_code postgres_commit(struct store *base, const struct change_set *c, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    if (s->batch_broken) {
        s->batch_broken = false;
        return err_conflict(err, "the batch's transaction is gone");
    }
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    struct pg_link *l = &s->link;
    int64_t pid = l->pid, started = l->started, until_ms = answer_by_ms(s);
    struct pipeline p = {0};
    send_all(s, c, &p);
    enum err_code code = link_run(l, "writing", err);
    bool answered = link_is_open(l);
    if (code != ERR_OK && !answered) /* COMMIT may have arrived */
        code = postgres_find_out(s, pid, started, until_ms, err);
    else if (code == ERR_OK && !is_committed(l, p.commit))
        code = err_conflict(err, "the transaction had failed before");
    if (code != ERR_OK)
        return not_done(s, err);
    done(s, c);
    if (answered)
        take_answers(s, &p);
    link_clear(l);
    arena_reset(s->scratch);
    return ERR_OK;
}
