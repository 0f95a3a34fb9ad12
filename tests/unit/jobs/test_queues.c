/* Queues of a client: paused, resumed, with defaults and a retention of their own; many jobs at once. On
 * all stores. */
#include "unit/kernel/rig.h"

#include "jobs/purge_early.h"
#include "jobs/queue_commands.h"

#include "base/banned.h"

static const struct queue_defaults none = {-1, -1, -1, -1};

static struct queue_command *post(struct rig *r, int64_t client, const char *queue, enum queue_action action,
                                  const struct queue_defaults *d)
{
    struct queue_command *c = ARENA_NEW(r->arena, struct queue_command);
    c->client = client;
    c->queue = str_of(queue);
    c->action = action;
    c->defaults = *d;
    rig_post(r, &c->base, &queue_command_type);
    return c;
}

static struct queue_command *act(struct rig *r, int64_t client, const char *queue, enum queue_action action)
{
    struct queue_command *c = post(r, client, queue, action, &none);
    rig_step(r);
    return c;
}

static struct queue_command *set(struct rig *r, int64_t client, const char *queue, struct queue_defaults d)
{
    struct queue_command *c = post(r, client, queue, QUEUE_SET, &d);
    rig_step(r);
    return c;
}

static struct bulk_command *post_bulk(struct rig *r, int64_t client, enum bulk_action action,
                                      const int64_t *ids, size_t count)
{
    struct bulk_command *c = ARENA_NEW(r->arena, struct bulk_command);
    c->action = action;
    c->client = client;
    c->only_state = -1;
    c->ids = ids;
    c->id_count = count;
    rig_post(r, &c->base, &bulk_command_type);
    return c;
}

static struct bulk_command *bulk(struct rig *r, int64_t client, enum bulk_action action, const int64_t *ids,
                                 size_t count)
{
    struct bulk_command *c = post_bulk(r, client, action, ids, count);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    return c;
}

/* --- pause and resume ------------------------------------------------------------------------------ */

RIG_TEST(a_paused_queue_is_passed_over_also_after_a_restart, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct submit_item first = rig_submit_default(r, client);
    assert_true(act(r, client, "default", QUEUE_PAUSE)->changed);
    assert_false(act(r, client, "default", QUEUE_PAUSE)->changed);
    struct submit_item second = rig_submit_default(r, client), theirs = rig_submit_default(r, other);
    assert_int_equal(rig_claim(r, "w").id, theirs.id);
    assert_int_equal(rig_claim_count(r, "w", 10), 0);
    if (r->on_disk) {
        rig_restart(r, 10);
        assert_int_equal(rig_claim_count(r, "w", 10), 0);
    }
    assert_int_equal(rig_rows(r, &table_queue_row), 1);
    assert_true(act(r, client, "default", QUEUE_RESUME)->changed);
    assert_int_equal(rig_rows(r, &table_queue_row), 0); /* nothing is set any more */
    assert_int_equal(rig_claim(r, "w").id, first.id);
    assert_int_equal(rig_claim(r, "w").id, second.id);
}

RIG_TEST(what_is_claimed_goes_on_and_what_comes_back_waits, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item kept = rig_submit_default(r, client), given_back = rig_submit_default(r, client);
    struct claimed_task first = rig_claim(r, "w"), second = rig_claim(r, "w");
    act(r, client, "default", QUEUE_PAUSE);
    assert_int_equal(rig_work(r, &start_command_type, &first).code, ERR_OK);
    assert_int_equal(rig_work(r, &finish_command_type, &first).code, ERR_OK);
    assert_int_equal(rig_work(r, &release_command_type, &second).code, ERR_OK);
    assert_int_equal(rig_state(r, kept.id), JOB_SUCCEEDED);
    assert_int_equal(rig_state(r, given_back.id), JOB_QUEUED);
    assert_int_equal(rig_claim_count(r, "w", 10), 0);
}

RIG_TEST(a_parked_claim_is_woken_by_a_resumption, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    act(r, client, "default", QUEUE_PAUSE);
    struct claim_command *parked = rig_post_claim(r, "w", 1, 60000);
    rig_step(r);
    assert_false(rig_is_done(&parked->base));
    act(r, client, "default", QUEUE_RESUME);
    rig_step(r);
    assert_true(rig_is_done(&parked->base));
    assert_int_equal(parked->tasks[0].id, job.id);
}

RIG_TEST(a_failed_commit_pauses_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    assert_int_equal(act(r, client, "default", QUEUE_PAUSE)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_claim(r, "w").id, job.id);
}

/* --- defaults --------------------------------------------------------------------------------------- */

