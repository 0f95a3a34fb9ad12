/* The check that checks the store: a store with everything in it is sound, and each of many small damages
 * to a closed copy of it is seen and told by its own words. */
#include "unit/kernel/rig.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "jobs/webhook_fingerprint.h"

#include "base/banned.h"

static char master_path[80], copy_path[80];

/* --- a store with everything in it --------------------------------------------------------------- */

enum { DAY_MS = 86400000, FINISHED = 1200 };

static void add_client_things(struct rig *r, int64_t client, const struct uuid *id)
{
    for (int i = 0; i < 2; i++) {
        struct key_command *key = ARENA_NEW(r->arena, struct key_command);
        key->action = KEY_CREATE;
        key->rotate = true;
        key->who.kind = PRINCIPAL_OPERATOR;
        key->client_id = *id;
        rig_post(r, &key->base, &key_command_type);
    }
    struct create_webhook_command *hook = ARENA_NEW(r->arena, struct create_webhook_command);
    hook->client = client;
    hook->url = STR("http://a");
    hook->events = STR("*");
    webhook_fingerprint(hook->url, hook->events, hook->fingerprint);
    rig_post(r, &hook->base, &create_webhook_command_type);
    rig_step(r);
}

static void finish_many(struct rig *r, int64_t client)
{
    struct submit_item item = rig_item();
    for (int done = 0; done < FINISHED; done += 100) {
        for (int i = 0; i < 100; i++) {
            item.idem_key = i % 2 ? arena_printf(r->arena, "key-%d-%d", done, i) : STR_ABSENT;
            rig_post_submit(r, client, &item, 1);
        }
        rig_step(r);
        struct claim_command *c = rig_post_claim(r, "w", 100, 0);
        rig_step(r);
        for (uint32_t i = 0; i < c->task_count; i++)
            rig_post_work(r, &start_command_type, &c->tasks[i], true);
        rig_step(r);
        for (uint32_t i = 0; i < c->task_count; i++)
            rig_post_work(r, &finish_command_type, &c->tasks[i], i % 5 != 0);
        rig_step(r);
        rig_pass(r, 1000);
    }
}

/* Old jobs that were purged, two that lived through it, hundreds that ended, a retried one, each live
 * state. */
static void fill(struct rig *r)
{
    struct uuid one_id, two_id;
    int64_t one = rig_new_client(r, &one_id), two = rig_new_client(r, &two_id);
    add_client_things(r, one, &one_id);
    add_client_things(r, two, &two_id);
    rig_submit_deferred(r, two, (int64_t)900 * DAY_MS);
    rig_submit_default(r, one);
    rig_run(r, true);
    struct submit_item old = rig_submit_default(r, one);
    rig_run(r, false);
    rig_retry(r, one, &old);
    rig_pass(r, (int64_t)31 * DAY_MS);
    for (int i = 0; i < 5; i++) { /* purged, and the events of what lives are kept */
        rig_step(r);
        rig_pass(r, 1000);
    }
    rig_run(r, false);
    rig_retry(r, one, &old);
    finish_many(r, one);
    struct submit_item last = rig_item();
    last.has_max_retries = true;
    last = rig_submit(r, two, &last);
    rig_pass(r, 60000);
    while (rig_state(r, last.id) != JOB_FAILED)
        rig_run(r, false);
    struct submit_item canceled = rig_submit_default(r, two);
    rig_cancel(r, two, &canceled);
    for (int i = 0; i < 4; i++)
        rig_submit_default(r, two);
    rig_claim(r, "w");
    struct claimed_task t = rig_claim(r, "w");
    rig_work(r, &start_command_type, &t);
}

static void count_problem(void *arg, const char *line)
{
    const char *want = arg;
    if (want && strstr(line, want))
        *(char *)arg = 0; /* seen */
}

static int build_master(void **state)
{
    struct err err;
    void *rig_state_slot = NULL;
    (void)state;
    rig_use_disk = true;
    rig_up(&rig_state_slot);
    struct rig *r = rig_state_slot;
    fill(r);
    snprintf(master_path, sizeof master_path, "%s-master", r->path);
    snprintf(copy_path, sizeof copy_path, "%s-copy", r->path);
    assert_int_equal(store_backup_sqlite(r->path, master_path, &err), ERR_OK);
    return rig_down(&rig_state_slot);
}

