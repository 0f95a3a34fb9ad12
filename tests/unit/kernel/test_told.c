/* What the kernel writes to the log: failures, once a second; a clock that jumps, once. */
#include "unit/kernel/rig.h"

#include "log_lines.h"

#include "base/banned.h"

enum { DAY_MS = 86400000 };

static void fail_a_commit(struct rig *r, int64_t client)
{
    struct submit_item item = rig_item();
    r->failures = 1;
    rig_submit(r, client, &item);
}

RIG_TEST(test_failures_are_told_once_a_second, r)
{
    int64_t client = rig_new_client(r, NULL);
    log_listen();
    fail_a_commit(r, client);
    assert_int_equal(log_lines_with("\"commit_failed\"", "\"error\"", "told to fail"), 1);
    rig_pass(r, 999);
    fail_a_commit(r, client);
    assert_int_equal(log_lines_with("\"commit_failed\"", NULL, NULL), 1);
    rig_pass(r, 1);
    fail_a_commit(r, client);
    fail_a_commit(r, client);
    assert_int_equal(log_lines_with("\"commit_failed\"", NULL, NULL), 2);
    log_stop_listening();
}

/* By how much, and when it is right again. */
RIG_TEST(test_a_jump_of_the_clock_is_told_when_it_begins_and_ends, r)
{
    struct kernel_stats s;
    rig_step(r);
    log_listen();
    rig_step(r);
    assert_int_equal(log_lines_with("\"clock\"", NULL, NULL), 0);
    rig_set_wall(r, DAY_MS);
    rig_step(r);
    rig_step(r);
    assert_int_equal(log_lines_with("\"clock\"", NULL, NULL), 1);
    assert_int_equal(log_lines_with("\"clock\"", "\"error\"", "\"off_by_ms\":86400000"), 1);
    assert_int_equal(log_lines_with("\"clock\"", "\"deletes\":0", NULL), 1);
    kernel_stats(r->kernel, &s);
    assert_true(s.clock_in_doubt);
    rig_set_wall(r, -DAY_MS);
    rig_step(r);
    assert_int_equal(log_lines_with("\"clock\"", NULL, NULL), 2);
    assert_int_equal(log_lines_with("\"clock\"", "\"info\"", "\"off_by_ms\":0"), 1);
    kernel_stats(r->kernel, &s);
    assert_false(s.clock_in_doubt);
    rig_set_wall(r, DAY_MS);
    kernel_accept_clock(r->kernel); /* somebody says that it is right */
    rig_step(r);
    assert_int_equal(log_lines_with("\"clock\"", NULL, NULL), 2);
    kernel_stats(r->kernel, &s);
    assert_false(s.clock_in_doubt);
    log_stop_listening();
}

int main(void)
{
    return rig_run_both();
}
