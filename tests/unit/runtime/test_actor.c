/* Actors: a mailbox each, failures that stay where they are, and a supervisor that knows when to end. */
#include "case.h"

#include "base/must.h"
#include "runtime/actor.h"

#include "base/banned.h"

enum { ACTORS = 4, MAILBOX = 8, SEEN_MAX = 512 };
enum { GOOD = 1, BAD = 2, SLOW = 3, NOT_YET = 4 }; /* kind of a message; its number is above it */

struct seen {
    uint32_t partition;
    int number;
};

static struct world {
    struct seen handled[SEEN_MAX], dropped[SEEN_MAX];
    size_t handled_count, dropped_count;
    int starts[ACTORS], stops[ACTORS], failures[ACTORS], failing_starts;
    enum actor_drop why;
    int64_t last_delay_ms;
    bool not_yet;
} world;

static int states[ACTORS]; /* what start gives: its own place */
static int messages[SEEN_MAX];

static void *message(int kind, int number)
{
    messages[number] = number << 4 | kind;
    return &messages[number];
}

static enum err_code start(void *context, uint32_t partition, void **ret_state, struct err *err)
{
    struct world *w = context;
    w->starts[partition]++;
    if (w->failing_starts > 0) {
        w->failing_starts--;
        return err_set(err, ERR_INTERNAL, "no luck");
    }
    states[partition] = (int)partition;
    *ret_state = &states[partition];
    return ERR_OK;
}

static enum actor_outcome handle(void *state, void *given, int64_t now_ms, struct err *err)
{
    uint32_t partition = (uint32_t) * (int *)state;
    int kind = *(int *)given & 15, number = *(int *)given >> 4;
    (void)now_ms;
    if (kind == NOT_YET && world.not_yet)
        return ACTOR_LATER;
    world.handled[world.handled_count++] = (struct seen){partition, number};
    if (kind == BAD) {
        err_set(err, ERR_INTERNAL, "cannot stand number %d", number);
        return ACTOR_FAILED;
    }
    return kind == SLOW ? ACTOR_BUSY : ACTOR_DONE;
}

static void stop(void *state)
{
    world.stops[*(int *)state]++;
}

static void drop(void *context, uint32_t partition, void *given, enum actor_drop why)
{
    struct world *w = context;
    w->dropped[w->dropped_count++] = (struct seen){partition, *(int *)given >> 4};
    w->why = why;
}

static void failed(void *context, const struct actor_failure *f)
{
    struct world *w = context;
    w->failures[f->partition]++;
    w->last_delay_ms = f->delay_ms;
    assert_true(f->reason[0]);
}

static const struct actor_verbs verbs = {start, handle, stop, drop, failed};
static struct actors *actors;

static void open_with(int64_t max_restarts)
{
    struct actors_config config = {.verbs = &verbs,
                                   .context = &world,
                                   .actors = ACTORS,
                                   .mailbox_max = MAILBOX,
                                   .domain = DOMAIN_OUTBOUND,
                                   .limits = {max_restarts, 60}};
    actors = actors_new(&config, 0);
}

