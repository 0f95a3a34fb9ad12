/* Streams of deliveries: what is sent when, to whom, how often; and what a failed commit leaves behind.
 * On both stores, with the rig's clock. */
#include "unit/jobs/deliver_calls.h"

#include <stdio.h>

#include "jobs/deliver.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/attempts.h"
#include "runtime/partition.h"

#include "base/banned.h"

static struct submit_item submit_with_callback(struct rig *r, int64_t client, const char *url)
{
    struct submit_item item = rig_item();
    item.callback = str_of(url);
    return rig_submit(r, client, &item);
}

/* Those in memory are counted with every batch; of a shared store now and then. */
static void assert_still_to_make(struct rig *r, int64_t deliveries)
{
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_true(r->store->shared || s.deliveries == deliveries);
}

RIG_TEST(test_events_of_a_job_are_sent_one_after_the_other, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_with_callback(r, client, "http://a/x");
    assert_still_to_make(r, 2);
    struct claim_command *first = claim_all(r);
    assert_int_equal(first->task_count, 1);
    assert_int_equal(row_of(r, first->tasks[0].head).event, 1);
    assert_int_equal(claim_all(r)->task_count, 0); /* the second waits for the first */
    assert_int_equal(answer(r, &first->tasks[0], 200), ERR_OK);
    assert_int_equal(row_of(r, first->tasks[0].head).state, DELIVERY_DELIVERED);
    assert_still_to_make(r, 1);
    struct claim_command *second = claim_all(r);
    assert_int_equal(second->task_count, 1);
    assert_int_equal(row_of(r, second->tasks[0].head).event, 2);
    assert_int_equal(row_of(r, second->tasks[0].head).job, job.id);
    assert_int_equal(answer(r, &second->tasks[0], 204), ERR_OK);
    assert_int_equal(rig_stream_count(r, TASK_WAITING), 1); /* idle: the job lives on */
    rig_run(r, true);
    for (int event = 3; event <= 5; event++) {
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        assert_int_equal(row_of(r, c->tasks[0].head).event, event);
        answer(r, &c->tasks[0], 200);
    }
    assert_int_equal(rig_live_count(r), 0); /* job and stream are gone */
    assert_int_equal(rig_stream_count(r, TASK_WAITING), 0);
}

RIG_TEST(test_a_failure_backs_off_and_the_last_one_gives_up, r)
{
    r->settings.webhooks_max_attempts = 3;
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_cap_ms = 60000;
    int64_t client = rig_new_client(r, NULL), head = 0;
    submit_with_callback(r, client, "http://a/x");
    for (int attempt = 1; attempt <= 3; attempt++) {
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        assert_true(!head || head == c->tasks[0].head); /* the same delivery */
        head = c->tasks[0].head;
        assert_int_equal(c->tasks[0].attempt, attempt);
        answer(r, &c->tasks[0], attempt == 2 ? 0 : 500);
        if (attempt < 3) {
            assert_int_equal(row_of(r, head).state, DELIVERY_PENDING);
            rig_pass(r, delivery_backoff_ms(&r->settings, head, attempt) - 1);
            assert_int_equal(claim_all(r)->task_count, 0); /* never early */
            rig_pass(r, 2);
        }
    }
    struct delivery_row done = row_of(r, head);
    struct attempt a;
    assert_int_equal(done.state, DELIVERY_EXHAUSTED);
    int64_t statuses[] = {500, 0, 500};
    for (int i = 0; i < 3; i++) {
        assert_true(attempts_take(&done.attempts, &a));
        assert_int_equal(a.status, statuses[i]);
        assert_int_equal(a.duration_ms, 7);
    }
    assert_false(attempts_take(&done.attempts, &a));
    assert_int_not_equal(claim_all(r)->tasks[0].head, head); /* the next event's turn */
}

