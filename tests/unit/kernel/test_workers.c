/* What workers are given and refused: order, fencing, leases, release, long polls. On both stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

static struct submit_item submit_with(struct rig *r, int64_t client, int64_t priority, const char *queue)
{
    struct submit_item item = rig_item();
    item.has_priority = true;
    item.priority = priority;
    if (queue)
        item.queue = str_of(queue);
    item = rig_submit(r, client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    return item;
}

/* [JOB-139] */
RIG_TEST(test_jobs_are_claimed_in_creation_order, r)
{
    int64_t client = rig_new_client(r, NULL);
    int64_t ids[20];
    for (int i = 0; i < 20; i++) {
        ids[i] = rig_submit_default(r, client).id;
        if (i % 3 == 0)
            rig_pass(r, 1);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(rig_claim(r, i % 2 ? "a" : "b").id, ids[i]);
    assert_int_equal(rig_claim_count(r, "a", 1), 0);
}

RIG_TEST(test_a_higher_priority_is_claimed_first_and_age_settles_equal_ones, r)
{
    int64_t one = rig_new_client(r, NULL), two = rig_new_client(r, NULL);
    static const int64_t priorities[] = {4, 9, 0, 4, 9, 1};
    static const int order[] = {1, 4, 0, 3, 5, 2};
    int64_t ids[LENGTH_OF(priorities)];
    for (size_t i = 0; i < LENGTH_OF(priorities); i++)
        ids[i] = submit_with(r, i % 2 ? one : two, priorities[i], NULL).id;
    struct claim_command *c = rig_post_claim(r, "w", 10, 0);
    rig_step(r);
    assert_int_equal(c->task_count, LENGTH_OF(priorities));
    for (size_t i = 0; i < LENGTH_OF(order); i++)
        assert_int_equal(c->tasks[i].id, ids[order[i]]);
}

RIG_TEST(test_a_client_claims_only_its_own_jobs_and_only_from_the_queues_it_names, r)
{
    int64_t one = rig_new_client(r, NULL), two = rig_new_client(r, NULL);
    submit_with(r, two, 9, "outside");
    submit_with(r, one, 9, "other");
    struct submit_item mine = submit_with(r, one, 0, "outside");
    static const struct str outside[] = {{"outside", 7}, {"nobody", 6}};
    struct claim_command c = {
        .worker_id = STR("w"), .queues = outside, .queue_count = 2, .client = one, .max = 5};
    struct claimed_task tasks[5];
    c.tasks = tasks;
    rig_post(r, &c.base, &claim_command_type);
    rig_step(r);
    assert_int_equal(c.task_count, 1);
    assert_int_equal(tasks[0].id, mine.id);
    assert_int_equal(rig_claim_count(r, "w", 5), 0); /* nothing is in `default` */
}

/* [JOB-141] [JOB-142] */
RIG_TEST(test_a_claim_sets_the_lease_and_nobody_else_gets_the_job, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claim_command *a = rig_post_claim(r, "a", 4, 0), *b = rig_post_claim(r, "b", 4, 0);
    rig_step(r);
    assert_int_equal(a->task_count, 1);
    assert_int_equal(b->task_count, 0);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_ASSIGNED);
    assert_int_equal(v.task.lease_ms, r->wall_us / 1000 + 30000);
    assert_true(str_is(v.task.worker, "a"));
    assert_int_equal(a->tasks[0].lease_expires_ms, v.task.lease_ms);
    assert_int_equal(a->tasks[0].attempt, 1);
    assert_int_equal(v.task.token, a->tasks[0].token);
}

static const struct command_type *const with_token[] = {&start_command_type, &heartbeat_command_type,
                                                        &finish_command_type, &release_command_type};

