/* Webhooks: registered once, removed, and asked for what only their owner may ask. On all stores. */
#include "unit/jobs/deliver_calls.h"

#include "jobs/webhook_fingerprint.h"

#include "base/banned.h"

static struct create_webhook_command *post_hook(struct rig *r, int64_t client, const char *url,
                                                const char *events)
{
    struct create_webhook_command *c = ARENA_NEW(r->arena, struct create_webhook_command);
    c->client = client;
    c->url = str_of(url);
    c->events = str_of(events);
    webhook_fingerprint(c->url, c->events, c->fingerprint);
    rig_post(r, &c->base, &create_webhook_command_type);
    return c;
}

static struct delete_webhook_command *post_unhook(struct rig *r, int64_t client,
                                                  const struct create_webhook_command *hook)
{
    struct delete_webhook_command *c = ARENA_NEW(r->arena, struct delete_webhook_command);
    c->client = client;
    c->id = hook->id;
    c->low = hook->low;
    rig_post(r, &c->base, &delete_webhook_command_type);
    return c;
}

RIG_TEST(test_the_same_url_and_events_again_are_a_conflict, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct create_webhook_command *first = post_hook(r, client, "http://a", "job.failed");
    struct create_webhook_command *same = post_hook(r, client, "http://a", "job.failed");
    struct create_webhook_command *more = post_hook(r, client, "http://a", "job.failed,job.queued");
    struct create_webhook_command *theirs = post_hook(r, other, "http://a", "job.failed");
    rig_step(r);
    assert_int_equal(first->base.result, ERR_OK);
    assert_int_equal(same->base.result, ERR_WEBHOOK_CONFLICT);
    assert_int_equal(more->base.result, ERR_OK);
    assert_int_equal(theirs->base.result, ERR_OK);
    same = post_hook(r, client, "http://a", "job.failed");
    rig_step(r);
    assert_int_equal(same->base.result, ERR_WEBHOOK_CONFLICT);
}

RIG_TEST(test_a_deleted_webhook_frees_its_url_also_within_one_batch, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct create_webhook_command *hook = post_hook(r, client, "http://a", "*");
    rig_step(r);
    struct delete_webhook_command *foreign = post_unhook(r, other, hook);
    rig_step(r);
    assert_int_equal(foreign->base.result, ERR_AUTH_FORBIDDEN);
    struct delete_webhook_command *gone = post_unhook(r, client, hook), *twice = post_unhook(r, client, hook);
    struct create_webhook_command *again = post_hook(r, client, "http://a", "*");
    rig_step(r);
    assert_int_equal(gone->base.result, ERR_OK);
    assert_int_equal(twice->base.result, ERR_WEBHOOK_NOT_FOUND);
    assert_int_equal(again->base.result, ERR_OK);
    assert_int_not_equal(again->id, hook->id);
}

/* With no other command in the batch that knows of the url. */
RIG_TEST(test_a_webhook_that_was_deleted_alone_frees_its_url, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct create_webhook_command *hook = post_hook(r, client, "http://a", "*");
    rig_step(r);
    struct delete_webhook_command *gone = post_unhook(r, client, hook);
    rig_step(r);
    assert_int_equal(gone->base.result, ERR_OK);
    struct create_webhook_command *again = post_hook(r, client, "http://a", "*");
    rig_step(r);
    assert_int_equal(again->base.result, ERR_OK);
}

RIG_TEST(test_a_client_has_as_many_webhooks_as_the_setting_says, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    static const char *const urls[] = {"http://a", "http://b", "http://c"};
    r->settings.webhooks_max_per_client = 2;
    for (size_t i = 0; i < LENGTH_OF(urls); i++) {
        struct create_webhook_command *c = post_hook(r, client, urls[i], "*");
        rig_step(r);
        assert_int_equal(c->base.result, i < 2 ? ERR_OK : ERR_WEBHOOK_CONFLICT);
    }
    struct create_webhook_command *theirs = post_hook(r, other, "http://a", "*");
    rig_step(r);
    assert_int_equal(theirs->base.result, ERR_OK);
}

