/* What only a store that several handles share can show: locked rows are left to others, races end in a
 * conflict and a second look, duties change hands. */
#include "store/bench_shared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lifecycle/key_list.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

static uint32_t claim(struct store *s, struct arena *a, int64_t client, uint32_t max)
{
    struct load_claim c = {.queues = &shared_queue, .queue_count = 1, .client = client, .max = max};
    struct load_set l = {.claims = &c, .claim_count = 1, .now_ms = 1000};
    assert_int_equal(bench_load_shared(s, &l, a), ERR_OK);
    return live_count(s->live);
}

/* --- claims -------------------------------------------------------------------------------------- */

BENCH_TEST(test_claims_leave_locked_tasks_to_whoever_holds_them, b)
{
    struct store *other = shared_open_other(b);
    for (int64_t id = 1; id <= 10; id++) {
        struct task_row t = shared_ready_task(id, id == 7 ? 9 : 5);
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    }
    assert_int_equal(claim(b->store, b->arena, 0, 4), 4);
    static const int64_t best[] = {7, 1, 2, 3}; /* by priority, then by age */
    for (size_t i = 0; i < LENGTH_OF(best); i++)
        assert_non_null(live_find(b->store->live, best[i]));
    assert_int_equal(claim(other, b->arena, 0, 10), 6); /* at once, and only the rest */
    for (size_t i = 0; i < LENGTH_OF(best); i++)
        assert_null(live_find(other->live, best[i]));
    shared_abandon(other);
    shared_abandon(b->store); /* nobody waits for that, so it takes effect a moment later */
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; claim(other, b->arena, 0, 10) < 10;) {
        shared_abandon(other);
        assert_true(shared_now_ms() < until);
    }
    shared_abandon(other);
    assert_int_equal(claim(other, b->arena, 2, 10), 5); /* of one client */
    shared_abandon(other);
    store_close(other);
}

BENCH_TEST(test_what_is_due_is_loaded_and_nothing_else, b)
{
    struct task_row rows[] = {shared_ready_task(1, 5), shared_ready_task(2, 5), shared_ready_task(3, 5),
                              shared_ready_task(4, 5)};
    rows[0].state = rows[0].job_state = JOB_CREATED;
    rows[0].due_ms = 900;
    rows[1].state = rows[1].job_state = JOB_CREATED;
    rows[1].due_ms = 1100;
    rows[2].state = rows[2].job_state = JOB_ASSIGNED;
    rows[2].lease_ms = 999;
    rows[3].state = rows[3].job_state = JOB_ASSIGNED;
    rows[3].lease_ms = 5000;
    rows[2].worker = rows[3].worker = STR("w");
    rows[2].token = rows[3].token = 1;
    for (size_t i = 0; i < LENGTH_OF(rows); i++)
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &rows[i]), ERR_OK);
    struct load_set l = {.due_max = 10, .now_ms = 1000};
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    assert_int_equal(live_count(b->store->live), 2);
    assert_non_null(live_find(b->store->live, 1));
    assert_non_null(live_find(b->store->live, 3));
    shared_abandon(b->store);
}

/* --- races --------------------------------------------------------------------------------------- */

static size_t jobs_by_key(struct store *s, struct arena *a, int64_t client, struct str key, int64_t *ret_id)
{
    struct load_key k = {.client = client, .key = key};
    struct load_set l = {.keys = &k, .key_count = 1, .now_ms = 1000};
    size_t cursor = 0, count = 0;
    assert_int_equal(bench_load_shared(s, &l, a), ERR_OK);
    for (int64_t id; (id = idem_find(&s->idem, idem_hash(client, key), &cursor)); count++)
        *ret_id = id;
    return count;
}

/* [JOB-070]: the second of two that use a key at the same time is told so, writes nothing, and finds the
 * first's job when it looks again. */
