/* What is learnt of receivers: when one is closed, tried again, or its webhook disabled; and what a sender
 * that is lost leaves behind. On all stores, with the rig's clock. */
#include "unit/jobs/deliver_calls.h"

#include "lifecycle/attempts.h"

#include "base/banned.h"

static void submit_to(struct rig *r, int64_t client, const char *url)
{
    struct submit_item item = rig_item();
    item.callback = str_of(url);
    assert_int_equal(rig_submit(r, client, &item).err.code, ERR_OK);
}

static enum err_code end_with(struct rig *r, const struct claimed_task *t, struct task_outcome outcome)
{
    struct worker_command *c = rig_post_work(r, &finish_command_type, t, false);
    c->items[0].outcome = outcome;
    rig_step(r);
    return c->items[0].code;
}

/* --- the breaker --------------------------------------------------------------------------------------- */

/* A receiver that was trusted with five at a time has to answer once before it gets a second one again. */
RIG_TEST(test_after_a_failure_a_receiver_gets_one_at_a_time, r)
{
    live_receiver_slots(r->store->live, 5);
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 20; i++)
        submit_to(r, client, "http://a/x");
    struct claim_command *c = claim_all(r);
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < c->task_count; k++)
            answer(r, &c->tasks[k], 200);
        c = claim_all(r);
    }
    assert_int_equal(c->task_count, 5);
    answer(r, &c->tasks[0], 500);
    assert_int_equal(claim_all(r)->task_count, 0);
    for (uint32_t k = 1; k < 4; k++)
        answer(r, &c->tasks[k], 500);
    assert_int_equal(claim_all(r)->task_count, 0); /* the fifth is under way */
}

/* Four failures do not close it, and an answer takes back all that came before. */
RIG_TEST(test_the_fifth_failure_in_a_row_closes_a_receiver, r)
{
    r->settings.webhooks_max_attempts = 1;
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_cap_ms = 60000;
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 20; i++)
        submit_to(r, client, "http://a/x");
    static const int64_t statuses[] = {500, 0, 503, 500, 200, 500, 500, 500, 500, 500};
    for (size_t i = 0; i < LENGTH_OF(statuses); i++) {
        struct claim_command *c = claim_some(r, 1);
        assert_int_equal(c->task_count, 1);
        answer(r, &c->tasks[0], statuses[i]);
    }
    for (int64_t pause_ms = 1000; pause_ms <= 8000; pause_ms *= 2) {
        rig_pass(r, pause_ms - 1);
        assert_int_equal(claim_all(r)->task_count, 0);
        rig_pass(r, 2);
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        answer(r, &c->tasks[0], 500);
    }
}

/* The pause is over before there is anything to send: what comes then tries it, and nothing is forgotten. */
RIG_TEST(test_a_receiver_whose_pause_is_over_is_tried_by_what_comes_then, r)
{
    r->settings.webhooks_max_attempts = 3;
    r->settings.webhooks_base_ms = 1000;
    int64_t client = rig_new_client(r, NULL);
    submit_to(r, client, "http://dead/x");
    for (int i = 0; i < 6; i++) {
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        answer(r, &c->tasks[0], 500);
        rig_pass(r, 60000);
    }
    submit_to(r, client, "http://dead/x");
    rig_pass(r, 2);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(answer(r, &c->tasks[0], 200), ERR_OK);
}

/* Our own fault, such as an address that is not allowed: the receiver has nothing to do with it. */
RIG_TEST(test_what_was_never_sent_says_nothing_about_the_receiver, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    for (int i = 0; i < 10; i++)
        send_test(r, client, hook);
    for (int i = 0; i < 7; i++) {
        struct claim_command *c = claim_some(r, 1);
        assert_int_equal(c->task_count, 1);
        int64_t letter = c->tasks[0].head;
        struct task_outcome refused = {.error_code = STR("address_refused"), .duration_ms = 3};
        assert_int_equal(end_with(r, &c->tasks[0], refused), ERR_OK);
        assert_int_equal(row_of(r, letter).state, DELIVERY_EXHAUSTED);
    }
    assert_int_equal(webhook_of(r, hook).failing_since_ms, 0);
    assert_int_equal(claim_all(r)->task_count, 1);
}