/* Half of all pauses lie in the upper half of their bound, so 64 of one attempt come close to it. */
RIG_TEST(test_a_pause_is_bounded_and_uses_its_bound, r)
{
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_cap_ms = 60000;
    const struct {
        int64_t attempt, bound_ms;
    } cases[] = {{1, 1000}, {2, 2000}, {6, 32000}, {7, 60000}, {40, 60000}, {1000, 60000}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        int64_t longest = 0;
        for (int64_t id = 1; id <= 64; id++) {
            int64_t ms = delivery_backoff_ms(&r->settings, id, cases[i].attempt);
            assert_true(ms >= 0 && ms < cases[i].bound_ms);
            longest = ms > longest ? ms : longest;
        }
        assert_true(longest > cases[i].bound_ms * 3 / 4);
    }
}

RIG_TEST(test_a_receiver_is_waited_for_as_it_asks_but_no_longer_than_an_hour, r)
{
    enum { HOUR_MS = 3600000 };
    const int64_t asked_ms[] = {HOUR_MS / 2, HOUR_MS, HOUR_MS + 1000, 48 * (int64_t)HOUR_MS};
    r->settings.webhooks_max_attempts = 100;
    submit_with_callback(r, rig_new_client(r, NULL), "http://a/x");
    for (size_t i = 0; i < LENGTH_OF(asked_ms); i++) {
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        answer_later(r, &c->tasks[0], 503, asked_ms[i]);
        rig_pass(r, (asked_ms[i] < HOUR_MS ? asked_ms[i] : HOUR_MS) - 1000);
        assert_int_equal(claim_all(r)->task_count, 0);
        rig_pass(r, 1001);
    }
}

RIG_TEST(test_a_stale_sender_changes_nothing, r)
{
    submit_with_callback(r, rig_new_client(r, NULL), "http://a/x");
    struct claim_command *c = claim_all(r);
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r); /* the sender is lost: a failed attempt */
    assert_int_equal(answer(r, &c->tasks[0], 200), ERR_LEASE_LOST);
    assert_int_equal(row_of(r, c->tasks[0].head).state, DELIVERY_PENDING);
    rig_pass(r, 120000);
    struct claim_command *again = claim_all(r);
    assert_int_equal(again->task_count, 1);
    assert_int_equal(again->tasks[0].head, c->tasks[0].head);
    assert_int_equal(again->tasks[0].attempt, 2);
}

/* Answers all of them; gives how many can be sent then. */
static struct claim_command *answer_all(struct rig *r, const struct claim_command *c, int64_t status)
{
    for (uint32_t i = 0; i < c->task_count; i++)
        answer(r, &c->tasks[i], status);
    return claim_all(r);
}

RIG_TEST(test_a_receiver_has_so_many_slots_and_others_their_own, r)
{
    live_receiver_slots(r->store->live, 3);
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 20; i++)
        submit_with_callback(r, client, "http://slow:80/x");
    submit_with_callback(r, client, "http://other:80/x");
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 2); /* one of each: neither has answered yet */
    assert_int_equal(claim_all(r)->task_count, 0);
    answer(r, &c->tasks[1], 200);
    assert_int_equal(claim_all(r)->task_count, 1); /* the other's next: the slow one still has one slot */
    c->task_count = 1;
    c = answer_all(r, c, 200);
    assert_int_equal(c->task_count, 2);
    c = answer_all(r, c, 200);
    assert_int_equal(c->task_count, 3);
    c = answer_all(r, c, 200);
    assert_int_equal(c->task_count, 3);
    answer(r, &c->tasks[0], 200);
    assert_int_equal(claim_all(r)->task_count, 1); /* a slot is free again */
}

/* Five failures in a row close it; then one try at a time, and a success opens it again. */
RIG_TEST(test_the_breaker_closes_probes_and_opens, r)
{
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_max_attempts = 100;
    live_receiver_slots(r->store->live, 5);
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 20; i++)
        submit_with_callback(r, client, "http://dead/x");
    struct claim_command *c = claim_all(r);
    for (int i = 0; i < 3; i++)
        c = answer_all(r, c, 200);
    assert_int_equal(c->task_count, 5);
    assert_int_equal(answer_all(r, c, 500)->task_count, 0); /* closed, though fifteen wait */
    rig_pass(r, 1001);
    struct claim_command *probe = claim_all(r);
    assert_int_equal(probe->task_count, 1);
    answer(r, &probe->tasks[0], 500);
    assert_int_equal(claim_all(r)->task_count, 0);
    rig_pass(r, 1001);
    assert_int_equal(claim_all(r)->task_count, 0); /* the pause has doubled */
    rig_pass(r, 1001);
    probe = claim_all(r);
    assert_int_equal(probe->task_count, 1);
    c = answer_all(r, probe, 200);
    assert_int_equal(c->task_count, 2); /* trusted again by and by */
    assert_int_equal(answer_all(r, c, 200)->task_count, 5);
}

