/* Schemas: a database of every former program becomes the same as a new one, and keeps what is in it; the
 * descriptions of the tables are sound. */
#include "store/bench_former.h"

#include <stdio.h>

#include "lifecycle/key_list.h"
#include "lifecycle/key_power.h"
#include "store/row_rules.h"

#include "base/banned.h"

/* Where two texts differ, for people. */
static void expect_same_words(const char *former, const char *now, int version)
{
    if (strcmp(former, now) == 0)
        return;
    size_t at = 0, line = 0;
    for (; former[at] && former[at] == now[at]; at++)
        if (former[at] == '\n')
            line = at + 1;
    fail_msg("of version %d: %.*s\nnew: %.*s", version, (int)strcspn(former + line, "\n"), former + line,
             (int)strcspn(now + line, "\n"), now + line);
}

/* Rows that every version could hold, in whatever order their columns stand. */
static const char two_rows[] =
    "INSERT INTO jobs(id,low,client,type,kind,priority,created_ms,execution_ms,seed,"
    "duration_ms,should_fail,payload_size,max_runtime_ms,max_retries,queue,payload) "
    "VALUES(5,6,7,0,0,4,9,0,0,500,0,0,1000,2,'q','what it is about');"
    "INSERT INTO client_secrets VALUES(7,'secret',NULL,3)";

BENCH_TEST_ON("sqlite postgres", a_database_of_every_former_version_becomes_the_same_as_a_new_one, b)
{
    const char *fresh = bench_schema_words(b);
    for (int version = bench_first_version(b); version < STORE_SCHEMA_VERSION; version++) {
        bench_from_version(b, version, two_rows);
        expect_same_words(bench_schema_words(b), fresh, version);
        const struct job_row *job = bench_fetch(b, &table_job_row, &(struct job_row){.id = 5});
        assert_non_null(job);
        assert_true(job->low == 6 && job->client == 7 && job->max_retries == 2 && !job->queue_ttl_ms);
        assert_true(str_is(job->queue, "q") && str_is(job->payload, "what it is about") &&
                    !job->callback.ptr);
        const struct client_secret_row *secret =
            bench_fetch(b, &table_client_secret_row, &(struct client_secret_row){.client = 7});
        assert_true(secret->rotated_ms == 3 && str_is(secret->secret, "secret"));
    }
}

/* The negative control: a schema that lacks something is not the same. */
BENCH_TEST_ON("sqlite postgres", a_schema_that_lacks_an_index_or_a_check_is_seen, b)
{
    const char *fresh = bench_schema_words(b);
    assert_non_null(strstr(fresh, "webhooks_client"));
    if (b->shared) {
        PGconn *c = bench_session(&b->schema);
        bench_sql(c, "DROP INDEX webhooks_client");
        PQfinish(c);
    } else {
        bench_file_run(b, "DROP INDEX webhooks_client");
    }
    assert_null(strstr(bench_schema_words(b), "webhooks_client"));
}

BENCH_TEST_ON("sqlite postgres", a_key_of_the_tenth_schema_keeps_its_power_and_is_listed, b)
{
    bench_from_version(b, 10,
                       "INSERT INTO api_keys VALUES(7,8,1,'a','b',5,6,0);"
                       "INSERT INTO key_heads VALUES(1,7)");
    const struct api_key_row *key = bench_fetch(b, &table_api_key_row, &(struct api_key_row){.id = 7});
    const struct key_head_row *head =
        bench_fetch(b, &table_key_head_row, &(struct key_head_row){.client = 1});
    assert_non_null(key);
    assert_int_equal(key_scopes_of_stored(key->scopes), SCOPE_ALL);
    assert_true(!key->queues.ptr && !key->name.ptr && key->expires_ms == 6);
    struct key_list list = key_list_read(head->listed, head->active);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.ids[0], 7);
}

/* --- tasks of the 21st schema ------------------------------------------------------------------------- */

#define OF_OTHERS "576460752303423488+"

/* One task, of two references at most, in the columns of then; `phase` is PostgreSQL's. */
static void add_task_of_21(struct strbuf *sql, bool shared, const char *values, int refs, int phase)
{
    strbuf_addf(sql,
                "INSERT INTO tasks(id,client,owner,subject,target,type,state,attempt,token,lease_ms,due_ms,"
                "started_ms,seq,max_retries,worker,refs,low,kind,priority,created_ms,max_runtime_ms,queue,"
                "last_us,queue_ttl_ms,expire_ms,retry%s) VALUES(%s,",
                shared ? ",phase,place" : "", values);
    strbuf_addf(sql, shared ? "decode(repeat('00',%d),'hex')" : "zeroblob(%d)", 8 * refs);
    strbuf_add_text(sql, ",6,0,4,9,1000,'q',9000,0,0,0");
    if (shared)
        strbuf_addf(sql, ",%d,1", phase);
    strbuf_add_text(sql, ");");
}

/* A job that waits and one that is claimed, a stream that has sent one of two, a step that was asked to stop,
 * and the time of grace of its run. */