static void expect_refused_everywhere(struct rig *r, const struct claimed_task *stale)
{
    struct job_view before = rig_view(r, stale->id);
    for (size_t i = 0; i < LENGTH_OF(with_token); i++) {
        struct worker_item answer = rig_work(r, with_token[i], stale);
        assert_int_equal(answer.code, ERR_LEASE_LOST);
        assert_false(answer.cancel);
    }
    assert_int_equal(rig_fail(r, stale).code, ERR_LEASE_LOST);
    struct job_view after = rig_view(r, stale->id);
    assert_int_equal(after.state, before.state);
    assert_int_equal(after.seq, before.seq);
    assert_int_equal(after.attempt, before.attempt);
    assert_int_equal(after.updated_us, before.updated_us);
}

/* I7: an old token is refused by every verb and changes nothing. */
RIG_TEST(test_a_stale_token_is_refused_everywhere_and_nothing_changes, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task stale = rig_claim(r, "frozen");
    rig_pass(r, 30000);
    rig_step(r);
    expect_refused_everywhere(r, &stale); /* QUEUED again */
    struct claimed_task fresh = rig_claim(r, "next");
    assert_true(fresh.token > stale.token);
    expect_refused_everywhere(r, &stale); /* ASSIGNED to another */
    assert_int_equal(rig_work(r, &start_command_type, &fresh).code, ERR_OK);
    expect_refused_everywhere(r, &stale); /* RUNNING under another */
    assert_int_equal(rig_work(r, &finish_command_type, &fresh).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
    expect_refused_everywhere(r, &stale);
    struct claimed_task guess = fresh;
    guess.token += 1;
    expect_refused_everywhere(r, &guess);
}

RIG_TEST(test_a_wrong_id_half_or_another_client_is_refused_like_a_stale_token, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w"), half = task;
    half.low ^= 1;
    expect_refused_everywhere(r, &half);
    for (size_t i = 0; i < LENGTH_OF(with_token); i++) {
        struct worker_command *c = rig_post_work(r, with_token[i], &task, true);
        c->client = other;
        rig_step(r);
        assert_int_equal(c->items[0].code, ERR_LEASE_LOST);
    }
    assert_int_equal(rig_state(r, task.id), JOB_ASSIGNED);
}

/* [JOB-143] [JOB-174] */
RIG_TEST(test_a_lease_that_ends_before_the_start_returns_the_job_to_the_queue, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "dead");
    rig_pass(r, 29999);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_ASSIGNED); /* never early */
    rig_pass(r, 1);
    rig_step(r);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.attempt, 1);
    assert_true(v.task.token > task.token);
    assert_null(v.task.worker.ptr);
    struct event e = rig_last_event(r, job.id);
    assert_int_equal(e.event, JOB_EVENT_LEASE_EXPIRED);
    assert_int_equal(e.prev, JOB_ASSIGNED);
    assert_int_equal(e.next, JOB_QUEUED);
    rig_run(r, true);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
    assert_int_equal(rig_view(r, job.id).attempt, 1);
}

RIG_TEST(test_a_start_tells_how_long_the_lease_is_then, r)
{
    rig_submit_default(r, rig_new_client(r, NULL));
    struct claimed_task task = rig_claim(r, "w");
    rig_pass(r, 20000);
    int64_t until = rig_work(r, &start_command_type, &task).lease_expires_ms;
    assert_int_equal(until, task.lease_expires_ms + 20000);
    rig_pass(r, 10);
    assert_int_equal(rig_work(r, &start_command_type, &task).lease_expires_ms, until); /* a repeated one */
}

/* A heartbeat before the start does not extend the lease (AJ-35). */
RIG_TEST(test_an_unstarted_lease_is_not_extended_by_heartbeats, r)
{
    int64_t client = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_pass(r, 20000);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &task).lease_expires_ms, task.lease_expires_ms);
    rig_pass(r, 10000);
    rig_step(r);
    assert_int_equal(rig_state(r, task.id), JOB_QUEUED);
}

/* [JOB-176] */
RIG_TEST(test_a_running_job_whose_worker_is_silent_fails_as_worker_lost, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_pass(r, 10000);
    rig_work(r, &start_command_type, &task); /* the start grants a whole lease */
    rig_pass(r, 29999);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 1);
    rig_step(r);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_FAILED);
    assert_non_null(strstr(v.error.ptr, "\"code\":\"worker_lost\""));
    assert_non_null(strstr(v.error.ptr, "\"retryable\":true"));
    assert_int_equal(rig_last_event(r, job.id).event, JOB_EVENT_FAILED);
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
    assert_int_equal(rig_retry(r, client, &job)->state, JOB_QUEUED);
}

