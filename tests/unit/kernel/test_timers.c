/* Time: schedules and backoff follow the wall clock, leases and limits the steady one; nothing is early.
 * On both stores. */
#include "unit/kernel/rig.h"

#include "base/time_text.h"

#include "base/banned.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS };

/* [JOB-128] [JOB-129] [JOB-133] */
RIG_TEST(test_a_scheduled_job_is_queued_when_due_and_not_a_millisecond_earlier, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_deferred(r, client, 3000);
    assert_int_equal(job.state, JOB_CREATED);
    rig_pass(r, 2999);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_CREATED);
    assert_int_equal(rig_claim_count(r, "w", 1), 0);
    rig_pass(r, 1);
    struct claimed_task t = rig_claim(r, "w"); /* the same batch queues and assigns it */
    assert_int_equal(t.id, job.id);
    struct event events[RIG_EVENTS_MAX];
    assert_int_equal(rig_events(r, job.id, events), 3);
    assert_int_equal(events[1].event, JOB_EVENT_QUEUED);
    assert_true(events[1].at_us / 1000 >= rig_view(r, job.id).job.execution_ms);
}

RIG_TEST(test_a_schedule_between_two_milliseconds_is_rounded_up, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    char text[TIME_TEXT_MAX];
    item.type = STR("DEFERRED");
    item.execution_at = time_text_us(r->wall_us + 5001, text); /* 5 ms and 1 us */
    item = rig_submit(r, client, &item);
    rig_pass(r, 5);
    rig_step(r);
    assert_int_equal(rig_state(r, item.id), JOB_CREATED);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, item.id), JOB_QUEUED);
}

RIG_TEST(test_many_schedules_fire_in_order_of_their_times, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item jobs[50];
    for (int i = 0; i < 50; i++)
        jobs[i] = rig_submit_deferred(r, client, 1000 + (i * 37 % 50) * 10);
    for (int at = 0; at <= 1600; at += 10) {
        rig_step(r);
        for (int i = 0; i < 50; i++) {
            bool due = 1000 + (i * 37 % 50) * 10 <= at;
            assert_int_equal(rig_state(r, jobs[i].id), due ? JOB_QUEUED : JOB_CREATED);
        }
        rig_pass(r, 10);
    }
}

RIG_TEST_UNSHARED(test_a_clock_set_forward_moves_no_schedule_and_ends_no_lease, r, RIG_OWN_CLOCK)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item assigned = rig_submit_default(r, client), running = rig_submit_default(r, client);
    struct claimed_task a = rig_claim(r, "a"), b = rig_claim(r, "b");
    rig_work(r, &start_command_type, &b);
    struct submit_item scheduled = rig_submit_deferred(r, client, HOUR_MS);
    rig_set_wall(r, DAY_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_CREATED);
    kernel_accept_clock(r->kernel);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
    assert_int_equal(rig_state(r, assigned.id), JOB_ASSIGNED);
    assert_int_equal(rig_state(r, running.id), JOB_RUNNING);
    rig_pass(r, 29999);
    rig_step(r);
    assert_int_equal(rig_state(r, assigned.id), JOB_ASSIGNED);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &b).code, ERR_OK);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_work(r, &start_command_type, &a).code, ERR_LEASE_LOST);
    assert_int_equal(rig_state(r, running.id), JOB_RUNNING); /* far from its runtime limit */
}

RIG_TEST_UNSHARED(test_a_clock_set_back_delays_schedules_and_ends_leases_in_time, r, RIG_OWN_CLOCK)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.has_max_runtime = true;
    item.max_runtime_ms = 20000;
    struct submit_item running = rig_submit(r, client, &item), assigned = rig_submit_default(r, client);
    struct claimed_task a = rig_claim(r, "a");
    rig_work(r, &start_command_type, &a);
    rig_claim(r, "b");
    struct submit_item scheduled = rig_submit_deferred(r, client, 10000);
    rig_set_wall(r, -HOUR_MS);
    rig_pass(r, 19999);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_CREATED);
    assert_int_equal(rig_state(r, running.id), JOB_RUNNING);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, running.id), JOB_FAILED);
    assert_int_equal(rig_last_event(r, running.id).event, JOB_EVENT_TIMED_OUT);
    rig_pass(r, 10000);
    rig_step(r);
    assert_int_equal(rig_state(r, assigned.id), JOB_QUEUED);
    rig_pass(r, HOUR_MS - 20000 - 1);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_CREATED);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, scheduled.id), JOB_QUEUED);
}

/* One before 1970 moves nothing, for as long as it lasts. */
RIG_TEST_UNSHARED(test_a_clock_before_1970_fires_nothing_and_time_goes_on, r, RIG_OWN_CLOCK)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item far = rig_submit_deferred(r, client, 10 * DAY_MS);
    struct submit_item soon = rig_submit_deferred(r, client, 2 * HOUR_MS);
    rig_set_wall(r, -r->wall_us / 1000 - DAY_MS);
    kernel_accept_clock(r->kernel);
    rig_pass(r, HOUR_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, far.id), JOB_CREATED);
    assert_int_equal(rig_state(r, soon.id), JOB_CREATED);
    rig_pass(r, HOUR_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, far.id), JOB_CREATED);
    assert_int_equal(rig_state(r, soon.id), JOB_QUEUED);
}

