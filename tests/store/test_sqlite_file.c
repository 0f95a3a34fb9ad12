/* The SQLite file: its schema, its version, and what a restart reads back from it. */
#include "store/bench_former.h"

#include <sqlite3.h>
#include <stdio.h>

#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

static sqlite3 *open_raw(struct bench *b)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    return db;
}

static void run_raw(struct bench *b, const char *sql)
{
    sqlite3 *db = open_raw(b);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static const char *sql_type(enum column_type type)
{
    return type == COLUMN_INT ? "INTEGER" : type == COLUMN_TEXT ? "TEXT" : "BLOB";
}

/* The descriptions and the schema are the same: names, order, types, keys. */
BENCH_TEST(test_the_schema_has_exactly_the_columns_of_the_row_lists, b)
{
    sqlite3 *db = open_raw(b);
    for (unsigned i = 0; i < table_count; i++) {
        char sql[80];
        sqlite3_stmt *q;
        snprintf(sql, sizeof sql, "SELECT name,type,pk FROM pragma_table_info('%s') ORDER BY cid",
                 tables[i]->name);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
        unsigned n = 0;
        for (; sqlite3_step(q) == SQLITE_ROW; n++) {
            assert_true(n < tables[i]->column_count);
            const struct column *c = &tables[i]->columns[n];
            assert_string_equal((const char *)sqlite3_column_text(q, 0), c->name);
            assert_string_equal((const char *)sqlite3_column_text(q, 1), sql_type(c->type));
            assert_int_equal(sqlite3_column_int(q, 2), n < tables[i]->key_count ? n + 1 : 0);
        }
        sqlite3_finalize(q);
        assert_int_equal(n, tables[i]->column_count);
    }
    sqlite3_close(db);
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    while ((text = strstr(text, what))) {
        count++;
        text += strlen(what);
    }
    return count;
}

/* What the schema says of states is what the lifecycles' lists say. No other value can be stored, of a
 * decision neither [SIG-063]. */
BENCH_TEST(test_the_checks_of_the_schema_are_those_of_the_lifecycles, b)
{
    static const struct {
        const struct table *table;
        int first, last;
    } checks[] = {
        {&table_task_row, 0, JOB_SUCCEEDED - 1},
        {&table_end_row, JOB_SUCCEEDED, JOB_STATE_COUNT - 1},
        {&table_delivery_row, 0, DELIVERY_STATE_COUNT - 1},
        {&table_run_row, 0, RUN_STATUS_COUNT - 1},
        {&table_run_step_row, 0, STEP_STATUS_COUNT - 1},
        {&table_decision_row, 0, SIGNAL_DECISION_COUNT - 1},
        {&table_client_state_row, 0, CLIENT_STATE_COUNT - 1},
    };
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        assert_int_equal(job_state_is_final((enum job_state)s), s >= JOB_SUCCEEDED);
    sqlite3 *db = open_raw(b);
    sqlite3_stmt *q;
    size_t count = 0;
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT name,sql FROM sqlite_master WHERE type='table'", -1, &q, NULL),
        SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(q, 0),
                   *sql = (const char *)sqlite3_column_text(q, 1);
        char check[64] = "";
        for (size_t i = 0; i < LENGTH_OF(checks); i++)
            if (strcmp(name, checks[i].table->name) == 0)
                snprintf(check, sizeof check, "CHECK(state BETWEEN %d AND %d)", checks[i].first,
                         checks[i].last);
        assert_int_equal(count_of(sql, "CHECK("), *check != 0);
        assert_true(!*check || strstr(sql, check));
        count += *check != 0;
    }
    assert_int_equal(count, LENGTH_OF(checks));
    sqlite3_finalize(q);
    sqlite3_close(db);
}

/* [JOB-107]: no other value is storable. */
BENCH_TEST(test_the_schema_refuses_states_that_do_not_belong_there, b)
{
    for (int64_t s = -1; s <= JOB_STATE_COUNT; s++) {
        bool known = s >= 0 && s < JOB_STATE_COUNT, final = known && job_state_is_final((enum job_state)s);
        struct end_row end = {.id = s, .state = s, .refs = {"", 0}};
        struct task_row task = {.id = s, .state = s, .queue = STR("q"), .refs = {"", 0}};
        assert_int_equal(bench_change(b, &table_end_row, ROW_INSERT, &end) == ERR_OK, final);
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &task) == ERR_OK, known && !final);
    }
}