RIG_TEST(defaults_are_given_to_jobs_that_do_not_say, r)
{
    int64_t client = rig_new_client(r, NULL);
    set(r, client, "default",
        (struct queue_defaults){
            .retry = JOB_RETRY_AUTO, .max_retries = 1, .queue_ttl_seconds = 60, .retention_seconds = -1});
    struct submit_item job = rig_submit_default(r, client);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.job.retry, JOB_RETRY_AUTO);
    assert_int_equal(v.job.max_retries, 1);
    assert_int_equal(v.job.queue_ttl_ms, 60000);
    struct submit_item says = rig_item();
    says.max_retries = 2;
    says.has_max_retries = true;
    says.retry = STR("manual");
    v = rig_view(r, rig_submit(r, client, &says).id);
    assert_int_equal(v.job.retry, JOB_RETRY_MANUAL);
    assert_int_equal(v.job.max_retries, 2);
    act(r, client, "default", QUEUE_PAUSE);
    assert_int_equal(act(r, client, "default", QUEUE_RESUME)->defaults.max_retries,
                     1); /* apart from a pause */
    assert_int_equal(set(r, client, "default", none)->defaults.max_retries, -1);
    assert_int_equal(rig_rows(r, &table_queue_row), 0);
}

RIG_TEST(a_default_that_is_not_allowed_changes_nothing, r)
{
    int64_t client = rig_new_client(r, NULL);
    const struct queue_defaults bad[] = {{-1, r->settings.jobs_retry_max + 1, -1, -1},
                                         {-1, -1, 0, -1},
                                         {-1, -1, JOB_QUEUE_TTL_SECONDS_MAX + 1, -1},
                                         {-1, -1, -1, 0},
                                         {-1, -1, -1, r->settings.jobs_retention_seconds + 1}};
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_int_equal(set(r, client, "q", bad[i])->base.result, ERR_JOB_VALIDATION_FAILED);
    assert_int_equal(rig_rows(r, &table_queue_row), 0);
    const struct queue_defaults good[] = {{-1, 0, -1, -1}, {-1, r->settings.jobs_retry_max, -1, -1},
                                          {-1, -1, 1, -1}, {-1, -1, JOB_QUEUE_TTL_SECONDS_MAX, -1},
                                          {-1, -1, -1, 1}, {-1, -1, -1, r->settings.jobs_retention_seconds}};
    for (size_t i = 0; i < LENGTH_OF(good); i++)
        assert_int_equal(set(r, client, "q", good[i])->base.result, ERR_OK);
}

RIG_TEST(a_client_sets_so_many_queues_and_no_more, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    for (int i = 0; i < QUEUES_SET_MAX; i++)
        post(r, client, arena_printf(r->arena, "q%d", i).ptr, QUEUE_PAUSE, &none);
    rig_step(r);
    rig_step(r);
    assert_int_equal(rig_rows(r, &table_queue_row), QUEUES_SET_MAX);
    assert_int_equal(act(r, client, "more", QUEUE_PAUSE)->base.result, ERR_EXEC_CLIENT_LIMIT);
    assert_int_equal(act(r, client, "q7", QUEUE_RESUME)->base.result, ERR_OK);
    assert_int_equal(act(r, client, "more", QUEUE_PAUSE)->base.result, ERR_OK);
    assert_int_equal(act(r, other, "more", QUEUE_PAUSE)->base.result, ERR_OK);
}

/* --- retention ---------------------------------------------------------------------------------------- */

static void purge(struct rig *r)
{
    for (int i = 0; i < 50; i++) {
        rig_step(r);
        rig_pass(r, 500);
    }
    rig_expect_sound(r);
}

static bool is_there(struct rig *r, const struct submit_item *job)
{
    struct job_view v;
    return rig_find(r, job->id, &v);
}

RIG_TEST(jobs_of_a_queue_with_a_retention_leave_before_others, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    set(r, client, "default", (struct queue_defaults){-1, -1, -1, .retention_seconds = 100});
    struct submit_item done = rig_submit_default(r, client), theirs = rig_submit_default(r, other);
    rig_run(r, true);
    rig_run(r, true);
    struct submit_item waits = rig_submit_default(r, client), canceled = rig_submit_default(r, client);
    rig_cancel(r, client, &canceled);
    rig_pass(r, 60000);
    purge(r);
    assert_true(is_there(r, &done));
    rig_pass(r, 60000);
    purge(r);
    assert_false(is_there(r, &done));
    assert_false(is_there(r, &canceled));
    assert_true(is_there(r, &theirs));
    assert_true(is_there(r, &waits)); /* unfinished */
    assert_int_equal(rig_counts(r, client).by_state[JOB_SUCCEEDED], 0);
}

