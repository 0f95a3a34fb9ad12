/* The clock of a shared store: corrected, never going back, unless somebody has set it. */
#include "case.h"

#include "store/store.h"

#include "base/banned.h"

enum { SECOND_US = 1000000 };

TEST(it_stands_still_while_it_is_corrected)
{
    struct store s = {.clock_minus_mono_us = 50000};
    assert_int_equal(store_clock_us(&s, 100000), 150000);
    atomic_store(&s.clock_minus_mono_us, 20000); /* it was measured too late */
    assert_int_equal(store_clock_us(&s, 100001), 150000);
    assert_int_equal(store_clock_us(&s, 129999), 150000);
    assert_int_equal(store_clock_us(&s, 130001), 150001);
    atomic_store(&s.clock_minus_mono_us, 60000);
    assert_int_equal(store_clock_us(&s, 130002), 190002);
}

TEST(it_follows_a_clock_that_was_set_back)
{
    struct store s = {.clock_minus_mono_us = 3600 * (int64_t)SECOND_US};
    assert_int_equal(store_clock_us(&s, SECOND_US), 3601 * (int64_t)SECOND_US);
    atomic_store(&s.clock_minus_mono_us, 0);
    assert_int_equal(store_clock_us(&s, SECOND_US + 1), SECOND_US + 1);
    assert_int_equal(store_clock_us(&s, SECOND_US + 2), SECOND_US + 2);
}

int main(void)
{
    return test_run("store/clock", NULL, NULL);
}
