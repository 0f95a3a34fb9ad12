/* One batch, one transaction: what a failed commit undoes, what is written once, who is answered when. On
 * both stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

static struct submit_item keyed(const char *key, uint8_t body)
{
    struct submit_item item = rig_item();
    item.idem_key = str_of(key);
    memset(item.fingerprint, body, sizeof item.fingerprint);
    return item;
}

/* [JOB-175] */
RIG_TEST(test_a_failed_commit_undoes_a_submit_and_the_next_try_works, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = keyed("k", 1);
    r->failures = 1;
    struct submit_item failed = rig_submit(r, client, &item);
    assert_int_equal(failed.err.code, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_live_count(r), 0);
    assert_int_equal(r->store->idem.used, 0);
    assert_int_equal(counts_of(&r->store->counts, client)->by_state[JOB_QUEUED], 0);
    assert_int_equal(rig_claim_count(r, "w", 1), 0);
    struct submit_item again = rig_submit(r, client, &item);
    assert_int_equal(again.err.code, ERR_OK);
    assert_false(again.replayed);
    assert_int_equal(rig_counts(r, client).by_state[JOB_QUEUED], 1);
}

RIG_TEST(test_a_failed_commit_undoes_claim_start_and_finish, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    r->failures = 1;
    struct claim_command *c = rig_post_claim(r, "a", 1, 0);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_STORAGE_DB_ERROR);
    assert_null(rig_task(r, job.id).worker.ptr);
    rig_pass(r, 1000);
    struct claimed_task t = rig_claim(r, "b");
    assert_int_equal(t.id, job.id);
    assert_int_equal(t.token, 1); /* the token of the failed claim was never given */
    r->failures = 1;
    struct worker_command *w = rig_post_work(r, &start_command_type, &t, true);
    rig_step(r);
    assert_int_equal(w->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_task(r, job.id).state, JOB_ASSIGNED);
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
    r->failures = 1;
    w = rig_post_work(r, &finish_command_type, &t, true);
    rig_step(r);
    assert_int_equal(w->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_task(r, job.id).state, JOB_RUNNING);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    assert_int_equal(rig_work(r, &finish_command_type, &t).code, ERR_OK);
    assert_int_equal(rig_event_count(r, job.id), 5);
}

RIG_TEST(test_a_failed_commit_undoes_cancel_and_retry, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    r->failures = 1;
    assert_int_equal(rig_cancel(r, client, &job)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    rig_run(r, false);
    r->failures = 1;
    assert_int_equal(rig_retry(r, client, &job)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    assert_int_equal(rig_live_count(r), 0);
    assert_int_equal(rig_retry(r, client, &job)->attempt, 2);
    rig_pass(r, 60000);
    rig_run(r, true);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
}

RIG_TEST(test_a_failed_commit_undoes_timers_which_try_again_after_a_pause, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    rig_claim(r, "w");
    rig_pass(r, 30000);
    r->failures = 1;
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_ASSIGNED);
    assert_true(str_is(rig_task(r, job.id).worker, "w"));
    rig_pass(r, 199);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_ASSIGNED);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    assert_int_equal(rig_event_count(r, job.id), 4);
}

/* A job that fails, is retried and canceled in one batch that does not commit is what it was. */
RIG_TEST(test_a_failed_commit_undoes_several_changes_of_one_job, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "w");
    rig_work(r, &start_command_type, &t);
    for (int round = 0; round < 2; round++) {
        r->failures = round == 0;
        rig_post_work(r, &finish_command_type, &t, false);
        struct job_command *retry = rig_post_job(r, &retry_command_type, client, &job);
        struct job_command *cancel = rig_post_job(r, &cancel_command_type, client, &job);
        struct job_command *late = rig_post_job(r, &retry_command_type, client, &job);
        rig_step(r);
        assert_int_equal(retry->base.result, round ? ERR_OK : ERR_STORAGE_DB_ERROR);
        assert_true(retry->changed && cancel->changed && !late->changed);
        assert_int_equal(late->state, JOB_CANCELED);
        rig_expect_sound(r);
        assert_int_equal(rig_state(r, job.id), round ? JOB_CANCELED : JOB_RUNNING);
    }
    assert_int_equal(rig_event_count(r, job.id), 7);
}