/* The commit loop's side of JOB-144. */
RIG_TEST(test_heartbeats_keep_a_running_job_alive, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    int64_t started_ms = r->wall_us / 1000;
    for (int i = 0; i < 20; i++) {
        rig_pass(r, 5000);
        struct worker_item beat = rig_work(r, &heartbeat_command_type, &task);
        assert_int_equal(beat.code, ERR_OK);
        assert_false(beat.cancel);
        /* where others look through the leases none goes beyond the limit of the run */
        int64_t lease_ms = r->wall_us / 1000 + 30000, limit_ms = started_ms + 125000;
        assert_int_equal(beat.lease_expires_ms, r->shared && limit_ms < lease_ms ? limit_ms : lease_ms);
    }
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

/* [JOB-178] [JOB-290] */
RIG_TEST(test_a_job_that_runs_past_its_limit_is_timed_out_and_its_worker_told, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.has_max_runtime = true;
    item.max_runtime_ms = 8000;
    struct submit_item job = rig_submit(r, client, &item);
    struct claimed_task task = rig_claim(r, "w");
    rig_pass(r, 5000); /* waiting does not count */
    rig_work(r, &start_command_type, &task);
    rig_pass(r, 7999);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &task).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 1);
    rig_step(r);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_FAILED);
    assert_non_null(strstr(v.error.ptr, "\"code\":\"RFA_EXEC_TIMEOUT\""));
    assert_int_equal(rig_last_event(r, job.id).event, JOB_EVENT_TIMED_OUT);
    struct worker_item beat = rig_work(r, &heartbeat_command_type, &task);
    assert_int_equal(beat.code, ERR_OK);
    assert_true(beat.cancel && beat.lease_expires_ms > 0);
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
}

RIG_TEST(test_a_finish_that_comes_too_late_counts_as_timed_out, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.has_max_runtime = true;
    item.max_runtime_ms = 8000;
    struct submit_item job = rig_submit(r, client, &item);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    r->failures = 1; /* the commit that would have timed it out fails, so timers rest for a moment */
    rig_pass(r, 8000);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 1);
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    assert_int_equal(rig_last_event(r, job.id).event, JOB_EVENT_TIMED_OUT);
}

RIG_TEST(test_the_time_scale_shortens_the_limit_of_catalog_jobs_only, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.runner_time_scale = 0.01;
    struct submit_item item = rig_item(), outside = rig_item();
    item.has_max_runtime = outside.has_max_runtime = true;
    item.max_runtime_ms = outside.max_runtime_ms = 10000;
    outside.queue = STR("outside");
    item = rig_submit(r, client, &item);
    outside = rig_submit(r, client, &outside);
    static const struct str queues[] = {{"default", 7}, {"outside", 7}};
    struct claim_command *c = rig_post_claim(r, "w", 2, 0);
    c->queues = queues;
    c->queue_count = 2;
    rig_step(r);
    assert_int_equal(c->task_count, 2);
    rig_work(r, &start_command_type, &c->tasks[0]);
    rig_work(r, &start_command_type, &c->tasks[1]);
    rig_pass(r, 100);
    rig_step(r);
    assert_int_equal(rig_state(r, item.id), JOB_FAILED);
    assert_int_equal(rig_state(r, outside.id), JOB_RUNNING);
}

RIG_TEST(test_a_scaled_limit_is_a_millisecond_at_least, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.runner_time_scale = 0.0001;
    struct submit_item job = rig_item();
    job.has_max_runtime = true;
    job.max_runtime_ms = 1000;
    job = rig_submit(r, client, &job);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
}