BENCH_TEST(test_a_second_open_migrates_nothing, b)
{
    struct job_row job = {.id = 1, .queue = STR("q")};
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
    for (int i = 0; i < 3; i++) {
        bench_reopen(b);
        assert_non_null(bench_fetch(b, &table_job_row, &job));
        sqlite3 *db = open_raw(b);
        sqlite3_stmt *q;
        assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(q), SQLITE_ROW);
        assert_int_equal(sqlite3_column_int(q, 0), STORE_SCHEMA_VERSION);
        sqlite3_finalize(q);
        sqlite3_close(db);
    }
}

BENCH_TEST(test_a_newer_schema_is_refused_by_number_and_left_alone, b)
{
    b->reader->ops->reader_close(b->reader);
    b->reader = NULL;
    b->store = store_close(b->store);
    run_raw(b, "PRAGMA user_version=77");
    struct err err = {.code = ERR_OK};
    enum err_code code;
    assert_null(bench_open_again(b, &code, &err));
    assert_int_equal(code, ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "77"));
    struct sqlite_options o = {.path = b->path, .timeout_ms = 100};
    struct reader *r;
    assert_int_equal(store_open_sqlite_reader(&o, &r, &err), ERR_CONFIG_INVALID);
    char sql[40];
    snprintf(sql, sizeof sql, "PRAGMA user_version=%d", STORE_SCHEMA_VERSION);
    run_raw(b, sql);
    b->store = bench_open_again(b, &code, &err); /* the refusals changed nothing */
    assert_int_equal(code, ERR_OK);
}

static bool count_entry(const struct list_entry *e, void *arg)
{
    (void)e;
    ++*(size_t *)arg;
    return true;
}

