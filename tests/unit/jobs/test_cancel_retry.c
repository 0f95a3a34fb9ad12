/* Cancel in every state, retry with its limits, backoff and archived reports. On both stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

/* Brings a fresh job of the client into the state. */
static struct submit_item job_in(struct rig *r, int64_t client, enum job_state want,
                                 struct claimed_task *ret_task)
{
    struct submit_item job =
        want == JOB_CREATED ? rig_submit_deferred(r, client, 60000) : rig_submit_default(r, client);
    if (want == JOB_CREATED || want == JOB_QUEUED)
        return job;
    if (want == JOB_CANCELED) {
        rig_cancel(r, client, &job);
        return job;
    }
    *ret_task = rig_claim(r, "w");
    assert_int_equal(ret_task->id, job.id);
    if (want == JOB_ASSIGNED)
        return job;
    rig_work(r, &start_command_type, ret_task);
    if (want == JOB_SUCCEEDED)
        rig_work(r, &finish_command_type, ret_task);
    if (want == JOB_FAILED)
        rig_fail(r, ret_task);
    assert_int_equal(rig_state(r, job.id), want);
    return job;
}

/* [JOB-111] [JOB-113] [JOB-115] [JOB-118] [JOB-072] */
RIG_TEST(test_cancel_ends_any_unfinished_job_at_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int s = JOB_CREATED; s <= JOB_RUNNING; s++) {
        struct claimed_task task;
        struct submit_item job = job_in(r, client, (enum job_state)s, &task);
        size_t events = rig_event_count(r, job.id);
        struct job_command *c = rig_cancel(r, client, &job);
        assert_int_equal(c->base.result, ERR_OK);
        assert_true(c->changed);
        assert_int_equal(c->state, JOB_CANCELED);
        struct job_view v = rig_view(r, job.id);
        assert_int_equal(v.state, JOB_CANCELED);
        assert_int_equal(c->updated_us, v.updated_us);
        assert_int_equal(v.started_ms != 0, s == JOB_RUNNING);
        struct event e = rig_last_event(r, job.id);
        assert_int_equal(e.event, JOB_EVENT_CANCELED);
        assert_int_equal(e.prev, s);
        assert_int_equal(e.seq, events + 1);
        rig_pass(r, 1);
        struct job_command *again = rig_cancel(r, client, &job);
        assert_false(again->changed);
        assert_int_equal(again->updated_us, c->updated_us);
        assert_int_equal(rig_event_count(r, job.id), events + 1);
    }
    rig_pass(r, 120000); /* no timer of a canceled job fires */
    rig_step(r);
    assert_int_equal(rig_live_count(r), 0);
}

/* [JOB-181] */
RIG_TEST(test_cancel_of_a_final_job_changes_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int s = JOB_SUCCEEDED; s <= JOB_CANCELED; s++) {
        struct claimed_task task;
        struct submit_item job = job_in(r, client, (enum job_state)s, &task);
        size_t events = rig_event_count(r, job.id), commits = r->commits;
        struct job_command *c = rig_cancel(r, client, &job);
        assert_int_equal(c->base.result, ERR_OK);
        assert_int_equal(c->state, s);
        assert_false(c->changed);
        assert_int_equal(r->commits, commits);
        assert_int_equal(rig_event_count(r, job.id), events);
    }
}