RIG_TEST(test_a_released_task_is_queued_at_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &release_command_type, &task).code, ERR_OK);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.attempt, 1);
    struct event e = rig_last_event(r, job.id);
    assert_int_equal(e.event, JOB_EVENT_LEASE_EXPIRED);
    assert_true(str_is(e.extra, "{\"reason\":\"released\"}"));
    assert_int_equal(rig_work(r, &start_command_type, &task).code, ERR_LEASE_LOST);
    assert_int_equal(rig_claim(r, "w").id, job.id);
}

static struct worker_item release(struct rig *r, const struct claimed_task *task, int64_t delay_ms,
                                  const char *message)
{
    struct worker_command *c = rig_post_work(r, &release_command_type, task, true);
    c->items[0].release = (struct task_return){.message = str_of(message), .delay_ms = delay_ms};
    rig_step(r);
    return c->items[0];
}

/* Unstarted or started, nobody gets it before its delay is over, and no attempt is spent: not even the last
 * one, whose failure would end the job. */
RIG_TEST(test_a_task_that_is_given_back_waits_its_delay_and_spends_no_attempt, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_item();
    job.has_max_retries = true;
    job.max_retries = 0;
    job = rig_submit(r, client, &job);
    for (int started = 0; started < 2; started++) {
        struct claimed_task task = rig_claim(r, "w");
        if (started)
            rig_work(r, &start_command_type, &task);
        assert_int_equal(release(r, &task, 5000, "busy").code, ERR_OK);
        struct job_view v = rig_view(r, job.id);
        assert_int_equal(v.state, JOB_QUEUED);
        assert_int_equal(v.attempt, 1);
        assert_null(v.task.worker.ptr);
        assert_int_equal(v.task.due_ms, r->wall_us / 1000 + 5000);
        assert_int_equal(release(r, &task, 0, "").code, ERR_LEASE_LOST);
        assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
        assert_int_equal(rig_fail(r, &task).code, ERR_LEASE_LOST);
        rig_pass(r, 4999);
        assert_int_equal(rig_claim_count(r, "w", 1), 0);
        rig_pass(r, 1);
        rig_step(r);
    }
    struct event events[RIG_EVENTS_MAX];
    size_t count = rig_events(r, job.id, events);
    assert_int_equal(events[3].event, JOB_EVENT_LEASE_EXPIRED);
    assert_int_equal(events[count - 2].event, JOB_EVENT_FAILED);
    assert_int_equal(events[count - 1].event, JOB_EVENT_QUEUED);
    assert_int_equal(events[count - 1].attempt, 1);
    assert_true(str_is(events[count - 2].extra, "{\"reason\":\"released\",\"message\":\"busy\"}"));
    assert_int_equal(rig_rows(r, &table_archive_row), 0);
    rig_run(r, true);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

/* The answer was lost, so the worker says it again: nothing changes, and it hears ok. The other outcome,
 * another client's worker and a token of another lease do not. */
RIG_TEST(test_the_same_finish_again_is_ok_again, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    for (int success = 0; success < 2; success++) {
        struct submit_item job = rig_submit_default(r, client);
        struct claimed_task task = rig_claim(r, "w"), guess = task;
        rig_work(r, &start_command_type, &task);
        struct worker_command *first = rig_post_work(r, &finish_command_type, &task, success);
        struct worker_command *second = rig_post_work(r, &finish_command_type, &task, success);
        rig_step(r);
        assert_int_equal(first->items[0].code, ERR_OK);
        assert_int_equal(second->items[0].code, ERR_OK);
        size_t events = rig_event_count(r, job.id), commits = r->commits;
        rig_restart(r, r->settings.queue_lease_ms - 1);
        struct worker_command *again = rig_post_work(r, &finish_command_type, &task, success);
        struct worker_command *otherwise = rig_post_work(r, &finish_command_type, &task, !success);
        struct worker_command *theirs = rig_post_work(r, &finish_command_type, &task, success);
        theirs->client = other;
        guess.token++;
        struct worker_command *guessed = rig_post_work(r, &finish_command_type, &guess, success);
        guess = task;
        guess.low ^= 1;
        struct worker_command *half = rig_post_work(r, &finish_command_type, &guess, success);
        rig_step(r);
        assert_int_equal(again->items[0].code, ERR_OK);
        assert_int_equal(otherwise->items[0].code, ERR_LEASE_LOST);
        assert_int_equal(theirs->items[0].code, ERR_LEASE_LOST);
        assert_int_equal(guessed->items[0].code, ERR_LEASE_LOST);
        assert_int_equal(half->items[0].code, ERR_LEASE_LOST);
        assert_int_equal(rig_event_count(r, job.id), events);
        assert_int_equal(r->commits, commits);
        assert_int_equal(rig_work(r, &heartbeat_command_type, &task).code, ERR_LEASE_LOST);
    }
}

/* Tried again, the job has no end row: its tokens tell. */
RIG_TEST(test_a_failure_that_was_retried_may_be_told_again, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    rig_fail(r, &task);
    rig_retry(r, client, &job);
    assert_int_equal(rig_fail(r, &task).code, ERR_OK); /* QUEUED */
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
    rig_pass(r, 60000);
    rig_step(r);
    struct claimed_task next = rig_claim(r, "w");
    assert_int_equal(rig_fail(r, &task).code, ERR_OK); /* ASSIGNED to another */
    rig_work(r, &start_command_type, &next);
    assert_int_equal(rig_fail(r, &task).code, ERR_OK); /* RUNNING under another */
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    assert_int_equal(rig_view(r, job.id).attempt, 2);
}

/* What ended by time was not ended by a finish that comes later. */
RIG_TEST(test_a_finish_after_a_lost_lease_is_refused_whatever_it_says, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int timed_out = 0; timed_out < 2; timed_out++) {
        struct submit_item job = rig_item();
        job.has_max_runtime = true;
        job.max_runtime_ms = timed_out ? 1000 : 100000;
        job = rig_submit(r, client, &job);
        struct claimed_task task = rig_claim(r, "w");
        rig_work(r, &start_command_type, &task);
        rig_pass(r, timed_out ? 1000 : r->settings.queue_lease_ms);
        rig_step(r);
        assert_int_equal(rig_state(r, job.id), JOB_FAILED);
        assert_int_equal(rig_fail(r, &task).code, ERR_LEASE_LOST);
        assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
        assert_true(rig_retry(r, client, &job)->changed);
        assert_int_equal(rig_fail(r, &task).code, ERR_LEASE_LOST);
        rig_cancel(r, client, &job);
    }
}