static void expect_listed(struct bench *b, int64_t client, uint8_t bucket, const int64_t *ids, size_t count)
{
    struct list_query q = {.owner_key = client, .bucket = bucket, .below_id = INT64_MAX, .limit = 10};
    int64_t found[10];
    size_t n = 0;
    struct err err;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_list(b->reader, &q, found, &n, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(n, count);
    assert_memory_equal(found, ids, count * sizeof *ids);
}

/* The third one merges what waited in `pend`: the last word on each key, over what `list` says. */
BENCH_TEST(test_the_second_schema_is_brought_up_to_date, b)
{
    struct str chunks[] = {STR("c")};
    bench_from_version(
        b, 2,
        "INSERT INTO log VALUES(1,'a'),(2,'b');INSERT INTO list VALUES(1,0,7),(1,5,7),(3,0,9);"
        /* client 1: 0x0123456789ABCDE in bucket 0; job 7 leaves bucket 5 */
        "INSERT INTO pend VALUES(1,x'010000000000DEBC9A78563412000100000005010700000000000000');"
        /* client 258: job 8 comes, goes, comes again; job 5 comes and goes */
        "INSERT INTO pend VALUES(2,x'02010000000008000000000000000201000000010800000000000000');"
        "INSERT INTO pend VALUES(3,x'02010000000008000000000000000201000000000500000000000000"
        "0201000000010500000000000000')");
    expect_listed(b, 1, 0, (int64_t[]){INT64_C(0x00123456789ABCDE), 7}, 2);
    expect_listed(b, 1, 5, NULL, 0);
    expect_listed(b, 258, 0, (int64_t[]){8}, 1);
    expect_listed(b, 3, 0, (int64_t[]){9}, 1);
    assert_int_equal(b->store->next_chunk, 3);
    /* and the next commit rides beside its events */
    struct change_set c = {.chunks = chunks,
                           .chunk_count = 1,
                           .first_chunk = 3,
                           .list = &(struct list_entry){.owner_key = 3, .id = 12},
                           .list_count = 1};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    expect_listed(b, 3, 0, (int64_t[]){12, 9}, 2);
}

/* The fifth migration stores entries in id blocks: lists longer than a block, of exactly one block, of one
 * entry. */
BENCH_TEST(test_the_fourth_schema_is_brought_up_to_date, b)
{
    bench_from_version(
        b, 4,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) "
        "INSERT INTO list SELECT 1, 0, i << 33 FROM n UNION ALL SELECT 1, 5, i FROM n WHERE i <= 200 "
        "UNION ALL SELECT 2, 0, i FROM n WHERE i = 77");
    expect_listed(b, 1, 0,
                  (int64_t[]){INT64_C(1001) << 33, INT64_C(1000) << 33, INT64_C(999) << 33,
                              INT64_C(998) << 33, INT64_C(997) << 33, INT64_C(996) << 33, INT64_C(995) << 33,
                              INT64_C(994) << 33, INT64_C(993) << 33, INT64_C(992) << 33},
                  10);
    expect_listed(b, 1, 5, (int64_t[]){200, 199, 198, 197, 196, 195, 194, 193, 192, 191}, 10);
    expect_listed(b, 2, 0, (int64_t[]){77}, 1);
    size_t count = 0;
    struct err err;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_list(b->reader, count_entry, &count, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(count, 1202);
}

/* The twenty-first one moves listings that lay with the log, and goes on counting commits where it was. */
BENCH_TEST(test_listings_with_the_log_of_the_twentieth_schema_wait_and_its_commits_count, b)
{
    bench_from_version(b, 20,
                       "INSERT INTO log(g,data,aside) VALUES(1,x'61',x'01'),(2,x'62',x'0103000E00'),(3,x'63',"
                       "x'0103001000'); UPDATE marks SET value=2 WHERE name='merged';"
                       "INSERT INTO marks(name,value) VALUES('commit_offset',2)");
    expect_listed(b, 3, 0, (int64_t[]){8, 7}, 2);
    assert_int_equal(b->store->next_chunk, 4);
    assert_int_equal(b->store->open_bytes, 0);
    assert_int_equal(bench_file_number(b, "SELECT max(n) FROM deferred"), 5);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM log WHERE g>1 AND aside IS NOT NULL"), 0);
}

/* Damage of a run is told by whoever meets it: reading, scanning, merging. */
BENCH_TEST(test_a_damaged_run_is_told, b)
{
    static const char *const damaged[] = {"x''", "x'80'", "x'0100'", "x'FFFFFFFFFFFFFFFFFF01'",
                                          "zeroblob(201)"};
    struct list_entry entry = {.owner_key = 9, .id = 12};
    struct change_set c = {/* one that merges */
                           .list = &entry,
                           .list_count = 1,
                           .first_chunk = b->store->next_chunk,
                           .drop_chunks_below = 1};
    for (size_t i = 0; i < LENGTH_OF(damaged); i++) {
        char sql[120];
        snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO list VALUES(9,0,7,%s)", damaged[i]);
        run_raw(b, sql);
        struct list_query q = {.owner_key = 9, .below_id = INT64_MAX, .limit = 10};
        int64_t found[10];
        size_t n = 0;
        struct err err;
        bench_begin(b);
        assert_int_equal(b->reader->ops->reader_list(b->reader, &q, found, &n, &err), ERR_STORE_CORRUPT);
        assert_int_equal(b->reader->ops->reader_scan_list(b->reader, count_entry, &n, &err),
                         ERR_STORE_CORRUPT);
        bench_end(b);
        assert_int_equal(bench_commit(b, &c), ERR_STORE_CORRUPT);
    }
    run_raw(
        b,
        "INSERT OR REPLACE INTO list VALUES(9,0,7,x'0064'),(9,0,20,x'00')"); /* one reaches into the other */
    size_t n = 0;
    struct err err;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_list(b->reader, count_entry, &n, &err), ERR_STORE_CORRUPT);
    bench_end(b);
}

/* The sixth adds what nobody has used yet: nothing of a webhook is lost, and its reason is none. */
BENCH_TEST(test_the_fifth_schema_is_brought_up_to_date, b)
{
    struct webhook_row *row = bench_row(b, &table_webhook_row, 3, 0);
    row->disabled_ms = row->disabled_why = 0;
    assert_int_equal(bench_change(b, &table_webhook_row, ROW_INSERT, row), ERR_OK);
    bench_from_version(b, 5,
                       "INSERT INTO webhooks SELECT id,low,client,url,events,created_ms,secret,enabled,"
                       "former,rotated_ms,failing_since_ms FROM now.webhooks");
    bench_expect_equal(&table_webhook_row, bench_fetch(b, &table_webhook_row, row), row);
    struct request_day_row day = {.client = 3, .day = 20000, .requests = 7};
    assert_int_equal(bench_change(b, &table_request_day_row, ROW_INSERT, &day), ERR_OK);
    bench_expect_equal(&table_request_day_row, bench_fetch(b, &table_request_day_row, &day), &day);
}