/* However long it has failed: many streams wait for it, and each has its tries. */
RIG_TEST(test_a_closed_receiver_is_tried_every_ten_seconds_at_least, r)
{
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_cap_ms = 3600000;
    r->settings.webhooks_max_attempts = 1; /* so that no delivery has a pause of its own */
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 30; i++)
        submit_with_callback(r, client, "http://dead/x");
    for (int i = 0; i < 20; i++) {
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        answer(r, &c->tasks[0], 500);
        if (i >= 10) {
            rig_pass(r, 9900);
            assert_int_equal(claim_all(r)->task_count, 0);
        }
        rig_pass(r, i >= 10 ? 101 : 10001);
    }
}

/* All that was there was given up while the receiver was closed; what comes later is tried all the same. */
RIG_TEST(test_a_closed_receiver_is_tried_by_what_comes_later, r)
{
    r->settings.webhooks_max_attempts = 3;
    r->settings.webhooks_base_ms = 1000;
    int64_t client = rig_new_client(r, NULL);
    submit_with_callback(r, client, "http://dead/x");
    for (int i = 0; i < 6; i++) { /* both events of the waiting job: its stream is idle then */
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1);
        answer(r, &c->tasks[0], 500);
        rig_pass(r, i < 5 ? 60000 : 0);
    }
    assert_int_equal(rig_stream_count(r, TASK_WAITING), 1);
    submit_with_callback(r, client, "http://dead/x");
    assert_int_equal(claim_all(r)->task_count, 0); /* not before the pause is over */
    rig_pass(r, 60000);
    struct claim_command *probe = claim_all(r);
    assert_int_equal(probe->task_count, 1);
    answer(r, &probe->tasks[0], 200);
    assert_int_equal(claim_all(r)->task_count, 1);
}

/* Streams that have to wait for a slot stand in nobody's way, however many there are before the others. */
RIG_TEST(test_a_receiver_with_many_waiting_does_not_hold_up_others, r)
{
    enum { WAITING = 40, PORTION = 4 };
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < WAITING; i++)
        submit_with_callback(r, client, "http://slow:80/x");
    rig_pass(r, 1000);
    submit_with_callback(r, client, "http://other:80/x");
    int64_t last = 0;
    for (int turns = 0; last < 2; turns++) {
        assert_true(turns <= WAITING / PORTION + 2);
        last += claim_some(r, PORTION)->task_count;
    }
    assert_int_equal(claim_all(r)->task_count,
                     0); /* one of each has been had, and none of them has answered */
}

/* The slots of a receiver, and what is known of it, are the same whichever node is asked. */
RIG_TEST(test_slots_and_breaker_hold_over_all_nodes, r)
{
    if (!r->shared)
        return;
    r->settings.webhooks_slots = 3;
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_max_attempts = 100;
    rig_restart(r, 0);
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 20; i++)
        submit_with_callback(r, client, "http://slow:80/x");
    struct claim_command *first = claim_all(r);
    assert_int_equal(first->task_count, 1);
    rig_switch_node(r);
    assert_int_equal(claim_all(r)->task_count, 0); /* the other node has the only slot */
    rig_switch_node(r);
    answer(r, &first->tasks[0], 200);
    rig_switch_node(r);
    struct claim_command *second = claim_all(r);
    assert_int_equal(second->task_count, 2); /* what the answer gave is known here */
    rig_switch_node(r);
    assert_int_equal(claim_all(r)->task_count, 0);
    rig_switch_node(r);
    answer(r, &second->tasks[0], 200);
    rig_switch_node(r);
    struct claim_command *third = claim_all(r);
    assert_int_equal(third->task_count, 2); /* three slots, one of them held by the other node */
    answer(r, &third->tasks[0], 500);
    answer(r, &third->tasks[1], 500);
    rig_switch_node(r);
    answer(r, &second->tasks[1], 500);
    for (int failures = 3; failures < 5; failures++) {
        rig_pass(r, 60000);
        rig_switch_node(r);
        struct claim_command *c = claim_all(r);
        assert_int_equal(c->task_count, 1); /* one at a time, on either node */
        rig_switch_node(r);
        assert_int_equal(claim_all(r)->task_count, 0);
        answer(r, &c->tasks[0], 500);
    }
    assert_int_equal(claim_all(r)->task_count, 0); /* closed for both */
    rig_switch_node(r);
    assert_int_equal(claim_all(r)->task_count, 0);
    rig_pass(r, 60000);
    assert_int_equal(claim_all(r)->task_count, 1);
    rig_switch_node(r);
    assert_int_equal(claim_all(r)->task_count, 0);
}

