/* Limits of rate for signals: whose room a signal takes, what is given back, how much memory it costs. */
#include <stdio.h>
#include <string.h>

#include "case.h"

#include "api/engine/signal_limits.h"

#include "base/banned.h"

static struct settings settings;
static struct signal_limits *limits;

static int set_up(void **state)
{
    (void)state;
    settings = (struct settings){.engine_signals_per_run_minute = 3,
                                 .engine_signals_per_tenant_minute = 5,
                                 .engine_refused_signals_per_actor_minute = 2};
    limits = signal_limits_new(&settings);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    limits = signal_limits_free(limits);
    return 0;
}

static struct signal_sender from(const char *actor, const char *run, enum signal_type type, bool expected)
{
    return (struct signal_sender){STR("acme"), str_of(actor), str_of(run), type, expected};
}

/* Taken at a time, and settled as decided: 0, or the seconds to wait. */
static int send_at(const struct signal_sender *s, bool refused, int64_t now_ms)
{
    struct signal_room room;
    struct err err = {.code = ERR_OK};
    if (signal_limits_take(limits, s, now_ms, &room, &err) != ERR_OK) {
        assert_int_equal(err.code, ERR_REQUEST_RATE_LIMITED);
        assert_in_range(err.retry_after_s, 1, 60);
        return err.retry_after_s;
    }
    signal_limits_settle(limits, s, &room, refused);
    return 0;
}

static bool passes(const char *actor, const char *run, enum signal_type type, bool expected, bool refused)
{
    const struct signal_sender s = from(actor, run, type, expected);
    return !send_at(&s, refused, 1000);
}

static bool admin_passes(const char *run, enum signal_type type)
{
    return passes("ada", run, type, true, false);
}

/* --- whose room -------------------------------------------------------------------------------------- */

#define LIMITS_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

/* [SIG-129] [SIG-130] Others are not affected. */
LIMITS_TEST(a_run_and_a_tenant_have_their_share)
{
    const struct signal_sender other = {STR("other"), STR("ada"), STR("four"), SIGNAL_PAUSE, true};
    for (int i = 0; i < 3; i++)
        assert_true(admin_passes("one", SIGNAL_PAUSE));
    assert_false(admin_passes("one", SIGNAL_PAUSE));
    assert_true(admin_passes("two", SIGNAL_PAUSE) && admin_passes("two", SIGNAL_RESUME));
    assert_false(admin_passes("three", SIGNAL_PAUSE)); /* the tenant's fifth was the last */
    assert_int_equal(send_at(&other, false, 1000), 0);
}

LIMITS_TEST(refused_signals_use_up_their_actors_room_alone)
{
    for (int i = 0; i < 2; i++)
        assert_true(passes("viewer", "one", SIGNAL_EMERGENCY_STOP, false, true));
    assert_false(passes("viewer", "one", SIGNAL_EMERGENCY_STOP, false, true));
    assert_false(passes("viewer", "two", SIGNAL_PAUSE, false, true));
    for (int i = 0; i < 3; i++)
        assert_true(admin_passes("one", SIGNAL_EMERGENCY_STOP));
    assert_true(passes("another viewer", "one", SIGNAL_PAUSE, false, true));
}

/* By its project, its reason, another tenant's run: the role alone did not tell. */
LIMITS_TEST(what_is_refused_after_all_gives_the_runs_room_back)
{
    const struct signal_sender s = from("scoped", "one", SIGNAL_PAUSE, true);
    for (int i = 0; i < 9; i++) /* its record is another matter: the decider looks at the room */
        assert_int_equal(send_at(&s, true, 1000), 0);
    for (int i = 0; i < 3; i++)
        assert_true(admin_passes("one", SIGNAL_PAUSE));
}

LIMITS_TEST(the_decider_is_told_that_there_is_no_room_for_a_refusal)
{
    const struct signal_sender s = from("scoped", "one", SIGNAL_PAUSE, true);
    struct signal_room room;
    struct err err;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(signal_limits_take(limits, &s, 1000, &room, &err), ERR_OK);
        assert_int_equal(room.none_if_refused, i == 2);
        assert_false(room.none_if_allowed);
        signal_limits_settle(limits, &s, &room, true);
    }
    assert_int_equal(room.full.code, ERR_REQUEST_RATE_LIMITED);
    assert_non_null(strstr(room.full.detail, "the actor had 2 signals refused"));
}

LIMITS_TEST(a_signal_that_is_allowed_leaves_the_actors_room_for_refusals)
{
    for (int i = 0; i < 3; i++)
        assert_true(admin_passes("one", SIGNAL_PAUSE));
    for (int i = 0; i < 2; i++)
        assert_true(passes("ada", "two", SIGNAL_ESCALATE_ALERT, false, true));
    assert_false(passes("ada", "two", SIGNAL_ESCALATE_ALERT, false, true));
}

LIMITS_TEST(an_actor_that_was_refused_often_may_still_send_what_is_allowed)
{
    for (int i = 0; i < 3; i++)
        (void)passes("ada", "one", SIGNAL_ESCALATE_ALERT, false, true);
    assert_true(admin_passes("one", SIGNAL_EMERGENCY_STOP));
}

LIMITS_TEST(cancel_and_emergency_stop_have_room_of_their_own)
{
    while (admin_passes("one", SIGNAL_PAUSE))
        continue;
    while (admin_passes("two", SIGNAL_PAUSE))
        continue; /* now the tenant's is full, too */
    for (int i = 0; i < 3; i++)
        assert_true(passes("operator", "one", SIGNAL_CANCEL, true, false));
    assert_false(passes("operator", "one", SIGNAL_CANCEL, true, false));
    for (int i = 0; i < 3; i++)
        assert_true(admin_passes("one", SIGNAL_EMERGENCY_STOP));
    assert_false(admin_passes("one", SIGNAL_EMERGENCY_STOP));
    assert_true(admin_passes("two", SIGNAL_EMERGENCY_STOP) && admin_passes("two", SIGNAL_CANCEL));
}