/* What cannot be read may be half decided, so the whole batch is undone, timers too. */
RIG_TEST(test_a_row_that_cannot_be_read_fails_its_batch_and_nothing_changes, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client), scheduled = rig_submit_deferred(r, client, 1000);
    rig_pass(r, 1000);
    rig_step(r); /* housekeeping has been */
    struct submit_item later = rig_submit_deferred(r, client, 500), item = rig_item();
    rig_pass(r, 500);
    r->fetches_left = 0;
    struct submit_command *submit = rig_post_submit(r, client, &item, 1);
    struct job_command *cancel = rig_post_job(r, &cancel_command_type, client, &job);
    rig_step(r);
    assert_int_equal(r->fetches_left, -1);
    assert_int_equal(cancel->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(submit->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    assert_int_equal(rig_state(r, later.id), JOB_CREATED);
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
    assert_int_equal(rig_live_count(r), 3);
    rig_pass(r, 200);
    assert_true(rig_cancel(r, client, &job)->changed);
    assert_int_equal(rig_state(r, later.id), JOB_QUEUED);
}

RIG_TEST(test_a_row_changed_many_times_in_a_batch_is_written_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int i = 0; i < 10; i++) {
        struct submit_item item = rig_item();
        rig_post_submit(r, client, &item, 1);
    }
    rig_post_claim(r, "a", 5, 0);
    rig_post_claim(r, "b", 5, 0);
    size_t commits = r->commits;
    rig_step(r);
    assert_int_equal(r->commits, commits + 1);
    assert_int_equal(r->writes[TABLE_NUMBER_job_row], 10);
    assert_int_equal(r->writes[TABLE_NUMBER_task_row], 10); /* inserted as they are after the claims */
    assert_int_equal(r->writes[TABLE_NUMBER_stats_row], 1);
    assert_int_equal(r->notices, 30);
    assert_int_equal(rig_counts(r, client).by_state[JOB_ASSIGNED], 10);
}

RIG_TEST(test_a_batch_that_changes_nothing_commits_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    rig_cancel(r, client, &job);
    size_t commits = r->commits;
    rig_step(r);
    rig_cancel(r, client, &job);
    rig_claim_count(r, "w", 5);
    assert_int_equal(r->commits, commits);
}

RIG_TEST_UNSHARED(test_a_heartbeat_costs_no_commit, r,
                  "any node must be able to tell whether a lease has ended")
{
    int64_t client = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "w");
    rig_work(r, &start_command_type, &t);
    size_t commits = r->commits;
    rig_pass(r, 5000);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &t).code, ERR_OK);
    assert_int_equal(r->commits, commits);
}

/* [JOB-183] [JOB-070] */
RIG_TEST(test_sixty_four_submits_of_one_key_in_one_batch_make_one_job, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_command *all[64];
    struct submit_item item = keyed("same", 1);
    for (size_t i = 0; i < LENGTH_OF(all); i++)
        all[i] = rig_post_submit(r, client, &item, 1);
    assert_int_equal(rig_step(r), 64);
    int fresh = 0;
    for (size_t i = 0; i < LENGTH_OF(all); i++) {
        assert_int_equal(all[i]->items[0].err.code, ERR_OK);
        assert_int_equal(all[i]->items[0].id, all[0]->items[0].id);
        assert_int_equal(all[i]->items[0].low, all[0]->items[0].low);
        assert_int_equal(all[i]->items[0].created_ms, all[0]->items[0].created_ms);
        fresh += !all[i]->items[0].replayed;
    }
    assert_int_equal(fresh, 1);
    assert_int_equal(rig_live_count(r), 1);
    assert_int_equal(rig_counts(r, client).by_state[JOB_QUEUED], 1);
}