BENCH_TEST(test_a_reader_needs_a_migrated_file_and_creates_none, b)
{
    struct sqlite_options o = {.path = "/tmp/weir-no-such-file.db", .timeout_ms = 100};
    struct reader *r;
    struct err err;
    assert_int_equal(store_open_sqlite_reader(&o, &r, &err), ERR_STORAGE_UNAVAILABLE);
    assert_null(fopen(o.path, "r"));
}

BENCH_TEST(test_a_file_that_is_no_database_is_refused, b)
{
    b->reader->ops->reader_close(b->reader);
    b->reader = NULL;
    b->store = store_close(b->store);
    FILE *f = fopen(b->path, "w");
    for (int i = 0; i < 5000; i++)
        fputs("not a database\n", f);
    fclose(f);
    struct err err = {.code = ERR_OK};
    enum err_code code;
    assert_null(bench_open_again(b, &code, &err));
    assert_int_equal(code, ERR_STORE_CORRUPT);
}

/* --- what a restart reads back ----------------------------------------------------------------- */

BENCH_TEST(test_a_restart_reads_back_live_tasks_with_worker_refs_and_place, b)
{
    const uint64_t refs[] = {1 << 16 | 8, 2 << 16 | 99};
    for (int64_t id = 1; id <= 4; id++) {
        struct task_row t = {.id = id,
                             .low = id * 7,
                             .client = 3,
                             .priority = id % 3,
                             .queue = STR("q"),
                             .state = id - 1,
                             .job_state = id - 1,
                             .attempt = 1,
                             .token = id + 10,
                             .started_ms = id == 4 ? 77 : 0,
                             .lease_ms = id > 2 ? 5000 + id : 0,
                             .due_ms = id == 1 ? 9999 : 0,
                             .worker = id > 2 ? STR("w") : STR_ABSENT,
                             .refs = {(const char *)refs, sizeof refs}};
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    }
    bench_reopen(b);
    struct live *l = b->store->live;
    assert_int_equal(live_count(l), 4);
    for (int p = TASK_WAITING; p <= TASK_RUNNING; p++)
        assert_int_equal(live_phase_count(l, (enum task_phase)p), 1);
    for (int64_t id = 1; id <= 4; id++) {
        const struct task *t = live_find(l, id);
        bench_expect_equal(&table_task_row, &t->row, bench_fetch(b, &table_task_row, &t->row));
        assert_int_equal(t->worker != NULL, id > 2);
    }
    struct str queue = STR("q");
    assert_int_equal(live_best(l, &(struct live_claim){&queue, 1, 0})->row.id, 2);
    assert_int_equal(live_next_wall(l), 9999);
    assert_int_equal(live_next_steady(l), 5003);
    assert_int_equal(live_worker_count(l, 0), 1);
}

/* A damaged row is refused and told, not worked on. */
BENCH_TEST(test_a_store_with_a_broken_live_row_is_not_opened, b)
{
    struct task_row t = {
        .id = 9, .client = 3, .queue = STR("q"), .state = TASK_LEASED, .attempt = 1, .refs = {"", 0}};
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    b->reader->ops->reader_close(b->reader);
    b->reader = NULL;
    b->store = store_close(b->store);
    struct err err = {.code = ERR_OK};
    enum err_code code;
    assert_null(bench_open_again(b, &code, &err));
    assert_int_equal(code, ERR_STORE_CORRUPT);
    assert_non_null(strstr(err.detail, "a lease and its worker"));
}