static int remove_master(void **state)
{
    (void)state;
    unlink(master_path);
    unlink(copy_path);
    return 0;
}

/* --- damages ----------------------------------------------------------------------------------- */

/* An ended job with five events or more, all in the log; a failed, a live one; ids by SQL. */
#define FIRST_ENDED(state)                                                                                   \
    "(SELECT id FROM ends WHERE state=" state " AND length(refs)=40 AND id NOT IN (SELECT job FROM kept) "   \
    "ORDER BY id LIMIT 1)"
#define ENDED     FIRST_ENDED("4")
#define FAILED    FIRST_ENDED("5")
#define QUEUED    "(SELECT max(id) FROM tasks WHERE state=1 AND owner=0)"
#define ASSIGNED  "(SELECT id FROM tasks WHERE state=2 AND owner=0)"
#define RUNNING   "(SELECT id FROM tasks WHERE state=3 AND owner=0)"
#define SCHEDULED "(SELECT id FROM tasks WHERE state=0 AND owner=0)"
#define RETRIED   "(SELECT job FROM archives ORDER BY job LIMIT 1)"
/* Of a bucket of client 1: the row that holds it. */
#define RUN_OF_ENDED(bucket)                                                                                 \
    "first=(SELECT max(first) FROM list WHERE client=1 AND bucket=" bucket " AND first<=" ENDED ")"

/* No later word on counters and listings than that of their tables. */
#define UNCOVERED "UPDATE deferred SET listings=NULL WHERE listings IS NOT NULL"

struct damage {
    const char *what, *sql, *told;
    void (*edit)(sqlite3 *db);
};

/* Puts `bytes` at `offset` of the event number `seq` of job `ended` and makes the checksum right again. */
static void edit_event(sqlite3 *db, uint32_t seq, size_t offset, const void *bytes, size_t len)
{
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT refs FROM ends WHERE id=" ENDED, -1, &q, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    struct str refs = {sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)};
    uint64_t ref = log_ref_at(refs, seq - 1);
    sqlite3_finalize(q);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT data FROM log WHERE g=?", -1, &q, NULL), SQLITE_OK);
    sqlite3_bind_int64(q, 1, log_ref_chunk(ref));
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    size_t size = (size_t)sqlite3_column_bytes(q, 0);
    char *chunk = must_alloc(size);
    memcpy(chunk, sqlite3_column_blob(q, 0), size);
    sqlite3_finalize(q);
    memcpy(chunk + log_ref_offset(ref) + offset, bytes, len);
    uint64_t sum = hash_fnv1a(HASH_FNV_START, chunk + LOG_FIRST_OFFSET, size - LOG_FIRST_OFFSET);
    memcpy(chunk, &sum, sizeof sum);
    assert_int_equal(sqlite3_prepare_v2(db, "UPDATE log SET data=? WHERE g=?", -1, &q, NULL), SQLITE_OK);
    sqlite3_bind_blob64(q, 1, chunk, size, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, log_ref_chunk(ref));
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    sqlite3_finalize(q);
    free(chunk);
}

/* Where things stand in an event, from the format's description. */
enum {
    AT_LENGTH = 0,
    AT_EVENT = 2,
    AT_PREV = 3,
    AT_NEXT = 4,
    AT_KIND = 5,
    AT_SEQ = 6,
    AT_JOB = 10,
    AT_TIME = 18,
    AT_ATTEMPT = 26
};

static void swap_seqs(sqlite3 *db)
{
    edit_event(db, 3, AT_SEQ, &(uint32_t){4}, 4);
    edit_event(db, 4, AT_SEQ, &(uint32_t){3}, 4);
}
static void other_job(sqlite3 *db)
{
    edit_event(db, 5, AT_JOB, &(int64_t){4711}, 8);
}
static void earlier_time(sqlite3 *db)
{
    edit_event(db, 4, AT_TIME, &(int64_t){5}, 8);
}
static void later_time(sqlite3 *db)
{
    edit_event(db, 5, AT_TIME, &(int64_t){INT64_C(1) << 60}, 8);
}
static void other_attempt(sqlite3 *db)
{
    edit_event(db, 4, AT_ATTEMPT, &(uint32_t){2}, 4);
}
static void other_kind(sqlite3 *db)
{
    edit_event(db, 2, AT_KIND, "\x05", 1);
}
static void illegal_move(sqlite3 *db)
{
    edit_event(db, 3, AT_NEXT, "\x03", 1);
} /* QUEUED to RUNNING */
static void other_event(sqlite3 *db)
{
    edit_event(db, 5, AT_EVENT, "\x06", 1);
} /* job.canceled to SUCCEEDED */
static void no_length(sqlite3 *db)
{
    edit_event(db, 1, AT_LENGTH, "\x01\x00", 2);
}