static int set_up(void **state)
{
    (void)state;
    world = (struct world){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    actors = actors_free(actors);
    return 0;
}

#define ACTOR_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

ACTOR_TEST(test_messages_are_handled_in_order_and_a_full_mailbox_refuses)
{
    open_with(30);
    for (int i = 0; i < MAILBOX; i++)
        assert_true(actors_send(actors, 2, message(GOOD, i)));
    assert_false(actors_send(actors, 2, message(GOOD, MAILBOX)));
    assert_true(actors_send(actors, 1, message(GOOD, 100))); /* the others have room */
    assert_int_equal(actors_depth(actors, 2), MAILBOX);
    assert_int_equal(actors_due(actors), 0);
    assert_int_equal(actors_run(actors, 1), MAILBOX + 1);
    assert_int_equal(world.handled[0].number, 100);
    for (int i = 0; i < MAILBOX; i++)
        assert_int_equal(world.handled[i + 1].number, i);
    assert_true(actors_due(actors) == INT64_MAX);
}

/* [TOP-023] [TOP-043] */
ACTOR_TEST(test_a_failing_actor_is_restarted_alone_and_keeps_what_waits)
{
    open_with(30);
    int64_t now = 0;
    for (int round = 0; round < 10; round++) { /* partition 0 fails ten times */
        assert_true(actors_send(actors, 0, message(BAD, 2 * round)));
        assert_true(actors_send(actors, 0, message(GOOD, 2 * round + 1)));
        assert_true(actors_send(actors, 1, message(GOOD, 100 + round)));
        actors_run(actors, now);
        assert_int_equal(actors_state(actors, 0), ACTOR_RESTARTS);
        assert_int_equal(actors_depth(actors, 0), 1); /* the good one behind the bad one stays */
        assert_int_equal(actors_depth(actors, 1), 0); /* and nobody else waits for the restart */
        assert_int_equal(actors_due(actors), now + world.last_delay_ms);
        now += world.last_delay_ms;
        actors_run(actors, now);
        assert_int_equal(actors_depth(actors, 0), 0);
    }
    assert_int_equal(actors_restarts(actors, 0), 10);
    assert_int_equal(world.starts[0], 11);
    assert_int_equal(world.failures[0], 10);
    assert_int_equal(world.dropped_count, 10);
    assert_int_equal(world.why, ACTOR_DROP_FAILED);
    for (uint32_t p = 1; p < ACTORS; p++) {
        assert_int_equal(actors_restarts(actors, p), 0);
        assert_int_equal(world.starts[p], 1);
        assert_int_equal(world.stops[p], 0);
    }
    assert_int_equal(world.handled_count, 30);
    assert_false(actors_ended(actors));
}

ACTOR_TEST(test_later_restarts_wait_and_the_messages_with_them)
{
    open_with(30);
    for (int i = 0; i < 3; i++) {
        assert_true(actors_send(actors, 0, message(BAD, i)));
        actors_run(actors, 10);
        actors_run(actors, 10);
    }
    assert_true(world.last_delay_ms >= 100); /* the third one */
    assert_true(actors_send(actors, 0, message(GOOD, 9)));
    size_t before = world.handled_count;
    actors_run(actors, 10 + world.last_delay_ms - 1);
    assert_int_equal(world.handled_count, before);
    actors_run(actors, 10 + world.last_delay_ms);
    assert_int_equal(world.handled_count, before + 1);
}

ACTOR_TEST(test_one_restart_too_many_ends_the_supervisor_and_gives_everything_back)
{
    open_with(2);
    assert_true(actors_send(actors, 3, message(SLOW, 40)));
    for (int i = 0; i < 2; i++) {
        assert_true(actors_send(actors, 0, message(BAD, i)));
        actors_run(actors, 0);
        actors_run(actors, 0);
    }
    assert_true(actors_send(actors, 3, message(GOOD, 41)));
    assert_true(actors_send(actors, 0, message(BAD, 2)));
    assert_true(actors_send(actors, 0, message(GOOD, 3)));
    assert_false(actors_ended(actors));
    actors_run(actors, 0);
    assert_true(actors_ended(actors));
    assert_int_equal(world.last_delay_ms, -1);
    assert_int_equal(world.dropped_count, 5); /* three bad ones, 3 and 41 */
    assert_int_equal(world.why, ACTOR_DROP_ENDED);
    for (uint32_t p = 0; p < ACTORS; p++) {
        assert_int_equal(actors_state(actors, p), ACTOR_ENDED);
        assert_int_equal(world.starts[p], world.stops[p]); /* each one that began was stopped */
    }
    assert_false(actors_send(actors, 1, message(GOOD, 9)));
    assert_int_equal(actors_run(actors, 100000), 0);
    assert_true(actors_due(actors) == INT64_MAX);
}

ACTOR_TEST(test_a_busy_actor_takes_no_more_until_it_is_ready)
{
    open_with(30);
    assert_true(actors_send(actors, 0, message(SLOW, 1)));
    assert_true(actors_send(actors, 0, message(GOOD, 2)));
    assert_int_equal(actors_run(actors, 0), 1);
    assert_int_equal(actors_state(actors, 0), ACTOR_WAITS);
    assert_true(actors_due(actors) == INT64_MAX); /* it does not spin */
    assert_int_equal(actors_run(actors, 1000), 0);
    actors_ready(actors, 0);
    assert_int_equal(actors_run(actors, 1000), 1);
    assert_int_equal(world.handled[1].number, 2);
}

ACTOR_TEST(test_a_message_for_later_stays_first)
{
    open_with(30);
    world.not_yet = true;
    for (int i = 0; i < MAILBOX; i++)
        assert_true(actors_send(actors, 0, message(i ? GOOD : NOT_YET, i)));
    actors_run(actors, 0);
    assert_int_equal(actors_depth(actors, 0), MAILBOX);
    assert_int_equal(world.handled_count, 0);
    world.not_yet = false;
    actors_ready(actors, 0);
    actors_run(actors, 0);
    for (int i = 0; i < MAILBOX; i++)
        assert_int_equal(world.handled[i].number, i);
}

ACTOR_TEST(test_a_failure_outside_of_handle_counts_the_same)
{
    open_with(1);
    assert_true(actors_send(actors, 0, message(SLOW, 1)));
    actors_run(actors, 0);
    actors_fail(actors, 0, "its transfer came back broken", 5);
    assert_int_equal(world.stops[0], 1);
    actors_fail(actors, 0, "and once more", 5); /* it is down already: nothing is counted twice */
    assert_int_equal(actors_restarts_all(actors), 1);
    actors_run(actors, 5);
    assert_int_equal(actors_state(actors, 0), ACTOR_RUNS);
    actors_fail(actors, 0, "a second time", 6);
    assert_true(actors_ended(actors));
}

ACTOR_TEST(test_a_start_that_fails_is_a_failure_of_its_actor)
{
    world.failing_starts = 2;
    open_with(30);
    assert_int_equal(actors_state(actors, 0), ACTOR_RESTARTS);
    assert_int_equal(actors_state(actors, 1), ACTOR_RESTARTS);
    assert_int_equal(actors_state(actors, 2), ACTOR_RUNS);
    actors_run(actors, 0);
    assert_int_equal(actors_state(actors, 0), ACTOR_RUNS);
    assert_int_equal(actors_state(actors, 1), ACTOR_RUNS);
    assert_int_equal(world.stops[0] + world.stops[1], 0); /* there was nothing to stop */
}

/* [TOP-082] */
ACTOR_TEST(test_no_actor_keeps_the_others_waiting)
{
    open_with(30);
    assert_true(actors_send(actors, 0, message(SLOW, 1)));
    actors_run(actors, 0); /* partition 0 never comes back */
    for (int i = 10; i < 200; i++) {
        uint32_t partition = 1 + (uint32_t)i % (ACTORS - 1);
        assert_true(actors_send(actors, partition, message(GOOD, i)));
        assert_int_equal(actors_run(actors, i), 1);
        assert_int_equal(world.handled[world.handled_count - 1].partition, partition);
    }
}