BENCH_TEST(test_a_restart_reads_back_numbers_counters_and_idempotency_hashes, b)
{
    struct client_counts counts = {.by_state = {1, 2, 3}, .by_kind = {4}};
    struct stats_row stats = {.client = 2, .counts = counts_bytes(&counts)};
    struct client_row client = {.uuid = STR("0123456789abcdef"), .num = 41};
    struct job_row job = {.id = 500, .queue = STR("q")};
    struct webhook_row hook = {.id = 900, .url = STR("u"), .events = STR("e"), .secret = STR("s")};
    const struct row_change rows[] = {{&table_stats_row, ROW_INSERT, &stats},
                                      {&table_client_row, ROW_INSERT, &client},
                                      {&table_job_row, ROW_INSERT, &job},
                                      {&table_webhook_row, ROW_INSERT, &hook}};
    const struct idem_entry idem[] = {{UINT64_C(0xFFFFFFFFFFFFFFF0), 500}, {12345, 501}, {12345, 502}};
    struct str chunks[] = {STR("a"), STR("b")};
    struct change_set c = {.rows = rows,
                           .row_count = LENGTH_OF(rows),
                           .chunks = chunks,
                           .chunk_count = 2,
                           .first_chunk = 1,
                           .idem_add = idem,
                           .idem_add_count = LENGTH_OF(idem)};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    c = (struct change_set){
        .first_chunk = 3, .drop_chunks_below = 2, .idem_drop = &idem[1], .idem_drop_count = 1};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    bench_reopen(b);
    struct store *s = b->store;
    assert_int_equal(s->next_chunk, 3);
    assert_int_equal(s->first_chunk, 2);
    assert_int_equal(s->next_client, 42);
    assert_int_equal(s->last_id, 900);
    assert_memory_equal(counts_of(&s->counts, 2), &counts, sizeof counts);
    size_t cursor = 0;
    assert_int_equal(idem_find(&s->idem, idem[0].hash, &cursor), 500);
    assert_int_equal(idem_find(&s->idem, idem[0].hash, &cursor), 0);
    cursor = 0;
    assert_int_equal(idem_find(&s->idem, 12345, &cursor), 502);
    assert_int_equal(idem_find(&s->idem, 12345, &cursor), 0);
}

BENCH_TEST(test_an_empty_file_starts_with_the_first_numbers, b)
{
    assert_int_equal(b->store->next_chunk, 1);
    assert_int_equal(b->store->first_chunk, 1);
    assert_int_equal(b->store->next_client, 1);
    assert_int_equal(b->store->last_id, 0);
    assert_int_equal(live_count(b->store->live), 0);
}

/* --- around it --------------------------------------------------------------------------------- */

/* JOB-197, the store's side: a lock that is held too long is an error, and nothing was written. */
BENCH_TEST(test_a_database_locked_by_another_program_fails_the_commit_whole, b)
{
    sqlite3 *other = open_raw(b);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct job_row job = {.id = 1, .queue = STR("q")};
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_STORAGE_DB_ERROR);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_null(bench_fetch(b, &table_job_row, &job));
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
}

BENCH_TEST(test_a_backup_beside_the_writer_is_a_store_of_its_own, b)
{
    struct job_row one = {.id = 1, .queue = STR("q")}, two = {.id = 2, .queue = STR("q")};
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &one), ERR_OK);
    char path[80];
    snprintf(path, sizeof path, "%s-backup", b->path);
    struct err err;
    assert_int_equal(store_backup_sqlite(b->path, path, &err), ERR_OK);
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &two), ERR_OK);
    struct sqlite_options o = {.path = path, .timeout_ms = 100};
    struct reader *r;
    bool found;
    assert_int_equal(store_open_sqlite_reader(&o, &r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_row(r, &table_job_row, &one, b->arena, &found, &err), ERR_OK);
    assert_true(found);
    assert_int_equal(r->ops->reader_row(r, &table_job_row, &two, b->arena, &found, &err), ERR_OK);
    assert_false(found);
    r->ops->reader_end(r);
    r->ops->reader_close(r);
    assert_int_not_equal(store_backup_sqlite(b->path, path, &err), ERR_OK); /* never over an existing file */
    remove(path);
}

/* The WAL is copied back between batches and starts over; it does not grow for ever. */
BENCH_TEST(test_tending_keeps_the_wal_short, b)
{
    struct err err;
    char *bytes = arena_alloc(b->arena, 200000);
    int64_t longest = 0;
    for (int64_t i = 1; i <= 200; i++) {
        struct kept_row row = {.job = i, .seq = 1, .event = {bytes, 200000}};
        assert_int_equal(bench_change(b, &table_kept_row, ROW_INSERT, &row), ERR_OK);
        if (b->store->wal_pages > longest)
            longest = b->store->wal_pages;
        assert_int_equal(b->store->ops->tend(b->store, false, &err), ERR_OK);
    }
    assert_true(longest > 1000 && longest < 2200); /* of about 10000 pages written */
    assert_int_equal(bench_change(b, &table_kept_row, ROW_INSERT,
                                  &(struct kept_row){.job = 999, .seq = 1, .event = {bytes, 9}}),
                     ERR_OK);
}

int main(void)
{
    return test_run("sqlite", bench_group_disk, NULL);
}