static void spoil_index(sqlite3 *db)
{
    sqlite3_stmt *q;
    char sql[] = "SELECT rootpage FROM sqlite_master WHERE name='webhooks_client'";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    long page = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    FILE *f = fopen(copy_path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (page - 1) * 4096, SEEK_SET), 0);
    for (int i = 0; i < 64; i++)
        fputc(0x5A, f);
    fclose(f);
}

static const struct damage damages[] = {
    {"an ended job's state is another one", "UPDATE ends SET state=6 WHERE id=" ENDED,
     "its row says CANCELED"},
    {"a live job's state is another one", "UPDATE tasks SET state=0,job_state=0,due_ms=5 WHERE id=" QUEUED,
     "its row says CREATED"},
    {"a state the schema forbids",
     "PRAGMA ignore_check_constraints=1; UPDATE ends SET state=1 WHERE id=" ENDED,
     "breaks a rule: state holds a value that it may hold"},
    {"a priority that there is not", "UPDATE jobs SET priority=10 WHERE id=" ENDED, "jobs: row"},
    {"a plan's step without a state that there is",
     "PRAGMA ignore_check_constraints=1;INSERT INTO run_steps(run,idx,state,attempt,waits,task,tries_left,"
     "started_ms,ended_ms) VALUES(1,1,99,0,0,0,0,0,0)",
     "run_steps: row 1 breaks a rule: state holds"},
    {"a chunk in the middle is gone", "DELETE FROM log WHERE g=(SELECT (min(g)+max(g))/2 FROM log)",
     "follows chunk"},
    {"the first chunk is gone", "DELETE FROM log WHERE g=(SELECT min(g) FROM log)",
     "breaks a rule: events are numbered"},
    {"the last chunk is gone", "DELETE FROM log WHERE g=(SELECT max(g) FROM log)", "the log has"},
    {"a chunk has another number", "UPDATE log SET g=g+1000 WHERE g=(SELECT max(g) FROM log)",
     "follows chunk"},
    {"a byte of a chunk",
     "UPDATE log SET data=CAST(substr(data,1,99)||x'FF'||substr(data,101) AS BLOB) WHERE g=(SELECT max(g) "
     "FROM log)",
     "is damaged"},
    {"a chunk is cut short",
     "UPDATE log SET data=substr(data,1,length(data)-3) WHERE g=(SELECT max(g) FROM log)", "is damaged"},
    {"the pieces of the last chunk are gone", "UPDATE deferred SET chunk=NULL,start=NULL,log=NULL",
     "the log has"},
    {"a piece of the last chunk is gone",
     "UPDATE deferred SET chunk=NULL WHERE n=(SELECT max(n)-1 FROM deferred WHERE chunk=(SELECT max(chunk) "
     "FROM "
     "deferred))",
     "is damaged"},
    {"a byte of a piece",
     "UPDATE deferred SET log=CAST(substr(log,1,20)||x'FF'||substr(log,22) AS BLOB) WHERE chunk=(SELECT "
     "max(chunk) FROM deferred)",
     "is damaged"},
    {"a piece is cut short",
     "UPDATE deferred SET log=substr(log,1,5) WHERE n=(SELECT max(n) FROM deferred WHERE chunk IS NOT NULL)",
     "is damaged"},
    {"an end row is gone", "DELETE FROM ends WHERE id=" ENDED, "neither a live nor a final state"},
    {"a live row is gone", "DELETE FROM tasks WHERE id=" QUEUED, "neither a live nor a final state"},
    {"a job row is gone", "DELETE FROM jobs WHERE id=" ENDED, "has ended and has no job row"},
    {"a live job's row is gone", "DELETE FROM jobs WHERE id=" RUNNING, "is live and has no job row"},
    {"an unfinished job is gone altogether",
     "DELETE FROM jobs WHERE id=" QUEUED "; DELETE FROM tasks WHERE id=" QUEUED, "and no row"},
    {"a job is live and ended",
     "INSERT INTO ends SELECT "
     "id,client,kind,4,attempt,token,1,last_us/1000,last_us,length(refs)/8,NULL,NULL,refs FROM "
     "tasks WHERE id=" QUEUED,
     "is live and has ended"},
    {"counters by state",
     "UPDATE client_stats SET counts=CAST(x'07'||substr(counts,2) AS BLOB) WHERE client=1;" UNCOVERED,
     "client 1: counts 7 jobs CREATED"},
    {"counters by kind",
     "UPDATE client_stats SET counts=CAST(substr(counts,1,56)||x'0909'||substr(counts,59) AS BLOB) WHERE "
     "client=1;" UNCOVERED,
     "client 1: counts 2313 jobs of kind"},
    {"counters that wait are gone", UNCOVERED, "client 2: counts 0 jobs ASSIGNED, there are 1"},
    {"counters are gone", "DELETE FROM client_stats WHERE client=2", "has no counters"},
    {"a listing entry is gone", "DELETE FROM list WHERE client=1 AND bucket=0 AND " RUN_OF_ENDED("0"),
     "is missing in its client's list"},
    {"a listing entry by state is gone",
     "DELETE FROM list WHERE client=1 AND bucket=5 AND " RUN_OF_ENDED("5"),
     "is missing in its client's list of SUCCEEDED"},
    {"listing entries that wait are gone", UNCOVERED, "is missing in its client's list"},
    {"a job is listed under another state", "INSERT INTO list VALUES(1,2," ENDED ",x'00')",
     "which is not its state"},
    {"a job is listed for another client",
     "DELETE FROM list WHERE client=2; INSERT INTO list VALUES(2,0," ENDED ",x'00')",
     "is listed for client 2"},
    {"a job that is not there is listed", "INSERT INTO list VALUES(1,0,99,x'00')",
     "is listed and has no job row"},
    {"a job that is not there is put down for later", "INSERT INTO list VALUES(0,66,99,x'00')",
     "is listed and has no job row"},
    {"two references are swapped",
     "UPDATE ends SET refs=CAST(substr(refs,1,8)||substr(refs,17,8)||substr(refs,9,8)||substr(refs,25) AS "
     "BLOB) WHERE id=" ENDED,
     "references do not point"},
    {"the references are another job's",
     "UPDATE ends SET refs=(SELECT refs FROM ends WHERE id=" FAILED ") WHERE id=" ENDED,
     "references do not point"},
    {"a reference is missing", "UPDATE ends SET refs=substr(refs,1,32) WHERE id=" ENDED,
     "one reference per event"},
    {"an event is missing in row and references",
     "UPDATE ends SET refs=substr(refs,1,32),seq=4 WHERE id=" ENDED, "the log has 5"},
    {"sequence numbers are swapped", NULL, "each event starts where", swap_seqs},
    {"an event is another job's", NULL, "its row says 5 events, the log has 4", other_job},
    {"an event's time lies before the one before it", NULL, "times of a job's events rise", earlier_time},
    {"the last event's time differs from the row's", NULL, "differ in time", later_time},
    {"an event's attempt", NULL, "the attempt rises with each retry", other_attempt},
    {"an event's scenario", NULL, "the scenario is", other_kind},
    {"an event moves where no move leads", NULL, "every move is one of the lifecycle's", illegal_move},
    {"an event has another name", NULL, "every move is one of the lifecycle's", other_event},
    {"an event has no length", NULL, "holds no event at", no_length},
    {"a kept event is gone", "DELETE FROM kept WHERE job=" SCHEDULED, "the log has 0"},
    {"a kept event is damaged",
     "UPDATE kept SET event=CAST(x'00'||substr(event,2) AS BLOB) WHERE job=" SCHEDULED, "is damaged"},
    {"an event is kept and in the log", "INSERT INTO kept SELECT " ENDED ",1,event FROM kept LIMIT 1",
     "kept event 1 is damaged"},
    {"a kept event of nobody", "INSERT INTO kept SELECT 99,1,event FROM kept LIMIT 1",
     "has a kept event and no job row"},
    {"an archived report is gone", "DELETE FROM archives WHERE job=" RETRIED " AND attempt=1",
     "archived report"},
    {"an archived report of nobody", "INSERT INTO archives VALUES(99,1,1,1,NULL,'{}')",
     "has an archived report and no job row"},
    {"an idempotency entry is gone", "DELETE FROM idem WHERE id=(SELECT max(id) FROM idem)",
     "that no restart would find"},
    {"an idempotency entry has another hash", "UPDATE idem SET h=h+1 WHERE id=(SELECT max(id) FROM idem)",
     "is not the one of its key"},
    {"an idempotency entry of nobody", "INSERT INTO idem VALUES(99,5)", "is not the one of its key"},
    {"the attempt of a row", "UPDATE ends SET attempt=2 WHERE id=" ENDED, "its row says attempt 2"},
    {"a failure without an error", "UPDATE ends SET error=NULL WHERE id=" FAILED,
     "an error stands exactly in FAILED"},
    {"a failure with a result", "UPDATE ends SET result='{}' WHERE id=" FAILED,
     "a result stands only in SUCCEEDED"},
    {"a success that never started", "UPDATE ends SET started_ms=0 WHERE id=" ENDED, "was started"},
    {"another end time", "UPDATE ends SET finished_ms=finished_ms+1 WHERE id=" ENDED,
     "time of the last event"},
    {"the end row is another client's", "UPDATE ends SET client=2 WHERE id=" ENDED, "its final row differs"},
    {"no word that retries are used up", "UPDATE jobs SET max_retries=0 WHERE id=" FAILED,
     "job.retries_exhausted must stand"},
    {"a lease without a worker", "UPDATE tasks SET worker=NULL WHERE id=" ASSIGNED, "a lease and its worker"},
    {"a task of nobody",
     "UPDATE tasks SET owner=30,target=0 WHERE id=(SELECT min(id) FROM tasks WHERE target<>0)",
     "has an owner that there is not"},
    {"an entry of a list of nobody", "UPDATE list SET bucket=99 WHERE client=1 AND bucket=0",
     "list 99: is none that there is"},
    {"a lease without a token", "UPDATE tasks SET token=0 WHERE id=" ASSIGNED, "a lease has a token"},
    {"a run without a start", "UPDATE tasks SET started_ms=0 WHERE id=" RUNNING, "a start time"},
    {"a job's state that is not that of its task", "UPDATE tasks SET job_state=2 WHERE id=" QUEUED,
     "the state of a job fits that of its task"},
    {"a timer of a run that is not there", "INSERT INTO timers VALUES(4711,0,1,5)",
     "has a timer and is not being stopped"},
    {"a timer of nobody knows what", "INSERT INTO timers VALUES(4711,0,9,5)", "timer 4711: is of nothing"},
    {"a schedule without a time", "UPDATE tasks SET due_ms=0 WHERE id=" SCHEDULED, "knows until when"},
    {"a live row with another priority", "UPDATE tasks SET priority=9 WHERE id=" QUEUED,
     "its live row differs"},
    {"a live row in another queue", "UPDATE tasks SET queue='other' WHERE id=" QUEUED,
     "its live row differs"},
    {"a job of an unknown kind", "UPDATE jobs SET kind=99 WHERE id=" ENDED, "the work kind is a known one"},
    {"a client is gone", "DELETE FROM clients WHERE num=2", "which does not exist"},
    {"two clients have one number", "UPDATE clients SET num=1", "two clients have this number"},
    {"a client's secret is gone", "DELETE FROM client_secrets WHERE client=2", "has no secret"},
    {"the active key is revoked", "UPDATE api_keys SET revoked_ms=5", "its active key is revoked"},
    {"a key with all scopes spelled out", "UPDATE api_keys SET scopes=15", "its scopes are known ones"},
    {"queues of a key out of order", "UPDATE api_keys SET queues='b,a'", "its queues are names in order"},
    {"a key without a name that has one", "UPDATE api_keys SET name=''", "its name is not too long"},
    {"a key that never worked", "UPDATE api_keys SET expires_ms=created_ms", "made before it expires"},
    {"a listed key is gone", "DELETE FROM api_keys WHERE ends_ms>0", "lists a key twice, or one that is"},
    {"a list of keys that is cut", "UPDATE key_heads SET listed=substr(listed,1,12)", "list of keys is none"},
    {"a list without the active key", "UPDATE key_heads SET listed=substr(listed,1,8)", "is not in its list"},
    {"a list that names a key twice", "UPDATE key_heads SET listed=listed||listed", "lists a key twice"},
    {"a key of another client", "UPDATE api_keys SET client=1",
     "its client does not exist or is another one"},
    {"a webhook's guard is gone", "DELETE FROM webhook_keys WHERE client=2", "has no guard row"},
    {"a guard without a webhook", "DELETE FROM webhooks WHERE client=2", "stands for no webhook"},
    {"a page of the file", NULL, "file: ", spoil_index},
};

