/* What a shared store forgets after a batch, and what it keeps. */
#include "store/bench_store.h"

#include "base/banned.h"

static struct task *add_at(struct store *s, int64_t id, int64_t receiver, int64_t wall_ms)
{
    struct task_row row = {.id = id,
                           .client = 1,
                           .target = receiver,
                           .queue = STR("q"),
                           .state = 1,
                           .attempt = 1,
                           .refs = {"one ref.", 8}};
    struct task *t = live_task_new(s->live, &row);
    live_place(s->live, t, wall_ms);
    return t;
}

static struct task *add(struct store *s, int64_t id, int64_t receiver)
{
    return add_at(s, id, receiver, 0);
}

TEST(test_tasks_keys_and_counters_of_a_batch_are_forgotten)
{
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

static const struct task *best(const struct store *s)
{
    return live_best(s->live, &(struct live_claim){&STR("q"), 1, 0});
}

/* What a shared store knows of a receiver comes from its row: who claims without it gets nothing. */
TEST(test_a_receiver_admits_nobody_before_its_stored_state_is_loaded)
{
    struct store *s = store_open_memory();
    live_load_receivers(s->live);
    for (int64_t id = 1; id <= 5; id++)
        add(s, id, 7);
    assert_null(best(s));
    assert_false(live_has_news_of_slots(s->live)); /* nothing to write of what is not known */
    struct receiver *x = live_receiver(s->live, 7);
    live_receiver_known(s->live, x, &(struct receiver_state){.slots = 4}, 2,
                        0); /* two are claimed elsewhere */
    assert_int_equal(x->active, 2);
    assert_int_equal(best(s)->row.id, 1);
    assert_true(live_has_news_of_slots(s->live)); /* three wait */
    live_receiver_limit(s->live, x, 7);
    assert_int_equal(x->active, 5);
    assert_false(live_has_news_of_slots(s->live));
    store_forget(s);
    assert_null(live_receiver(s->live, 7));
    store_close(s);
}

TEST(test_a_loaded_receiver_stays_to_the_end_of_the_batch)
{
    struct store *s = store_open_memory();
    live_load_receivers(s->live);
    struct task *t = add(s, 1, 7);
    struct receiver *x = live_receiver(s->live, 7);
    live_receiver_known(s->live, x, &(struct receiver_state){.slots = 1}, 0, 0);
    x->failures = 4;
    live_take(s->live, t); /* it ends within the batch: what was learned by it is still to be written */
    live_task_free(s->live, t);
    assert_ptr_equal(live_receiver(s->live, 7), x);
    assert_int_equal(x->members, 0);
    assert_int_equal(x->failures, 4);
    store_forget(s);
    assert_null(live_receiver(s->live, 7));
    store_close(s);
}

TEST(test_after_the_pause_of_a_closed_target_one_may_try)
{
    struct store *s = store_open_memory();
    struct receiver_state closed = {.slots = 0, .failures = 6, .open_again_ms = 500};
    live_load_receivers(s->live);
    for (int64_t id = 1; id <= 3; id++)
        add(s, id, 7);
    live_receiver_known(s->live, live_receiver(s->live, 7), &closed, 0, 499);
    assert_null(best(s));
    store_forget(s);
    for (int64_t id = 1; id <= 3; id++)
        add_at(s, id, 7, 500);
    live_receiver_known(s->live, live_receiver(s->live, 7), &closed, 0, 500);
    assert_int_equal(best(s)->row.id, 1);
    assert_int_equal(live_receiver(s->live, 7)->active, 1);
    assert_int_equal(live_receiver(s->live, 7)->failures, 6);
    store_forget(s);
    add_at(s, 1, 7, 500);
    live_receiver_known(s->live, live_receiver(s->live, 7), &closed, 1, 500); /* somebody tries already */
    assert_null(best(s));
    store_close(s);
}
