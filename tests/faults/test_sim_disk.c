/* tests/faults/test_sim_disk.c - the simulated disk can see the faults it is there to see.
 *
 * A plain SQLite writer with two readers stands in for the store. With synchronous=FULL no cut may
 * cost a commit; each negative control breaks one thing and must be caught, or the disk proves
 * nothing. */
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "case.h"

#include "faults/sim_disk.h"
#include "base/must.h"
#include "base/banned.h"

/* SQLite allocates a lot here; a large quarantine would be most of the run. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=4:max_malloc_fill_size=0";
}

enum {
    ROWS_PER_COMMIT = 3,
    BODY_BYTES = 700, /* both also in judge_rows */
    COMMITS_PER_CHECKPOINT = 7
};

struct bench {
    const char *synchronous;
    unsigned commits;
    struct sim_fault fault; /* armed once the tables stand, when `broken` */
    bool broken;
};

/* --- a plain SQLite user ------------------------------------------------------------------------
 */

static sqlite3 *open_db(int flags)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2("plain.db", &db, flags, SIM_VFS_NAME);
    if (rc == SQLITE_OK)
        return db;
    sqlite3_close(db);
    return NULL;
}

static sqlite3 *open_writer(void)
{
    return open_db(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void must_sql(sqlite3 *db, const char *sql)
{
    if (run_sql(db, sql) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

/* -1: the question could not be answered. */
static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    int64_t answer = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        answer = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return answer;
}

/* Two readers on old snapshots now and then, as GETs are: checkpoints must work around them. */
struct readers {
    sqlite3 *db[2];
};

static void readers_turn(struct readers *r, unsigned n)
{
    sqlite3 *db = r->db[n % 2];
    if (n % 3 == 0)
        run_sql(db, "ROLLBACK");
    if (n % 3 == 1)
        must_sql(db, "BEGIN; SELECT count(*) FROM rows");
}

static int commit_one(sqlite3 *db, unsigned n)
{
    char sql[BODY_BYTES + 64];
    int rc = run_sql(db, "BEGIN IMMEDIATE");
    for (unsigned i = 0; i < ROWS_PER_COMMIT && rc == SQLITE_OK; i++) {
        snprintf(sql, sizeof sql, "INSERT INTO rows VALUES(%u, '%*u')", (n - 1) * ROWS_PER_COMMIT + i,
                 BODY_BYTES, n);
        rc = run_sql(db, sql);
    }
    snprintf(sql, sizeof sql, "UPDATE total SET n = %u", n);
    if (rc == SQLITE_OK)
        rc = run_sql(db, sql);
    if (rc == SQLITE_OK)
        rc = run_sql(db, "COMMIT");
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(db))
        run_sql(db, "ROLLBACK");
    return rc;
}

static sqlite3 *writer_with_tables(const char *synchronous)
{
    char sql[128];
    sqlite3 *db = open_writer();
    assert_non_null(db);
    snprintf(sql, sizeof sql, "PRAGMA synchronous=%s", synchronous);
    must_sql(db, sql);
    must_sql(db, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
                 "BEGIN; CREATE TABLE rows(id INTEGER PRIMARY KEY, body TEXT);"
                 "CREATE TABLE total(n INTEGER); INSERT INTO total VALUES(0); COMMIT;");
    return db;
}

static void workload(struct sim_disk *d, void *ctx)
{
    const struct bench *b = ctx;
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 7, NULL); /* WAL salts: same run, same disk */
    sqlite3 *db = writer_with_tables(b->synchronous);
    if (b->broken)
        sim_disk_fault(d, &b->fault);
    struct readers r = {{open_db(SQLITE_OPEN_READONLY), open_db(SQLITE_OPEN_READONLY)}};
    assert_true(r.db[0] && r.db[1]);
    for (unsigned n = 1; n <= b->commits; n++) {
        sim_disk_begun(d, n);
        assert_int_equal(commit_one(db, n), SQLITE_OK);
        sim_disk_acked(d, n);
        readers_turn(&r, n);
        if (n % COMMITS_PER_CHECKPOINT == 0)
            sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    sqlite3_close(r.db[0]);
    sqlite3_close(r.db[1]);
    sqlite3_close(db);
}

static enum sim_verdict judge_rows(sqlite3 *db, const struct sim_cut *cut, char why[256])
{
    if (ask(db, "SELECT count(*) FROM sqlite_master") <= 0) {
        bool readable = ask(db, "SELECT count(*) FROM sqlite_master") == 0;
        snprintf(why, 256, "no tables: %s", sqlite3_errmsg(db));
        if (!readable)
            return SIM_UNREADABLE;
        return cut->acked == 0 ? SIM_SOUND : SIM_LOST;
    }
    if (ask(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check") != 1) {
        snprintf(why, 256, "integrity check fails: %s", sqlite3_errmsg(db));
        return SIM_UNREADABLE;
    }
    int64_t n = ask(db, "SELECT n FROM total");
    int64_t rows = ask(db, "SELECT count(*) FROM rows");
    int64_t right = ask(db, "SELECT count(*) FROM rows WHERE"
                            " length(body) = 700 AND CAST(body AS INTEGER) = id / 3 + 1");
    snprintf(why, 256, "%lld commits, %lld rows, %lld of them right", (long long)n, (long long)rows,
             (long long)right);
    if (n < (int64_t)cut->acked)
        return SIM_LOST;
    if (n > (int64_t)cut->begun)
        return SIM_PHANTOM;
    return rows == n * ROWS_PER_COMMIT && right == rows ? SIM_SOUND : SIM_HALF;
}

static enum sim_verdict check(struct sim_disk *d, const struct sim_cut *cut, void *ctx, char why[256])
{
    (void)d;
    (void)ctx;
    sqlite3 *db = open_writer();
    if (!db) {
        snprintf(why, 256, "does not open");
        return SIM_UNREADABLE;
    }
    enum sim_verdict verdict = judge_rows(db, cut, why);
    sqlite3_close(db); /* checkpoints what it recovered: a cut may come here too */
    return verdict;
}

static struct sim_cut_report cut_plain(const char *title, struct bench *b, uint32_t cuts, bool first)
{
    struct sim_cut_plan plan = {.seed = 20, .cuts = cuts, .recut_each = 5, .stop_at_first = first};
    struct sim_cut_report r = sim_run_cuts(&plan, workload, check, b);
    sim_report_print(stderr, title, &r);
    return r;
}

/* --- the proof and its negative controls
 * ---------------------------------------------------------- */

TEST(test_synchronous_full_loses_nothing_in_any_cut)
{
    struct bench b = {.synchronous = "FULL", .commits = 60};
    struct sim_cut_report r = cut_plain("FULL", &b, 5000, false);
    assert_true(r.cuts >= 5000);
    assert_true(r.recuts >= 500);
    for (int mode = 0; mode < SIM_CUT_MODE_COUNT; mode++)
        assert_true(r.by_mode[mode] >= 100);
    assert_int_equal(sim_unsound(&r), 0);
}

TEST(test_control_synchronous_normal_is_seen_to_lose_commits_but_stays_whole)
{
    struct bench b = {.synchronous = "NORMAL", .commits = 40};
    struct sim_cut_report r = cut_plain("NORMAL", &b, 1000, false);
    assert_true(r.verdicts[SIM_LOST] > 100);
    assert_int_equal(sim_unsound(&r), r.verdicts[SIM_LOST]);
}

TEST(test_control_synchronous_off_is_seen_to_break_the_database)
{
    struct bench b = {.synchronous = "OFF", .commits = 40};
    struct sim_cut_report r = cut_plain("OFF", &b, 1000, false);
    assert_true(r.verdicts[SIM_LOST] > 0);
    assert_true(r.verdicts[SIM_UNREADABLE] + r.verdicts[SIM_HALF] > 0);
}

TEST(test_control_a_disk_that_skips_every_wal_sync_is_caught)
{
    struct bench b = {.synchronous = "FULL",
                      .commits = 30,
                      .broken = true,
                      .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_WAL}};
    struct sim_cut_report r = cut_plain("no WAL sync", &b, 500, false);
    assert_true(r.verdicts[SIM_LOST] > 100);
}

TEST(test_control_one_skipped_wal_sync_in_the_whole_run_is_caught)
{
    struct bench b = {.synchronous = "FULL",
                      .commits = 30,
                      .broken = true,
                      .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_WAL, .nth = 12, .times = 1}};
    struct sim_cut_report r = cut_plain("one WAL sync skipped", &b, 500, true);
    assert_true(sim_unsound(&r) > 0);
}

TEST(test_control_a_checkpoint_without_database_sync_is_caught)
{
    struct bench b = {.synchronous = "FULL",
                      .commits = 60,
                      .broken = true,
                      .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_DB}};
    struct sim_cut_report r = cut_plain("no database sync", &b, 500, true);
    assert_true(sim_unsound(&r) > 0);
}

