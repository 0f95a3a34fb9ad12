/* A database that fails: a COMMIT whose answer was lost is found out, one that is away is told in time. */
#include "store/bench_shared.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/commit_proxy.h"
#include "pace.h"

#include "base/banned.h"

/* --- COMMIT without an answer -------------------------------------------------------------------- */

/* A handle that reaches the database through the proxy. */
struct through {
    struct commit_proxy *proxy;
    struct store *store;
    char url[sizeof((struct bench_schema *)0)->url];
};

static void open_through(struct bench *b, struct through *t)
{
    static const char host[] = "127.0.0.1:";
    const char *at = strstr(b->schema.url, host);
    char *rest;
    assert_non_null(at);
    at += strlen(host);
    uint16_t port = (uint16_t)strtoul(at, &rest, 10);
    t->proxy = commit_proxy_start(port);
    int n = snprintf(t->url, sizeof t->url, "%.*s%u%s", (int)(at - b->schema.url), b->schema.url,
                     commit_proxy_port(t->proxy), rest);
    assert_true(n > 0 && (size_t)n < sizeof t->url);
    struct postgres_options o = {.url = t->url, .timeout_ms = SHARED_TIMEOUT_MS};
    struct err err;
    assert_int_equal(store_open_postgres(&o, &t->store, &err), ERR_OK);
}

static void close_through(struct through *t)
{
    t->store = store_close(t->store);
    t->proxy = commit_proxy_stop(t->proxy);
}

BENCH_TEST(test_a_commit_that_never_arrived_did_not_happen, b)
{
    struct through t;
    struct err err;
    open_through(b, &t);
    assert_int_equal(shared_insert_job(t.store, 1, &err), ERR_OK); /* the proxy alone changes nothing */
    commit_proxy_set(t.proxy, PROXY_CUTS_BEFORE);
    assert_int_not_equal(shared_insert_job(t.store, 2, &err), ERR_OK);
    assert_int_equal(commit_proxy_cuts(t.proxy), 1);
    assert_true(err.conflict); /* it was found out */
    assert_false(shared_job_is_there(b, 2));
    shared_expect_recovery(b, t.store, 2);
    close_through(&t);
}

BENCH_TEST(test_a_commit_whose_answer_was_lost_did_happen, b)
{
    struct through t;
    struct err err;
    open_through(b, &t);
    commit_proxy_set(t.proxy, PROXY_CUTS_AFTER);
    assert_int_equal(shared_insert_job(t.store, 1, &err), ERR_OK);
    assert_int_equal(commit_proxy_cuts(t.proxy), 1);
    assert_true(shared_job_is_there(b, 1));
    shared_expect_recovery(b, t.store, 2);
    close_through(&t);
}

/* While the COMMIT is on its way nobody can tell by looking: whatever is answered must stay true after it has
 * arrived. */
BENCH_TEST(test_a_commit_that_arrives_late_does_not_make_a_liar_of_the_answer, b)
{
    struct through t;
    struct err err;
    open_through(b, &t);
    commit_proxy_set(t.proxy, PROXY_CUTS_LATE);
    enum err_code code = shared_insert_job(t.store, 1, &err);
    bool there = shared_job_is_there(b, 1);
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
         !commit_proxy_cuts(t.proxy) && shared_now_ms() < until;)
        usleep(SHARED_LOOK_MS * 1000);
    assert_int_equal(commit_proxy_cuts(t.proxy), 1);
    usleep(300000);                              /* what the server was sent, it has read */
    assert_true(code == ERR_OK || err.conflict); /* it was found out */
    assert_int_equal(there, code == ERR_OK);
    assert_int_equal(shared_job_is_there(b, 1), code == ERR_OK);
    shared_expect_recovery(b, t.store, 2);
    close_through(&t);
}

/* The negative control: a plain session through the same cuts is told of a failure each time, and what is in
 * the database differs. A caller that trusts the first answer is wrong, and so is one that trusts a later
 * look. */