/* --- progress -------------------------------------------------------------------------------------- */

static struct worker_item beat_with(struct rig *r, const struct claimed_task *task, double percent,
                                    const char *note)
{
    struct worker_command *c = rig_post_work(r, &heartbeat_command_type, task, true);
    c->items[0].has_progress = true;
    c->items[0].progress = (struct task_progress){percent, str_of(note)};
    rig_step(r);
    return c->items[0];
}

static void expect_progress(struct rig *r, int64_t job, const char *begins)
{
    struct job_view v = rig_view(r, job);
    assert_true(v.task.progress.ptr && str_starts(v.task.progress, begins));
}

RIG_TEST(test_progress_is_stored_with_the_heartbeat_that_carries_it_and_with_no_other, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    assert_int_equal(beat_with(r, &task, 1, "too early").code, ERR_OK);
    assert_null(rig_view(r, job.id).task.progress.ptr);
    rig_work(r, &start_command_type, &task);
    size_t commits = r->commits;
    rig_work(r, &heartbeat_command_type, &task);
    assert_int_equal(r->commits, commits + r->shared);
    assert_int_equal(beat_with(r, &task, 12.5, "a \"b\"").code, ERR_OK);
    expect_progress(r, job.id, "{\"percent\":12.5,\"note\":\"a \\\"b\\\"\",\"at\":\"2");
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    beat_with(r, &task, 50, "never stored");
    expect_progress(r, job.id, "{\"percent\":12.5,");
    struct worker_command *first = rig_post_work(r, &heartbeat_command_type, &task, true);
    first->items[0].has_progress = true; /* two in one batch: the last one counts */
    beat_with(r, &task, 60, "");
    expect_progress(r, job.id, "{\"percent\":60,");
    rig_restart(r, 10);
    expect_progress(r, job.id, "{\"percent\":60,");
    rig_work(r, &heartbeat_command_type, &task);
    expect_progress(r, job.id, "{\"percent\":60,");
    assert_int_equal(release(r, &task, 0, "").code, ERR_OK);
    assert_null(rig_view(r, job.id).task.progress.ptr);
    task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    beat_with(r, &task, 99.99, "nearly");
    rig_work(r, &finish_command_type, &task);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

/* For a worker that hung up: what was not started is queued at once, what was is a lost run at once. */
RIG_TEST(test_what_a_lost_worker_never_heard_of_is_given_back, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &give_back_command_type, &task).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    assert_int_equal(rig_work(r, &give_back_command_type, &task).code, ERR_LEASE_LOST);
    struct claim_command *c = rig_post_claim(r, "w", 1, 0);
    c->start = true;
    rig_step(r);
    assert_int_equal(c->task_count, 1);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    assert_int_equal(rig_work(r, &give_back_command_type, &c->tasks[0]).code, ERR_OK);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    assert_int_equal(rig_work(r, &finish_command_type, &c->tasks[0]).code, ERR_LEASE_LOST);
}

