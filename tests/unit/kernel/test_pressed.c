/* Under pressure: what is critical goes first, what is low is refused, what can wait does. On both stores. */
#include "unit/kernel/rig.h"

#include "kernel/kernel_internal.h"

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
RIG_TEST(test_a_flood_of_submits_does_not_delay_what_is_critical, r)
{
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
RIG_TEST(test_clients_take_turns_when_there_is_more_than_a_batch_holds, r)
{
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

RIG_TEST(test_critical_commands_leave_room_for_the_rest, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < FLOOD; i++)
        (void)rig_post_claim(r, "w", 1, 0);
    struct submit_command *other = post_submit(r, client);
    rig_step(r);
    assert_true(rig_is_done(&other->base));
    step_all(r);
}

/* Waiting commands are bounded, each lane for itself. [TOP-080] */
RIG_TEST(test_a_full_queue_of_commands_refuses_all_but_critical_ones, r)
{
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

RIG_TEST(test_waiting_bodies_are_bounded_but_one_alone_always_fits, r)
{
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

/* --- how much a batch holds ------------------------------------------------------------------------ */

static size_t critical_done;

static enum err_code decide_nothing(struct unit *u, struct command *c, struct err *err)
{
    (void)u, (void)c, (void)err;
    return ERR_OK;
}

static void count_critical(struct command *c)
{
    critical_done += c->type->critical;
}

static const struct command_type light_type = {.name = "light", .decide = decide_nothing};
static const struct command_type urgent_type = {.name = "urgent", .decide = decide_nothing, .critical = true};

static void post_many(struct rig *r, const struct command_type *type, size_t count, int64_t weight,
                      size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        struct command *c = ARENA_NEW(r->arena, struct command);
        *c = (struct command){.type = type,
                              .done = count_critical,
                              .weight = weight,
                              .bytes = bytes,
                              .received_us = r->wall_us};
        assert_true(kernel_post(r->kernel, c));
    }
}

/* 1000 items, each command being one at least; 8 MiB of bodies. */
RIG_TEST(test_a_batch_holds_so_much_and_no_more, r)
{
    static const struct {
        size_t posted;
        int64_t weight;
        size_t bytes, first, second;
    } rows[] = {
        {1000, 0, 0, 1000, 0}, {1001, 0, 0, 1000, 1}, {101, 10, 0, 100, 1}, {3, 500, 0, 2, 1},
        {9, 1, 1 << 20, 8, 1}, {8, 1, 1 << 20, 8, 0}, {2, 2000, 0, 1, 1},
    };
    r->settings.commands_max_bytes = 64 << 20;
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        post_many(r, &light_type, rows[i].posted, rows[i].weight, rows[i].bytes);
        assert_int_equal(rig_step(r), rows[i].first);
        assert_int_equal(rig_step(r), rows[i].second);
    }
}

/* Three quarters, while others wait; what they leave is for the others. */
RIG_TEST(test_critical_commands_get_three_quarters_of_a_batch, r)
{
    struct kernel_stats s;
    critical_done = 0;
    post_many(r, &urgent_type, 900, 0, 0);
    post_many(r, &light_type, 900, 0, 0);
    assert_int_equal(rig_step(r), 1000);
    assert_int_equal(critical_done, 750);
    kernel_stats(r->kernel, &s);
    assert_true(s.critical_waiting == 150 && s.commands_waiting == 650);
    assert_int_equal(rig_step(r), 800);
    assert_int_equal(critical_done, 900);
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.commands, 1800);
    assert_true(!s.critical_waiting && !s.commands_waiting && !s.commands_waiting_bytes);
}

/* By bytes as by their number. */
RIG_TEST(test_critical_bodies_get_three_quarters_of_a_batch, r)
{
    r->settings.commands_max_bytes = 64 << 20;
    critical_done = 0;
    post_many(r, &urgent_type, 200, 1, 49152); /* 128 of them are 6 MiB */
    post_many(r, &light_type, 200, 1, 49152);  /* 43 are just above 2 MiB */
    assert_int_equal(rig_step(r), 128 + 43);
    assert_int_equal(critical_done, 128);
    step_all(r);
}

static void let_a_millisecond_pass(struct rig *r)
{
    rig_pass(r, 1);
}

/* Below a millisecond; and what writes nothing says nothing about it. */
RIG_TEST(test_a_disk_is_quick_by_the_last_commit, r)
{
    struct kernel_stats s;
    int64_t client = rig_new_client(r, NULL);
    assert_true(r->kernel->disk_is_quick);
    r->before_commit = let_a_millisecond_pass;
    rig_submit_default(r, client);
    assert_false(r->kernel->disk_is_quick);
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.last_commit_us, 1000);
    post_many(r, &light_type, 1, 0, 0);
    rig_step(r);
    assert_false(r->kernel->disk_is_quick);
    rig_submit_default(r, client);
    assert_true(r->kernel->disk_is_quick);
    struct submit_item item = rig_item();
    r->failures = 1;
    rig_submit(r, client, &item);
    assert_false(r->kernel->disk_is_quick);
}

RIG_TEST(test_bodies_fit_up_to_the_bound, r)
{
    struct kernel_stats s;
    r->settings.commands_max_bytes = 65536;
    post_many(r, &light_type, 1, 0, 65000);
    struct command more = {.type = &light_type, .done = count_critical, .bytes = 537};
    assert_false(kernel_post(r->kernel, &more));
    assert_int_equal(more.result, ERR_EXEC_QUEUE_FULL);
    post_many(r, &light_type, 1, 0, 536);
    kernel_stats(r->kernel, &s);
    assert_true(s.commands_waiting == 2 && s.commands_waiting_bytes == 65536 && s.refused == 1);
    rig_step(r);
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.commands_waiting_bytes, 0);
}

static struct submit_item submit_with(struct rig *r, int64_t client, int64_t priority)
{
    struct submit_item item = rig_item();
    item.priority = priority;
    item.has_priority = true;
    return rig_submit(r, client, &item);
}

/* [TOP-079] */
RIG_TEST(test_under_pressure_only_low_work_is_refused_and_replays_are_not, r)
{
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
    return rig_run_both();
}