/* However many names it has for itself. */
LIMITS_TEST(all_refusals_of_a_tenant_are_bounded)
{
    const char *const actors[] = {"a", "b", "c", "d", "e", "f"};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(passes(actors[i], "one", SIGNAL_PAUSE, false, true), i < 5);
    const struct signal_sender other = {STR("other"), STR("a"), STR("one"), SIGNAL_PAUSE, false};
    assert_int_equal(send_at(&other, true, 1000), 0);
}

/* A policy decision point allows what the table of roles does not. */
LIMITS_TEST(what_is_allowed_after_all_takes_the_runs_room)
{
    for (int i = 0; i < 3; i++)
        assert_true(passes("viewer", "one", SIGNAL_PAUSE, false, false));
    assert_false(admin_passes("one", SIGNAL_PAUSE));
    const struct signal_sender s = from("viewer", "one", SIGNAL_PAUSE, false);
    struct signal_room room;
    struct err err;
    assert_int_equal(signal_limits_take(limits, &s, 1000, &room, &err), ERR_OK);
    assert_true(room.none_if_allowed && !room.none_if_refused);
}

/* Not yet decided: parallel signals do not pass a limit together. */
LIMITS_TEST(a_signal_holds_its_room_until_it_is_decided)
{
    const struct signal_sender admin = from("ada", "one", SIGNAL_PAUSE, true),
                               viewer = from("viewer", "one", SIGNAL_PAUSE, false);
    struct signal_room room;
    struct err err;
    for (int i = 0; i < 3; i++)
        assert_int_equal(signal_limits_take(limits, &admin, 1000, &room, &err), ERR_OK);
    assert_int_equal(signal_limits_take(limits, &admin, 1000, &room, &err), ERR_REQUEST_RATE_LIMITED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(signal_limits_take(limits, &viewer, 1000, &room, &err), ERR_OK);
    assert_int_equal(signal_limits_take(limits, &viewer, 1000, &room, &err), ERR_REQUEST_RATE_LIMITED);
}

LIMITS_TEST(zero_is_no_limit)
{
    settings.engine_signals_per_run_minute = settings.engine_signals_per_tenant_minute = 0;
    for (int i = 0; i < 100; i++)
        assert_true(admin_passes("one", SIGNAL_PAUSE));
}

/* --- time -------------------------------------------------------------------------------------------- */

LIMITS_TEST(the_next_minute_begins_with_a_full_share)
{
    const struct signal_sender s = from("ada", "one", SIGNAL_PAUSE, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_at(&s, false, 1000 + i), 0);
    assert_int_equal(send_at(&s, false, 1003), 60);
    assert_int_equal(send_at(&s, false, 60999), 1);
    assert_int_equal(send_at(&s, false, 61000), 0);
    assert_int_equal(send_at(&s, false, 500), 0); /* the clock was set back: nobody waits for an hour */
}

/* Its minute is over: what it took is not in the new one. */
LIMITS_TEST(room_of_an_earlier_minute_is_not_given_back_to_a_later_one)
{
    const struct signal_sender s = from("scoped", "one", SIGNAL_PAUSE, true);
    struct signal_room late;
    struct err err;
    assert_int_equal(signal_limits_take(limits, &s, 1000, &late, &err), ERR_OK);
    const struct signal_sender admin = from("ada", "one", SIGNAL_PAUSE, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_at(&admin, false, 70000), 0);
    signal_limits_settle(limits, &s, &late, true);
    assert_int_not_equal(send_at(&admin, false, 70000), 0);
}

/* --- memory ------------------------------------------------------------------------------------------ */

LIMITS_TEST(signals_to_runs_that_are_not_there_leave_nothing_behind)
{
    char run[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(run, sizeof run, "%d", i);
        (void)passes("scoped", run, SIGNAL_PAUSE, true, true);
    }
    assert_in_range(signal_limits_count(limits), 0, 4);
}

LIMITS_TEST(counters_are_bounded_and_those_of_past_minutes_go_first)
{
    char run[16];
    settings.engine_signals_per_tenant_minute = 0;
    for (int i = 0; i < SIGNAL_LIMITS_MAX + 10; i++) {
        int64_t now_ms = i < SIGNAL_LIMITS_MAX - 10 ? 1000 : 61000;
        snprintf(run, sizeof run, "%d", i < SIGNAL_LIMITS_MAX - 10 ? i : SIGNAL_LIMITS_MAX);
        const struct signal_sender s = from("ada", run, SIGNAL_PAUSE, true);
        (void)send_at(&s, false, now_ms);
        assert_in_range(signal_limits_count(limits), 1, SIGNAL_LIMITS_MAX + 4);
    }
    const struct signal_sender s = from("ada", "a new one", SIGNAL_PAUSE, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_at(&s, false, 61000), 0);
    for (int i = 0; i < SIGNAL_LIMITS_MAX; i++) { /* the sweep is done on the way */
        snprintf(run, sizeof run, "late %d", i);
        const struct signal_sender other = from("ada", run, SIGNAL_PAUSE, true);
        (void)send_at(&other, false, 61000);
        if (signal_limits_count(limits) < 1000)
            break;
    }
    assert_int_equal(send_at(&s, false, 61000), 0);
    assert_int_not_equal(send_at(&s, false, 61000), 0); /* what counts in this minute was kept */
}