BENCH_TEST(test_two_handles_that_use_a_key_at_once_make_one_job, b)
{
    struct store *other = shared_open_other(b);
    struct job_row one = {.id = 1, .client = 3, .queue = shared_queue, .idem_key = STR("key")}, two = one;
    struct task_row task = shared_ready_task(1, 5);
    struct err err;
    int64_t id = 0;
    two.id = 2;
    assert_int_equal(jobs_by_key(b->store, b->arena, 3, STR("key"), &id), 0);
    assert_int_equal(jobs_by_key(other, b->arena, 3, STR("key"), &id), 0);
    const struct row_change rows[] = {{&table_job_row, ROW_INSERT, &one},
                                      {&table_task_row, ROW_INSERT, &task}};
    struct change_set c = {.rows = rows, .row_count = 2, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_int_not_equal(shared_change(other, &table_job_row, ROW_INSERT, &two, &err), ERR_OK);
    assert_true(err.conflict);
    assert_null(bench_fetch(b, &table_job_row, &two));
    assert_int_equal(jobs_by_key(other, b->arena, 3, STR("key"), &id), 1);
    assert_int_equal(id, 1);
    assert_non_null(live_find(other->live, 1)); /* with its task */
    shared_abandon(other);
    assert_int_equal(jobs_by_key(other, b->arena, 4, STR("key"), &id), 0); /* another client's is another */
    shared_abandon(other);
    store_close(other);
}

struct waiting_load {
    struct store *store;
    struct arena *arena;
    struct load_row row;
    struct key_head_row head;
    enum err_code code;
};

static void *load_and_wait(void *arg)
{
    struct waiting_load *w = arg;
    struct load_set l = {.rows = &w->row, .row_count = 1, .now_ms = 1000};
    w->code = bench_load_shared(w->store, &l, w->arena);
    return NULL;
}

BENCH_TEST(test_a_row_that_another_batch_changes_is_read_after_it, b)
{
    struct waiting_load w = {
        .store = shared_open_other(b), .arena = arena_new(1 << 12), .head = {.client = 1}};
    struct key_head_row head = {.client = 1, .active = 5};
    struct load_row mine = {.table = &table_key_head_row, .row = &head};
    struct load_set l = {.rows = &mine, .row_count = 1, .now_ms = 1000};
    PGconn *look = bench_session(&b->schema);
    pthread_t thread;
    assert_int_equal(bench_change(b, &table_key_head_row, ROW_INSERT, &head), ERR_OK);
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    assert_true(mine.found);
    w.row = (struct load_row){.table = &table_key_head_row, .row = &w.head};
    assert_int_equal(pthread_create(&thread, NULL, load_and_wait, &w), 0);
    shared_wait_until(look, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    head.active = 6;
    assert_int_equal(bench_change(b, &table_key_head_row, ROW_UPDATE, &head), ERR_OK);
    pthread_join(thread, NULL);
    assert_int_equal(w.code, ERR_OK);
    assert_true(w.row.found);
    assert_int_equal(w.head.active, 6);
    shared_abandon(w.store);
    store_close(w.store);
    arena_free(w.arena);
    PQfinish(look);
}

BENCH_TEST(test_an_update_of_a_row_that_is_gone_is_a_conflict, b)
{
    struct task_row t = shared_ready_task(1, 5);
    struct err err;
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    assert_int_equal(shared_change(b->store, &table_task_row, ROW_DELETE, &t, &err), ERR_OK);
    assert_int_not_equal(shared_change(b->store, &table_task_row, ROW_UPDATE, &t, &err), ERR_OK);
    assert_true(err.conflict);
    assert_int_equal(shared_change(b->store, &table_task_row, ROW_INSERT, &t, &err), ERR_OK);
}

/* A handle counts clients on its own, and is told when others have made some. */
BENCH_TEST(test_clients_made_by_two_handles_get_different_numbers, b)
{
    struct store *both[] = {b->store, shared_open_other(b)};
    unsigned conflicts = 0;
    for (int i = 0; i < 20; i++) {
        struct store *s = both[i < 10 ? 0 : i % 2]; /* the other one lags behind by ten */
        struct str uuid = arena_printf(b->arena, "client %d", i);
        struct err err = {.conflict = true};
        for (int tries = 0; err.conflict; tries++) {
            struct client_row row = {.uuid = uuid, .num = s->next_client++};
            assert_true(tries < 2);
            enum err_code code = shared_change(s, &table_client_row, ROW_INSERT, &row, &err);
            conflicts += code != ERR_OK;
        }
        assert_int_equal(err.code, ERR_OK);
    }
    assert_true(conflicts > 0);
    store_close(both[1]);
}

/* --- duties -------------------------------------------------------------------------------------- */

static bool leads(struct store *s)
{
    struct store_duties duties = {0};
    struct err err;
    return s->ops->lead(s, &duties, &err) == ERR_OK && duties.leads;
}

static void expect_takeover(struct store *from, struct store *to)
{
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; !leads(to);) {
        assert_true(shared_now_ms() < until);
        usleep(SHARED_LOOK_MS * 1000);
    }
    for (int i = 0; i < 20; i++) {
        assert_false(leads(from)); /* also after it has connected again */
        assert_true(leads(to));
        usleep(SHARED_LOOK_MS * 1000);
    }
}

BENCH_TEST(test_duties_have_one_holder_and_are_taken_from_a_silent_one, b)
{
    struct store *other = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    assert_true(leads(b->store));
    for (int i = 0; i < 20; i++) {
        assert_true(leads(b->store));
        assert_false(leads(other));
    }
    bench_sql(look, "UPDATE duties SET beat = beat - interval '1 minute'");
    expect_takeover(b->store, other); /* it was told to go: its connection is gone */
    store_close(other);
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
         !leads(b->store);) /* who ends, gives them back */
        assert_true(shared_now_ms() < until);
    PQfinish(look);
}