static void tasks_of_21(struct strbuf *sql, bool shared)
{
    add_task_of_21(sql, shared, "5,7,0,0,0,1,0,1,0,0,5000,0,1,2,NULL", 1, 0);
    add_task_of_21(sql, shared, "6,7,0,0,0,0,2,1,1,700,0,0,2,2,'w'", 2, 2);
    add_task_of_21(sql, shared, OF_OTHERS "1,7,1,5,-9,0,1,1,0,0,0,0,1,7,NULL", 2, 1);
    add_task_of_21(sql, shared, OF_OTHERS "2,2,2,70,0,4,3,3,1,700,0,400,1,3,'w'", 0, 2);
    add_task_of_21(sql, shared, OF_OTHERS "3,2,2,70,0,-1,0,1,0,0,8000,0,0,1,NULL", 0, 0);
    strbuf_add_text(
        sql,
        "INSERT INTO runs(num,tenant,id,plan_num,on_failure,created_ms,state,inconsistent,"
        "last_seq,queued_ms,started_ms,ended_ms,step_count,left_count,open_count,"
        "failed_count,cycles,ending,timer) VALUES(70,2,'run',1,0,1,1,0,1,1,1,0,1,1,1,0,0,1," OF_OTHERS "3)");
}

static const struct task_row *task_now(struct bench *b, int64_t id)
{
    const struct task_row *t = bench_fetch(b, &table_task_row, &(struct task_row){.id = id});
    assert_non_null(t);
    assert_null(task_broken_rule(t));
    return t;
}

BENCH_TEST_ON("sqlite postgres", tasks_of_the_21st_schema_keep_what_they_are, b)
{
    struct strbuf sql = {0};
    tasks_of_21(&sql, b->shared);
    bench_from_version(b, 21, sql.ptr);
    strbuf_free(&sql);
    const struct task_row *waits = task_now(b, 5), *claimed = task_now(b, 6),
                          *stream = task_now(b, (int64_t)TASK_ID_OF_OTHERS + 1),
                          *step = task_now(b, (int64_t)TASK_ID_OF_OTHERS + 2);
    assert_true(waits->state == TASK_WAITING && waits->job_state == JOB_CREATED && !waits->done);
    assert_true(claimed->state == TASK_LEASED && claimed->job_state == JOB_ASSIGNED &&
                !claimed->cancel_asked);
    assert_true(stream->job_state == JOB_NO_STATE && stream->done == 1 && !stream->cancel_asked);
    assert_true(step->step == 4 && step->cancel_asked && !step->done && step->job_state == JOB_NO_STATE);
    assert_null(bench_fetch(b, &table_task_row, &(struct task_row){.id = (int64_t)TASK_ID_OF_OTHERS + 3}));
    const struct timer_row *grace = bench_fetch(b, &table_timer_row, &(struct timer_row){.owner = 70});
    assert_non_null(grace);
    assert_true(grace->due_ms == 8000 && grace->owner_kind == TIMER_OF_RUN);
    if (!b->shared)
        assert_int_equal(timers_next_ms(&b->store->timers), 8000);
}

/* --- descriptions --------------------------------------------------------------------------------------- */

static void expect_sound_columns(const struct table *t)
{
    enum column_role role = COLUMN_KEY;
    unsigned states = 0;
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        assert_true(c->role >= role); /* keys, what never changes, what changes */
        role = c->role;
        states += c->is_state;
        assert_false(c->may_be_null && (c->type == COLUMN_INT || c->role == COLUMN_KEY));
        assert_true(!c->has_range || (c->type == COLUMN_INT && c->least < c->most));
        assert_true(!c->is_state || (c->has_range && strcmp(c->name, "state") == 0));
        assert_true(!c->is_id || c->type == COLUMN_INT);
        assert_true(!c->has_log_positions || c->type == COLUMN_BLOB);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(c->name, t->columns[k].name);
    }
    assert_true(t->key_count > 0 && t->key_count <= t->fixed_count && t->fixed_count <= t->column_count);
    assert_true(states <= 1);
}

BENCH_TEST_ON("memory", every_table_is_described_soundly, b)
{
    assert_int_equal(table_count, STORE_TABLE_COUNT);
    assert_true(tables[TABLE_NUMBER_job_row] == &table_job_row);
    for (unsigned i = 0; i < table_count; i++) {
        const struct table *t = tables[i];
        assert_int_equal(t->number, i);
        assert_non_null(t->retention);
        assert_false(t->grows && t->fill_percent);
        expect_sound_columns(t);
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(t->name, tables[k]->name);
    }
}

/* Of each bucket one table tells what its entries lead to. */
BENCH_TEST_ON("memory", no_two_tables_have_a_listing_in_common, b)
{
    const struct table *of[256] = {NULL};
    for (unsigned i = 0; i < table_count; i++)
        for (const struct table_listing *l = tables[i]->listings; l && l->what; l++)
            for (unsigned bucket = l->first; bucket <= l->last; bucket++) {
                assert_null(of[bucket]);
                of[bucket] = tables[i];
            }
    assert_true(of[LIST_ALL] == &table_job_row && of[LIST_DECISIONS_OPEN] == &table_decision_row);
}

int main(void)
{
    return bench_run_all();
}