/* The same in one command of the batch endpoint, after a restart, and when the first commit fails. */
RIG_TEST(test_one_key_makes_one_job_within_a_list_across_restarts_and_failures, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item items[] = {keyed("a", 1), keyed("b", 1), keyed("a", 1), keyed("a", 2), keyed("b", 1)};
    r->failures = 1;
    struct submit_command *c = rig_post_submit(r, client, items, LENGTH_OF(items));
    rig_step(r);
    assert_int_equal(c->base.result, ERR_STORAGE_DB_ERROR);
    c = rig_post_submit(r, client, items, LENGTH_OF(items));
    rig_step(r);
    assert_int_equal(c->items[2].id, c->items[0].id);
    assert_int_equal(c->items[4].id, c->items[1].id);
    assert_int_equal(c->items[3].err.code, ERR_EXEC_IDEMPOTENCY_CONFLICT);
    assert_int_equal(rig_live_count(r), 2);
    rig_restart(r, 1000);
    struct submit_item again = rig_submit(r, client, &items[0]);
    assert_true(again.replayed);
    assert_int_equal(again.id, c->items[0].id);
}

/* [JOB-185] */
RIG_TEST(test_cancel_and_finish_in_one_batch_have_one_winner, r)
{
    int64_t client = rig_new_client(r, NULL);
    for (int cancel_first = 0; cancel_first < 2; cancel_first++) {
        struct submit_item job = rig_submit_default(r, client);
        struct claimed_task t = rig_claim(r, "w");
        rig_work(r, &start_command_type, &t);
        struct job_command *cancel = NULL;
        if (cancel_first)
            cancel = rig_post_job(r, &cancel_command_type, client, &job);
        struct worker_command *finish = rig_post_work(r, &finish_command_type, &t, true);
        if (!cancel_first)
            cancel = rig_post_job(r, &cancel_command_type, client, &job);
        rig_step(r);
        enum job_state want = cancel_first ? JOB_CANCELED : JOB_SUCCEEDED;
        assert_int_equal(rig_state(r, job.id), want);
        assert_int_equal(cancel->base.result, ERR_OK);
        assert_int_equal(cancel->state, want);
        assert_int_equal(cancel->changed, cancel_first);
        assert_int_equal(finish->items[0].code, cancel_first ? ERR_LEASE_LOST : ERR_OK);
        assert_int_equal(rig_event_count(r, job.id), 5);
    }
}

RIG_TEST(test_many_commands_are_answered_in_the_order_they_came, r)
{
    enum { MANY = 5000 }; /* more than one batch takes */
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_size = r->settings.jobs_max_active = MANY;
    struct submit_command **all = ARENA_ARRAY(r->arena, struct submit_command *, MANY);
    struct submit_item item = rig_item();
    for (int i = 0; i < MANY; i++)
        all[i] = rig_post_submit(r, client, &item, 1);
    size_t done = 0;
    while (done < MANY)
        done += rig_step(r);
    for (int i = 1; i < MANY; i++)
        assert_true(all[i]->items[0].id > all[i - 1]->items[0].id);
    assert_int_equal(rig_live_count(r), MANY);
}