RIG_TEST(test_the_worker_of_a_canceled_job_is_told_until_its_lease_would_have_ended, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    for (int s = JOB_ASSIGNED; s <= JOB_RUNNING; s++) {
        struct claimed_task task;
        struct submit_item job = job_in(r, client, (enum job_state)s, &task);
        rig_cancel(r, client, &job);
        rig_pass(r, 29999);
        struct worker_item beat = rig_work(r, &heartbeat_command_type, &task);
        assert_int_equal(beat.code, ERR_OK);
        assert_true(beat.cancel);
        struct claimed_task guess = task;
        guess.token++;
        assert_int_equal(rig_work(r, &heartbeat_command_type, &guess).code, ERR_LEASE_LOST);
        struct worker_command *theirs = rig_post_work(r, &heartbeat_command_type, &task, true);
        theirs->client = other;
        rig_step(r);
        assert_int_equal(theirs->items[0].code, ERR_LEASE_LOST);
        assert_int_equal(rig_work(r, &start_command_type, &task).code, ERR_LEASE_LOST);
        assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
        rig_pass(r, 1);
        beat = rig_work(r, &heartbeat_command_type, &task);
        assert_int_equal(beat.code, ERR_LEASE_LOST);
        assert_false(beat.cancel);
        assert_int_equal(rig_state(r, job.id), JOB_CANCELED);
    }
}

/* The deciders' part of JOB-152; 404 comes before 403. */
RIG_TEST(test_a_foreign_or_unknown_job_is_refused_and_untouched, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct claimed_task task;
    struct submit_item queued = job_in(r, client, JOB_FAILED, &task), unknown = queued;
    unknown.low ^= 1;
    static const struct command_type *const types[] = {&cancel_command_type, &retry_command_type};
    for (size_t i = 0; i < LENGTH_OF(types); i++) {
        struct job_command *foreign = rig_post_job(r, types[i], other, &queued);
        struct job_command *half = rig_post_job(r, types[i], other, &unknown);
        struct submit_item nothing = {.id = 4711};
        struct job_command *none = rig_post_job(r, types[i], client, &nothing);
        rig_step(r);
        assert_int_equal(foreign->base.result, ERR_AUTH_FORBIDDEN);
        assert_int_equal(half->base.result, ERR_JOB_NOT_FOUND);
        assert_int_equal(none->base.result, ERR_JOB_NOT_FOUND);
    }
    assert_int_equal(rig_state(r, queued.id), JOB_FAILED);
}

/* [JOB-134] [JOB-182] */
RIG_TEST(test_only_failed_jobs_are_retried, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        if (s == JOB_FAILED)
            continue;
        struct claimed_task task;
        struct submit_item job = job_in(r, client, (enum job_state)s, &task);
        size_t events = rig_event_count(r, job.id), commits = r->commits;
        struct job_command *c = rig_retry(r, client, &job);
        assert_int_equal(c->base.result, ERR_OK);
        assert_int_equal(c->state, s);
        assert_int_equal(c->attempt, 1);
        assert_false(c->changed);
        assert_int_equal(rig_event_count(r, job.id), events);
        assert_int_equal(r->commits, commits);
        if (s == JOB_QUEUED) /* out of the next one's way */
            rig_cancel(r, client, &job);
    }
}

/* [JOB-119] [JOB-136] [JOB-073] */
RIG_TEST(test_a_retry_queues_the_job_with_the_next_attempt_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claimed_task task;
    struct submit_item job = job_in(r, client, JOB_FAILED, &task);
    struct job_command *first = rig_post_job(r, &retry_command_type, client, &job);
    struct job_command *second = rig_post_job(r, &retry_command_type, client, &job);
    rig_step(r);
    assert_true(first->changed);
    assert_false(second->changed);
    assert_int_equal(second->attempt, 2);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_QUEUED);
    assert_int_equal(v.attempt, 2);
    assert_int_equal(v.finished_ms, 0);
    assert_non_null(v.error.ptr); /* of the attempt before */
    struct event e = rig_last_event(r, job.id);
    assert_int_equal(e.event, JOB_EVENT_QUEUED);
    assert_int_equal(e.prev, JOB_FAILED);
    assert_int_equal(e.attempt, 2);
    assert_int_equal(rig_event_count(r, job.id), 6);
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_LEASE_LOST);
}