/* A node that went between taking the lock and its first beat: nothing but its session tells of it. */
BENCH_TEST(test_duties_are_taken_from_a_holder_that_never_had_a_beat, b)
{
    enum { SILENT_MS = 3000 };
    PGconn *orphan = bench_session(&b->schema);
    bench_sql(orphan, "SELECT pg_advisory_lock(1464158577, hashtext(current_schema()))");
    int64_t since = shared_now_ms();
    while (!leads(b->store)) {
        assert_true(shared_now_ms() - since < SHARED_PATIENCE_MS);
        usleep(SHARED_LOOK_MS * 1000);
    }
    assert_true(shared_now_ms() - since >= SILENT_MS); /* who has just got it is left alone */
    PQfinish(orphan);
}

/* --- lanes --------------------------------------------------------------------------------------- */

/* As when the connection was given up before COMMIT arrived, and the lane went on over another. */
BENCH_TEST(test_a_commit_that_later_ones_of_its_lane_have_passed_is_refused, b)
{
    struct store *s = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    struct err err;
    char ahead[100], batch[100];
    snprintf(ahead, sizeof ahead, "UPDATE lanes SET batch = batch + 2 WHERE slot = %lld",
             (long long)s->id_slot);
    snprintf(batch, sizeof batch, "SELECT batch FROM lanes WHERE slot = %lld", (long long)s->id_slot);
    assert_int_equal(shared_insert_job(s, 1, &err), ERR_OK);
    bench_sql(look, ahead);
    int64_t before = bench_number(look, batch);
    assert_int_not_equal(shared_insert_job(s, 2, &err), ERR_OK);
    assert_true(err.conflict);
    assert_false(shared_job_is_there(b, 2));
    assert_int_equal(bench_number(look, batch), before);
    shared_expect_recovery(b, s, 3);
    store_close(s);
    PQfinish(look);
}

BENCH_TEST(test_a_lane_that_was_given_away_writes_nothing_more, b)
{
    struct store *lost = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    struct err err;
    int64_t slot = lost->id_slot;
    char sql[160];
    assert_int_equal(shared_insert_job(lost, 1, &err), ERR_OK);
    assert_int_not_equal(slot, b->store->id_slot);
    bench_sql(look, "UPDATE lanes SET seen = now()"); /* all of them are somebody's */
    snprintf(sql, sizeof sql, "UPDATE lanes SET seen = now() - interval '1 hour' WHERE slot = %lld",
             (long long)slot);
    bench_sql(look, sql);
    struct store *next = shared_open_other(b); /* nothing is free but what was not seen for long */
    assert_int_equal(next->id_slot, slot);
    assert_int_not_equal(shared_insert_job(lost, 2, &err), ERR_OK);
    assert_true(err.conflict);
    assert_false(shared_job_is_there(b, 2));
    assert_int_equal(shared_insert_job(next, 3, &err), ERR_OK);
    snprintf(sql, sizeof sql, "UPDATE lanes SET seen = now() - interval '1 hour' WHERE slot = %d",
             slot == 50 ? 51 : 50);
    bench_sql(look, sql);
    shared_expect_recovery(b, lost, 4);
    assert_int_not_equal(lost->id_slot, next->id_slot);
    store_close(next);
    store_close(lost);
    PQfinish(look);
}