/* [JOB-184] */
RIG_TEST(test_a_finish_without_a_start_is_refused, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_JOB_CONFLICT);
    assert_int_equal(rig_state(r, job.id), JOB_ASSIGNED);
    assert_int_equal(rig_event_count(r, job.id), 3);
}

RIG_TEST(test_a_repeated_start_of_the_same_lease_changes_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    struct job_view before = rig_view(r, job.id);
    rig_pass(r, 1000);
    assert_int_equal(rig_work(r, &start_command_type, &task).code, ERR_OK);
    struct job_view after = rig_view(r, job.id);
    assert_int_equal(after.started_ms, before.started_ms);
    assert_int_equal(after.seq, before.seq);
}

/* A batch that met others is decided anew: what an earlier try said is not told. */
RIG_TEST(test_a_worker_is_asked_to_stop_by_this_answer_alone, r)
{
    rig_submit_default(r, rig_new_client(r, NULL));
    struct claimed_task t = rig_claim(r, "w");
    struct worker_command *c = rig_post_work(r, &start_command_type, &t, true);
    c->items[0].cancel = true;
    rig_step(r);
    assert_int_equal(c->items[0].code, ERR_OK);
    assert_false(c->items[0].cancel);
}

RIG_TEST(test_items_that_are_refused_leave_their_neighbours_alone, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 3; i++)
        rig_submit_default(r, client);
    struct claim_command *claim = rig_post_claim(r, "w", 3, 0);
    rig_step(r);
    struct worker_item items[4] = {{0}};
    for (int i = 0; i < 3; i++)
        items[i] = (struct worker_item){
            .id = claim->tasks[i].id, .token = claim->tasks[i].token, .low = claim->tasks[i].low};
    items[1].token = 99;
    items[3].code = ERR_REQUEST_MALFORMED; /* its id did not parse */
    items[3].is_bad = true;
    struct worker_command c = {.items = items, .item_count = 4};
    rig_post(r, &c.base, &start_command_type);
    rig_step(r);
    assert_int_equal(items[0].code, ERR_OK);
    assert_int_equal(items[1].code, ERR_LEASE_LOST);
    assert_int_equal(items[2].code, ERR_OK);
    assert_int_equal(items[3].code, ERR_REQUEST_MALFORMED);
    assert_int_equal(rig_state(r, claim->tasks[0].id), JOB_RUNNING);
    assert_int_equal(rig_state(r, claim->tasks[1].id), JOB_ASSIGNED);
    assert_int_equal(rig_state(r, claim->tasks[2].id), JOB_RUNNING);
}