/* The queue of a stream is the slot of its key, receiver and job. [TOP-081] [TOP-089] */
RIG_TEST(test_a_stream_is_in_the_slot_of_its_receiver_and_job, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    char instance[24], room[24];
    snprintf(instance, sizeof instance, "%lld", (long long)hook);
    for (int i = 0; i < 8; i++) {
        struct submit_item item = rig_item(), job = rig_submit(r, client, &item);
        snprintf(room, sizeof room, "%lld", (long long)job.id);
        uint32_t slot = partition_slot(partition_hash(str_of(instance), str_of(room)));
        assert_int_equal(claim_slot(r, "deliver", (slot + 1) % DELIVERY_SLOTS)->task_count, 0);
        struct claim_command *one = claim_slot(r, "deliver", slot);
        assert_int_equal(one->task_count, 1);
        assert_int_equal(answer(r, &one->tasks[0], 200), ERR_OK);
    }
}

RIG_TEST(test_webhooks_hear_of_their_events_only, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    int64_t hook = new_webhook(r, client, "http://hook/1", "job.created,job.succeeded");
    rig_submit_default(r, client);
    rig_submit_default(r, other);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    struct delivery_row d = row_of(r, c->tasks[0].head);
    assert_int_equal(d.webhook, hook);
    assert_int_equal(d.event, 1);
    answer(r, &c->tasks[0], 200);
    assert_int_equal(claim_all(r)->task_count, 0);
    assert_int_equal(rig_stream_count(r, TASK_WAITING), 0); /* no idle stream is kept */
    rig_run(r, true);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(row_of(r, c->tasks[0].head).event, 5);
}

RIG_TEST(test_gone_and_long_failure_disable_a_webhook, r)
{
    r->settings.webhooks_disable_after_seconds = 60;
    r->settings.webhooks_max_attempts = 1;
    int64_t client = rig_new_client(r, NULL);
    new_webhook(r, client, "http://hook/1", "job.created");
    rig_submit_default(r, client);
    answer(r, &claim_all(r)->tasks[0], 500);
    rig_submit_default(r, client);
    answer(r, &claim_all(r)->tasks[0], 500);
    assert_true(hooks_of(&r->store->hooks, client)->hooks[0].enabled);
    rig_pass(r, 60001);
    rig_submit_default(r, client);
    answer(r, &claim_all(r)->tasks[0], 500);
    assert_false(hooks_of(&r->store->hooks, client)->hooks[0].enabled);
    rig_submit_default(r, client);
    assert_int_equal(claim_all(r)->task_count, 0); /* nothing is recorded for it */
}

/* The time that counts is that without any answer. */
RIG_TEST(test_a_webhook_that_answers_begins_anew, r)
{
    r->settings.webhooks_disable_after_seconds = 60;
    r->settings.webhooks_max_attempts = 1;
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    const int64_t statuses[] = {500, 200, 500, 500};
    for (size_t i = 0; i < LENGTH_OF(statuses); i++) {
        rig_submit_default(r, client);
        answer(r, &claim_all(r)->tasks[0], statuses[i]);
        assert_int_equal(webhook_of(r, hook).failing_since_ms != 0, statuses[i] == 500);
        assert_int_equal(webhook_of(r, hook).enabled, 1);
        rig_pass(r, i < 2 ? 60001 : 59000);
    }
}