/* Event times rise per job whatever the clock does; the check at the end of every test proves it. */
RIG_TEST(test_event_times_rise_while_the_clock_runs_backwards, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    rig_set_wall(r, -5000);
    struct claimed_task t = rig_claim(r, "w");
    rig_set_wall(r, -5000);
    rig_work(r, &start_command_type, &t);
    rig_set_wall(r, -5000);
    rig_work(r, &finish_command_type, &t);
    struct event events[RIG_EVENTS_MAX];
    size_t n = rig_events(r, job.id, events);
    assert_int_equal(n, 5);
    for (size_t i = 1; i < n; i++)
        assert_true(events[i].at_us > events[i - 1].at_us);
    struct job_view v = rig_view(r, job.id);
    assert_true(v.finished_ms >= v.started_ms);
}

RIG_TEST(test_ids_rise_while_the_clock_runs_backwards, r)
{
    int64_t client = rig_new_client(r, NULL);
    int64_t last = 0;
    for (int i = 0; i < 10; i++) {
        int64_t id = rig_submit_default(r, client).id;
        assert_true(id > last);
        last = id;
        rig_set_wall(r, -1000);
    }
    rig_restart(r, 0);
    assert_true(rig_submit_default(r, client).id > last);
}

/* AJ-16 */
RIG_TEST(test_a_due_job_that_meets_a_full_queue_stays_created_and_is_tried_each_second, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_size = 2;
    struct submit_item job = rig_submit_deferred(r, client, 100);
    rig_submit_default(r, client);
    rig_submit_default(r, client);
    for (int i = 0; i < 3; i++) {
        rig_pass(r, 1000);
        rig_step(r);
        assert_int_equal(rig_state(r, job.id), JOB_CREATED);
        assert_int_equal(rig_event_count(r, job.id), 1);
    }
    rig_claim(r, "w");
    rig_pass(r, 1000);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
}

/* JOB-131, the part behind the process start. */
RIG_TEST(test_a_schedule_survives_a_restart, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_deferred(r, client, 10000);
    rig_restart(r, 3000);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_CREATED);
    rig_pass(r, 6999);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_CREATED);
    rig_pass(r, 1);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
}

/* JOB-132, the part behind the process start. */
RIG_TEST(test_a_schedule_missed_while_down_is_queued_by_the_first_batch, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_deferred(r, client, 3000);
    rig_restart(r, DAY_MS);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
}

RIG_TEST_UNSHARED(test_leases_are_granted_anew_after_a_restart_and_tokens_still_hold, r,
                  "other nodes go on: a restart of one grants nothing anew")
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item one = rig_submit_default(r, client), two = rig_submit_default(r, client);
    struct claimed_task a = rig_claim(r, "a"), b = rig_claim(r, "b");
    rig_work(r, &start_command_type, &b);
    rig_restart(r, 60000); /* longer than a lease: nobody could beat meanwhile */
    rig_step(r);
    assert_int_equal(rig_state(r, one.id), JOB_ASSIGNED);
    assert_int_equal(rig_state(r, two.id), JOB_RUNNING);
    rig_pass(r, 29999);
    assert_int_equal(rig_work(r, &start_command_type, &a).code, ERR_OK);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &b).code, ERR_OK);
    assert_int_equal(rig_work(r, &finish_command_type, &b).code, ERR_OK);
    assert_int_equal(rig_state(r, two.id), JOB_SUCCEEDED);
    rig_pass(r, 30000);
    rig_step(r);
    assert_int_equal(rig_state(r, one.id), JOB_FAILED); /* worker_lost */
}

/* A batch that outlasts an outage of its store has not asked for the duties since: what ended meanwhile is
 * not looked at. The second half is the control: it is, where the store was there. */
RIG_TEST(test_a_heartbeat_that_waited_for_the_store_finds_its_lease, r)
{
    if (!r->shared)
        skip(); /* a store of our own is never away while we wait for it */
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "w");
    rig_work(r, &start_command_type, &t);
    r->load_outage_ms = 60000;
    assert_int_equal(rig_work(r, &heartbeat_command_type, &t).code, ERR_OK);
    assert_int_equal(r->load_outage_ms, 0);
    assert_int_equal(rig_state(r, job.id), JOB_RUNNING);
    rig_pass(r, 60000);
    assert_int_equal(rig_work(r, &heartbeat_command_type, &t).code, ERR_LEASE_LOST);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
}

RIG_TEST(test_time_spent_down_counts_against_the_runtime_limit, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "w");
    rig_work(r, &start_command_type, &t);
    rig_restart(r, 125000);
    rig_step(r);
    assert_int_equal(rig_state(r, job.id), JOB_FAILED);
    assert_int_equal(rig_last_event(r, job.id).event, JOB_EVENT_TIMED_OUT);
}

int main(void)
{
    return rig_run_all();
}