TEST(test_control_a_lost_database_write_is_caught)
{
    struct bench b = {.synchronous = "FULL",
                      .commits = 60,
                      .broken = true,
                      .fault = {.call = SIM_CALL_WRITE, .files = SIM_FILE_DB, .nth = 9, .times = 1}};
    struct sim_cut_report r = cut_plain("one database write lost", &b, 500, true);
    assert_true(sim_unsound(&r) > 0);
}

TEST(test_the_same_seed_gives_the_same_cuts)
{
    struct bench b = {.synchronous = "NORMAL", .commits = 10};
    struct sim_cut_report one = cut_plain("NORMAL, once", &b, 300, false);
    struct sim_cut_report two = cut_plain("NORMAL, again", &b, 300, false);
    assert_int_equal(one.operations, two.operations);
    assert_int_equal(one.cuts, two.cuts);
    assert_memory_equal(one.verdicts, two.verdicts, sizeof one.verdicts);
    assert_memory_equal(&one.first, &two.first, sizeof one.first);
}

/* --- single faults
 * ---------------------------------------------------------------------------------- */

static struct sim_disk *mount_new(void)
{
    struct sim_disk *d = sim_disk_new();
    sim_disk_mount(d);
    return d;
}

/* Closes the dead connection, reboots into what is left, and says how many commits are there. */
static int64_t commits_after_cut(struct sim_disk *d, sqlite3 *db, enum sim_cut_mode mode)
{
    struct sim_disk *after = sim_disk_power_cut(d, mode, 1);
    sim_disk_mount(after);
    sqlite3_close(db);
    sim_disk_free(d);
    db = open_writer();
    assert_non_null(db);
    int64_t n = ask(db, "SELECT n FROM total");
    assert_int_equal(ask(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    sqlite3_close(db);
    sim_disk_mount(NULL);
    sim_disk_free(after);
    return n;
}

TEST(test_an_unsynced_commit_goes_with_the_power_and_a_synced_one_stays)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("FULL");
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    must_sql(db, "PRAGMA synchronous=NORMAL");
    assert_int_equal(commit_one(db, 2), SQLITE_OK);
    assert_int_equal(commits_after_cut(d, db, SIM_CUT_DROP_ALL), 1);

    d = mount_new();
    db = writer_with_tables("NORMAL");
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    assert_int_equal(commits_after_cut(d, db, SIM_CUT_KEEP_ALL), 1);
}

TEST(test_a_handle_of_a_disk_without_power_only_fails)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("FULL");
    struct sim_disk *after = sim_disk_power_cut(d, SIM_CUT_KEEP_ALL, 1);
    assert_int_not_equal(commit_one(db, 1), SQLITE_OK);
    sqlite3_close(db);
    sim_disk_mount(NULL);
    sim_disk_free(d);
    sim_disk_free(after);
}