BENCH_TEST(test_a_plain_session_cannot_tell_what_became_of_its_commit, b)
{
    static const struct {
        enum proxy_fault fault;
        int64_t at_once, later;
    } want[] = {{PROXY_CUTS_BEFORE, 0, 0}, {PROXY_CUTS_AFTER, 1, 1}, {PROXY_CUTS_LATE, 0, 1}};
    PGconn *look = bench_session(&b->schema);
    bench_sql(look, "CREATE TABLE written (n int)");
    for (size_t i = 0; i < LENGTH_OF(want); i++) {
        struct through t;
        bench_sql(look, "TRUNCATE written");
        open_through(b, &t);
        PGconn *c = PQconnectdb(t.url);
        bench_sql(c, "BEGIN");
        bench_sql(c, "INSERT INTO written VALUES (1)");
        commit_proxy_set(t.proxy, want[i].fault);
        PGresult *r = PQexec(c, "COMMIT");
        assert_int_not_equal(PQresultStatus(r), PGRES_COMMAND_OK);
        PQclear(r);
        assert_int_equal(bench_number(look, "SELECT count(*) FROM written"), want[i].at_once);
        for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
             !commit_proxy_cuts(t.proxy) && shared_now_ms() < until;)
            usleep(SHARED_LOOK_MS * 1000);
        shared_wait_until(look, "SELECT count(*) FROM written", want[i].later);
        PQfinish(c);
        close_through(&t);
    }
    PQfinish(look);
}

/* --- a database that is not there ---------------------------------------------------------------- */

BENCH_TEST(test_a_database_that_hangs_or_refuses_is_unavailable_in_time_and_found_again, b)
{
    static const enum proxy_fault faults[] = {PROXY_HANGS, PROXY_REFUSES};
    for (size_t i = 0; i < LENGTH_OF(faults); i++) {
        struct through t;
        struct load_set nothing = {.now_ms = 1000};
        struct err err = {.code = ERR_OK};
        open_through(b, &t);
        commit_proxy_set(t.proxy, faults[i]);
        struct pace start = pace_start();
        assert_int_equal(t.store->ops->load(t.store, &nothing, b->arena, &err), ERR_STORAGE_UNAVAILABLE);
        assert_true(err.retry_after_s > 0);
        assert_null(strstr(err.detail, "password"));
        assert_true(pace_quiet_ms(&start) < 5 * SHARED_TIMEOUT_MS);
        start = pace_start();
        for (int tries = 0; tries < 3; tries++) /* not each of them waits as long again */
            assert_int_not_equal(t.store->ops->load(t.store, &nothing, b->arena, &err), ERR_OK);
        assert_true(pace_quiet_ms(&start) < 5 * SHARED_TIMEOUT_MS);
        commit_proxy_set(t.proxy, PROXY_PASSES);
        shared_expect_recovery(b, t.store, 10 + (int64_t)i);
        close_through(&t);
    }
}

/* Whoever waits for a batch that nobody answers has waited for twice the timeout, whatever it was at. */
BENCH_TEST(test_a_commit_into_silence_is_unknown_in_time, b)
{
    struct through t;
    struct load_set nothing = {.now_ms = 1000};
    struct err err = {.code = ERR_OK};
    open_through(b, &t);
    assert_int_equal(bench_load_shared(t.store, &nothing, b->arena), ERR_OK);
    commit_proxy_set(t.proxy, PROXY_HANGS);
    int64_t began = shared_now_ms();
    struct pace start = pace_start();
    assert_int_equal(shared_insert_job(t.store, 1, &err), ERR_STORAGE_UNAVAILABLE);
    assert_non_null(strstr(err.detail, "could not be found out"));
    assert_true(!err.conflict && err.retry_after_s > 0);
    assert_true(shared_now_ms() - began >= SHARED_TIMEOUT_MS);
    assert_true(pace_quiet_ms(&start) <= 2 * SHARED_TIMEOUT_MS + SHARED_TIMEOUT_MS / 4);
    start = pace_start();
    assert_int_not_equal(t.store->ops->load(t.store, &nothing, b->arena, &err), ERR_OK);
    assert_true(pace_quiet_ms(&start) < SHARED_TIMEOUT_MS / 4); /* it has just been tried */
    commit_proxy_set(t.proxy, PROXY_PASSES);
    shared_expect_recovery(b, t.store, 2);
    close_through(&t);
}

/* A port that takes connections and never says a word. */
static int open_mute(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 100), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

BENCH_TEST(test_a_second_host_is_reached_when_the_first_says_nothing, b)
{
    static const char host[] = "127.0.0.1:";
    uint16_t mute;
    int fd = open_mute(&mute);
    const char *at = strstr(b->schema.url, host);
    char url[sizeof b->schema.url + 32];
    snprintf(url, sizeof url, "%.*s%s%u,%s", (int)(at - b->schema.url), b->schema.url, host, mute, at);
    struct postgres_options o = {.url = url, .timeout_ms = 500};
    struct store *s, *other;
    struct err err;
    assert_int_equal(store_open_postgres(&o, &s, &err), ERR_STORAGE_UNAVAILABLE);
    assert_int_equal(store_open_postgres(&o, &s, &err), ERR_OK);
    assert_int_equal(store_open_postgres(&o, &other, &err), ERR_OK); /* nobody has to find out again */
    assert_int_equal(shared_insert_job(s, 1, &err), ERR_OK);
    store_close(other);
    store_close(s);
    close(fd);
}