/* --- webhooks that only fail --------------------------------------------------------------------------- */

static int64_t fail_once(struct rig *r, int64_t client, int64_t hook)
{
    send_test(r, client, hook);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    answer(r, &c->tasks[0], 500);
    return webhook_of(r, hook).enabled;
}

/* To the millisecond; and a setting of nothing never disables. */
RIG_TEST(test_a_webhook_is_disabled_when_it_has_failed_for_as_long_as_the_setting, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    r->settings.webhooks_max_attempts = 1;
    r->settings.webhooks_disable_after_seconds = 60;
    assert_int_equal(fail_once(r, client, hook), 1);
    int64_t since_ms = r->wall_us / 1000;
    rig_pass(r, 59999);
    assert_int_equal(fail_once(r, client, hook), 1);
    assert_int_equal(webhook_of(r, hook).failing_since_ms, since_ms);
    rig_pass(r, 1);
    assert_int_equal(fail_once(r, client, hook), 0);
    assert_int_equal(webhook_of(r, hook).disabled_why, WEBHOOK_FAILING);
    assert_int_equal(webhook_of(r, hook).disabled_ms, r->wall_us / 1000);
    assert_int_equal(webhook_of(r, hook).failing_since_ms, since_ms);
    r->settings.webhooks_disable_after_seconds = 0;
    ask(r, client, hook, WEBHOOK_ENABLE, 0);
    for (int i = 0; i < 2; i++) {
        rig_pass(r, 100000000);
        assert_int_equal(fail_once(r, client, hook), 1);
    }
}

/* --- senders that are lost ------------------------------------------------------------------------------ */

/* Nobody knows whether it arrived: the attempt counts, with the time it took and why it ended. */
RIG_TEST(test_a_lost_sender_leaves_an_attempt_that_says_so, r)
{
    static const char *const errors[] = {"sender_lost", "timeout"};
    r->settings.webhooks_timeout_ms = 10000;
    for (size_t i = 0; i < LENGTH_OF(errors); i++) {
        r->settings.queue_lease_ms = i == 0 ? 1000 : 1000000;
        int64_t wait_ms = i == 0 ? 1000 : 10000 + DELIVERY_MARGIN_MS;
        int64_t client = rig_new_client(r, NULL);
        send_test(r, client, new_webhook(r, client, "http://hook/1", "job.created"));
        struct claim_command *c = claim_all(r);
        int64_t started_ms = r->wall_us / 1000;
        assert_int_equal(c->task_count, 1);
        rig_pass(r, wait_ms + 1);
        rig_step(r);
        struct delivery_row d = row_of(r, c->tasks[0].head);
        struct attempt a;
        assert_true(attempts_take(&d.attempts, &a));
        assert_int_equal(a.at_ms, started_ms);
        assert_int_equal(a.duration_ms, wait_ms + 1);
        assert_int_equal(a.status, 0);
        assert_true(str_is(a.error, errors[i]));
        assert_int_equal(d.state, DELIVERY_PENDING);
        assert_int_equal(answer(r, &c->tasks[0], 200), ERR_LEASE_LOST);
        rig_pass(r, 200000);
        c = claim_all(r);
        assert_int_equal(c->tasks[0].attempt, 2);
        answer(r, &c->tasks[0], 200);
    }
}

/* One that has claimed and not begun has sent nothing: no attempt, and whoever comes may have it at once. */
RIG_TEST(test_a_sender_that_never_began_has_made_no_attempt, r)
{
    int64_t client = rig_new_client(r, NULL);
    send_test(r, client, new_webhook(r, client, "http://hook/1", "job.created"));
    struct claim_command *lost = claim_unstarted(r, "deliver", 1);
    assert_int_equal(lost->task_count, 1);
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    struct task_row stream = rig_task(r, lost->tasks[0].id);
    assert_int_equal(stream.lease_ms, 0);
    assert_int_equal(stream.token, lost->tasks[0].token + 1);
    assert_null(stream.worker.ptr);
    assert_int_equal(rig_work(r, &start_command_type, &lost->tasks[0]).code, ERR_LEASE_LOST);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(c->tasks[0].attempt, 1);
    assert_int_equal(row_of(r, c->tasks[0].head).attempts.len, 0);
}

int main(void)
{
    return rig_run_all();
}