/* [JOB-137]: not claimed before the delay. */
RIG_TEST(test_a_retried_job_is_claimed_after_its_backoff_and_keeps_its_place, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claimed_task task;
    struct submit_item job = job_in(r, client, JOB_FAILED, &task);
    struct submit_item younger = rig_submit_default(r, client);
    rig_retry(r, client, &job);
    int64_t delay = job_backoff_ms(&r->settings, job.id, 2);
    assert_int_equal(rig_view(r, job.id).task.due_ms, r->wall_us / 1000 + delay);
    rig_pass(r, delay - 1);
    struct claimed_task t = rig_claim(r, "w");
    assert_int_equal(t.id, younger.id);
    rig_submit_default(r, client);
    rig_pass(r, 1);
    t = rig_claim(r, "w");
    assert_int_equal(t.id, job.id); /* older than the third */
    assert_int_equal(t.attempt, 2);
    assert_true(t.token > task.token);
}

RIG_TEST(test_a_backoff_survives_a_restart, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claimed_task task;
    struct submit_item job = job_in(r, client, JOB_FAILED, &task);
    rig_retry(r, client, &job);
    int64_t delay = job_backoff_ms(&r->settings, job.id, 2);
    rig_restart(r, delay - 1);
    assert_int_equal(rig_claim_count(r, "w", 1), 0);
    rig_pass(r, 1);
    assert_int_equal(rig_claim(r, "w").id, job.id);
}

/* [JOB-137] */
RIG_TEST(test_the_backoff_doubles_within_its_jitter_up_to_the_cap, r)
{
    bool above = false, below = false;
    for (int64_t job = 1; job < 500; job++)
        for (int64_t attempt = 2; attempt < 20; attempt++) {
            int64_t middle = attempt - 2 < 5 ? 1000 << (attempt - 2) : 30000;
            int64_t delay = job_backoff_ms(&r->settings, job << 30, attempt);
            assert_true(delay >= middle * 8 / 10 && delay <= middle * 12 / 10);
            assert_int_equal(delay, job_backoff_ms(&r->settings, job << 30, attempt));
            above |= delay > middle * 11 / 10;
            below |= delay < middle * 9 / 10;
        }
    assert_true(above && below); /* it does spread */
    r->settings.jobs_retry_jitter = 0;
    r->settings.jobs_retry_base_ms = 10;
    r->settings.jobs_retry_cap_ms = 25;
    assert_int_equal(job_backoff_ms(&r->settings, 1, 2), 10);
    assert_int_equal(job_backoff_ms(&r->settings, 1, 3), 20);
    assert_int_equal(job_backoff_ms(&r->settings, 1, 4), 25);
    assert_int_equal(job_backoff_ms(&r->settings, 1, 1000), 25);
    r->settings.jobs_retry_base_ms = 0;
    assert_int_equal(job_backoff_ms(&r->settings, 1, 5), 0);
}

static size_t exhausted_events(struct rig *r, int64_t id)
{
    struct event e[RIG_EVENTS_MAX];
    size_t n = rig_events(r, id, e), found = 0;
    for (size_t i = 0; i < n; i++)
        if (e[i].event == JOB_EVENT_RETRIES_EXHAUSTED) {
            assert_int_equal(e[i].prev, JOB_FAILED);
            assert_int_equal(e[i].next, JOB_FAILED);
            assert_int_equal(i, n - 1);
            found++;
        }
    return found;
}

/* [JOB-135] [JOB-138] */
RIG_TEST(test_after_the_last_retry_the_job_stays_failed_and_says_so_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int64_t max = 0; max <= 3; max++) {
        struct submit_item item = rig_item();
        item.has_max_retries = max != 3; /* 3 is the default */
        item.max_retries = max;
        struct submit_item job = rig_submit(r, client, &item);
        for (int64_t attempt = 1; attempt <= max + 1; attempt++) {
            rig_run(r, false);
            assert_int_equal(exhausted_events(r, job.id), attempt > max);
            struct job_command *c = rig_retry(r, client, &job);
            assert_int_equal(c->base.result, attempt > max ? ERR_JOB_CONFLICT : ERR_OK);
            rig_pass(r, 60000);
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_JOB_CONFLICT);
        assert_int_equal(rig_state(r, job.id), JOB_FAILED);
        assert_int_equal(rig_view(r, job.id).attempt, max + 1);
        assert_int_equal(exhausted_events(r, job.id), 1);
    }
}

