/* What one client may have of the server, what a key may touch, and jobs that nobody claims.
 * On all stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

enum { SECOND_MS = 1000 };

static struct submit_item with_ttl(int64_t seconds)
{
    struct submit_item item = rig_item();
    item.queue_ttl_seconds = seconds;
    item.has_queue_ttl = true;
    return item;
}

/* --- the share of a client ----------------------------------------------------------------------- */

RIG_TEST(test_a_client_gets_three_quarters_and_others_the_rest, r)
{
    int64_t greedy = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    r->settings.jobs_max_active = r->settings.jobs_queue_size = 20;
    r->settings.jobs_max_active_per_client = 0;
    struct submit_item items[20];
    for (size_t i = 0; i < LENGTH_OF(items); i++)
        items[i] = rig_item();
    struct submit_command *c = rig_post_submit(r, greedy, items, LENGTH_OF(items)); /* all in one batch */
    rig_step(r);
    for (size_t i = 0; i < LENGTH_OF(items); i++)
        assert_int_equal(c->items[i].err.code, i < 15 ? ERR_OK : ERR_EXEC_CLIENT_LIMIT);
    assert_true(c->items[15].err.retry_after_s > 0);
    struct submit_item item = rig_item();
    for (int i = 0; i < 5; i++)
        assert_int_equal(rig_submit(r, other, &item).err.code, ERR_OK);
    assert_int_equal(rig_submit(r, other, &item).err.code, ERR_REQUEST_RATE_LIMITED);
    assert_int_equal(rig_submit(r, greedy, &item).err.code, ERR_EXEC_CLIENT_LIMIT);
    rig_run(r, true); /* the first of the greedy one's */
    assert_int_equal(rig_submit(r, greedy, &item).err.code, ERR_OK);
    assert_int_equal(rig_submit(r, greedy, &item).err.code, ERR_EXEC_CLIENT_LIMIT);
}

/* What it has is counted anew when the store is opened. */
RIG_TEST(test_the_share_holds_over_a_restart, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_max_active = 10;
    r->settings.jobs_max_active_per_client = 4;
    for (int i = 0; i < 4; i++)
        rig_submit_default(r, client);
    rig_restart(r, 10);
    struct submit_item item = rig_item();
    assert_int_equal(rig_submit(r, client, &item).err.code, ERR_EXEC_CLIENT_LIMIT);
    rig_run(r, true);
    assert_int_equal(rig_submit(r, client, &item).err.code, ERR_OK);
}

RIG_TEST(test_scheduled_jobs_count_as_active_and_join_the_queue_within_the_share, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_max_active = 1000;
    r->settings.jobs_queue_size = 4;
    r->settings.jobs_max_active_per_client = 500; /* so half of the queue */
    for (int i = 0; i < 2; i++)
        rig_submit_default(r, client);
    struct submit_item item = rig_item(), later = rig_submit_deferred(r, client, SECOND_MS);
    assert_int_equal(rig_submit(r, client, &item).err.code, ERR_EXEC_CLIENT_LIMIT);
    rig_pass(r, 2 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, later.id), JOB_CREATED); /* due, and tried again */
    rig_run(r, true);
    rig_pass(r, 2 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, later.id), JOB_QUEUED);
}

RIG_TEST(test_a_retry_beyond_the_share_is_refused_and_the_job_stays_failed, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_max_active = 8;
    r->settings.jobs_max_active_per_client = 2;
    struct submit_item failed = rig_submit_default(r, client);
    rig_run(r, false);
    rig_submit_default(r, client);
    rig_submit_default(r, client);
    struct job_command *c = rig_retry(r, client, &failed);
    assert_int_equal(c->base.result, ERR_EXEC_CLIENT_LIMIT);
    assert_int_equal(rig_state(r, failed.id), JOB_FAILED);
}

/* The smallest server takes one job of whoever comes first. */
RIG_TEST(test_a_share_is_never_nothing, r)
{
    r->settings.jobs_max_active_per_client = 0;
    assert_int_equal(settings_share_of_client(&r->settings, 1), 1);
    assert_int_equal(settings_share_of_client(&r->settings, 2), 1);
    assert_int_equal(settings_share_of_client(&r->settings, 100000), 75000);
    r->settings.jobs_max_active = 100000;
    r->settings.jobs_max_active_per_client = 50000;
    assert_int_equal(settings_share_of_client(&r->settings, 200), 100);
    r->settings.jobs_max_active_per_client = 200000;
    assert_int_equal(settings_share_of_client(&r->settings, 200), 200);
}