/* --- the tests --------------------------------------------------------------------------------- */

struct verdict {
    char told[64]; /* emptied once a line contains it */
    struct verify_result result;
};

static enum err_code check_copy(struct verdict *v)
{
    struct sqlite_options o = {.path = copy_path, .timeout_ms = 1000};
    struct reader *r;
    struct err err = {.code = ERR_OK};
    assert_int_equal(store_open_sqlite_reader(&o, &r, &err), ERR_OK);
    enum err_code code = store_verify(r, count_problem, NULL, v->told, &v->result, &err);
    r->ops->reader_close(r);
    return code;
}

static void fresh_copy(void)
{
    struct err err;
    unlink(copy_path);
    assert_int_equal(store_backup_sqlite(master_path, copy_path, &err), ERR_OK);
}

TEST(test_the_untouched_store_is_sound)
{
    struct verdict v = {.told = "x"};
    fresh_copy();
    assert_int_equal(check_copy(&v), ERR_OK);
    assert_int_equal(v.result.problems, 0);
    assert_true(v.result.jobs > FINISHED && v.result.live >= 5 && v.result.clients == 2);
    assert_true(v.result.events > 5 * FINISHED && v.result.chunks > 50);
}

static void test_damage_is_seen(void **given)
{
    const struct damage *d = *given;
    struct verdict v = {{0}, {0}};
    sqlite3 *db;
    snprintf(v.told, sizeof v.told, "%s", d->told);
    fresh_copy();
    assert_int_equal(sqlite3_open(copy_path, &db), SQLITE_OK);
    if (d->edit)
        d->edit(db);
    else
        assert_int_equal(sqlite3_exec(db, d->sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(d->edit || sqlite3_changes(db) > 0); /* the damage was really done */
    sqlite3_close(db);
    assert_int_equal(check_copy(&v), ERR_OK);
    assert_true(v.result.problems > 0);
    assert_string_equal(v.told, "");
}

/* --- the order of chunks ------------------------------------------------------------------------- */

static int64_t number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

/* Chunks change places in pairs: `first` and the next, and so on. */
static int64_t partner_of(int64_t g, int64_t first, int64_t last)
{
    int64_t partner = (g - first) % 2 ? g - 1 : g + 1;
    return g < first || partner > last ? g : partner;
}

/* Positions follow their chunks. Gives how many events then stand before the one they follow. */
static size_t swap_refs(sqlite3 *db, const char *select, const char *update, int64_t first, int64_t last)
{
    sqlite3_stmt *q, *w;
    size_t backwards = 0;
    assert_int_equal(sqlite3_prepare_v2(db, select, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, update, -1, &w, NULL), SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        size_t bytes = (size_t)sqlite3_column_bytes(q, 1), count = bytes / sizeof(uint64_t);
        uint64_t *refs = must_alloc(bytes + 1);
        if (bytes)
            memcpy(refs, sqlite3_column_blob(q, 1), bytes);
        for (size_t i = 0; i < count; i++) {
            int64_t chunk = partner_of(log_ref_chunk(refs[i]), first, last);
            refs[i] = (uint64_t)chunk << 16 | log_ref_offset(refs[i]);
            backwards += i && refs[i] < refs[i - 1];
        }
        sqlite3_bind_blob64(w, 1, refs, bytes, SQLITE_TRANSIENT);
        sqlite3_bind_int64(w, 2, sqlite3_column_int64(q, 0));
        assert_int_equal(sqlite3_step(w), SQLITE_DONE);
        sqlite3_reset(w);
        free(refs);
    }
    sqlite3_finalize(q);
    sqlite3_finalize(w);
    return backwards;
}

static void swap_chunks(sqlite3 *db, int64_t first, int64_t last)
{
    char sql[400];
    snprintf(
        sql, sizeof sql,
        "CREATE TEMP TABLE swapped AS SELECT g+CASE (g-%lld)%%2 WHEN 0 THEN 1 ELSE -1 END AS g,data FROM log "
        "WHERE g<=%lld; UPDATE log SET data=(SELECT s.data FROM swapped s WHERE s.g=log.g) "
        "WHERE g<=%lld; DROP TABLE swapped",
        (long long)first, (long long)last, (long long)last);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* Lanes that write side by side number their chunks in another order than jobs went on in. */
TEST(test_events_of_a_job_may_stand_in_any_order_of_chunks)
{
    struct verdict v = {.told = "x"};
    sqlite3 *db;
    fresh_copy();
    assert_int_equal(sqlite3_open(copy_path, &db), SQLITE_OK);
    int64_t first = number_of(db, "SELECT min(g) FROM log"), last = number_of(db, "SELECT max(g) FROM log");
    last -= (last - first + 1) % 2; /* whole pairs */
    swap_chunks(db, first, last);
    size_t backwards =
        swap_refs(db, "SELECT id,refs FROM ends", "UPDATE ends SET refs=? WHERE id=?", first, last) +
        swap_refs(db, "SELECT id,refs FROM tasks WHERE owner=0", "UPDATE tasks SET refs=? WHERE id=?", first,
                  last);
    sqlite3_close(db);
    assert_true(backwards > 100);
    assert_int_equal(check_copy(&v), ERR_OK);
    if (v.result.problems)
        print_error("%s\n", v.told);
    assert_int_equal(v.result.problems, 0);
}

TEST(test_listings_that_wait_are_checked_before_they_are_trusted)
{
    static const char *const blobs[] = {"x''",
                                        "x'01'",
                                        "x'00'",
                                        "x'000101FF7F'",
                                        "x'000001'",
                                        "x'0001FFFFFFFFFFFFFFFFFFFF'",
                                        "x'00010105050131'"};
    for (size_t i = 0; i < LENGTH_OF(blobs); i++) {
        struct verdict v = {{0}, {0}};
        sqlite3 *db;
        char sql[160];
        snprintf(sql, sizeof sql, "UPDATE deferred SET listings=%s WHERE listings IS NOT NULL", blobs[i]);
        fresh_copy();
        assert_int_equal(sqlite3_open(copy_path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_true(sqlite3_changes(db) > 0);
        sqlite3_close(db);
        assert_int_equal(check_copy(&v), ERR_STORE_CORRUPT);
    }
}

/* JOB-240, the store's side: what is damaged is left out, the job itself is there. */
TEST(test_a_job_whose_chunks_are_damaged_is_read_without_its_events)
{
    struct sqlite_options o = {.path = copy_path, .timeout_ms = 1000};
    struct arena *a = arena_new(1 << 16);
    struct err err = {.code = ERR_OK};
    struct job_view v;
    struct event events[RIG_EVENTS_MAX];
    size_t count = 0;
    bool found = false;
    sqlite3 *db;
    sqlite3_stmt *q;
    fresh_copy();
    assert_int_equal(sqlite3_open(copy_path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "UPDATE log SET data=CAST(substr(data,1,3)||iif(substr(data,4,1)=x'77',x'78',x'77')"
                     "||substr(data,5) AS BLOB)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT " ENDED, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t id = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    struct reader *r;
    assert_int_equal(store_open_sqlite_reader(&o, &r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_equal(job_view_read(r, a, id, &v, &found, &err), ERR_OK);
    assert_true(found && v.state == JOB_SUCCEEDED && v.seq == 5);
    assert_int_equal(job_view_events(r, a, &v, 0, RIG_EVENTS_MAX, events, &count, &err), ERR_OK);
    assert_int_equal(count, 0);
    r->ops->reader_end(r);
    r->ops->reader_close(r);
    arena_free(a);
}

int main(void)
{
    for (size_t i = 0; i < LENGTH_OF(damages); i++)
        test_add((struct test_case){
            {damages[i].what, test_damage_is_seen, NULL, NULL, (void *)(uintptr_t)&damages[i]},
            __LINE__,
            NULL,
            NULL});
    return test_run("tests", build_master, remove_master);
}