RIG_TEST(test_other_webhooks_that_want_to_know_hear_of_a_disabled_one, r)
{
    int64_t client = rig_new_client(r, NULL);
    int64_t bad = new_webhook(r, client, "bad_____", "job.created,webhook.disabled");
    int64_t by_name = new_webhook(r, client, "by_name_", "webhook.disabled");
    int64_t by_star = new_webhook(r, client, "by_star_", "*");
    new_webhook(r, client, "jobs____", "job.*");
    new_webhook(r, rig_new_client(r, NULL), "foreign_", "*");
    rig_submit_default(r, client);
    struct claim_command *c = claim_all(r);
    for (uint32_t i = 0; i < c->task_count; i++)
        answer(r, &c->tasks[i], row_of(r, c->tasks[i].head).webhook == bad ? 410 : 200);
    struct webhook_row row = webhook_of(r, bad);
    assert_false(row.enabled);
    assert_int_equal(row.disabled_ms, r->wall_us / 1000);
    assert_int_equal(row.disabled_why, WEBHOOK_GONE);
    size_t told = 0;
    c = claim_all(r);
    for (uint32_t i = 0; i < c->task_count; i++) {
        struct delivery_row d = row_of(r, c->tasks[i].head);
        if (d.job)
            continue; /* job.queued */
        told++;
        assert_true(d.webhook == by_name || d.webhook == by_star);
        assert_int_equal(d.event, bad);
    }
    assert_int_equal(told, 2);
}

static void expect_told(const struct rig *r, const struct claimed_task *t, size_t count, int64_t status,
                        const char *error)
{
    const struct attempt_notice *n = &r->last_attempt;
    assert_int_equal(r->attempts, count);
    assert_int_equal(n->stream_low, t->low);
    assert_int_equal(n->token, t->token);
    assert_int_equal(n->attempt, t->attempt);
    assert_int_equal(n->status, status);
    assert_true(error ? str_is(n->error, error) : !n->error.ptr);
}

/* By the lease that made it, also when its sender is lost; a test of a webhook is nobody's business. */
RIG_TEST(test_attempts_are_told_to_whoever_asks, r)
{
    r->tells_attempts = true;
    r->settings.queue_lease_ms = 1000; /* over before the sender counts as stuck */
    r->settings.webhooks_max_attempts = 3;
    rig_restart(r, 0);
    int64_t client = rig_new_client(r, NULL);
    submit_with_callback(r, client, "http://a/x");
    struct claim_command *c = claim_all(r);
    assert_int_equal(r->attempts, 0);
    answer(r, &c->tasks[0], 500);
    expect_told(r, &c->tasks[0], 1, 500, "http_status");
    rig_pass(r, 120000);
    c = claim_all(r);
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    expect_told(r, &c->tasks[0], 2, 0, "sender_lost");
    rig_pass(r, 120000);
    c = claim_all(r);
    assert_int_equal(c->tasks[0].attempt, 3);
    answer(r, &c->tasks[0], 204);
    expect_told(r, &c->tasks[0], 3, 204, NULL);
    assert_int_equal(answer(r, &c->tasks[0], 204), ERR_LEASE_LOST); /* and never twice */
    assert_int_equal(r->attempts, 3);
    assert_int_not_equal(r->fetches[TABLE_NUMBER_job_row], 0);
}

RIG_TEST(test_attempts_cost_nothing_when_nobody_asks, r)
{
    submit_with_callback(r, rig_new_client(r, NULL), "http://a/x");
    struct claim_command *c = claim_all(r);
    memset(r->fetches, 0, sizeof r->fetches);
    answer(r, &c->tasks[0], 200);
    assert_int_equal(r->fetches[TABLE_NUMBER_delivery_row], 1); /* the count counts */
    assert_int_equal(r->fetches[TABLE_NUMBER_job_row], 0);
    assert_int_equal(r->attempts, 0);
}