RIG_TEST(a_job_that_was_retried_leaves_after_its_last_end, r)
{
    int64_t client = rig_new_client(r, NULL);
    set(r, client, "default", (struct queue_defaults){-1, -1, -1, .retention_seconds = 200});
    struct submit_item job = rig_submit_default(r, client);
    rig_run(r, false);
    rig_pass(r, 150000);
    rig_retry(r, client, &job);
    rig_pass(r, 60000);
    rig_step(r);
    rig_run(r, true);
    purge(r); /* the time of its first end is over */
    assert_true(is_there(r, &job));
    rig_pass(r, 220000);
    purge(r);
    assert_false(is_there(r, &job));
}

RIG_TEST(a_retention_that_was_taken_back_or_raised_keeps_jobs, r)
{
    int64_t client = rig_new_client(r, NULL);
    set(r, client, "default", (struct queue_defaults){-1, -1, -1, .retention_seconds = 100});
    struct submit_item raised = rig_submit_default(r, client);
    rig_run(r, true);
    set(r, client, "default", (struct queue_defaults){-1, -1, -1, .retention_seconds = 300});
    rig_pass(r, 150000);
    purge(r);
    assert_true(is_there(r, &raised));
    struct submit_item kept = rig_submit_default(r, client);
    rig_run(r, true);
    rig_pass(r, 160000);
    purge(r);
    assert_false(is_there(r, &raised));
    set(r, client, "default", none);
    rig_pass(r, 400000);
    purge(r);
    assert_true(is_there(r, &kept));
}

/* --- many jobs at once ---------------------------------------------------------------------------------- */

RIG_TEST(a_bulk_cancel_passes_over_what_is_not_its_business, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct submit_item done = rig_submit_default(r, client);
    rig_run(r, true);
    struct submit_item mine = rig_submit_default(r, client), theirs = rig_submit_default(r, other);
    const int64_t ids[] = {theirs.id, mine.id, done.id, 12345};
    assert_int_equal(bulk(r, client, BULK_CANCEL, ids, LENGTH_OF(ids))->changed, 1);
    assert_int_equal(rig_state(r, mine.id), JOB_CANCELED);
    assert_int_equal(rig_state(r, theirs.id), JOB_QUEUED);
    assert_int_equal(bulk(r, client, BULK_CANCEL, ids, LENGTH_OF(ids))->changed, 0);
}

/* One rule is enough to leave a job alone: its state, or a queue that the key has no power over. */
RIG_TEST(a_bulk_cancel_is_of_one_state_and_of_the_queues_of_its_key, r)
{
    static const struct {
        const char *queues;
        int state;
        size_t changed;
    } rows[] = {{"other", -1, 0},           {"other", JOB_QUEUED, 0}, {"default", JOB_CREATED, 0},
                {"default", JOB_QUEUED, 1}, {"default,other", -1, 1}, {NULL, JOB_QUEUED, 1}};
    int64_t client = rig_new_client(r, NULL);
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        int64_t id = rig_submit_default(r, client).id;
        struct bulk_command *c = post_bulk(r, client, BULK_CANCEL, &id, 1);
        if (rows[i].queues)
            c->queues = str_of(rows[i].queues);
        c->only_state = rows[i].state;
        rig_step(r);
        assert_int_equal(c->changed, rows[i].changed);
        bulk(r, client, BULK_CANCEL, &id, 1);
    }
}

RIG_TEST(a_bulk_retry_obeys_the_rules_of_a_retry, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    struct submit_item failed = rig_submit(r, client, &item);
    rig_run(r, false);
    item.has_max_retries = true; /* and none is allowed */
    struct submit_item used_up = rig_submit(r, client, &item);
    rig_run(r, false);
    struct submit_item waits = rig_submit_default(r, client);
    const int64_t ids[] = {waits.id, used_up.id, failed.id};
    struct bulk_command *c = bulk(r, client, BULK_RETRY, ids, LENGTH_OF(ids));
    assert_int_equal(c->changed, 1);
    assert_int_equal(c->handled, 3);
    assert_int_equal(rig_state(r, failed.id), JOB_QUEUED);
    assert_int_equal(rig_view(r, failed.id).attempt, 2);
    assert_int_equal(rig_state(r, used_up.id), JOB_FAILED);
}

RIG_TEST(a_bulk_retry_stops_where_there_is_no_room, r)
{
    int64_t client = rig_new_client(r, NULL), ids[4];
    for (size_t i = 0; i < LENGTH_OF(ids); i++) {
        ids[i] = rig_submit_default(r, client).id;
        rig_run(r, false);
    }
    r->settings.jobs_queue_size = 2;
    r->settings.jobs_max_active_per_client = r->settings.jobs_max_active;
    struct bulk_command *c = bulk(r, client, BULK_RETRY, ids, LENGTH_OF(ids));
    assert_true(c->is_full);
    assert_int_equal(c->changed, 2);
    assert_int_equal(c->handled, 2);
}

int main(void)
{
    return rig_run_all();
}