/* --- jobs that nobody claims --------------------------------------------------------------------- */

static void expect_expired(struct rig *r, int64_t id)
{
    assert_int_equal(rig_state(r, id), JOB_CANCELED);
    struct event e = rig_last_event(r, id);
    assert_int_equal(e.event, JOB_EVENT_CANCELED);
    assert_true(str_equal(e.extra, STR("{\"reason\":\"expired\"}")));
}

RIG_TEST(test_a_job_expires_when_its_time_in_the_queue_is_over_and_not_before, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = with_ttl(10), job = rig_submit(r, client, &item);
    struct submit_item for_ever = rig_submit_default(r, client);
    rig_pass(r, 10 * SECOND_MS - 1);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_pass(r, 1500); /* of a shared store the holder of the duties looks once a second */
    rig_step(r);
    expect_expired(r, job.id);
    assert_int_equal(rig_state(r, for_ever.id), JOB_QUEUED);
    rig_pass(r, (int64_t)400 * 86400 * SECOND_MS / 100);
    rig_step(r);
    assert_int_equal(rig_state(r, for_ever.id), JOB_QUEUED);
}

RIG_TEST(test_the_setting_holds_for_jobs_that_say_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_ttl_seconds = 5;
    struct submit_item item = with_ttl(3600), longer = rig_submit(r, client, &item);
    struct submit_item job = rig_submit_default(r, client);
    rig_pass(r, 7 * SECOND_MS);
    rig_step(r);
    expect_expired(r, job.id);
    assert_int_equal(rig_state(r, longer.id), JOB_QUEUED);
}

/* A scheduled job counts from being QUEUED; a claim ends the time, and a lease that ends begins it anew. */
RIG_TEST(test_the_time_begins_anew_each_time_a_job_is_queued, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_ttl_seconds = 20;
    r->settings.queue_lease_ms = 60 * SECOND_MS;
    struct submit_item scheduled = rig_submit_deferred(r, client, 60 * SECOND_MS);
    rig_pass(r, 61 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
    rig_pass(r, 15 * SECOND_MS);
    assert_int_equal(rig_claim(r, "w").id, scheduled.id);
    rig_pass(r, 45 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_ASSIGNED);
    rig_pass(r, 17 * SECOND_MS);
    rig_step(r); /* the lease is over */
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
    rig_pass(r, 15 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
    rig_pass(r, 7 * SECOND_MS);
    rig_step(r);
    expect_expired(r, scheduled.id);
}

RIG_TEST(test_a_retry_begins_the_time_anew, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = with_ttl(60), job = rig_submit(r, client, &item);
    rig_run(r, false);
    rig_pass(r, 100 * SECOND_MS);
    assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_OK);
    rig_pass(r, 55 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_pass(r, 7 * SECOND_MS);
    rig_step(r);
    expect_expired(r, job.id);
}

RIG_TEST(test_a_job_expires_after_a_restart_too, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = with_ttl(60), job = rig_submit(r, client, &item);
    rig_restart(r, 30 * SECOND_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_pass(r, 35 * SECOND_MS);
    rig_step(r);
    expect_expired(r, job.id);
}

RIG_TEST(test_a_commit_that_fails_expires_nobody, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = with_ttl(1), job = rig_submit(r, client, &item);
    rig_pass(r, 3 * SECOND_MS);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_pass(r, 3 * SECOND_MS);
    rig_step(r);
    rig_step(r);
    expect_expired(r, job.id);
}

/* --- jobs of queues that a key is not for ----------------------------------------------------------- */

RIG_TEST(test_a_key_for_other_queues_cancels_and_retries_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int retry = 0; retry < 2; retry++) {
        struct submit_item job = rig_submit_default(r, client);
        if (retry)
            rig_run(r, false);
        for (int has = 0; has < 2; has++) {
            struct job_command *c =
                rig_post_job(r, retry ? &retry_command_type : &cancel_command_type, client, &job);
            c->queues = has ? STR("default,mail") : STR("mail,news");
            rig_step(r);
            assert_int_equal(c->base.result, has ? ERR_OK : ERR_AUTH_FORBIDDEN);
            assert_int_equal(c->changed, has);
        }
    }
}

int main(void)
{
    return rig_run_all();
}