RIG_TEST(test_a_parked_claim_wakes_in_the_batch_of_the_submit, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *first = rig_post_claim(r, "a", 1, 20000),
                         *second = rig_post_claim(r, "b", 5, 20000);
    assert_int_equal(rig_step(r), 0);
    assert_false(rig_is_done(&first->base));
    size_t commits = r->commits;
    struct submit_item job = rig_submit_default(r, client);
    assert_int_equal(r->commits, commits + 1);
    assert_true(rig_is_done(&first->base));
    assert_int_equal(first->task_count, 1);
    assert_int_equal(first->tasks[0].id, job.id);
    assert_false(rig_is_done(&second->base));
    rig_cancel(r, client, &job);
    rig_pass(r, 20000);
    rig_step(r);
    assert_true(rig_is_done(&second->base));
}

/* Nothing was there when it was decided; what came behind it in the same batch is not left lying. */
RIG_TEST(test_a_claim_hears_of_what_its_own_batch_brings, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *c = rig_post_claim(r, "w", 1, 20000);
    struct submit_item job = rig_submit_default(r, client);
    for (int i = 0; r->shared && !rig_is_done(&c->base) && i < 2; i++)
        rig_step(r); /* there the claim is looked at again, at once, by whoever is free */
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->task_count, 1);
    assert_int_equal(c->tasks[0].id, job.id);
}

static void submit_at_the_other_node(struct rig *r)
{
    rig_switch_node(r);
    rig_submit_default(r, 1);
    rig_switch_node(r);
    kernel_hint(r->kernel, HINT_READY); /* as the listener would */
}

/* The word of it comes when nobody waits yet: the claim is in a batch that was loaded before. */
RIG_TEST(test_a_claim_does_not_sleep_over_what_came_while_its_batch_was_decided, r)
{
    if (!r->shared)
        return;
    int64_t client = rig_new_client(r, NULL);
    assert_int_equal(client, 1);
    struct submit_item elsewhere = rig_item();
    elsewhere.queue = STR("elsewhere");
    elsewhere = rig_submit(r, client, &elsewhere);
    struct claim_command *c = rig_post_claim(r, "w", 1, 20000);
    rig_post_job(r, &cancel_command_type, client, &elsewhere); /* a commit that makes nothing claimable */
    r->before_commit = submit_at_the_other_node;
    rig_step(r);
    assert_false(rig_is_done(&c->base));
    rig_step(r); /* no time has passed */
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->task_count, 1);
}

RIG_TEST(test_a_parked_claim_ends_empty_at_its_deadline_and_not_before, r)
{
    struct claim_command *c = rig_post_claim(r, "w", 1, 5000);
    rig_step(r);
    rig_pass(r, 4999);
    rig_step(r);
    assert_false(rig_is_done(&c->base));
    rig_pass(r, 1);
    assert_int_equal(rig_step(r), 1);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->task_count, 0);
}

static bool is_gone(const struct command *c)
{
    (void)c;
    return true;
}

RIG_TEST(test_a_parked_claim_whose_worker_left_takes_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *c = rig_post_claim(r, "w", 1, 5000);
    rig_step(r);
    c->base.abandoned = is_gone;
    struct submit_item job = rig_submit_default(r, client);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->task_count, 0);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
}

/* [JOB-173] */
RIG_TEST(test_without_workers_a_job_stays_queued, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    for (int i = 0; i < 10; i++) {
        rig_pass(r, 3600000);
        rig_step(r);
    }
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    assert_int_equal(rig_event_count(r, job.id), 2);
}

RIG_TEST(test_tokens_are_texts_that_round_trip, r)
{
    static const int64_t tokens[] = {1, 42, INT64_MAX};
    for (size_t i = 0; i < LENGTH_OF(tokens); i++) {
        char out[24];
        int64_t back;
        assert_true(token_parse(token_text(tokens[i], out), &back));
        assert_int_equal(back, tokens[i]);
    }
    static const char *const no_tokens[] = {
        "", "0", "-1", "1x", " 1", "9223372036854775808", "99999999999999999999"};
    for (size_t i = 0; i < LENGTH_OF(no_tokens); i++) {
        int64_t back;
        assert_false(token_parse(str_of(no_tokens[i]), &back));
    }
}

int main(void)
{
    return rig_run_all();
}