/* --- counters ------------------------------------------------------------------------------------ */

static struct client_counts counts_now(struct bench *b, int64_t client)
{
    struct stats_row key = {.client = client};
    const struct stats_row *row = bench_fetch(b, &table_stats_row, &key);
    struct client_counts counts;
    assert_non_null(row);
    counts_from_bytes(&counts, row->counts);
    return counts;
}

BENCH_TEST(test_counters_of_many_handles_add_up_and_are_folded, b)
{
    enum { EACH = 30 };
    struct store *handles[] = {b->store, shared_open_other(b), shared_open_other(b)};
    PGconn *look = bench_session(&b->schema);
    struct client_counts counts = {0};
    struct err err;
    for (int64_t client = 1; client <= 2; client++) {
        struct stats_row row = {.client = client, .counts = counts_bytes(&counts)};
        assert_int_equal(bench_change(b, &table_stats_row, ROW_INSERT, &row), ERR_OK);
    }
    for (int i = 0; i < EACH; i++)
        for (size_t h = 0; h < LENGTH_OF(handles); h++) {
            struct client_counts more = {.by_state = {[JOB_QUEUED] = 2, [JOB_RUNNING] = -1}};
            struct stats_row row = {.client = 1 + (int64_t)h % 2, .counts = counts_bytes(&more)};
            assert_int_equal(shared_change(handles[h], &table_stats_row, ROW_UPDATE, &row, &err), ERR_OK);
        }
    assert_int_equal(counts_now(b, 1).by_state[JOB_QUEUED], EACH * 2 * 2);
    assert_int_equal(counts_now(b, 2).by_state[JOB_RUNNING], -EACH);
    assert_true(bench_number(look, "SELECT count(*) FROM client_deltas") > 0);
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
         bench_number(look, "SELECT count(*) FROM client_deltas") > 0;) {
        assert_true(shared_now_ms() < until);
        assert_true(leads(b->store));
        usleep(SHARED_LOOK_MS * 1000);
    }
    assert_int_equal(counts_now(b, 1).by_state[JOB_QUEUED], EACH * 2 * 2);
    assert_int_equal(counts_now(b, 2).by_state[JOB_RUNNING], -EACH);
    assert_true(leads(b->store));
    assert_int_equal(b->store->jobs_by_state[JOB_QUEUED], EACH * 3 * 2);
    store_close(handles[1]);
    store_close(handles[2]);
    PQfinish(look);
}

/* --- listings ------------------------------------------------------------------------------------ */

static bool keep_entry(const struct list_entry *e, void *arg)
{
    struct list_entry **next = arg;
    *(*next)++ = *e;
    return true;
}