/* Its row says that it is done: a damaged one, or one that was settled in another way. */
RIG_TEST(test_a_delivery_that_waits_no_more_holds_up_none_behind_it, r)
{
    struct err err;
    submit_with_callback(r, rig_new_client(r, NULL), "http://a/x");
    struct claim_command *c = claim_all(r);
    int64_t first = c->tasks[0].head;
    struct delivery_row done = row_of(r, first);
    done.state = DELIVERY_DELIVERED;
    struct row_change one = {&table_delivery_row, ROW_UPDATE, &done};
    struct change_set changes = {.rows = &one, .row_count = 1, .first_chunk = r->store->next_chunk};
    assert_int_equal(r->real->commit(r->store, &changes, &err), ERR_OK);
    assert_int_equal(answer(r, &c->tasks[0], 500), ERR_OK);
    assert_int_equal(row_of(r, first).state, DELIVERY_DELIVERED);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_not_equal(c->tasks[0].head, first);
    answer(r, &c->tasks[0], 200);
}

RIG_TEST(test_a_failed_commit_leaves_streams_as_they_were, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    struct submit_item item = rig_item();
    item.callback = STR("http://a/x");
    struct submit_command *refused = rig_post_submit(r, client, &item, 1);
    rig_step(r);
    assert_int_equal(refused->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(live_size(r->store->live), 0);
    rig_pass(r, 1000);
    submit_with_callback(r, client, "http://a/x");
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    r->failures = 1;
    answer(r, &c->tasks[0], 200); /* its answer is lost with the commit */
    assert_int_equal(row_of(r, c->tasks[0].head).state, DELIVERY_PENDING);
    rig_pass(r, 1000);
    assert_int_equal(answer(r, &c->tasks[0], 200), ERR_OK); /* said again, it counts */
    assert_int_equal(row_of(r, c->tasks[0].head).state, DELIVERY_DELIVERED);
}

RIG_TEST(test_a_restart_goes_on_where_it_was, r)
{
    if (!r->on_disk)
        return;
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_with_callback(r, client, "http://a/x");
    new_webhook(r, client, "http://hook/1", "job.canceled");
    struct claim_command *c = claim_all(r);
    answer(r, &c->tasks[0], 200);
    rig_restart(r, 1000);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(row_of(r, c->tasks[0].head).event, 2);
    answer(r, &c->tasks[0], 200);
    rig_restart(r, 1000);
    rig_cancel(r, client, &job); /* the callback's idle stream and the webhook are remembered */
    assert_int_equal(claim_all(r)->task_count, 2);
}

/* Of a job that is over its stream goes on; one with a webhook's stream alone has no callback. */
RIG_TEST(test_after_a_restart_events_go_to_callbacks_that_were_named, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct submit_item over = submit_with_callback(r, client, "http://a/x");
    rig_cancel(r, client, &over);
    new_webhook(r, other, "http://hook/1", "job.created");
    struct submit_item job = rig_submit_default(r, other);
    size_t before = rig_rows(r, &table_delivery_row);
    rig_restart(r, 1000);
    rig_cancel(r, other, &job);
    assert_int_equal(rig_rows(r, &table_delivery_row), before);
    assert_int_equal(claim_all(r)->task_count, 2);
}

static void pass_minutes(struct rig *r)
{
    for (int i = 0; i < 5; i++) {
        rig_step(r);
        rig_pass(r, 61000);
    }
}

/* The one that waits stays with its events; what comes behind it in the log goes. */
RIG_TEST(test_purge_takes_deliveries_with_their_job_and_waits_for_pending_ones, r)
{
    int64_t client = rig_new_client(r, NULL);
    new_webhook(r, client, "http://hook/1", "job.succeeded");
    struct submit_item job = submit_with_callback(r, client, "http://a/x");
    rig_run(r, true);
    struct submit_item other = rig_submit_default(r, rig_new_client(r, NULL));
    rig_run(r, true);
    rig_pass(r, (r->settings.jobs_retention_seconds + 60) * 1000);
    pass_minutes(r);
    struct job_view view;
    assert_true(rig_find(r, job.id, &view)); /* six deliveries wait */
    assert_false(rig_find(r, other.id, &view));
    assert_int_equal(r->store->first_chunk, r->store->next_chunk); /* the log is empty */
    rig_expect_sound(r);
    if (r->on_disk)
        rig_restart(r, 0);
    size_t sent = 0;
    for (struct claim_command *c = claim_all(r); c->task_count; c = claim_all(r))
        for (uint32_t i = 0; i < c->task_count; i++, sent++)
            answer(r, &c->tasks[i], 200);
    assert_int_equal(sent, 6);
    rig_pass(r, 3600000); /* a start long after the last event known deletes nothing for an hour */
    pass_minutes(r);
    assert_false(rig_find(r, job.id, &view));
    rig_expect_sound(r); /* no row and no listing entry of a delivery is left behind */
}

/* One look a second for that long: nothing is to be sent. */
static void expect_silence(struct rig *r, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        rig_pass(r, 1000);
        assert_int_equal(claim_all(r)->task_count, 0);
    }
}