RIG_TEST(test_an_idempotent_webhook_is_registered_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct create_webhook_command *c[2];
    for (int i = 0; i < 2; i++) {
        c[i] = post_hook(r, client, "http://a", "*");
        c[i]->once.name = STR("once");
        rig_step(r);
        assert_int_equal(c[i]->base.result, ERR_OK);
    }
    assert_true(c[1]->replayed);
    assert_int_equal(c[1]->id, c[0]->id);
    assert_int_equal(c[1]->low, c[0]->low);
    assert_int_equal(c[1]->created_ms, c[0]->created_ms);
    assert_int_equal(c[0]->created_ms, r->wall_us / 1000);
}

static struct webhook_command *post_ask(struct rig *r, int64_t client, const struct webhook_row *hook,
                                        enum webhook_action action)
{
    struct webhook_command *c = ARENA_NEW(r->arena, struct webhook_command);
    c->action = action;
    c->client = client;
    c->id = hook->id;
    c->low = (uint64_t)hook->low;
    rig_post(r, &c->base, &webhook_command_type);
    return c;
}

/* Whatever is asked: of an id that is half right there is none, and another client's is not for us. */
RIG_TEST(test_only_its_owner_asks_anything_of_a_webhook, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct webhook_row hook = webhook_of(r, new_webhook(r, client, "http://hook/1", "job.created"));
    struct webhook_row half = hook;
    half.low ^= 1;
    for (int action = WEBHOOK_TEST; action <= WEBHOOK_REDELIVER; action++) {
        struct webhook_command *foreign = post_ask(r, other, &hook, (enum webhook_action)action);
        struct webhook_command *unknown = post_ask(r, client, &half, (enum webhook_action)action);
        rig_step(r);
        assert_int_equal(foreign->base.result, ERR_AUTH_FORBIDDEN);
        assert_int_equal(unknown->base.result, ERR_WEBHOOK_NOT_FOUND);
    }
    assert_int_equal(claim_all(r)->task_count, 0);
    struct delete_webhook_command gone = {.client = client, .id = hook.id, .low = (uint64_t)half.low};
    rig_post(r, &gone.base, &delete_webhook_command_type);
    rig_step(r);
    assert_int_equal(gone.base.result, ERR_WEBHOOK_NOT_FOUND);
}

/* Both secrets sign for a while, so that a receiver can change at its leisure. */
RIG_TEST(test_a_rotated_webhook_secret_keeps_the_former_one, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct webhook_row hook = webhook_of(r, new_webhook(r, client, "http://hook/1", "job.created"));
    struct webhook_command *c = post_ask(r, client, &hook, WEBHOOK_ROTATE);
    memset(c->secret, 9, sizeof c->secret);
    rig_pass(r, 5);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    struct webhook_row now = webhook_of(r, hook.id);
    assert_true(str_equal(now.former, hook.secret));
    assert_int_equal(now.secret.len, sizeof c->secret);
    assert_memory_equal(now.secret.ptr, c->secret, sizeof c->secret);
    assert_int_equal(now.rotated_ms, r->wall_us / 1000);
}

/* One that is disabled sends nothing before it is enabled, and then begins anew. */
RIG_TEST(test_a_disabled_webhook_is_tested_after_it_was_enabled, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    send_test(r, client, hook);
    struct claim_command *c = claim_all(r);
    int64_t letter = c->tasks[0].head;
    answer(r, &c->tasks[0], 410);
    assert_int_equal(webhook_of(r, hook).enabled, 0);
    assert_int_equal(try_ask(r, client, hook, WEBHOOK_TEST, 0), ERR_WEBHOOK_CONFLICT);
    assert_int_equal(try_ask(r, client, hook, WEBHOOK_REDELIVER, letter), ERR_WEBHOOK_CONFLICT);
    assert_int_equal(try_ask(r, client, hook, WEBHOOK_ROTATE, 0), ERR_OK);
    ask(r, client, hook, WEBHOOK_ENABLE, 0);
    assert_int_equal(webhook_of(r, hook).enabled, 1);
    assert_int_equal(webhook_of(r, hook).failing_since_ms, 0);
    send_test(r, client, hook);
    assert_int_equal(claim_all(r)->task_count, 1);
}

