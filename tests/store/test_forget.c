/* What a shared store forgets after a batch, and what it keeps. */
#include "store/bench_store.h"

#include "base/banned.h"

static struct task *add_at(struct store *s, int64_t id, int64_t target, int64_t wall_ms)
{
    struct task_row row = {.id = id,
                           .client = 1,
                           .owner = target ? TASK_OWNER_DELIVERY : TASK_OWNER_JOB,
                           .target = target,
                           .queue = STR("q"),
                           .state = 1,
                           .attempt = 1,
                           .refs = {"one ref.", 8}};
    struct task *t = live_task_new(s->live, &row);
    live_place(s->live, t, wall_ms);
    return t;
}

static struct task *add(struct store *s, int64_t id, int64_t target)
{
    return add_at(s, id, target, 0);
}

static void test_tasks_keys_and_counters_of_a_batch_are_forgotten(void **state)
{
    (void)state;
    struct store *s = store_open_memory();
    struct live_claim all = {&STR("q"), 1, 0};
    for (int64_t batch = 0; batch < 3; batch++) {
        for (int64_t id = 1; id <= 3000; id++) {
            struct task *t = add(s, id, id % 3 ? 0 : 7);
            if (id % 5 == 0)
                live_set_worker(s->live, t, STR("worker"), 5);
            idem_put(&s->idem, (uint64_t)id + 2, id);
        }
        counts_of(&s->counts, 1)->by_state[1] = 5;
        counts_of(&s->counts, 100000)->by_state[1] = 6;
        store_forget(s);
        size_t cursor = 0;
        assert_int_equal(live_size(s->live), 0);
        assert_int_equal(live_count(s->live), 0);
        assert_null(live_find(s->live, 1));
        assert_null(live_best(s->live, &all));
        assert_int_equal(live_next_wall(s->live), INT64_MAX);
        assert_int_equal(idem_find(&s->idem, 3, &cursor), 0);
        assert_int_equal(counts_of(&s->counts, 1)->by_state[1], 0);
        assert_int_equal(counts_of(&s->counts, 100000)->by_state[1], 0);
        assert_int_equal(live_worker_count(s->live, 5), 1); /* whoever worked still does */
        store_forget(s);
    }
    store_close(s);
}

static void test_what_was_learned_of_a_target_is_kept_without_its_tasks(void **state)
{
    (void)state;
    struct store *s = store_open_memory();
    store_forget(s);
    struct task *t = add(s, 1, 7);
    t->target->failures = 4;
    t->target->open_again_ms = 500;
    live_target_limit(s->live, t->target, 0);
    live_take(s->live, t); /* it ends within the batch */
    live_task_free(s->live, t);
    add(s, 2, 8);
    store_forget(s);
    const struct target *known = live_target(s->live, 7), *fresh = live_target(s->live, 8);
    assert_non_null(known);
    assert_int_equal(known->failures, 4);
    assert_int_equal(known->slots, 0);
    assert_int_equal(known->members, 0);
    assert_int_equal(known->active, 0);
    assert_int_equal(fresh->active, 0);
    add(s, 3, 7);
    assert_null(live_best(s->live, &(struct live_claim){&STR("q"), 1, 0})); /* still closed */
    store_forget(s);
    add_at(s, 4, 7, 500); /* the pause is over: one may try */
    add_at(s, 5, 7, 500);
    assert_int_equal(live_best(s->live, &(struct live_claim){&STR("q"), 1, 0})->row.id, 4);
    assert_int_equal(live_target(s->live, 7)->active, 1);
    assert_int_equal(live_target(s->live, 7)->failures, 4);
    store_forget(s);
    store_close(s);
}

/* Receivers come and go for ever: memory of them is bounded, and those that failed are remembered longest. */
static void test_targets_that_nothing_is_known_against_are_forgotten_when_there_are_many(void **state)
{
    (void)state;
    struct store *s = store_open_memory();
    store_forget(s);
    for (int64_t id = 1; id <= 10000; id++) {
        struct task *t = add(s, id, id);
        t->target->failures = id == 5;
    }
    store_forget(s);
    assert_non_null(live_target(s->live, 5));
    assert_null(live_target(s->live, 6));
    for (int64_t id = 1; id <= 10000; id++)
        add(s, id, id)->target->failures = 1;
    store_forget(s);
    assert_null(live_target(s->live, 5)); /* bounded in any case */
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_keys_and_counters_of_a_batch_are_forgotten),
        cmocka_unit_test(test_what_was_learned_of_a_target_is_kept_without_its_tasks),
        cmocka_unit_test(test_targets_that_nothing_is_known_against_are_forgotten_when_there_are_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