/* Rows that are read count against the batch's memory: it ends early, and the rest comes next, in order. */
RIG_TEST(test_a_batch_of_large_rows_ends_early_and_loses_nothing, r)
{
    enum { JOBS = 50, BYTES = 250000 }; /* more than a batch may hold */
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job[JOBS], item = rig_item();
    struct job_command *cancel[JOBS];
    char *bytes = arena_alloc(r->arena, BYTES);
    memset(bytes, ' ', BYTES);
    memcpy(bytes, "{}", 2);
    item.payload = (struct str){bytes, BYTES};
    for (int i = 0; i < JOBS; i++)
        job[i] = rig_submit(r, client, &item);
    for (int i = 0; i < JOBS; i++)
        cancel[i] = rig_post_job(r, &cancel_command_type, client, &job[i]);
    size_t first = rig_step(r);
    assert_true(first > 0 && first < JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(rig_is_done(&cancel[i]->base), (size_t)i < first);
    struct job_command *last = rig_post_job(r, &retry_command_type, client, &job[0]);
    for (size_t done = first; done < JOBS + 1;)
        done += rig_step(r);
    assert_int_equal(last->state, JOB_CANCELED);
    assert_int_equal(rig_counts(r, client).by_state[JOB_CANCELED], JOBS);
}

/* So do the bodies that commands bring. */
RIG_TEST(test_a_batch_of_large_bodies_ends_early_and_loses_nothing, r)
{
    enum { JOBS = 10, PER_BATCH = 3 };
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    struct submit_command *all[JOBS];
    for (int i = 0; i < JOBS; i++) {
        all[i] = ARENA_NEW(r->arena, struct submit_command);
        *all[i] = (struct submit_command){.client = client, .items = &item, .item_count = 1};
        all[i]->base.bytes = UNIT_BYTES_MAX / PER_BATCH + 1;
        rig_post(r, &all[i]->base, &submit_command_type);
    }
    for (int done = 0; done < JOBS; done += PER_BATCH) {
        rig_step(r);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(rig_is_done(&all[i]->base), i < done + PER_BATCH);
    }
    assert_int_equal(rig_live_count(r), JOBS);
}

RIG_TEST(test_a_failed_sync_is_told_to_the_watcher_after_the_answers, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    r->failures = 1;
    r->failure = ERR_STORE_FSYNC;
    struct submit_item failed = rig_submit(r, client, &item);
    assert_int_equal(failed.err.code, ERR_STORE_FSYNC);
    assert_int_equal(r->fatal, 1);
}

RIG_TEST(test_stats_say_what_lives_and_whether_the_store_stores, r)
{
    int64_t client = rig_new_client(r, NULL);
    rig_submit_deferred(r, client, 5000);
    for (int i = 0; i < 3; i++)
        rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "a");
    rig_work(r, &start_command_type, &t);
    rig_claim(r, "b");
    rig_pass(r, 200);
    rig_step(r);
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.live, 4);
    assert_int_equal(s.waiting, 1);
    assert_int_equal(s.queued, 1);
    assert_int_equal(s.assigned, 1);
    assert_int_equal(s.running, 1);
    assert_int_equal(s.workers, 2);
    assert_true(s.storing);
    r->failures = 1;
    struct submit_item item = rig_item();
    rig_submit(r, client, &item);
    kernel_stats(r->kernel, &s);
    assert_false(s.storing);
    assert_int_equal(s.commit_errors, 1);
    rig_submit_default(r, client);
    kernel_stats(r->kernel, &s);
    assert_true(s.storing);
}

RIG_TEST(test_an_idle_server_finds_out_that_the_store_can_write_again, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct kernel_stats s;
    struct submit_item item = rig_item();
    r->failures = 1;
    rig_submit(r, client, &item);
    kernel_stats(r->kernel, &s);
    assert_false(s.storing);
    rig_step(r); /* asks at once, then every second */
    kernel_stats(r->kernel, &s);
    assert_true(s.storing);
}

RIG_TEST(test_a_batch_without_writes_says_nothing_about_the_store, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct kernel_stats s;
    struct submit_item item = rig_item();
    r->probe_fails = true;
    r->failures = 1;
    rig_submit(r, client, &item);
    for (int i = 0; i < 3; i++) {
        rig_pass(r, 1500);
        rig_step(r);
        kernel_stats(r->kernel, &s);
        assert_false(s.storing);
    }
    r->probe_fails = false;
    rig_pass(r, 1500);
    rig_step(r);
    kernel_stats(r->kernel, &s);
    assert_true(s.storing);
}

int main(void)
{
    return rig_run_all();
}
