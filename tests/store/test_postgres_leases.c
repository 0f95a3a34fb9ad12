/* Leases that ended while nobody could look for them are given anew, once; others are not. */
#include "store/bench_shared.h"

#include <stdio.h>
#include <unistd.h>

#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { LEASE_MS = 600000, GAP_MS = 60000, SLACK_MS = 120000 };
_Static_assert(SLACK_MS < LEASE_MS - GAP_MS - 1000, "what a slow machine adds is not mistaken for a grant");

static struct store_duties expect_lead(struct store *s, bool leads)
{
    struct store_duties duties = {0};
    struct err err;
    int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
    while (s->ops->lead(s, &duties, &err) != ERR_OK || duties.leads != leads) {
        assert_true(shared_now_ms() < until);
        usleep(SHARED_LOOK_MS * 1000);
    }
    return duties;
}

static int64_t database_now_ms(PGconn *look)
{
    return bench_number(look, "SELECT (extract(epoch FROM clock_timestamp())*1000)::bigint");
}

static void put_held(struct store *s, int64_t id, int64_t lease_ms)
{
    struct task_row t = shared_ready_task(id, 0);
    struct err err;
    t.state = t.job_state = JOB_ASSIGNED;
    t.token = 1;
    t.lease_ms = lease_ms;
    t.worker = STR("w");
    assert_int_equal(shared_change(s, &table_task_row, ROW_INSERT, &t, &err), ERR_OK);
}

static int64_t lease_of(PGconn *look, int64_t id)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT lease_ms FROM tasks WHERE id = %lld", (long long)id);
    return bench_number(look, sql);
}

static void expect_about(int64_t found, int64_t wanted)
{
    assert_true(found >= wanted && found < wanted + SLACK_MS);
}

/* As if nobody had looked for GAP_MS. */
static void move_beat_back(PGconn *look)
{
    char sql[80];
    snprintf(sql, sizeof sql, "UPDATE duties SET beat = beat - interval '%d ms'", GAP_MS);
    bench_sql(look, sql);
}

enum { ENDED_BEFORE = 1, ENDED_MEANWHILE, ENDS_SOON, ENDS_LATER };

static void put_all(struct store *s, int64_t now)
{
    put_held(s, ENDED_BEFORE, now - 2 * GAP_MS);
    put_held(s, ENDED_MEANWHILE, now - GAP_MS / 2);
    put_held(s, ENDS_SOON, now + 1000);
    put_held(s, ENDS_LATER, now + 2 * LEASE_MS);
}

BENCH_TEST(test_who_takes_the_duties_over_gives_anew_what_ended_meanwhile, b)
{
    struct store *other = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    b->store->lease_ms = other->lease_ms = LEASE_MS;
    expect_lead(b->store, true);
    int64_t now = database_now_ms(look);
    put_all(b->store, now);
    move_beat_back(look);
    assert_int_equal(expect_lead(other, true).given_anew, 2);
    assert_int_equal(lease_of(look, ENDED_BEFORE), now - 2 * GAP_MS);
    expect_about(lease_of(look, ENDED_MEANWHILE), now + LEASE_MS);
    expect_about(lease_of(look, ENDS_SOON), now + 1000 + GAP_MS);
    assert_int_equal(lease_of(look, ENDS_LATER), now + 2 * LEASE_MS);
    char sql[80]; /* once: its worker was silent on, and now somebody looks */
    snprintf(sql, sizeof sql, "UPDATE tasks SET lease_ms = %lld WHERE id = %d", (long long)now - 1,
             ENDED_MEANWHILE);
    bench_sql(look, sql);
    assert_int_equal(expect_lead(other, true).next_lapse_ms, now - 2 * GAP_MS);
    assert_int_equal(lease_of(look, ENDED_MEANWHILE), now - 1);
    PQfinish(look);
    store_close(other);
}

/* The negative control: the same times, and nobody was away. */
BENCH_TEST(test_what_ended_under_a_leaders_eyes_is_not_given_anew, b)
{
    PGconn *look = bench_session(&b->schema);
    b->store->lease_ms = LEASE_MS;
    expect_lead(b->store, true);
    int64_t now = database_now_ms(look);
    put_all(b->store, now);
    assert_int_equal(expect_lead(b->store, true).next_lapse_ms, now - 2 * GAP_MS);
    assert_int_equal(lease_of(look, ENDED_MEANWHILE), now - GAP_MS / 2);
    PQfinish(look);
}

/* Its database restarts: same node, same handle, another connection. */
BENCH_TEST(test_a_leader_that_lost_its_connection_sees_no_ended_lease_before_it_leads_again, b)
{
    PGconn *look = bench_session(&b->schema);
    struct load_set due = {.due_max = 10, .now_ms = INT64_MAX / 2, .next_due_ms = INT64_MAX};
    struct err err = {.code = ERR_OK};
    b->store->lease_ms = LEASE_MS;
    expect_lead(b->store, true);
    int64_t now = database_now_ms(look);
    put_held(b->store, ENDED_MEANWHILE, now - GAP_MS / 2);
    move_beat_back(look);
    bench_number(look, "SELECT count(pg_terminate_backend(pid,10000)) FROM pg_stat_activity a JOIN duties d "
                       "USING(pid) WHERE a.backend_start=d.started");
    assert_int_not_equal(b->store->ops->load(b->store, &due, b->arena, &err), ERR_OK);
    assert_true(err.conflict);
    assert_false(b->store->leads);
    assert_null(live_find(b->store->live, ENDED_MEANWHILE));
    shared_abandon(b->store);
    assert_int_equal(expect_lead(b->store, true).given_anew, 1);
    expect_about(lease_of(look, ENDED_MEANWHILE), now + LEASE_MS);
    PQfinish(look);
}

/* A node that stood still between question and answer would be seconds behind or ahead, and its leases with
 * it; one whose server's clock was set goes by the new time. */
BENCH_TEST(test_a_slow_reading_of_the_clock_moves_nothing, b)
{
    enum { AHEAD_US = 5000000, QUICK_US = 1000, PAUSE_US = 4000000, SECOND_US = 1000000 };
    struct pg_clock c = {0};
    int64_t now = 1000 * (int64_t)SECOND_US;
    pg_clock_learn(&c, now + AHEAD_US, now, now + PAUSE_US); /* nothing better is known */
    assert_int_equal(pg_clock_minus_mono_us(&c), AHEAD_US - PAUSE_US / 2);
    now += PAUSE_US;
    pg_clock_learn(&c, now + AHEAD_US, now, now + QUICK_US);
    assert_in_range(pg_clock_minus_mono_us(&c), AHEAD_US - QUICK_US, AHEAD_US);
    for (int late = 0; late < 2; late++) { /* read at the beginning, or at the end of a pause */
        now += SECOND_US;
        pg_clock_learn(&c, now + AHEAD_US + (late ? PAUSE_US : 0), now, now + PAUSE_US);
        now += PAUSE_US;
        assert_in_range(pg_clock_minus_mono_us(&c), AHEAD_US - QUICK_US, AHEAD_US);
    }
    now += SECOND_US;
    pg_clock_learn(&c, now - AHEAD_US, now, now + QUICK_US);
    assert_in_range(-pg_clock_minus_mono_us(&c), AHEAD_US, AHEAD_US + QUICK_US);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