struct archive_seen {
    int64_t job;
    int count;
};

static bool see_archive(const void *row, void *arg)
{
    struct archive_seen *seen = arg;
    const struct archive_row *a = row;
    if (a->job != seen->job)
        return true;
    seen->count++;
    assert_int_equal(a->attempt, seen->count);
    assert_true(str_starts(a->error, "{\"code\":\"broken\""));
    assert_true(a->started_ms && a->finished_ms >= a->started_ms);
    return true;
}

/* AJ-24 */
RIG_TEST(test_the_report_of_each_retried_attempt_is_archived, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    for (int i = 0; i < 3; i++) {
        rig_run(r, false);
        rig_retry(r, client, &job);
        rig_pass(r, 60000);
    }
    rig_run(r, true);
    struct err err;
    struct archive_seen seen = {job.id, 0};
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, &table_archive_row, see_archive, &seen, &err),
                     ERR_OK);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(seen.count, 3);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_SUCCEEDED);
    assert_true(str_is(v.result, "{\"n\":1}"));
    assert_null(v.error.ptr);
}

/* AJ-16 */
RIG_TEST(test_a_retry_that_meets_a_full_queue_is_refused_and_the_job_stays_failed, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claimed_task task;
    struct submit_item job = job_in(r, client, JOB_FAILED, &task);
    rig_submit_default(r, client);
    r->settings.jobs_queue_size = 1;
    struct job_command *c = rig_retry(r, client, &job);
    assert_int_equal(c->base.result, ERR_EXEC_QUEUE_FULL);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    r->settings.jobs_queue_size = 2;
    assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_OK);
}

/* [JOB-180] */
RIG_TEST(test_a_result_that_is_too_large_fails_the_job, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    r->settings.jobs_payload_max_bytes = 6;
    assert_int_equal(rig_work(r, &finish_command_type, &task).code, ERR_OK);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.state, JOB_FAILED);
    assert_true(str_starts(v.error, "{\"code\":\"output_too_large\""));
    assert_null(v.result.ptr);
    job = rig_submit_default(r, client);
    task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    r->settings.jobs_payload_max_bytes = 7; /* as long as it is */
    rig_work(r, &finish_command_type, &task);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

static struct submit_item failed_with(struct rig *r, int64_t client, struct str code, struct str message)
{
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_work(r, &start_command_type, &task);
    struct worker_command *c = rig_post_work(r, &finish_command_type, &task, false);
    c->items[0].outcome.error_code = code;
    c->items[0].outcome.error_message = message;
    rig_step(r);
    return job;
}

/* Of a code the event has 128 bytes at most, the report a thousand. */
RIG_TEST(test_what_a_worker_says_of_a_failure_is_in_the_event_and_in_the_report, r)
{
    int64_t client = rig_new_client(r, NULL);
    char letters[1002];
    memset(letters, 'c', sizeof letters);
    static const int lengths[] = {1, 127, 128, 129, 999, 1000, 1001};
    struct submit_item job = failed_with(r, client, STR_ABSENT, STR_ABSENT);
    assert_true(str_is(rig_last_event(r, job.id).extra,
                       "{\"reason\":\"failed\",\"message\":\"the worker reported a failure\"}"));
    for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
        int len = lengths[i], in_event = len < 128 ? len : 128, in_report = len < 1000 ? len : 1000;
        job = failed_with(r, client, (struct str){letters, (size_t)len}, STR("it \"broke\""));
        struct str extra = arena_printf(r->arena, "{\"reason\":\"%.*s\",\"message\":\"it \\\"broke\\\"\"}",
                                        in_event, letters);
        struct str error =
            arena_printf(r->arena, "{\"code\":\"%.*s\",\"message\":\"it \\\"broke\\\"\",\"retryable\":true}",
                         in_report, letters);
        assert_true(str_equal(rig_last_event(r, job.id).extra, extra));
        assert_true(str_equal(rig_view(r, job.id).error, error));
    }
}