/* [TOP-080] A retry whose time has come, while the service sheds load: it waits, and goes on afterwards. What
 * is new is sent meanwhile; and at a level below, retries are. */
RIG_TEST(test_retries_wait_while_load_is_shed_and_new_ones_do_not, r)
{
    r->settings.webhooks_base_ms = 1000;
    r->settings.webhooks_cap_ms = 1000;
    int64_t client = rig_new_client(r, NULL);
    int64_t hook = new_webhook(r, client, "http://hook/1", "job.created");
    rig_submit_default(r, client);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    int64_t head = c->tasks[0].head;
    answer(r, &c->tasks[0], 500);
    kernel_set_pressure(r->kernel, true, false); /* degraded: not yet */
    rig_pass(r, 1001);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    answer(r, &c->tasks[0], 500);
    kernel_set_pressure(r->kernel, true, true);
    expect_silence(r, 30);
    send_test(r, client, hook);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_not_equal(c->tasks[0].head, head);
    answer(r, &c->tasks[0], 200);
    kernel_set_pressure(r->kernel, false, false);
    rig_pass(r, 1001);
    c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(c->tasks[0].head, head);
    assert_int_equal(c->tasks[0].attempt, 3); /* waiting was none */
}

/* [TOP-080] */
RIG_TEST(test_a_redelivery_waits_while_load_is_shed, r)
{
    int64_t client = rig_new_client(r, NULL);
    int64_t hook = new_webhook(r, client, "http://hook/1", "job.created");
    send_test(r, client, hook);
    struct claim_command *c = claim_all(r);
    assert_int_equal(c->task_count, 1);
    int64_t head = c->tasks[0].head;
    answer(r, &c->tasks[0], 200);
    for (int shed = 0; shed < 2; shed++) {
        kernel_set_pressure(r->kernel, true, shed);
        ask(r, client, hook, WEBHOOK_REDELIVER, head);
        assert_int_equal(row_of(r, head).state, DELIVERY_PENDING);
        if (shed) {
            assert_int_equal(claim_letters(r)->task_count, 0);
            expect_silence(r, 30);
            assert_int_equal(claim_letters(r)->task_count, 0);
            kernel_set_pressure(r->kernel, true, false);
            rig_pass(r, 1001);
        }
        c = claim_letters(r);
        assert_int_equal(c->task_count, 1);
        assert_int_equal(c->tasks[0].head, head);
        answer(r, &c->tasks[0], 200);
        assert_int_equal(row_of(r, head).state, DELIVERY_DELIVERED);
    }
}

/* Twice in a retention time at least is looked after them. */
RIG_TEST(test_deliveries_of_no_job_leave_by_their_age_unless_they_wait, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    r->settings.jobs_retention_seconds = 1000;
    send_test(r, client, hook);
    answer(r, &claim_all(r)->tasks[0], 200);
    send_test(r, client, hook); /* nobody sends this one */
    rig_pass(r, 990 * 1000);
    rig_step(r);
    assert_int_equal(rig_rows(r, &table_delivery_row), 2);
    rig_pass(r, 600 * 1000);
    rig_step(r);
    assert_int_equal(rig_rows(r, &table_delivery_row), 1);
    answer(r, &claim_all(r)->tasks[0], 200);
    rig_pass(r, 600 * 1000);
    rig_step(r);
    assert_int_equal(rig_rows(r, &table_delivery_row), 0);
    rig_expect_sound(r);
}

int main(void)
{
    return rig_run_all();
}
