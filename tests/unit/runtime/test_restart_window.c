/* The restart rules without processes: time is a number here. */
#include "case.h"

#include "base/must.h"
#include "runtime/process_table.h"
#include "runtime/restart_window.h"

#include "base/banned.h"

static struct restart_window w;

/* The limits of seed 004's matrix, each by the same rule. */
TEST(test_the_restart_after_the_last_allowed_one_in_the_window_is_refused)
{
    static const struct domain_limits matrix[] = {{3, 10}, {10, 60}, {6, 30}, {30, 60}, {15, 60}, {0, 1}};
    for (size_t m = 0; m < LENGTH_OF(matrix); m++) {
        int64_t delay;
        restart_window_init(&w, matrix[m].max_restarts, matrix[m].window_seconds);
        for (int64_t i = 0; i < matrix[m].max_restarts; i++)
            assert_true(restart_window_add(&w, 1000 + i, &delay));
        assert_false(restart_window_add(&w, 1000 + matrix[m].window_seconds * 1000, &delay));
        assert_int_equal(w.count, matrix[m].max_restarts);
    }
}

TEST(test_a_restart_counts_until_it_leaves_the_window)
{
    int64_t delay;
    restart_window_init(&w, 3, 10);
    assert_true(restart_window_add(&w, 0, &delay));
    assert_true(restart_window_add(&w, 5000, &delay));
    assert_true(restart_window_add(&w, 9000, &delay));
    assert_int_equal(restart_window_next_slide(&w), 10001);
    assert_false(restart_window_add(&w, 10000, &delay)); /* still within */
    assert_true(restart_window_add(&w, 10001, &delay));  /* the first one has left */
    assert_false(restart_window_add(&w, 15000, &delay));
    assert_true(restart_window_slide(&w, 60000));
    assert_false(restart_window_slide(&w, 60000));
    assert_int_equal(w.count, 0);
    assert_true(restart_window_next_slide(&w) == INT64_MAX);
}

TEST(test_a_slow_trickle_of_restarts_never_ends_a_domain)
{
    int64_t delay;
    restart_window_init(&w, 3, 10);
    for (int64_t at = 0; at < 1000 * 3600; at += 3400)
        assert_true(restart_window_add(&w, at, &delay));
}

TEST(test_two_restarts_are_immediate_and_later_ones_double_up_to_five_seconds)
{
    static const int64_t expected[] = {0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    restart_window_init(&w, 1000, 86400);
    for (size_t i = 0; i < LENGTH_OF(expected); i++) {
        int64_t delay = -1;
        assert_true(restart_window_add(&w, (int64_t)i, &delay));
        assert_int_equal(delay, expected[i]);
    }
    for (int i = 0; i < 900; i++) {
        int64_t delay = -1;
        assert_true(restart_window_add(&w, 100, &delay));
        assert_int_equal(delay, 5000);
    }
}

/* Else a domain with a high limit would never end: its pauses alone would outlast the window. */
TEST(test_what_fails_again_and_again_ends_its_domain_whatever_the_limit)
{
    struct settings s;
    settings_init(&s);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++) {
        struct domain_limits limits = domain_limits(id, &s);
        restart_window_init(&w, limits.max_restarts, limits.window_seconds);
        int64_t now = 0, delay, restarts = 0;
        for (; restart_window_add(&w, now, &delay) && restarts < 2000; restarts++)
            now += delay * 3 / 2 + 100; /* the widest spread, and a start that takes a while */
        assert_int_equal(restarts, limits.max_restarts);
    }
    settings_free(&s);
}

TEST(test_after_a_quiet_window_restarts_are_immediate_again)
{
    int64_t delay;
    restart_window_init(&w, 10, 60);
    for (int i = 0; i < 5; i++)
        assert_true(restart_window_add(&w, 0, &delay));
    assert_int_equal(delay, 400);
    assert_true(restart_window_add(&w, 60001, &delay));
    assert_int_equal(delay, 0);
}

/* [TOP-011] */
TEST(test_every_process_has_a_name_a_purpose_and_a_domain_with_limits)
{
    struct settings s;
    settings_init(&s);
    for (enum process_id id = 0; id < PROCESS_COUNT; id++) {
        assert_int_equal(process_kinds[id].id, id);
        assert_true(process_kinds[id].name[0] && process_kinds[id].does[0]);
        struct domain_limits limits = domain_limits(process_kinds[id].domain, &s);
        assert_true(limits.max_restarts >= 0 && limits.max_restarts <= RESTART_COUNT_MAX);
        assert_true(limits.window_seconds > 0);
    }
    settings_free(&s);
}

TEST(test_counts_of_processes_follow_the_settings)
{
    struct settings s;
    settings_init(&s);
    assert_int_equal(process_instances(PROCESS_CORE, &s), 1);
    assert_int_equal(process_instances(PROCESS_RUNNER, &s), 2);
    s.runner_processes = 7;
    assert_int_equal(process_instances(PROCESS_RUNNER, &s), 7);
    assert_true(process_kinds[PROCESS_CORE].owns_store);
    assert_false(process_kinds[PROCESS_RUNNER].owns_store);
    settings_free(&s);
}
