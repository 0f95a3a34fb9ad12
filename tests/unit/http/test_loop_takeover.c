/* A round whose end waits: its connections are served all the same, whoever waits. One loop, so that
 * nobody else could serve them. */
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"
#include "pace.h"

#include "base/banned.h"

enum { WAIT_MS = 1500, SOON_MS = 700, TIMES = 4, BEHIND = 200, IDLE_MS = 5000 };

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static void expect_echo(struct client *c)
{
    struct answer a = client_answer(c);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "GET /echo||");
}

/* A request whose round ends with a wait; its own answer has left before that. */
static void begin_wait(struct harness *h, struct client *c, int64_t ms)
{
    h->next_round_waits_ms = ms;
    client_text(c, GET("/echo"));
    expect_echo(c);
    assert_true(harness_await(waits_are, h, 1));
}

static int64_t time_of_a_request(struct client *c)
{
    struct pace before = pace_start();
    client_text(c, GET("/echo"));
    expect_echo(c);
    return pace_quiet_ms(&before);
}

/* Again and again: the one that waited stands in for the one that waits next. */
TEST(a_loop_that_waits_is_served_by_another_thread)
{
    struct harness *h = harness_start(1, NULL);
    struct client first = client_tcp(h), second = client_tcp(h);
    for (int i = 0; i < TIMES; i++) {
        begin_wait(h, &first, WAIT_MS);
        assert_true(time_of_a_request(&second) < SOON_MS);
        struct client fresh = client_tcp(h); /* a new connection, too */
        assert_true(time_of_a_request(&fresh) < SOON_MS);
        client_close(&fresh);
        assert_int_equal(h->waits, 1); /* it still does: nobody waited for it */
        assert_true(harness_await(waits_are, h, 0));
        assert_true(time_of_a_request(&first) < SOON_MS);
    }
    client_close(&first);
    client_close(&second);
    harness_stop(h);
}

/* The control: a wait that nobody was told of is felt. */
TEST(a_wait_that_is_not_said_is_felt)
{
    struct harness *h = harness_start(1, NULL);
    struct client first = client_tcp(h), second = client_tcp(h);
    h->waits_unsaid = true;
    begin_wait(h, &first, WAIT_MS);
    int64_t before = now_ms();
    (void)time_of_a_request(&second);
    assert_true(now_ms() - before >= SOON_MS);
    client_close(&first);
    client_close(&second);
    harness_stop(h);
}

TEST(a_deadline_falls_in_time_while_the_round_waits)
{
    struct harness *h = harness_start(1, NULL);
    struct client parked = client_tcp(h), other = client_tcp(h);
    client_text(&parked, GET("/timeout"));
    struct http_exchange *x = harness_held(h);
    struct pace before = pace_start();
    begin_wait(h, &other, WAIT_MS);
    struct answer a = client_answer(&parked);
    assert_int_not_equal(a.status, 200);
    assert_true(pace_quiet_ms(&before) < SOON_MS);
    harness_release(h, x);
    client_close(&parked);
    client_close(&other);
    harness_stop(h);
}

TEST(short_waits_change_nothing)
{
    struct harness *h = harness_start(2, NULL);
    struct client c = client_tcp(h);
    for (int i = 0; i < 300; i++) {
        h->next_round_waits_ms = i % 3;
        client_text(&c, GET("/park"));
        assert_int_equal(client_answer(&c).status, 200);
    }
    client_close(&c);
    harness_stop(h);
}

/* Held on several loops; one round answers them all, whoever's they are, and they can be asked again. */
TEST(a_round_answers_for_loops_that_sleep)
{
    struct harness *h = harness_start(3, NULL);
    struct client clients[HELD_MAX], other = client_tcp(h);
    for (int i = 0; i < HELD_MAX; i++)
        clients[i] = client_tcp(h);
    for (int times = 0; times < TIMES; times++) {
        for (int i = 0; i < HELD_MAX; i++) {
            client_text(&clients[i], GET("/hold"));
            h->answered_at_end[i] = harness_held(h);
        }
        usleep(20000); /* the loops sleep */
        h->answered_by_others = 0;
        h->answered_at_end_count = HELD_MAX;
        client_text(&other, GET("/echo"));
        expect_echo(&other);
        for (int i = 0; i < HELD_MAX; i++) {
            struct answer a = client_answer(&clients[i]);
            assert_int_equal(a.status, 200);
            assert_string_equal(a.body, "GET /hold||");
        }
        assert_int_equal(h->answered_by_others, HELD_MAX);
    }
    for (int i = 0; i < HELD_MAX; i++)
        client_close(&clients[i]);
    client_close(&other);
    harness_stop(h);
}

/* Behind the answer stand requests, more than a turn serves, and a deadline: the sleeper hears of both. */
TEST(a_sleeper_hears_of_what_follows_the_answer)
{
    struct harness *h = harness_start(3, &(struct http_limits){.idle_ms = IDLE_MS});
    struct client clients[HELD_MAX];
    for (int i = 0; i < HELD_MAX; i++) {
        clients[i] = client_tcp(h);
        client_text(&clients[i], GET("/hold"));
        for (int k = 0; k < BEHIND; k++)
            client_text(&clients[i], GET("/echo"));
        h->answered_at_end[i] = harness_held(h);
    }
    usleep(20000);
    h->answered_at_end_count = HELD_MAX;
    struct client other = client_tcp(h);
    client_text(&other, GET("/echo"));
    expect_echo(&other);
    struct pace before = pace_start();
    for (int i = 0; i < HELD_MAX; i++) {
        assert_int_equal(client_answer(&clients[i]).status, 200);
        for (int k = 0; k < BEHIND; k++)
            expect_echo(&clients[i]);
    }
    assert_true(pace_quiet_ms(&before) < IDLE_MS / 2);
    for (int i = 0; i < HELD_MAX; i++) {
        assert_true(client_at_end(&clients[i])); /* closed for idleness */
        client_close(&clients[i]);
    }
    client_close(&other);
    harness_stop(h);
}

TEST(a_stop_while_a_round_waits_ends_well)
{
    for (int64_t ms = 5; ms <= 80; ms += 15) {
        struct harness *h = harness_start(1, NULL);
        struct client c = client_tcp(h);
        begin_wait(h, &c, ms);
        harness_stop_at_once(h);
        client_close(&c);
    }
}