/* Nor does one that was disabled; those that are left hear of it once each. */
RIG_TEST(test_a_deleted_webhook_hears_of_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct create_webhook_command *stays = post_hook(r, client, "http://a", "*"),
                                  *goes = post_hook(r, client, "http://b", "*");
    rig_step(r);
    struct delete_webhook_command *c = post_unhook(r, client, goes);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    rig_submit_default(r, client);
    struct claim_command *sent = claim_all(r);
    assert_int_equal(sent->task_count, 1);
    assert_int_equal(row_of(r, sent->tasks[0].head).webhook, stays->id);
    answer(r, &sent->tasks[0], 410);
    rig_pass(r, 100000);
    assert_int_equal(claim_all(r)->task_count, 1); /* what stood behind it; and nobody is told of its end */
    rig_submit_default(r, client);
    assert_int_equal(claim_all(r)->task_count, 0);
}

/* Enabling one that works but has failed of late forgives it; one that has not, has nothing to be written. */
RIG_TEST(test_enabling_forgives_what_failed_so_far, r)
{
    int64_t client = rig_new_client(r, NULL), hook = new_webhook(r, client, "http://hook/1", "job.created");
    size_t commits = r->commits;
    ask(r, client, hook, WEBHOOK_ENABLE, 0);
    assert_int_equal(r->commits, commits);
    send_test(r, client, hook);
    answer(r, &claim_all(r)->tasks[0], 500);
    assert_int_not_equal(webhook_of(r, hook).failing_since_ms, 0);
    ask(r, client, hook, WEBHOOK_ENABLE, 0);
    assert_int_equal(webhook_of(r, hook).failing_since_ms, 0);
    assert_int_equal(webhook_of(r, hook).enabled, 1);
}

/* A delivery is asked for by its whole id. */
RIG_TEST(test_a_delivery_of_half_an_id_is_not_sent_again, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct webhook_row hook = webhook_of(r, new_webhook(r, client, "http://hook/1", "job.created"));
    send_test(r, client, hook.id);
    struct claim_command *c = claim_all(r);
    struct delivery_row letter = row_of(r, c->tasks[0].head);
    answer(r, &c->tasks[0], 200);
    for (int half = 1; half >= 0; half--) {
        struct webhook_command *again = post_ask(r, client, &hook, WEBHOOK_REDELIVER);
        again->delivery_id = letter.id;
        again->delivery_low = (uint64_t)letter.low ^ (uint64_t)half;
        rig_step(r);
        assert_int_equal(again->base.result, half ? ERR_WEBHOOK_NOT_FOUND : ERR_OK);
        assert_int_equal(claim_letters(r)->task_count, !half);
    }
}

/* Rows of an older version are found by them: a stream that is under way, a url that is registered. */
RIG_TEST(test_numbers_that_are_stored_stay_what_they_are, r)
{
    static const uint8_t guard[16] = {0x8c, 0xeb, 0x5e, 0xd7, 0xf3, 0x2e, 0x39, 0x83,
                                      0x64, 0x19, 0xe2, 0xf4, 0xee, 0xf6, 0xf8, 0x4a};
    uint8_t fingerprint[16];
    webhook_fingerprint(STR("http://a"), STR("*"), fingerprint);
    assert_memory_equal(fingerprint, guard, sizeof guard);
    assert_int_equal(deliver_stream_id(7222264627200001, 7222264627200002), 0xc7bee1d17869455);
    assert_int_equal(deliver_replay_id(7222264627200003), 0xfacd771024c36ce);
}

int main(void)
{
    return rig_run_all();
}