/* A handle that has failed for a while and has just begun a long pause. */
static void fail_into_a_long_pause(struct store *s, struct arena *a)
{
    enum { FAILING_MS = 1500 }; /* pauses of 100, 200, 400 and 800 ms are over, or nearly */
    struct load_set nothing = {.now_ms = 1000};
    struct err err = {.code = ERR_OK};
    bool is_pausing = true;
    for (int64_t start = shared_now_ms(); is_pausing || shared_now_ms() - start < FAILING_MS;) {
        assert_int_not_equal(s->ops->load(s, &nothing, a, &err), ERR_OK);
        is_pausing = strstr(err.detail, "a moment ago") != NULL;
        usleep(SHARED_LOOK_MS * 1000);
    }
}

BENCH_TEST(test_who_pauses_goes_on_when_another_has_found_the_database, b)
{
    struct through t;
    struct load_set nothing = {.now_ms = 1000};
    struct err err = {.code = ERR_OK};
    open_through(b, &t);
    commit_proxy_set(t.proxy, PROXY_REFUSES);
    fail_into_a_long_pause(t.store, b->arena);
    commit_proxy_set(t.proxy, PROXY_PASSES);
    assert_int_not_equal(t.store->ops->load(t.store, &nothing, b->arena, &err), ERR_OK); /* it pauses */
    struct store *other = shared_open_other(b);
    assert_int_equal(t.store->ops->load(t.store, &nothing, b->arena, &err), ERR_OK);
    store_close(other);
    close_through(&t);
}

/* --- what memory holds besides the batch, in doubt after a refused commit -------------------------- */

static void put_webhook(struct store *s, int64_t id)
{
    struct webhook_row row = {
        .id = id, .client = 1, .url = STR("h"), .events = STR("*"), .secret = STR("s"), .enabled = 1};
    struct err err;
    assert_int_equal(shared_change(s, &table_webhook_row, ROW_INSERT, &row, &err), ERR_OK);
}

/* A handle that knows webhook 1, had a commit refused for good, and does not know that there is webhook 2. */
static struct store *open_in_doubt(struct bench *b)
{
    struct err err;
    put_webhook(b->store, 1);
    struct store *s = shared_open_other(b);
    struct task_row ended = shared_ready_task(1, 0);
    ended.state = JOB_SUCCEEDED; /* the schema has no place for it among the live ones */
    assert_int_not_equal(shared_change(s, &table_task_row, ROW_INSERT, &ended, &err), ERR_OK);
    assert_false(err.conflict);
    put_webhook(b->store, 2);
    return s;
}

/* A decider walks the webhooks of a client and fetches what it needs for each. */
BENCH_TEST(test_webhooks_are_not_read_again_while_they_are_walked, b)
{
    struct store *s = open_in_doubt(b);
    struct job_row job = {.id = 77};
    struct load_set nothing = {.now_ms = 1000};
    struct err err;
    bool found = true;
    const struct client_hooks *walked = hooks_of(&s->hooks, 1);
    assert_non_null(walked);
    assert_int_equal(s->ops->fetch(s, &table_job_row, &job, b->arena, &found, &err), ERR_OK);
    assert_false(found);
    assert_int_equal(bench_load_shared(s, &nothing, b->arena), ERR_OK); /* in the same batch */
    assert_int_equal(walked->count, 1); /* read from freed memory, if they were */
    assert_int_equal(walked->hooks[0].id, 1);
    shared_abandon(s);
    assert_int_equal(bench_load_shared(s, &nothing, b->arena), ERR_OK); /* the next batch sees them all */
    assert_int_equal(hooks_of(&s->hooks, 1)->count, 2);
    shared_abandon(s);
    store_close(s);
}

BENCH_TEST(test_what_was_decided_by_old_webhooks_is_refused_and_read_again, b)
{
    struct store *s = open_in_doubt(b);
    struct err err;
    assert_int_not_equal(shared_insert_job(s, 5, &err), ERR_OK);
    assert_true(err.conflict);
    assert_int_equal(hooks_of(&s->hooks, 1)->count, 2);
    assert_int_equal(shared_insert_job(s, 5, &err), ERR_OK);
    store_close(s);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