static void expect_notice(const struct rig *r, enum job_event event, int64_t waited_ms, int64_t ran_ms)
{
    assert_int_equal(r->last_notice.event.event, event);
    assert_int_equal(r->last_notice.waited_ms, waited_ms);
    assert_int_equal(r->last_notice.ran_ms, ran_ms);
}

/* How long a job could have been claimed, was claimed and not begun, and ran: what metrics are made of. */
RIG_TEST(test_times_that_are_told_of_a_job_are_those_that_passed, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_retry_base_ms = 1000;
    r->settings.jobs_retry_jitter = 0;
    struct submit_item job = rig_submit_default(r, client);
    rig_pass(r, 300);
    struct claimed_task task = rig_claim(r, "w");
    expect_notice(r, JOB_EVENT_ASSIGNED, 300, -1);
    rig_pass(r, 40);
    rig_work(r, &start_command_type, &task);
    expect_notice(r, JOB_EVENT_RUNNING, 40, -1);
    rig_pass(r, 5000);
    rig_fail(r, &task);
    expect_notice(r, JOB_EVENT_FAILED, 5000, 5000);
    rig_pass(r, 77);
    rig_retry(r, client, &job);
    rig_pass(r, 1600); /* of which a second was its backoff */
    task = rig_claim(r, "w");
    expect_notice(r, JOB_EVENT_ASSIGNED, 600, -1);
    rig_pass(r, 7);
    rig_cancel(r, client, &job); /* it was never begun */
    expect_notice(r, JOB_EVENT_CANCELED, 7, -1);
}

/* It is as if nobody had had it, but for the token: what the first one says later is not heard. */
RIG_TEST(test_a_lease_that_ends_unstarted_leaves_no_trace_of_its_worker, r)
{
    struct submit_item job = rig_submit_default(r, rig_new_client(r, NULL));
    struct claimed_task task = rig_claim(r, "w");
    assert_true(str_is(rig_task(r, job.id).worker, "w"));
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    struct task_row row = rig_task(r, job.id);
    assert_null(row.worker.ptr);
    assert_int_equal(row.lease_ms, 0);
    assert_int_equal(row.due_ms, 0);
    assert_int_equal(row.token, task.token + 1);
    assert_int_equal(rig_work(r, &start_command_type, &task).code, ERR_LEASE_LOST);
}

/* Words from workers go into events and reports, cut to fit and never in the middle of a character. */
RIG_TEST(test_an_error_of_any_length_is_cut_to_fit, r)
{
    int64_t client = rig_new_client(r, NULL);
    static const char *const pieces[] = {"x", "\xc3\xa4", "\x01", "\"", "\xf0\x9f\x98\x80"};
    for (size_t p = 0; p < LENGTH_OF(pieces); p++)
        for (size_t count = 0; count < 5000; count = count * 3 + 1) {
            struct submit_item job = rig_submit_default(r, client);
            struct claimed_task task = rig_claim(r, "w");
            rig_work(r, &start_command_type, &task);
            struct strbuf text = {0};
            strbuf_add_text(&text, "");
            for (size_t i = 0; i < count; i++)
                strbuf_add_text(&text, pieces[p]);
            struct worker_command *c = rig_post_work(r, &finish_command_type, &task, false);
            c->items[0].outcome.error_code = c->items[0].outcome.error_message =
                arena_str(r->arena, strbuf_str(&text));
            strbuf_free(&text);
            rig_step(r);
            assert_int_equal(rig_state(r, job.id), JOB_FAILED);
            assert_true(str_is_utf8(rig_view(r, job.id).error));
            assert_true(str_is_utf8(rig_last_event(r, job.id).extra));
        }
}