TEST(test_readers_keep_their_snapshot_while_the_writer_commits_and_checkpoints)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("FULL");
    sqlite3 *reader = open_db(SQLITE_OPEN_READONLY);
    must_sql(reader, "BEGIN; SELECT n FROM total");
    int frames = 0, copied = 0;
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied),
                     SQLITE_OK);
    assert_true(copied < frames); /* stops at the reader's mark */
    assert_int_equal(ask(reader, "SELECT n FROM total"), 0);
    must_sql(reader, "COMMIT");
    assert_int_equal(ask(reader, "SELECT n FROM total"), 1);
    assert_int_not_equal(run_sql(reader, "UPDATE total SET n = 9"), SQLITE_OK);
    sqlite3 *second = open_writer();
    must_sql(db, "BEGIN IMMEDIATE");
    assert_int_equal(run_sql(second, "BEGIN IMMEDIATE"), SQLITE_BUSY);
    must_sql(db, "COMMIT");
    must_sql(second, "BEGIN IMMEDIATE; COMMIT");
    sqlite3_close(second);
    sqlite3_close(reader);
    sqlite3_close(db);
    sim_disk_mount(NULL);
    sim_disk_free(d);
}

TEST(test_a_full_disk_refuses_a_commit_whole_and_works_again_when_there_is_room)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("FULL");
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    sim_disk_limit(d, sim_disk_used(d) + 3000);
    assert_int_equal(commit_one(db, 2), SQLITE_FULL);
    assert_int_equal(ask(db, "SELECT n FROM total"), 1);
    sim_disk_heal(d);
    assert_int_equal(commit_one(db, 2), SQLITE_OK);
    assert_int_equal(commits_after_cut(d, db, SIM_CUT_DROP_ALL), 2);
}

