/* retry: auto. A retryable failure and the next attempt are one write. On all stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

static struct submit_item submit_auto(struct rig *r, int64_t client, int64_t max_retries)
{
    struct submit_item item = rig_item();
    item.retry = STR("auto");
    item.has_max_retries = true;
    item.max_retries = max_retries;
    item = rig_submit(r, client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    return item;
}

static struct claimed_task run_next(struct rig *r)
{
    struct claimed_task t = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
    return t;
}

/* The job waits for its second attempt, and nothing says that it ended. */
static void expect_backoff(struct rig *r, const struct submit_item *job, int64_t client,
                           enum job_event failure)
{
    struct event e[RIG_EVENTS_MAX];
    struct job_view v = rig_view(r, job->id);
    size_t n = rig_events(r, job->id, e);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_true(v.is_live);
    assert_int_equal(v.attempt, 2);
    assert_int_equal(v.started_ms, 0);
    assert_int_equal(v.finished_ms, 0);
    assert_non_null(v.error.ptr); /* of the attempt before */
    assert_null(v.task.worker.ptr);
    assert_int_equal(v.task.due_ms, r->wall_us / 1000 + job_backoff_ms(&r->settings, job->id, 2));
    assert_int_equal(n, 6);
    assert_int_equal(e[4].event, failure);
    assert_int_equal(e[4].next, JOB_FAILED);
    assert_int_equal(e[4].attempt, 1);
    assert_int_equal(e[5].event, JOB_EVENT_QUEUED);
    assert_int_equal(e[5].prev, JOB_FAILED);
    assert_int_equal(e[5].attempt, 2);
    struct client_counts counts = rig_counts(r, client);
    assert_int_equal(counts.by_state[JOB_QUEUED], 1);
    assert_int_equal(counts.by_state[JOB_FAILED], 0);
    assert_int_equal(rig_rows(r, &table_end_row), 0);
    assert_int_equal(rig_rows(r, &table_archive_row), 1);
}

RIG_TEST(test_a_retryable_failure_is_queued_again_in_the_same_write, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_auto(r, client, 3);
    struct claimed_task t = run_next(r);
    rig_pass(r, 10);
    size_t commits = r->commits;
    rig_fail(r, &t);
    assert_int_equal(r->commits, commits + 1);
    expect_backoff(r, &job, client, JOB_EVENT_FAILED);
    int64_t delay = job_backoff_ms(&r->settings, job.id, 2);
    rig_pass(r, delay - 1);
    assert_int_equal(rig_claim_count(r, "w", 1), 0);
    assert_int_equal(rig_work(r, &finish_command_type, &t).code, ERR_LEASE_LOST);
    rig_pass(r, 1);
    struct claimed_task again = run_next(r);
    assert_int_equal(again.id, job.id);
    assert_int_equal(again.attempt, 2);
    assert_true(again.token > t.token);
    assert_int_equal(rig_work(r, &finish_command_type, &again).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

RIG_TEST(test_a_job_whose_worker_was_lost_is_tried_again, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item lost = submit_auto(r, client, 3);
    run_next(r);
    rig_pass(r, r->settings.queue_lease_ms);
    rig_step(r);
    expect_backoff(r, &lost, client, JOB_EVENT_FAILED);
    rig_cancel(r, client, &lost);
}

RIG_TEST(test_a_run_beyond_its_limit_is_tried_again_and_its_worker_told, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.retry = STR("auto");
    item.has_max_runtime = true;
    item.max_runtime_ms = 50;
    struct submit_item job = rig_submit(r, client, &item);
    struct claimed_task t = run_next(r);
    rig_pass(r, 50);
    rig_step(r);
    expect_backoff(r, &job, client, JOB_EVENT_TIMED_OUT);
    struct worker_item beat = rig_work(r, &heartbeat_command_type, &t);
    assert_int_equal(beat.code, ERR_OK);
    assert_true(beat.cancel);
}

RIG_TEST(test_a_failure_that_is_not_retryable_ends_the_job, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_auto(r, client, 3);
    struct claimed_task t = run_next(r);
    struct worker_command *c = rig_post_work(r, &finish_command_type, &t, false);
    c->items[0].outcome.retryable = false;
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    assert_int_equal(rig_last_event(r, job.id).event, JOB_EVENT_FAILED);
    /* Its client may still want it. */
    assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_OK);
    rig_pass(r, 60000);
    t = run_next(r);
    rig_fail(r, &t);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    assert_int_equal(rig_view(r, job.id).attempt, 3);
}

RIG_TEST(test_the_last_failure_ends_the_job_and_says_so_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int64_t max = 0; max <= 2; max++) {
        struct submit_item job = submit_auto(r, client, max);
        struct event e[RIG_EVENTS_MAX];
        for (int64_t attempt = 1; attempt <= max + 1; attempt++) {
            rig_run(r, false);
            rig_pass(r, 60000);
        }
        size_t n = rig_events(r, job.id, e), exhausted = 0;
        for (size_t i = 0; i < n; i++)
            exhausted += e[i].event == JOB_EVENT_RETRIES_EXHAUSTED;
        assert_int_equal(rig_state(r, job.id), JOB_FAILED);
        assert_int_equal(rig_view(r, job.id).attempt, max + 1);
        assert_int_equal(exhausted, 1);
        assert_int_equal(e[n - 1].event, JOB_EVENT_RETRIES_EXHAUSTED);
        assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_JOB_CONFLICT);
    }
}

/* It was accepted; a full queue refuses what is new. */
RIG_TEST(test_a_full_queue_loses_no_retry, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_auto(r, client, 3);
    struct claimed_task t = run_next(r);
    r->settings.jobs_queue_size = 1;
    r->settings.jobs_max_active = 2;
    rig_submit_default(r, client);
    rig_fail(r, &t);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    struct submit_item item = rig_item();
    assert_int_not_equal(rig_submit(r, client, &item).err.code, ERR_OK);
}

RIG_TEST(test_a_retry_by_itself_survives_a_restart_and_a_failed_commit, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = submit_auto(r, client, 3);
    struct claimed_task t = run_next(r);
    r->failures = 1;
    rig_fail(r, &t);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 200);
    assert_int_equal(rig_fail(r, &t).code, ERR_OK);
    expect_backoff(r, &job, client, JOB_EVENT_FAILED);
    rig_restart(r, 60000);
    rig_run(r, true);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

/* The time in the queue begins when somebody could claim the job. */
RIG_TEST(test_a_backoff_is_no_time_in_the_queue, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.retry = STR("auto");
    item.has_queue_ttl = true;
    item.queue_ttl_seconds = 1;
    r->settings.jobs_retry_base_ms = r->settings.jobs_retry_cap_ms = 5000;
    struct submit_item job = rig_submit(r, client, &item);
    struct claimed_task t = run_next(r);
    rig_fail(r, &t);
    int64_t delay = job_backoff_ms(&r->settings, job.id, 2);
    rig_pass(r, delay);
    rig_step(r);
    rig_pass(r, 990);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_pass(r, 20);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_CANCELED);
}

int main(void)
{
    return rig_run_all();
}