/* Seed 001, section 9: the moves there are. The last is the recovery of AJ-22. */
static const enum job_state moves[][2] = {
    {JOB_CREATED, JOB_QUEUED},    {JOB_CREATED, JOB_CANCELED}, {JOB_QUEUED, JOB_ASSIGNED},
    {JOB_QUEUED, JOB_CANCELED},   {JOB_ASSIGNED, JOB_RUNNING}, {JOB_ASSIGNED, JOB_CANCELED},
    {JOB_RUNNING, JOB_SUCCEEDED}, {JOB_RUNNING, JOB_FAILED},   {JOB_RUNNING, JOB_CANCELED},
    {JOB_FAILED, JOB_QUEUED},     {JOB_ASSIGNED, JOB_QUEUED},
};

static bool is_a_move(enum job_state from, enum job_state to)
{
    for (size_t i = 0; i < LENGTH_OF(moves); i++)
        if (moves[i][0] == from && moves[i][1] == to)
            return true;
    return false;
}

enum tried { CANCEL, RETRY, START, BEAT, SUCCEED, FAIL, RELEASE, TRIED_COUNT };

/* A command for a job, by its owner or by the worker that holds its task. */
static void try_command(struct rig *r, enum tried what, int64_t client, const struct submit_item *job,
                        const struct claimed_task *task)
{
    switch (what) {
    case CANCEL:
        rig_cancel(r, client, job);
        return;
    case RETRY:
        rig_retry(r, client, job);
        return;
    case START:
        rig_work(r, &start_command_type, task);
        return;
    case BEAT:
        rig_work(r, &heartbeat_command_type, task);
        return;
    case SUCCEED:
        rig_work(r, &finish_command_type, task);
        return;
    case FAIL:
        rig_fail(r, task);
        return;
    case RELEASE:
        rig_work(r, &release_command_type, task);
        return;
    case TRIED_COUNT:
        break;
    }
    fail();
}

/* Every command in every state: one move of the list with one event that tells of it, or nothing at all.
 * [JOB-120] [JOB-121] [JOB-122] [JOB-123] [JOB-124] [JOB-125] [JOB-126] */
RIG_TEST(test_a_command_makes_a_move_of_the_list_or_changes_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    int moved = 0, refused = 0;
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        for (int what = 0; what < TRIED_COUNT; what++) {
            struct claimed_task task = {0};
            struct submit_item job = job_in(r, client, (enum job_state)s, &task);
            if (!task.id)
                task = (struct claimed_task){.id = job.id, .low = job.low, .token = 1, .client = client};
            size_t events = rig_event_count(r, job.id);
            try_command(r, (enum tried)what, client, &job, &task);
            enum job_state now = rig_state(r, job.id);
            if (rig_event_count(r, job.id) != events) {
                struct event e = rig_last_event(r, job.id);
                bool by_way_of_failed = s == JOB_RUNNING && what == RELEASE;
                int from = by_way_of_failed ? JOB_FAILED : s;
                assert_true(is_a_move((enum job_state)from, now));
                assert_int_equal(e.prev, from);
                assert_int_equal(e.next, now);
                assert_int_equal(e.seq, events + 1 + by_way_of_failed);
                moved++;
            } else {
                assert_int_equal(now, s);
                refused++;
            }
            rig_cancel(r, client, &job); /* the next one is alone in the queue */
        }
    assert_int_equal(moved, 4 + 1 + 1 + 2 + 2); /* cancel, retry, start, the two releases and finishes */
    assert_int_equal(moved + refused, JOB_STATE_COUNT * TRIED_COUNT);
}

int main(void)
{
    return rig_run_all();
}
