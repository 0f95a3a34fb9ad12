/* What a supervisor decides, without processes: time is a number here. */
#include "case.h"

#include <string.h>

#include "base/must.h"
#include "runtime/supervision.h"

#include "base/banned.h"

static struct supervision s;

/* Restarts up to the limit, all within the window, and the one beyond it. */
static void expect_limit(enum domain_id id, int64_t max_restarts, int64_t window_s)
{
    struct settings settings;
    settings_init(&settings);
    struct domain_limits limits = domain_limits(id, &settings);
    settings_free(&settings);
    assert_int_equal(limits.max_restarts, max_restarts);
    assert_int_equal(limits.window_seconds, window_s);
    assert_string_equal(domain_rows[id].strategy, "one_for_one");
    supervision_init(&s, id, limits);
    struct supervision_answer answer;
    for (int64_t i = 0; i < max_restarts; i++) {
        answer = supervision_child_failed(&s, FAILURE_MODE_PROCESS_ENDED, 1, 5000 + i);
        assert_int_equal(answer.verdict, SUPERVISION_RESTART);
    }
    int64_t last_ms = 5000 + window_s * 1000; /* the first restart is exactly a window old: it still counts */
    answer = supervision_child_failed(&s, FAILURE_MODE_PROCESS_ENDED, 1, last_ms);
    assert_int_equal(answer.verdict, SUPERVISION_END);
    assert_int_equal(s.endings, 1);
    answer = supervision_child_failed(&s, FAILURE_MODE_PROCESS_ENDED, 1, last_ms + 1); /* it has left */
    assert_int_equal(answer.verdict, SUPERVISION_RESTART);
    assert_int_equal(s.restarts, max_restarts + 1);
}

/* [TOP-012] */
TEST(test_root_ends_at_the_fourth_restart_in_ten_seconds)
{
    expect_limit(DOMAIN_ROOT, 3, 10);
}

/* [TOP-014] */
TEST(test_rooms_end_at_the_twenty_first_restart_in_sixty_seconds)
{
    expect_limit(DOMAIN_ROOMS, 20, 60);
}

/* [TOP-016] */
TEST(test_agents_end_at_the_eleventh_restart_in_sixty_seconds)
{
    expect_limit(DOMAIN_AGENTS, 10, 60);
}

/* [TOP-018] */
TEST(test_instances_end_at_the_seventh_restart_in_thirty_seconds)
{
    expect_limit(DOMAIN_INSTANCES, 6, 30);
}

/* [TOP-020] */
TEST(test_one_instance_ends_at_the_sixth_restart_in_thirty_seconds)
{
    expect_limit(DOMAIN_INSTANCE, 5, 30);
}

/* [TOP-022] */
TEST(test_outbound_ends_at_the_thirty_first_restart_in_sixty_seconds)
{
    expect_limit(DOMAIN_OUTBOUND, 30, 60);
}

/* [TOP-024] */
TEST(test_sessions_end_at_the_sixteenth_restart_in_sixty_seconds)
{
    expect_limit(DOMAIN_SESSIONS, 15, 60);
}

/* [TOP-026] */
TEST(test_operations_end_at_the_eleventh_restart_in_sixty_seconds)
{
    expect_limit(DOMAIN_OPERATIONS, 10, 60);
}

/* [TOP-011] [TOP-031] Owner, supervisor, strategy, intent; and the rest of the six things of the gate. */
TEST(test_every_domain_states_all_it_must)
{
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++) {
        const struct domain_row *row = &domain_rows[id];
        const struct domain_gate *gate = &domain_gates[id];
        assert_true(row->name[0] && row->owner[0] && row->supervisor[0] && row->intent[0]);
        assert_string_equal(row->strategy, "one_for_one");
        assert_true(gate->failures & 1u << FAILURE_MODE_EXHAUSTED);
        assert_true(gate->partition_key[0] && gate->scaling_rule[0] && gate->slo[0]);
        assert_non_null(strstr(gate->events, " weir.runtime.failure"));
        for (enum domain_id other = 0; other < id; other++) {
            assert_string_not_equal(row->name, domain_rows[other].name);
            assert_string_not_equal(row->supervisor, domain_rows[other].supervisor);
        }
    }
}

/* [TOP-055] [TOP-056] The mode decides: a restart, nothing, or the end of everything. */
TEST(test_the_verdict_follows_from_the_mode)
{
    supervision_init(&s, DOMAIN_OUTBOUND, (struct domain_limits){1, 60});
    for (int i = 0; i < 100; i++) { /* degraded leaves the counters alone */
        assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_POISON, 1, i).verdict, SUPERVISION_KEEP);
        assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_POLICY_TIMEOUT, 1, i).verdict,
                         SUPERVISION_KEEP);
    }
    assert_int_equal(s.window.count, 0);
    assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_BOOT_CONFIG, 1, 200).verdict,
                     SUPERVISION_STOP);
    assert_int_equal(s.window.count, 0);
    assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_OUTBOUND, 1, 200).verdict,
                     SUPERVISION_RESTART);
    assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_PROCESS_HUNG, 1, 201).verdict,
                     SUPERVISION_END);
    supervision_renew(&s);
    /* a domain that ended is one failed child of root's */
    assert_int_equal(supervision_child_failed(&s, FAILURE_MODE_EXHAUSTED, 1, 202).verdict,
                     SUPERVISION_RESTART);
}

TEST(test_pauses_grow_are_bounded_and_differ_between_children)
{
    static const int64_t least_ms[] = {0, 0, 100, 200, 400, 800, 1600, 2142, 2142, 2142};
    struct supervision other;
    int differ = 0;
    supervision_init(&s, DOMAIN_OUTBOUND, (struct domain_limits){13, 60});
    supervision_init(&other, DOMAIN_OUTBOUND, (struct domain_limits){13, 60});
    for (size_t i = 0; i < LENGTH_OF(least_ms); i++) {
        int64_t one = supervision_child_failed(&s, FAILURE_MODE_PROCESS_ENDED, 1, 0).delay_ms;
        int64_t two = supervision_child_failed(&other, FAILURE_MODE_PROCESS_ENDED, 2, 0).delay_ms;
        assert_true(one >= least_ms[i] && one <= least_ms[i] * 3 / 2);
        assert_true(two >= least_ms[i] && two <= least_ms[i] * 3 / 2);
        differ += one != two;
    }
    assert_true(differ >= 6); /* of the eight that have a pause */
}

/* [TOP-074] [TOP-075] */
TEST(test_a_failure_elsewhere_within_an_incident_is_a_cascade)
{
    struct cascade_watch w = {0};
    assert_false(cascade_watch_failure(&w, DOMAIN_AGENTS, 1000));
    assert_false(cascade_watch_failure(&w, DOMAIN_AGENTS, 1500)); /* its own domain churns */
    assert_int_equal(w.cascades, 0);
    assert_true(cascade_watch_failure(&w, DOMAIN_OUTBOUND, 1000 + SUPERVISION_INCIDENT_MS - 1));
    assert_int_equal(w.cascades, 1);
    assert_int_equal(w.at_ms[0], 1000 + SUPERVISION_INCIDENT_MS - 1);
    assert_false(cascade_watch_failure(&w, DOMAIN_OUTBOUND, 1000 + SUPERVISION_INCIDENT_MS)); /* a new one */
    assert_int_equal(w.incidents, 2);
    assert_int_equal(w.cascades, 1);
}
