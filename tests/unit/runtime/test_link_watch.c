/* A link that is lost and found: when it counts as lost, how often it was tried, how long it took. */
#include <string.h>

#include "case.h"

#include "runtime/failure_modes.h"
#include "runtime/link_watch.h"

#include "base/banned.h"

/* [TOP-041] [TOP-070] */
TEST(a_return_tells_the_tries_the_time_and_the_first_reason)
{
    struct link_watch w = {.component = "test", .instance_id = "line 1"};
    struct link_return back;
    uint64_t before = failure_count(FAILURE_MODE_LISTENER);
    assert_false(link_works(&w, 1000, &back)); /* it was never away */
    link_failed(&w, "hung up", 2000);
    link_failed(&w, "refused", 2050);
    link_failed(&w, "refused", 2200);
    assert_int_equal(failure_count(FAILURE_MODE_LISTENER) - before, 3);
    assert_true(link_works(&w, 2500, &back));
    assert_int_equal(back.attempts, 3);
    assert_int_equal(back.elapsed_ms, 500);
    assert_string_equal(back.reason, "hung up");
    assert_false(link_works(&w, 2600, &back)); /* told once */
}

TEST(a_second_loss_is_counted_from_its_own_beginning)
{
    struct link_watch w = {.component = "test", .instance_id = "line 1"};
    struct link_return back;
    char long_reason[200];
    memset(long_reason, 'x', sizeof long_reason);
    long_reason[sizeof long_reason - 1] = 0;
    link_failed(&w, "first", 100);
    assert_true(link_works(&w, 300, &back));
    link_failed(&w, long_reason, 5000);
    assert_true(link_works(&w, 5001, &back));
    assert_int_equal(back.attempts, 1);
    assert_int_equal(back.elapsed_ms, 1);
    assert_int_equal(strlen(back.reason), LINK_REASON_MAX - 1);
}