/* Fails the nth such call for n = 1, 2, ... until a run is not struck any more. */
static unsigned walk_faults(struct sim_fault f)
{
    for (unsigned n = 1; n < 1000; n++) {
        struct sim_disk *d = mount_new();
        sqlite3 *db = writer_with_tables("FULL");
        f.nth = n;
        sim_disk_fault(d, &f);
        unsigned acked = 0;
        for (unsigned tries = 0; tries < 12 && acked < 6; tries++) {
            if (commit_one(db, acked + 1) == SQLITE_OK)
                acked++;
            if (tries == 3)
                sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        }
        bool struck = sim_disk_faults_hit(d) > 0;
        sim_disk_heal(d);
        int64_t found = commits_after_cut(d, db, SIM_CUT_DROP_ALL);
        assert_true(found >= (int64_t)acked);
        if (!struck)
            return n;
    }
    fail_msg("%s: still struck after 1000 runs", sim_call_text(f.call));
    return 0;
}

TEST(test_every_nth_read_write_or_truncate_may_fail_once_and_no_commit_is_lost)
{
    static const struct sim_fault faults[] = {
        {.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_FULL},
        {.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_IOERR_WRITE},
        {.call = SIM_CALL_WRITE, .times = 3, .code = SQLITE_FULL},
        {.call = SIM_CALL_READ, .times = 1, .code = SQLITE_IOERR_READ},
        {.call = SIM_CALL_TRUNCATE, .times = 1, .code = SQLITE_IOERR_TRUNCATE},
    };
    for (size_t i = 0; i < LENGTH_OF(faults); i++)
        assert_true(walk_faults(faults[i]) >= 1);
}

/* Why an fsync error must end the process: SQLite itself goes on, and what it then acknowledges may
 * stand on frames that were never written. */
TEST(test_a_failed_sync_forgets_the_writes_and_the_next_sync_does_not_bring_them_back)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("FULL");
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    sim_disk_fault(d,
                   &(struct sim_fault){
                       .call = SIM_CALL_SYNC, .files = SIM_FILE_WAL, .times = 1, .code = SQLITE_IOERR_FSYNC});
    int rc = commit_one(db, 2);
    assert_int_not_equal(rc, SQLITE_OK);
    assert_int_equal(sqlite3_extended_errcode(db) & 0xff, SQLITE_IOERR);
    assert_int_equal(sim_disk_faults_hit(d), 1);
    assert_int_equal(commits_after_cut(d, db, SIM_CUT_KEEP_ALL), 1);
}

TEST(test_a_new_file_without_sync_may_be_absent_and_a_delete_may_come_undone)
{
    struct sim_disk *d = mount_new();
    sqlite3 *db = writer_with_tables("OFF");
    struct sim_disk *after = sim_disk_power_cut(d, SIM_CUT_DROP_ALL, 1);
    sim_disk_mount(after);
    assert_null(open_db(SQLITE_OPEN_READWRITE)); /* the file itself is gone */
    sqlite3_close(db);
    sim_disk_free(d);
    sim_disk_free(after);

    d = mount_new();
    db = writer_with_tables("FULL");
    assert_int_equal(commit_one(db, 1), SQLITE_OK);
    sqlite3_close(db); /* deletes the WAL, without a directory sync */
    int yes = 0;
    sqlite3_vfs *vfs = sqlite3_vfs_find(SIM_VFS_NAME);
    vfs->xAccess(vfs, "plain.db-wal", SQLITE_ACCESS_EXISTS, &yes);
    assert_int_equal(yes, 0);
    after = sim_disk_power_cut(d, SIM_CUT_DROP_ALL, 1);
    sim_disk_mount(after);
    vfs->xAccess(vfs, "plain.db-wal", SQLITE_ACCESS_EXISTS, &yes);
    assert_int_equal(yes, 1);
    sim_disk_mount(NULL);
    sim_disk_free(d);
    sim_disk_free(after);
}