BENCH_TEST(test_jobs_are_listed_from_their_rows, b)
{
    struct err err;
    for (int64_t id = 1; id <= 9; id++) {
        struct job_row job = {.id = id, .client = 1 + id % 2, .queue = shared_queue};
        struct end_row end = {
            .id = id, .client = job.client, .state = JOB_SUCCEEDED + id % 3, .refs = {"", 0}};
        assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
        if (id > 3)
            assert_int_equal(bench_change(b, &table_end_row, ROW_INSERT, &end), ERR_OK);
    }
    int64_t ids[10];
    size_t count;
    struct list_query q = {.owner_key = 2, .bucket = LIST_ALL, .below_id = 8, .from_id = 2, .limit = 10};
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_list(b->reader, &q, ids, &count, &err), ERR_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(ids, ((const int64_t[]){7, 5, 3}), 3 * sizeof *ids);
    q = (struct list_query){.owner_key = 2, .bucket = 1 + JOB_SUCCEEDED, .below_id = INT64_MAX, .limit = 10};
    assert_int_equal(b->reader->ops->reader_list(b->reader, &q, ids, &count, &err), ERR_OK);
    assert_int_equal(count, 1); /* 9: odd and a multiple of three */
    assert_int_equal(ids[0], 9);
    struct list_entry seen[20], *end = seen;
    assert_int_equal(b->reader->ops->reader_scan_list(b->reader, keep_entry, &end, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(end - seen, 9 + 6);
    for (struct list_entry *e = seen + 1; e < end; e++)
        assert_true(e[-1].owner_key < e->owner_key ||
                    (e[-1].owner_key == e->owner_key &&
                     (e[-1].bucket < e->bucket || (e[-1].bucket == e->bucket && e[-1].id < e->id))));
}

/* --- the log, by somebody who follows it ------------------------------------------------------------ */

struct seen {
    int64_t numbers[4];
    size_t count;
};

static bool see_chunk(struct log_place at, struct str chunk, void *arg)
{
    struct seen *s = arg;
    assert_true(at.turn > 0 && chunk.len > 0 && s->count < LENGTH_OF(s->numbers));
    s->numbers[s->count++] = at.chunk;
    return true;
}

/* What is new behind `place`, each look in a snapshot of its own. */
static size_t follow(struct bench *b, struct log_place *place, struct seen *s)
{
    struct err err;
    size_t before = s->count;
    bench_begin(b);
    assert_int_equal(store_follow(b->reader, place, LENGTH_OF(s->numbers), see_chunk, s, &err), ERR_OK);
    bench_end(b);
    return s->count - before;
}

/* The negative control: who goes by number is quicker, and blind for what comes to light later. */
static size_t follow_by_number(PGconn *c, int64_t *place)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT g FROM log WHERE g > %lld ORDER BY g", (long long)*place);
    PGresult *r = PQexec(c, sql);
    assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
    int count = PQntuples(r);
    if (count)
        *place = strtoll(PQgetvalue(r, count - 1, 0), NULL, 10);
    PQclear(r);
    return (size_t)count;
}

BENCH_TEST(test_who_follows_the_log_misses_no_transaction_that_commits_late, b)
{
    struct store *other = shared_open_other(b);
    PGconn *slow = bench_session(&b->schema), *naive = bench_session(&b->schema);
    struct str chunk = STR("in time");
    struct change_set c = {.chunks = &chunk, .chunk_count = 1, .first_chunk = other->next_chunk};
    int64_t late = b->first_chunk + 5, in_time = other->next_chunk, naive_place = 0;
    struct log_place place = {0};
    struct seen seen = {.count = 0};
    struct err err;
    char sql[120];
    assert_true(late < in_time);
    bench_sql(slow, "BEGIN");
    snprintf(sql, sizeof sql, "INSERT INTO log(g, data) VALUES (%lld, 'late')", (long long)late);
    bench_sql(slow, sql);
    assert_int_equal(other->ops->commit(other, &c, &err), ERR_OK);
    assert_int_equal(follow(b, &place, &seen), 0);
    assert_int_equal(follow_by_number(naive, &naive_place), 1);
    assert_int_equal(naive_place, in_time);
    bench_sql(slow, "COMMIT");
    assert_int_equal(follow_by_number(naive, &naive_place), 0); /* `late` is never seen */
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; seen.count < 2 && shared_now_ms() < until;)
        follow(b, &place, &seen); /* other programs' transactions hold it up as well */
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.numbers[0], late);
    assert_int_equal(seen.numbers[1], in_time);
    assert_int_equal(follow(b, &place, &seen), 0);
    PQfinish(slow);
    PQfinish(naive);
    store_close(other);
}

/* A dump restored elsewhere: transactions of the former server are ahead of the new one's. */
BENCH_TEST(test_a_restored_log_can_be_followed_and_places_of_the_former_server_are_refused, b)
{
    PGconn *sql = bench_session(&b->schema);
    struct log_place place = {0}, former = {.turn = INT64_C(1) << 60, .chunk = 7};
    struct seen seen = {.count = 0};
    struct err err;
    bench_sql(sql, "INSERT INTO log(g, data, xid) VALUES (7, 'seven', '1152921504606846976'), "
                   "(9, 'nine', '1152921504606846975')");
    assert_int_equal(follow(b, &place, &seen), 0); /* the fault that the next opening heals */
    store_close(shared_open_other(b));
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; seen.count < 2 && shared_now_ms() < until;)
        follow(b, &place, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.numbers[0], 7);
    assert_int_equal(seen.numbers[1], 9);
    bench_begin(b);
    assert_int_equal(store_follow(b->reader, &former, 1, see_chunk, &seen, &err), ERR_CONFIG_INVALID);
    bench_end(b);
    PQfinish(sql);
}

