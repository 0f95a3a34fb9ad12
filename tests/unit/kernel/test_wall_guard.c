/* The wall clock, checked against the steady one: what a jump does to the time of batches and to deletion. */
#include "case.h"

#include "kernel/wall_guard.h"

#include "base/banned.h"

#define SECOND_US INT64_C(1000000)
#define HOUR_US   (3600 * SECOND_US)
#define DAY_US    (24 * HOUR_US)
#define TODAY_US  (WALL_SANE_US + 2500 * DAY_US)

/* Two clocks that go on together until the wall clock is set. */
struct hands {
    struct wall_guard guard;
    int64_t wall, steady;
};

static void start(struct hands *h, int64_t wall, int64_t known)
{
    h->wall = wall;
    h->steady = 777 * SECOND_US;
    wall_guard_start(&h->guard, h->wall, h->steady, known);
}

static int64_t pass(struct hands *h, int64_t us)
{
    h->wall += us;
    h->steady += us;
    return wall_guard_look(&h->guard, h->wall, h->steady);
}

/* The time of the batch is so far behind the wall clock. */
static void expect_behind(struct hands *h, int64_t passes_us, int64_t behind_us)
{
    int64_t now = pass(h, passes_us);
    assert_int_equal(h->wall - now, behind_us);
}

static bool deletes(const struct hands *h)
{
    return wall_guard_may_delete(&h->guard, h->steady);
}

TEST(test_clocks_that_agree_are_followed)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    for (int i = 0; i < 200; i++) {
        expect_behind(&h, HOUR_US / 7, 0);
        assert_true(deletes(&h));
        h.wall += i % 2 ? SECOND_US : -2 * SECOND_US; /* a time server corrects it */
    }
}

/* Each difference is small; together they are more than a jump. */
TEST(test_a_clock_that_goes_a_little_wrong_is_followed_for_days)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    for (int64_t off = 0; off <= 2 * WALL_JUMP_US; off += WALL_JUMP_US / 4) {
        h.wall += WALL_JUMP_US / 4;
        expect_behind(&h, WALL_SETTLE_US, 0);
        assert_int_equal(h.guard.state, WALL_RIGHT);
    }
}

TEST(test_what_is_just_not_a_jump_is_followed)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall += WALL_JUMP_US;
    expect_behind(&h, SECOND_US, 0);
    assert_int_equal(h.guard.state, WALL_RIGHT);
    h.wall++;
    expect_behind(&h, SECOND_US, WALL_JUMP_US + 1);
    assert_int_equal(h.guard.state, WALL_AHEAD);
}

TEST(test_a_jump_ahead_neither_moves_the_time_nor_deletes)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall += 80 * DAY_US;
    assert_int_equal(pass(&h, SECOND_US), TODAY_US + SECOND_US);
    assert_false(deletes(&h));
    h.wall -= 80 * DAY_US; /* three seconds later it is right again */
    assert_int_equal(pass(&h, 2 * SECOND_US), TODAY_US + 3 * SECOND_US);
    assert_true(deletes(&h));
}

TEST(test_a_jump_ahead_counts_after_a_steady_hour)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall += 80 * DAY_US;
    pass(&h, SECOND_US);
    for (int i = 1; i < 3600; i++) {
        assert_int_equal(pass(&h, SECOND_US), TODAY_US + (i + 1) * SECOND_US);
        assert_false(deletes(&h));
    }
    expect_behind(&h, SECOND_US, 0);
    assert_true(deletes(&h));
}

TEST(test_the_hour_begins_again_with_every_jump)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    for (int i = 0; i < 10; i++) {
        h.wall += DAY_US;
        pass(&h, HOUR_US - SECOND_US);
        assert_false(deletes(&h));
    }
}

TEST(test_a_clock_that_races_in_small_steps_is_a_jump)
{
    struct hands h;
    int64_t now = 0;
    start(&h, TODAY_US, TODAY_US);
    for (int i = 0; i < 1800; i++) {
        h.wall += 10 * SECOND_US;
        now = pass(&h, SECOND_US);
    }
    assert_false(deletes(&h));
    assert_true(now <= TODAY_US + 1800 * SECOND_US + WALL_JUMP_US);
}

TEST(test_an_operator_ends_the_wait)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall += 80 * DAY_US;
    pass(&h, SECOND_US);
    wall_guard_accept(&h.guard, h.wall, h.steady);
    expect_behind(&h, SECOND_US, 0);
    assert_true(deletes(&h));
}

TEST(test_a_clock_set_back_is_followed_and_its_return_is_no_jump)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall -= HOUR_US;
    expect_behind(&h, SECOND_US, 0); /* what is due waits: never early by either */
    assert_int_equal(h.guard.state, WALL_BACK);
    h.wall += HOUR_US;
    expect_behind(&h, SECOND_US, 0);
    assert_int_equal(h.guard.state, WALL_RIGHT);
}

TEST(test_a_clock_that_stays_back_is_the_one_that_counts)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall -= DAY_US;
    pass(&h, SECOND_US);
    pass(&h, HOUR_US);
    assert_int_equal(h.guard.state, WALL_RIGHT);
    h.wall += DAY_US; /* so this is a jump ahead */
    expect_behind(&h, SECOND_US, DAY_US);
}

TEST(test_a_time_before_2020_never_counts)
{
    struct hands h;
    start(&h, TODAY_US, TODAY_US);
    h.wall = -HOUR_US; /* before 1970 */
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(pass(&h, HOUR_US), TODAY_US + i * HOUR_US);
        assert_false(deletes(&h));
        wall_guard_accept(&h.guard, h.wall, h.steady);
    }
}

TEST(test_a_start_before_2020_goes_on_from_the_last_time_known)
{
    struct hands h;
    start(&h, -DAY_US, TODAY_US);
    assert_int_equal(pass(&h, SECOND_US), TODAY_US + SECOND_US);
    assert_false(deletes(&h));
    h.wall = TODAY_US + 9 * DAY_US; /* a time server has been reached: schedules go by it, deletion waits */
    expect_behind(&h, SECOND_US, 0);
    assert_false(deletes(&h));
    pass(&h, HOUR_US);
    assert_true(deletes(&h));
}

TEST(test_a_start_long_after_the_last_time_known_deletes_after_an_hour)
{
    struct hands h;
    start(&h, TODAY_US + 80 * DAY_US, TODAY_US);
    expect_behind(&h, SECOND_US, 0);
    assert_false(deletes(&h));
    pass(&h, HOUR_US - 2 * SECOND_US);
    assert_false(deletes(&h));
    pass(&h, SECOND_US);
    assert_true(deletes(&h));
    start(&h, TODAY_US + HOUR_US, TODAY_US); /* a short pause is none */
    pass(&h, SECOND_US);
    assert_true(deletes(&h));
}
