/* Hints from node to node: sent when somebody is there to hear them, heard by a thread that finds back. */
#include "store/bench_shared.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "store/postgres/postgres_listen.h"

#include "base/banned.h"

struct ear {
    atomic_uint heard; /* or'ed */
    atomic_uint calls;
};

static void hear(void *self, unsigned what)
{
    struct ear *e = self;
    atomic_fetch_or(&e->heard, what);
    atomic_fetch_add(&e->calls, 1);
}

static void wait_for(atomic_uint *value, unsigned at_least)
{
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; atomic_load(value) < at_least;) {
        assert_true(shared_now_ms() < until);
        usleep(SHARED_LOOK_MS * 1000);
    }
}

BENCH_TEST(test_hints_of_other_nodes_are_heard_and_all_of_them_after_a_break, b)
{
    struct postgres_options o = {.url = b->schema.url, .timeout_ms = SHARED_TIMEOUT_MS};
    struct postgres_listener *l = NULL;
    struct ear ear = {0};
    struct err err;
    PGconn *other = bench_session(&b->schema);
    assert_int_equal(
        postgres_listener_start(&o, &(struct store_listening){.hint = hear, .self = &ear}, &l, &err), ERR_OK);
    wait_for(&ear.calls, 1); /* it listens: whatever was said before, it looks now */
    assert_int_equal(atomic_load(&ear.heard), HINT_READY | HINT_KEYS | HINT_EVENTS | HINT_TIMER | HINT_INBOX);
    atomic_store(&ear.heard, 0);
    bench_sql(other,
              "SELECT pg_notify('weir', p) FROM unnest(ARRAY['', ':', 'x:1', '99999:5', '1:-5', '2']) p");
    bench_sql(other, "SELECT pg_notify('weir', '5:12345')"); /* in their order: nonsense is passed over */
    wait_for(&ear.calls, 2);
    assert_int_equal(atomic_load(&ear.heard), HINT_READY | HINT_EVENTS);
    assert_int_equal(atomic_load(&ear.calls), 2);
    bench_sql(other, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query IN "
                     "('SELECT pg_notify(''weir'',$1)','SELECT 1')"); /* the listener's last one */
    wait_for(&ear.calls, 3);
    assert_int_equal(atomic_load(&ear.heard), HINT_READY | HINT_KEYS | HINT_EVENTS | HINT_TIMER | HINT_INBOX);
    assert_null(postgres_listener_stop(l));
    assert_null(postgres_listener_stop(NULL));
    PQfinish(other);
}

/* The next notification, or NULL when none comes within the time. */
static PGnotify *next_notify(PGconn *c, int64_t patience_ms)
{
    PGnotify *n;
    for (int64_t until = shared_now_ms() + patience_ms; !(n = PQnotifies(c)) && shared_now_ms() < until;) {
        struct pollfd p = {.fd = PQsocket(c), .events = POLLIN};
        poll(&p, 1, SHARED_LOOK_MS);
        assert_true(PQconsumeInput(c));
    }
    return n;
}

static void commit_and_hint(struct bench *b, int64_t id)
{
    struct load_set nothing = {.now_ms = 1000};
    struct err err;
    assert_int_equal(bench_load_shared(b->store, &nothing, b->arena), ERR_OK);
    assert_int_equal(shared_insert_job(b->store, id, &err), ERR_OK);
    b->store->ops->hint(b->store, HINT_READY | HINT_TIMER);
}

BENCH_TEST(test_hints_are_sent_when_there_is_another_node, b)
{
    PGconn *other = bench_session(&b->schema);
    bench_sql(other, "LISTEN weir");
    commit_and_hint(b, 1);
    assert_null(next_notify(other, 300)); /* nobody is there */
    bench_sql(other, "UPDATE lanes SET node=77, seen=now() WHERE slot=60");
    PGnotify *n = NULL;
    int64_t id = 2;
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; !n && shared_now_ms() < until; id++) {
        commit_and_hint(b, id); /* it looks for others about once a second */
        n = next_notify(other, 100);
    }
    assert_non_null(n);
    assert_int_equal(strncmp(n->extra, "9:", 2), 0);
    PQfreemem(n);
    assert_true(shared_job_is_there(b, id - 1));
    PQfinish(other);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