/* --- opening ------------------------------------------------------------------------------------- */

struct opening {
    struct bench *bench;
    enum err_code code;
};

static void *open_one(void *arg)
{
    struct opening *o = arg;
    struct postgres_options options = {.url = o->bench->schema.url, .timeout_ms = SHARED_PATIENCE_MS};
    struct store *s = NULL;
    struct err err;
    o->code = store_open_postgres(&options, &s, &err);
    if (o->code != ERR_OK)
        print_message("open: %s\n", err.detail);
    store_close(s);
    return NULL;
}

BENCH_TEST(test_many_nodes_that_start_at_once_make_one_schema, b)
{
    enum { NODES = 8 };
    struct bench fresh = {.shared = true};
    struct opening openings[NODES];
    pthread_t threads[NODES];
    (void)b;
    bench_schema_make(&fresh.schema);
    for (int i = 0; i < NODES; i++) {
        openings[i].bench = &fresh;
        assert_int_equal(pthread_create(&threads[i], NULL, open_one, &openings[i]), 0);
    }
    for (int i = 0; i < NODES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(openings[i].code, ERR_OK);
    bench_schema_drop(&fresh.schema);
}

BENCH_TEST(test_a_schema_of_a_newer_program_is_refused, b)
{
    PGconn *look = bench_session(&b->schema);
    bench_sql(look, "UPDATE marks SET value = value + 1 WHERE name = 'schema'");
    struct postgres_options o = {.url = b->schema.url, .timeout_ms = SHARED_TIMEOUT_MS};
    struct store *s = NULL;
    struct err err;
    assert_int_equal(store_open_postgres(&o, &s, &err), ERR_CONFIG_INVALID);
    PQfinish(look);
}

/* [JOB-107]: no other value is storable. */
BENCH_TEST(test_the_schema_refuses_states_that_do_not_belong_there, b)
{
    struct err err;
    for (int64_t s = -1; s <= JOB_STATE_COUNT; s++) {
        bool known = s >= 0 && s < JOB_STATE_COUNT, final = known && job_state_is_final((enum job_state)s);
        struct end_row end = {.id = s + 10, .state = s, .refs = {"", 0}};
        struct task_row task = shared_ready_task(s + 10, 5);
        task.state = task.job_state = s;
        assert_int_equal(shared_change(b->store, &table_end_row, ROW_INSERT, &end, &err) == ERR_OK, final);
        assert_int_equal(shared_change(b->store, &table_task_row, ROW_INSERT, &task, &err) == ERR_OK,
                         known && !final);
    }
}

/* The same of runs, steps and decisions, as in a SQLite file. */
BENCH_TEST(test_the_schema_refuses_states_of_runs_that_there_are_not, b)
{
    struct err err;
    for (int64_t s = -1; s <= RUN_STATUS_COUNT; s++) {
        char name[16];
        snprintf(name, sizeof name, "run %lld", (long long)s);
        struct run_row run = {.num = s + 10, .id = str_of(name), .state = s};
        struct run_step_row step = {.run = s + 10, .state = s};
        struct decision_row decision = {.id = s + 10, .state = s};
        assert_int_equal(shared_change(b->store, &table_run_row, ROW_INSERT, &run, &err) == ERR_OK,
                         s >= 0 && s < RUN_STATUS_COUNT);
        assert_int_equal(shared_change(b->store, &table_run_step_row, ROW_INSERT, &step, &err) == ERR_OK,
                         s >= 0 && s < STEP_STATUS_COUNT);
        assert_int_equal(shared_change(b->store, &table_decision_row, ROW_INSERT, &decision, &err) == ERR_OK,
                         s >= 0 && s < SIGNAL_DECISION_COUNT);
    }
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
