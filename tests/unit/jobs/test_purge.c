/* Retention: what goes, what stays, and that the store is whole after each turn. On both stores. */
#include "unit/kernel/rig.h"

#include "base/banned.h"

enum { DAY_MS = 86400000 };
static const int64_t RETENTION_MS = (int64_t)30 * DAY_MS;

/* Turns until the purge has nothing more to do. */
static void purge(struct rig *r)
{
    for (int i = 0; i < 200; i++) {
        rig_step(r);
        rig_pass(r, 20);
    }
    rig_expect_sound(r);
}

static bool count_chunk(int64_t number, struct str chunk, void *arg)
{
    (void)number;
    (void)chunk;
    ++*(size_t *)arg;
    return true;
}

static size_t chunks(struct rig *r)
{
    struct err err;
    size_t n = 0;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan_log(r->reader, 0, count_chunk, &n, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return n;
}

static size_t listed(struct rig *r, int64_t client, uint8_t bucket)
{
    struct err err;
    int64_t ids[100];
    size_t n;
    struct list_query q = {.owner_key = client, .bucket = bucket, .below_id = INT64_MAX, .limit = 100};
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_list(r->reader, &q, ids, &n, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return n;
}

/* [JOB-236] [JOB-244] [JOB-245] [JOB-246] */
RIG_TEST(test_a_finished_job_leaves_with_everything_it_owns_and_not_earlier, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.idem_key = STR("key");
    struct submit_item done = rig_submit(r, client, &item), failed = rig_submit_default(r, client),
                       canceled = rig_submit_default(r, client);
    rig_run(r, true);
    rig_run(r, false);
    rig_retry(r, client, &failed);
    rig_pass(r, 60000);
    rig_cancel(r, client, &canceled);
    rig_run(r, false);
    rig_pass(r, RETENTION_MS - 10000);
    purge(r);
    assert_int_equal(rig_state(r, failed.id), JOB_FAILED);
    assert_int_equal(rig_rows(r, &table_archive_row), 1);
    rig_pass(r, 10000);
    purge(r);
    struct job_view v;
    assert_false(rig_find(r, done.id, &v) || rig_find(r, failed.id, &v) || rig_find(r, canceled.id, &v));
    assert_int_equal(rig_rows(r, &table_job_row), 0);
    assert_int_equal(rig_rows(r, &table_end_row), 0);
    assert_int_equal(rig_rows(r, &table_archive_row), 0);
    assert_int_equal(rig_rows(r, &table_kept_row), 0);
    assert_int_equal(chunks(r), 0);
    for (uint8_t bucket = 0; bucket <= JOB_STATE_COUNT; bucket++)
        assert_int_equal(listed(r, client, bucket), 0);
    struct client_counts none = {0}, counts = rig_counts(r, client);
    assert_memory_equal(&counts, &none, sizeof none);
    assert_int_equal(r->store->idem.used, 0);
    assert_int_equal(rig_cancel(r, client, &done)->base.result, ERR_JOB_NOT_FOUND);
    struct submit_item again = rig_submit(r, client, &item); /* its key is free again */
    assert_false(again.replayed);
    assert_int_not_equal(again.id, done.id);
}

/* [JOB-297] */
RIG_TEST(test_the_retention_time_is_the_setting, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_retention_seconds = 86400;
    struct submit_item job = rig_submit_default(r, client);
    rig_run(r, true);
    struct job_view v;
    rig_pass(r, DAY_MS - 10000);
    purge(r);
    assert_true(rig_find(r, job.id, &v));
    rig_pass(r, 10000);
    purge(r);
    assert_false(rig_find(r, job.id, &v));
}

/* The rest of JOB-244: unfinished old jobs are never purged, and their history stays whole. */
RIG_TEST(test_unfinished_jobs_stay_with_their_whole_history, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item scheduled = rig_submit_deferred(r, client, 20 * RETENTION_MS);
    struct submit_item retried = rig_submit_default(r, client);
    rig_run(r, false);
    rig_retry(r, client, &retried);
    struct submit_item queued = rig_submit_default(r, client);
    struct event before[RIG_EVENTS_MAX], after[RIG_EVENTS_MAX];
    size_t n = rig_events(r, retried.id, before);
    rig_pass(r, 3 * RETENTION_MS);
    purge(r);
    assert_int_equal(chunks(r), 0);
    assert_int_equal(rig_state(r, scheduled.id), JOB_CREATED);
    assert_int_equal(rig_state(r, queued.id), JOB_QUEUED);
    assert_int_equal(rig_events(r, retried.id, after), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(after[i].event, before[i].event);
        assert_int_equal(after[i].at_us, before[i].at_us);
        assert_memory_equal(after[i].id.bytes, before[i].id.bytes, 16);
        assert_true(str_equal(after[i].extra, before[i].extra));
    }
    assert_true(rig_rows(r, &table_kept_row) >= n);
}

/* The log's numbers go on when it was emptied, so an old reference never meets a new chunk. */
RIG_TEST(test_a_job_older_than_the_log_keeps_its_history_across_a_restart_and_ends_well, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    rig_pass(r, 2 * RETENTION_MS);
    purge(r);
    assert_int_equal(chunks(r), 0);
    rig_restart(r, 1000);
    assert_int_equal(rig_event_count(r, job.id), 2);
    struct submit_item later = rig_submit_default(r, client);
    rig_run(r, true);
    assert_int_equal(rig_state(r, job.id), JOB_SUCCEEDED);
    assert_int_equal(rig_event_count(r, job.id), 5);
    assert_int_equal(rig_event_count(r, later.id), 2);
    rig_expect_sound(r);
    rig_pass(r, RETENTION_MS + 1000);
    purge(r);
    struct job_view v;
    assert_false(rig_find(r, job.id, &v));
    assert_true(rig_find(r, later.id, &v));
    assert_int_equal(rig_rows(r, &table_kept_row), 2); /* the later one's only */
}

/* A clock that is wrong for a moment deletes nothing; one that an operator calls right does. */
RIG_TEST_UNSHARED(test_a_clock_that_jumps_ahead_deletes_nothing_before_it_is_accepted, r, RIG_OWN_CLOCK)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct job_view v;
    rig_run(r, true);
    rig_set_wall(r, 3 * RETENTION_MS);
    purge(r);
    assert_true(rig_find(r, job.id, &v));
    rig_set_wall(r, -3 * RETENTION_MS);
    purge(r);
    assert_true(rig_find(r, job.id, &v));
    rig_set_wall(r, 3 * RETENTION_MS);
    kernel_accept_clock(r->kernel);
    purge(r);
    assert_false(rig_find(r, job.id, &v));
}

/* Some jobs of a chunk live on while others go. */
RIG_TEST(test_neighbours_in_the_log_do_not_hold_each_other, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_retention_seconds = 3600;
    int64_t old[40];
    for (int i = 0; i < 40; i++) {
        old[i] = rig_submit_default(r, client).id;
        rig_run(r, true);
        rig_submit_deferred(r, client, RETENTION_MS);
        rig_pass(r, 1000);
    }
    rig_pass(r, 3600000);
    purge(r);
    struct job_view v;
    for (int i = 0; i < 40; i++)
        assert_false(rig_find(r, old[i], &v));
    assert_int_equal(rig_live_count(r), 40);
    assert_int_equal(rig_rows(r, &table_job_row), 40);
    assert_int_equal(rig_rows(r, &table_kept_row), 40);
}

RIG_TEST(test_a_purge_that_cannot_commit_is_undone_and_done_later, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.idem_key = STR("key");
    struct submit_item job = rig_submit(r, client, &item);
    rig_run(r, true);
    rig_pass(r, RETENTION_MS + 1000);
    r->failures = 1;
    rig_step(r);
    assert_int_equal(r->failures, 0); /* the purge was the one to fail */
    assert_true(rig_submit(r, client, &item).replayed);
    rig_expect_sound(r);
    purge(r);
    struct job_view v;
    assert_false(rig_find(r, job.id, &v));
    assert_false(rig_submit(r, client, &item).replayed);
}

/* Whichever row of a purge cannot be read: the turn is undone whole, and the next one does it all. */
RIG_TEST(test_a_purge_that_cannot_read_a_row_is_undone_whole, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    for (int i = 0; i < 2; i++) {
        rig_run(r, false);
        rig_retry(r, client, &job);
        rig_pass(r, 60000);
    }
    rig_run(r, true);
    rig_submit_deferred(r, client, 2 * RETENTION_MS);
    rig_pass(r, RETENTION_MS + 1000);
    struct job_view v;
    int turns = 0;
    for (; rig_find(r, job.id, &v); turns++) {
        assert_true(turns < 100);
        r->fetches_left = turns;
        rig_step(r);
        rig_expect_sound(r);
        rig_pass(r, 1000);
    }
    assert_true(turns > 4); /* it did fail at several places before it went through */
    r->fetches_left = -1;
    purge(r);
    assert_int_equal(rig_rows(r, &table_archive_row), 0);
}

RIG_TEST(test_commands_of_the_same_turn_do_not_suffer_from_a_failing_purge, r)
{
    int64_t client = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    rig_run(r, true);
    rig_pass(r, RETENTION_MS + 1000);
    r->failures = 1;
    rig_submit_default(r, client);
    assert_int_equal(r->failures, 0);
}

/* [JOB-247] */
RIG_TEST(test_revoked_keys_stay_90_days_and_active_ones_for_ever, r)
{
    struct uuid id;
    rig_new_client(r, &id);
    r->settings.keys_ttl_seconds = INT64_C(2000) * 86400;
    r->settings.keys_overlap_seconds = 0;
    struct key_command keys[2];
    for (int i = 0; i < 2; i++) {
        keys[i] = (struct key_command){
            .action = KEY_CREATE, .who = {.kind = PRINCIPAL_OPERATOR}, .client_id = id, .rotate = true};
        rig_post(r, &keys[i].base, &key_command_type);
        rig_step(r);
    }
    rig_pass(r, (int64_t)89 * DAY_MS);
    purge(r);
    assert_int_equal(rig_rows(r, &table_api_key_row), 2);
    rig_pass(r, DAY_MS + 10000);
    purge(r);
    assert_int_equal(rig_rows(r, &table_api_key_row), 1);
    rig_pass(r, (int64_t)900 * DAY_MS);
    purge(r);
    assert_int_equal(rig_rows(r, &table_api_key_row), 1);
}

/* Or a client that makes short-lived ones would fill the store. */
RIG_TEST(test_expired_keys_leave_as_revoked_ones_do_with_their_place_in_the_list, r)
{
    struct uuid id;
    int64_t client = rig_new_client(r, &id);
    struct key_command key = {.action = KEY_CREATE, .client_id = id, .wish = {.life_seconds = 60}};
    rig_post(r, &key.base, &key_command_type);
    rig_step(r);
    rig_pass(r, (int64_t)90 * DAY_MS);
    purge(r);
    assert_int_equal(rig_rows(r, &table_api_key_row), 1);
    rig_pass(r, DAY_MS);
    purge(r);
    assert_int_equal(rig_rows(r, &table_api_key_row), 0);
    struct key_head_row head = {.client = client};
    assert_true(rig_row(r, &table_key_head_row, &head) && !head.active && !head.listed.len);
    struct key_command open = {.action = KEY_CREATE,
                               .client_id = id}; /* it has had one: the door stays shut */
    rig_post(r, &open.base, &key_command_type);
    rig_step(r);
    assert_int_equal(open.base.result, ERR_AUTH_INVALID_CREDENTIALS);
}

/* More than leave in a turn; one that is younger stays and gives its client again. */
RIG_TEST(test_idempotency_keys_of_clients_leave_after_the_retention_time, r)
{
    enum { OLD = 450 };
    struct create_client_command *c = ARENA_ARRAY(r->arena, struct create_client_command, OLD + 2);
    for (int i = 0; i < OLD + 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i < OLD ? i : OLD);
        c[i] = (struct create_client_command){.by_operator = true, .client_id = uuid_v4()};
        c[i].once.name = arena_str(r->arena, str_of(name));
        if (i == OLD) {
            rig_step(r);
            rig_pass(r, RETENTION_MS - DAY_MS);
        }
        rig_post(r, &c[i].base, &create_client_command_type);
    }
    r->settings.clients_keyless_ttl_seconds = INT64_C(2000) * 86400;
    purge(r);
    assert_int_equal(rig_rows(r, &table_create_row), OLD + 1);
    assert_true(!c[OLD].replayed && c[OLD + 1].replayed);
    rig_pass(r, DAY_MS);
    purge(r);
    assert_int_equal(rig_rows(r, &table_create_row), 1);
    assert_int_equal(rig_rows(r, &table_client_row), OLD + 1);
}

/* JOB-240, the store's side: damage in the log leaves the job readable. */
RIG_TEST(test_a_history_with_a_purged_chunk_and_no_copy_is_told_without_it, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item job = rig_submit_default(r, client);
    struct change_set c = {.first_chunk = r->store->next_chunk, .drop_chunks_below = r->store->next_chunk};
    struct err err = {.code = ERR_OK};
    assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
    struct job_view v = rig_view(r, job.id);
    struct event events[RIG_EVENTS_MAX];
    size_t n = 9;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(job_view_events(r->reader, r->arena, &v, 0, RIG_EVENTS_MAX, events, &n, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(n, 0);
    rig_run(r, true);
    assert_int_equal(rig_view(r, job.id).state, JOB_SUCCEEDED);
    rig_pass(r, RETENTION_MS + 1000); /* and the job goes in the end, so that the store is sound again */
    purge(r);
    assert_int_equal(rig_rows(r, &table_job_row), 0);
}

int main(void)
{
    return rig_run_all();
}
