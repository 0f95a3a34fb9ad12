/* Jobs of all nodes as one node knows them: room that lanes take, and counts that run beside commits. */
#include <pthread.h>

#include "case.h"

#include "kernel/census.h"

#include "base/banned.h"

enum { LANES = 4, TRIES = 2000, QUEUE_MAX = 3000 };

static struct census census;

static int set_up(void **state)
{
    (void)state;
    census = (struct census){.taken_live = 0};
    census_init(&census);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    census_free(&census);
    return 0;
}

static void count(int64_t queued)
{
    struct census_count start;
    int64_t by_state[JOB_STATE_COUNT] = {[JOB_QUEUED] = queued};
    census_count_start(&census, &start);
    census_counted(&census, &start, by_state);
}

static void commit(struct census_part *p, int64_t queued)
{
    p->moved[JOB_QUEUED] = queued;
    census_begin(&census, p);
    census_end(&census, p, true);
}

static bool take(struct census_part *p, int64_t max)
{
    struct room room = {.live_max = -1, .ready_max = max};
    return census_take(&census, p, &room);
}

#define CENSUS_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

CENSUS_TEST(room_is_taken_before_it_is_committed_and_given_back_when_it_is_not)
{
    struct census_part a = {0}, b = {0};
    count(1);
    assert_true(take(&a, 3));
    assert_true(take(&b, 3));
    assert_false(take(&a, 3)); /* 1 there, 2 taken */
    census_end(&census, &b, false);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 1);
    assert_true(take(&a, 3));
    commit(&a, 2);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 3);
    assert_false(take(&a, 3));
}

CENSUS_TEST(each_limit_is_asked_about_on_its_own)
{
    struct census_part p = {.moved = {[JOB_RUNNING] = 2, [JOB_QUEUED] = 1}};
    census_begin(&census, &p);
    census_end(&census, &p, true);
    struct room full = {.live_max = 3, .ready_max = 9}, later = {.live_max = 4, .ready_max = -1};
    assert_false(census_take(&census, &p, &full));
    assert_int_equal(full.live, 3);
    assert_int_equal(full.ready, 1);
    assert_true(census_take(&census, &p, &later));
    assert_int_equal(p.taken_live, 1);
    assert_int_equal(p.taken_ready, 0);
}

/* What asked for no limit took nothing of it. */
CENSUS_TEST(what_is_given_back_is_free_once)
{
    static const struct room rooms[] = {
        {.live_max = 1, .ready_max = 1}, {.live_max = 1, .ready_max = -1}, {.live_max = -1, .ready_max = 1}};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        struct census_part p = {0};
        struct room room = rooms[i];
        assert_true(census_take(&census, &p, &room));
        census_give_back(&census, &p, &room);
        census_end(&census, &p, false);
        assert_int_equal(census.taken_live, 0);
        assert_int_equal(census.taken_ready, 0);
    }
}

/* Whether a commit of our own is in a count that ran beside it nobody knows: both must be taken for right. */
CENSUS_TEST(a_count_beside_a_commit_changes_nothing)
{
    for (int in_it = 0; in_it < 2; in_it++) {
        struct census_part p = {.moved = {[JOB_QUEUED] = 5}};
        int64_t before = census_jobs(&census, JOB_QUEUED);
        int64_t by_state[JOB_STATE_COUNT] = {[JOB_QUEUED] = before + 5 * in_it};
        struct census_count start;
        census_begin(&census, &p);
        census_count_start(&census, &start);
        census_counted(&census, &start, by_state);
        census_end(&census, &p, true);
        assert_int_equal(census_jobs(&census, JOB_QUEUED), before + 5);
        census_count_start(&census, &start);
        p.moved[JOB_QUEUED] = -5;
        census_begin(&census, &p);
        census_end(&census, &p, true);
        by_state[JOB_QUEUED] = before + 5 * in_it;
        census_counted(&census, &start, by_state);
        assert_int_equal(census_jobs(&census, JOB_QUEUED), before);
    }
}

CENSUS_TEST(what_other_nodes_did_is_learned_from_the_next_count)
{
    struct census_part p = {0};
    count(7);
    commit(&p, 2);
    count(9); /* all of it known */
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 9);
    count(20);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 20);
    count(3);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 3);
    commit(&p, -3);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 0);
    commit(&p, -1); /* one that no count has told of: there are never less than none */
    assert_int_equal(census_jobs(&census, JOB_QUEUED), 0);
}

/* --- lanes ------------------------------------------------------------------------------------------ */

static void *lane(void *arg)
{
    int64_t *accepted = arg;
    for (int i = 0; i < TRIES; i++) {
        struct census_part p = {0};
        int64_t n = take(&p, QUEUE_MAX);
        p.moved[JOB_QUEUED] = n;
        census_begin(&census, &p);
        bool done = i % 7 != 0;
        census_end(&census, &p, done);
        *accepted += done ? n : 0;
    }
    return NULL;
}

CENSUS_TEST(lanes_fill_the_queue_exactly)
{
    pthread_t threads[LANES];
    int64_t accepted[LANES] = {0}, all = 0;
    for (int i = 0; i < LANES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lane, &accepted[i]), 0);
    for (int i = 0; i < LANES; i++) {
        pthread_join(threads[i], NULL);
        all += accepted[i];
    }
    assert_int_equal(all, QUEUE_MAX);
    assert_int_equal(census_jobs(&census, JOB_QUEUED), QUEUE_MAX);
    assert_int_equal(census.taken_ready, 0);
}

int main(void)
{
    return test_run("kernel/census", NULL, NULL);
}
