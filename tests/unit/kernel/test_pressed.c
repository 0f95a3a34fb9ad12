/* Under pressure: what is critical goes first, what is low is refused, what can wait does. On both stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

enum { FLOOD = 5000 };

static struct submit_command *post_submit(struct rig *r, int64_t client)
{
    struct submit_command *c = ARENA_NEW(r->arena, struct submit_command);
    c->client = c->base.client = client;
    c->items = ARENA_NEW(r->arena, struct submit_item);
    *c->items = rig_item();
    c->item_count = 1;
    rig_post(r, &c->base, &submit_command_type);
    return c;
}

static void flood(struct rig *r, int64_t client, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)post_submit(r, client);
}

static void step_all(struct rig *r)
{
    struct kernel_stats s;
    do {
        rig_step(r);
        kernel_stats(r->kernel, &s);
    } while (s.commands_waiting || s.critical_waiting);
}

/* Heartbeat, result and cancel come last and are answered by the next batch; a submit of the same client that
 * comes at the same moment is not: it is the lane that does it. [TOP-080] */
static void test_a_flood_of_submits_does_not_delay_what_is_critical(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    struct submit_item a = rig_submit_default(r, client), b = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &start_command_type, &task).code, ERR_OK);
    struct submit_item *waiting = task.id == a.id ? &b : &a;
    r->settings.jobs_queue_size = r->settings.jobs_max_active = 100000;
    flood(r, client, FLOOD);
    struct worker_command *beat = rig_post_work(r, &heartbeat_command_type, &task, true);
    struct worker_command *result = rig_post_work(r, &finish_command_type, &task, true);
    struct job_command *cancel = rig_post_job(r, &cancel_command_type, client, waiting);
    struct submit_command *control = post_submit(r, client);
    rig_step(r);
    assert_true(rig_is_done(&beat->base) && rig_is_done(&result->base) && rig_is_done(&cancel->base));
    assert_int_equal(beat->items[0].code, ERR_OK);
    assert_int_equal(result->items[0].code, ERR_OK);
    assert_int_equal(cancel->base.result, ERR_OK);
    assert_false(rig_is_done(&control->base));
    step_all(r);
    assert_true(rig_is_done(&control->base));
    assert_int_equal(rig_live_count(r), FLOOD + 1);
}

/* The other client's submit behind the flood is in the next batch, the flood's own last one is not. */
static void test_clients_take_turns_when_there_is_more_than_a_batch_holds(void **state)
{
    struct rig *r = *state;
    int64_t loud = rig_new_client(r, NULL), quiet = rig_new_client(r, NULL);
    r->settings.jobs_queue_size = r->settings.jobs_max_active = 100000;
    flood(r, loud, FLOOD);
    struct submit_command *other = post_submit(r, quiet), *control = post_submit(r, loud);
    rig_step(r);
    assert_true(rig_is_done(&other->base));
    assert_false(rig_is_done(&control->base));
    step_all(r);
    assert_true(rig_is_done(&control->base));
}

static void test_critical_commands_leave_room_for_the_rest(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < FLOOD; i++)
        (void)rig_post_claim(r, "w", 1, 0);
    struct submit_command *other = post_submit(r, client);
    rig_step(r);
    assert_true(rig_is_done(&other->base));
    step_all(r);
}

/* Waiting commands are bounded, each lane for itself. [TOP-080] */
static void test_a_full_queue_of_commands_refuses_all_but_critical_ones(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client), item = rig_item();
    r->settings.commands_max = 16;
    flood(r, client, 16);
    struct submit_command more = {.client = client, .items = &item, .item_count = 1};
    more.base.type = &submit_command_type;
    assert_false(kernel_post(r->kernel, &more.base));
    assert_int_equal(more.base.result, ERR_EXEC_QUEUE_FULL);
    assert_int_equal(more.base.err.retry_after_s, 1);
    assert_false(kernel_post_in_round(r->kernel, &more.base));
    struct job_command *cancel = rig_post_job(r, &cancel_command_type, client, &job);
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.commands_waiting, 16);
    assert_int_equal(s.critical_waiting, 1);
    assert_int_equal(s.refused, 2);
    step_all(r);
    assert_int_equal(cancel->base.result, ERR_OK);
    flood(r, client, 1); /* there is room again */
    step_all(r);
}

static void test_waiting_bodies_are_bounded_but_one_alone_always_fits(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    r->settings.commands_max_bytes = 65536;
    struct submit_item item = rig_item();
    struct submit_command c[2] = {{.client = client, .items = &item, .item_count = 1},
                                  {.client = client, .items = &item, .item_count = 1}};
    c[0].base.bytes = c[1].base.bytes = 1 << 20;
    rig_post(r, &c[0].base, &submit_command_type);
    c[1].base.type = &submit_command_type;
    assert_false(kernel_post(r->kernel, &c[1].base));
    step_all(r);
    rig_post(r, &c[1].base, &submit_command_type);
    step_all(r);
}

static struct submit_item submit_with(struct rig *r, int64_t client, int64_t priority)
{
    struct submit_item item = rig_item();
    item.priority = priority;
    item.has_priority = true;
    return rig_submit(r, client, &item);
}

/* [TOP-079] */
static void test_under_pressure_only_low_work_is_refused_and_replays_are_not(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    struct submit_item keyed = rig_item();
    keyed.priority = 0;
    keyed.has_priority = true;
    keyed.idem_key = STR("k");
    struct submit_item first = rig_submit(r, client, &keyed);
    assert_int_equal(first.err.code, ERR_OK);
    kernel_set_pressure(r->kernel, true, false);
    for (int64_t priority = 0; priority <= 9; priority++) {
        struct submit_item item = submit_with(r, client, priority);
        assert_int_equal(item.err.code, priority <= 2 ? ERR_EXEC_QUEUE_FULL : ERR_OK);
        assert_int_equal(item.err.retry_after_s, priority <= 2 ? 1 : 0);
    }
    struct submit_item again = rig_submit(r, client, &keyed);
    assert_int_equal(again.err.code, ERR_OK);
    assert_true(again.replayed);
    kernel_set_pressure(r->kernel, false, false);
    assert_int_equal(submit_with(r, client, 0).err.code, ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_a_flood_of_submits_does_not_delay_what_is_critical),
        RIG_TEST(test_clients_take_turns_when_there_is_more_than_a_batch_holds),
        RIG_TEST(test_critical_commands_leave_room_for_the_rest),
        RIG_TEST(test_a_full_queue_of_commands_refuses_all_but_critical_ones),
        RIG_TEST(test_waiting_bodies_are_bounded_but_one_alone_always_fits),
        RIG_TEST(test_under_pressure_only_low_work_is_refused_and_replays_are_not),
    };
    return RIG_RUN_BOTH(tests);
}
