/* Submit: what is accepted, replayed, refused, and what stands in the store afterwards. On both stores. */
#include "unit/kernel/rig.h"

#include "base/time_text.h"
#include "jobs/submit_values.h"

#include "base/banned.h"

/* [JOB-108] [JOB-110] and AJ-27 */
RIG_TEST(test_an_instant_job_is_created_and_queued_in_one_transaction, r)
{
    int64_t client = rig_new_client(r, NULL);
    size_t commits = r->commits;
    struct submit_item job = rig_submit_default(r, client);
    assert_int_equal(r->commits, commits + 1);
    assert_int_equal(job.state, JOB_QUEUED);
    struct event e[RIG_EVENTS_MAX];
    assert_int_equal(rig_events(r, job.id, e), 2);
    assert_int_equal(e[0].event, JOB_EVENT_CREATED);
    assert_int_equal(e[0].prev, JOB_NO_STATE);
    assert_int_equal(e[0].next, JOB_CREATED);
    assert_int_equal(e[1].event, JOB_EVENT_QUEUED);
    assert_int_equal(e[1].prev, JOB_CREATED);
    struct job_view v = rig_view(r, job.id);
    assert_int_equal(v.job.created_ms, r->wall_us / 1000);
    assert_int_equal(v.job.low, (int64_t)job.low);
    assert_int_equal(v.job.execution_ms, 0);
    assert_int_equal(v.attempt, 1);
    assert_true(str_is(v.job.queue, "default"));
    assert_null(v.job.callback.ptr);
    struct client_counts counts = rig_counts(r, client);
    assert_int_equal(counts.by_state[JOB_QUEUED], 1);
    assert_int_equal(counts.by_kind[WORK_SUCCESS_FAST], 1);
}

RIG_TEST(test_everything_asked_for_is_stored, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = {.type = STR("EMIT_EVENT"),
                               .work_kind = STR("LARGE_OUTPUT"),
                               .callback = STR("https://example.com:8443/x?y=z"),
                               .queue = STR("mine-1.a_b"),
                               .priority = 0,
                               .has_priority = true,
                               .max_runtime_ms = 1,
                               .has_max_runtime = true,
                               .max_retries = 0,
                               .has_max_retries = true,
                               .payload = STR("{\"a\":[1,2,3]}"),
                               .idem_key = STR("key"),
                               .traceparent = STR("00-1-2-01")};
    item = rig_submit(r, client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    struct job_row j = rig_view(r, item.id).job;
    assert_int_equal(j.type, JOB_TYPE_EMIT_EVENT);
    assert_int_equal(j.kind, WORK_LARGE_OUTPUT);
    assert_int_equal(j.priority, 0);
    assert_int_equal(j.max_runtime_ms, 1);
    assert_int_equal(j.max_retries, 0);
    assert_int_equal(j.duration_ms, 9000);
    assert_int_equal(j.payload_size, 262144);
    assert_int_equal(j.seed, r->wall_us / 1000);
    assert_true(str_equal(j.callback, item.callback));
    assert_true(str_equal(j.queue, item.queue));
    assert_true(str_equal(j.payload, item.payload));
    assert_true(str_equal(j.idem_key, item.idem_key));
    assert_true(str_equal(j.traceparent, item.traceparent));
}

/* [JOB-071] */
RIG_TEST(test_a_used_key_gives_the_first_job_again_with_its_state_of_now, r)
{
    int64_t client = rig_new_client(r, NULL), other = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.idem_key = STR("key");
    struct submit_item job = rig_submit(r, client, &item);
    rig_run(r, true);
    rig_pass(r, 1000);
    size_t commits = r->commits;
    struct submit_item again = rig_submit(r, client, &item);
    assert_true(again.replayed);
    assert_int_equal(again.id, job.id);
    assert_int_equal(again.created_ms, job.created_ms);
    assert_int_equal(again.state, JOB_SUCCEEDED);
    assert_int_equal(r->commits, commits);
    struct submit_item theirs = rig_submit(r, other, &item); /* keys are a client's own */
    assert_false(theirs.replayed);
    assert_int_not_equal(theirs.id, job.id);
}

RIG_TEST(test_a_key_with_another_body_is_a_conflict_and_bad_values_come_first, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.idem_key = STR("key");
    rig_submit(r, client, &item);
    struct submit_item other = item;
    other.fingerprint[0] = 1;
    assert_int_equal(rig_submit(r, client, &other).err.code, ERR_EXEC_IDEMPOTENCY_CONFLICT);
    other.work_kind = STR("NOTHING");
    assert_int_equal(rig_submit(r, client, &other).err.code, ERR_JOB_VALIDATION_FAILED);
    assert_int_equal(rig_live_count(r), 1);
}

RIG_TEST(test_a_replay_comes_before_value_checks_and_limits, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    char text[TIME_TEXT_MAX];
    item.type = STR("DEFERRED");
    item.execution_at = time_text_us(r->wall_us + 1000000, text);
    item.idem_key = STR("key");
    struct submit_item job = rig_submit(r, client, &item);
    r->settings.jobs_max_active = 1;
    rig_pass(r, 5000); /* its time has passed */
    struct submit_item again = rig_submit(r, client, &item);
    assert_int_equal(again.err.code, ERR_OK);
    assert_int_equal(again.id, job.id);
    assert_int_equal(again.state, JOB_QUEUED);
}

/* [JOB-287] [JOB-293] */
RIG_TEST(test_at_the_limit_of_unfinished_jobs_a_submit_is_refused, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_max_active = 3;
    rig_submit_deferred(r, client, 5000);
    rig_submit_default(r, client);
    rig_submit_default(r, client);
    struct submit_item item = rig_item();
    struct submit_item refused = rig_submit(r, client, &item);
    assert_int_equal(refused.err.code, ERR_REQUEST_RATE_LIMITED);
    assert_true(refused.err.retry_after_s > 0);
    assert_int_equal(rig_live_count(r), 3);
    rig_run(r, true);
    rig_submit_default(r, client);
}

/* [JOB-172] [JOB-288] [JOB-294] */
RIG_TEST(test_a_full_queue_refuses_instant_jobs_and_takes_scheduled_ones, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_size = 5;
    struct submit_item items[6];
    for (int i = 0; i < 6; i++)
        items[i] = rig_item();
    struct submit_command *c = rig_post_submit(r, client, items, 6);
    rig_step(r);
    for (int i = 0; i < 5; i++)
        assert_int_equal(c->items[i].err.code, ERR_OK);
    assert_int_equal(c->items[5].err.code, ERR_EXEC_QUEUE_FULL);
    assert_true(c->items[5].err.retry_after_s > 0);
    assert_int_equal(rig_counts(r, client).by_state[JOB_QUEUED], 5);
    rig_submit_deferred(r, client, 1000);
}

RIG_TEST(test_from_85_percent_on_low_priorities_are_refused_first, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_queue_size = 20;
    struct submit_item low = rig_item(), normal = rig_item();
    low.has_priority = normal.has_priority = true;
    low.priority = 2;
    normal.priority = 3;
    for (int i = 0; i < 17; i++)
        assert_int_equal(rig_submit(r, client, &low).err.code, ERR_OK);
    assert_int_equal(rig_submit(r, client, &low).err.code, ERR_EXEC_QUEUE_FULL);
    for (int i = 17; i < 20; i++)
        assert_int_equal(rig_submit(r, client, &normal).err.code, ERR_OK);
    assert_int_equal(rig_submit(r, client, &normal).err.code, ERR_EXEC_QUEUE_FULL);
}

/* Where 85 % is no whole number of jobs, the last low one is that which reaches it. */
RIG_TEST(test_85_percent_is_rounded_up, r)
{
    const struct {
        int64_t size, low_max;
    } cases[] = {{10, 9}, {7, 6}, {3, 3}, {1, 1}, {101, 86}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        int64_t client = rig_new_client(r, NULL);
        r->settings.jobs_queue_size = cases[i].size;
        struct submit_item low = rig_item();
        low.has_priority = true;
        low.priority = 2;
        for (int64_t n = 0; n < cases[i].low_max; n++)
            assert_int_equal(rig_submit(r, client, &low).err.code, ERR_OK);
        assert_int_equal(rig_submit(r, client, &low).err.code, ERR_EXEC_QUEUE_FULL);
        for (int64_t n = 0; n < cases[i].low_max; n++)
            rig_run(r, true);
    }
}

RIG_TEST(test_items_of_a_list_stand_alone, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item items[3] = {rig_item(), rig_item(), rig_item()};
    items[1].type = STR("nonsense");
    items[2].err.code = ERR_REQUEST_MALFORMED; /* refused before it came here */
    items[2].is_bad = true;
    struct submit_command *c = rig_post_submit(r, client, items, 3);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->items[0].err.code, ERR_OK);
    assert_int_equal(c->items[1].err.code, ERR_JOB_VALIDATION_FAILED);
    assert_int_equal(c->items[2].err.code, ERR_REQUEST_MALFORMED);
    assert_int_equal(rig_live_count(r), 1);
}

/* [JOB-012] [JOB-014]: the seed draws the kind, and the same seed draws the same definition. */
RIG_TEST(test_a_job_without_a_kind_gets_one_drawn_from_its_receive_time, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.work_kind = STR_ABSENT;
    bool seen[WORK_KIND_COUNT] = {0};
    int kinds = 0;
    for (int i = 0; i < 100; i++) {
        struct job_row a = rig_view(r, rig_submit(r, client, &item).id).job;
        struct job_row b = rig_view(r, rig_submit(r, client, &item).id).job;
        assert_int_equal(a.kind, work_draw(r->wall_us / 1000, r->settings.jobs_failure_probability));
        assert_int_equal(a.seed, b.seed);
        assert_int_equal(a.kind, b.kind);
        assert_int_equal(a.duration_ms, b.duration_ms);
        assert_int_equal(a.should_fail, b.should_fail);
        assert_int_equal(a.payload_size, b.payload_size);
        assert_int_not_equal(a.id, b.id);
        kinds += !seen[a.kind];
        seen[a.kind] = true;
        rig_pass(r, 7);
    }
    assert_true(kinds >= 5);
}

/* Only the built-in runner knows the catalog. */
RIG_TEST(test_work_for_others_has_no_work_kind_unless_one_is_named, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    item.kind = STR("mail.send");
    item.queue = STR("mail");
    assert_int_equal(rig_view(r, rig_submit(r, client, &item).id).job.kind, WORK_SUCCESS_FAST);
    item.work_kind = STR_ABSENT;
    struct job_row job = rig_view(r, rig_submit(r, client, &item).id).job;
    assert_int_equal(job.kind, WORK_KIND_NONE);
    assert_true(str_is(job.kind_name, "mail.send"));
    assert_int_equal(job.retry, JOB_RETRY_AUTO);
    assert_int_equal(job.seed, 0);
    item.queue = STR_ABSENT;
    job = rig_view(r, rig_submit(r, client, &item).id).job;
    assert_int_not_equal(job.kind, WORK_KIND_NONE);
    assert_true(str_is(job.kind_name, "mail.send"));
    assert_int_equal(job.retry, JOB_RETRY_MANUAL);
    r->settings.runner_processes = 0;
    item.kind = STR_ABSENT;
    item.type = STR("EMIT_EVENT");
    job = rig_view(r, rig_submit(r, client, &item).id).job;
    assert_int_equal(job.kind, WORK_KIND_NONE);
    assert_null(job.kind_name.ptr);
    struct client_counts counts = rig_counts(r, client);
    int64_t counted = 0;
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        counted += counts.by_kind[k];
    assert_int_equal(counted, 2);
    assert_int_equal(counts.by_state[JOB_QUEUED], 4);
}

/* --- value checks, without a store -------------------------------------------------------------- */

static enum err_code check(const struct rig *r, const struct submit_item *item, struct submit_values *ret,
                           struct err *err)
{
    struct submit_defaults d = submit_defaults(&r->settings, submit_queue(item));
    return submit_check_values(&r->settings, &d, item, r->wall_us, 1, ret, err);
}

struct value_case {
    const char *field, *value;
    bool good;
};

static struct str *field_of(struct submit_item *item, const char *name)
{
    const struct {
        const char *name;
        struct str *text;
    } fields[] = {{"type", &item->type},           {"execution_at", &item->execution_at},
                  {"kind", &item->kind},           {"retry", &item->retry},
                  {"work_kind", &item->work_kind}, {"queue", &item->queue},
                  {"callback", &item->callback}};
    for (size_t i = 0; i < LENGTH_OF(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].text;
    fail();
    return NULL;
}

RIG_TEST(test_values_are_checked_and_the_field_is_named, r)
{
    static const struct value_case cases[] = {
        {"type", "EXECUTE", true},
        {"type", "EMIT_EVENT", true},
        {"type", "execute", false},
        {"type", "", false},
        {"type", "DEFERRED", false},                     /* without execution_at */
        {"execution_at", "2030-01-31T08:00:00Z", false}, /* with EXECUTE */
        {"work_kind", "CPU_BURST", true},
        {"work_kind", "cpu_burst", false},
        {"work_kind", "PAYLOAD_INVALID", false},
        {"kind", "mail.send", true},
        {"kind", "A/b:c_d-9", true},
        {"kind", "", false},
        {"kind", "a b", false},
        {"kind", "a,b", false},
        {"kind", "m\xc3\xa4il", false},
        {"retry", "auto", true},
        {"retry", "manual", true},
        {"retry", "AUTO", false},
        {"retry", "", false},
        {"queue", "a", true},
        {"queue", "9.x_y-z", true},
        {"queue", "", false},
        {"queue", "A", false},
        {"queue", "-a", false},
        {"queue", "a b", false},
        {"callback", "http://h", true},
        {"callback", "https://[::1]:9/x?y", true},
        {"callback", "https://[::1]:9/x#y", false}, /* what cannot be sent to is refused here */
        {"callback", "http://h.", false},
        {"callback", "http://h:080/", false},
        {"callback", "http://127.1/", false},
        {"callback",
         "http://b\xc3\xbc"
         "cher.example/",
         false},
        {"callback", "ftp://h", false},
        {"callback", "http://", false},
        {"callback", "http://u:p@h/", false},
        {"callback", "http://h:99999/", false},
        {"callback", "http://h/ x", false},
        {"callback", "h", false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct submit_item item = rig_item();
        struct str value = str_of(cases[i].value);
        *field_of(&item, cases[i].field) = value;
        struct submit_values v;
        struct err err = {.code = ERR_OK};
        enum err_code code = check(r, &item, &v, &err);
        assert_int_equal(code, cases[i].good ? ERR_OK : ERR_JOB_VALIDATION_FAILED);
        if (!cases[i].good)
            assert_non_null(strstr(err.detail, str_is(value, "DEFERRED") ? "execution_at" : cases[i].field));
    }
}

/* Nobody fills our answers with what was sent. */
RIG_TEST(test_a_refusal_repeats_forty_letters_of_a_type_at_most, r)
{
    static const char letters[] = "\"ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJKLM";
    for (size_t len = 39; len <= 43; len++) {
        struct submit_item item = rig_item();
        struct submit_values v;
        struct err err = {.code = ERR_OK};
        item.type = (struct str){letters + 1, len};
        assert_int_equal(check(r, &item, &v, &err), ERR_JOB_VALIDATION_FAILED);
        struct str told = arena_printf(r->arena, "%.*s\"", (int)(1 + (len < 40 ? len : 40)), letters);
        assert_non_null(strstr(err.detail, told.ptr));
    }
}

static enum err_code check_number(const struct rig *r, int field, int64_t value)
{
    struct submit_item item = rig_item();
    item.has_priority = field == 0;
    item.has_max_runtime = field == 1;
    item.has_max_retries = field == 2;
    item.has_queue_ttl = field == 3;
    item.priority = item.max_runtime_ms = item.max_retries = item.queue_ttl_seconds = value;
    struct submit_values v;
    struct err err = {.code = ERR_OK};
    return check(r, &item, &v, &err);
}

RIG_TEST(test_numbers_are_accepted_exactly_within_their_bounds, r)
{
    const struct {
        int field;
        int64_t min, max;
    } bounds[] = {{0, 0, 9}, {1, 1, 125000}, {2, 0, 3}, {3, 1, JOB_QUEUE_TTL_SECONDS_MAX}};
    for (size_t i = 0; i < LENGTH_OF(bounds); i++) {
        assert_int_equal(check_number(r, bounds[i].field, bounds[i].min), ERR_OK);
        assert_int_equal(check_number(r, bounds[i].field, bounds[i].max), ERR_OK);
        assert_int_equal(check_number(r, bounds[i].field, bounds[i].min - 1), ERR_JOB_VALIDATION_FAILED);
        assert_int_equal(check_number(r, bounds[i].field, bounds[i].max + 1), ERR_JOB_VALIDATION_FAILED);
        assert_int_equal(check_number(r, bounds[i].field, INT64_MIN), ERR_JOB_VALIDATION_FAILED);
    }
}

static int64_t runtime_of(const struct rig *r, bool is_own, int64_t asked_ms)
{
    struct submit_item item = rig_item();
    struct submit_values v;
    struct err err = {.code = ERR_OK};
    item.queue = STR("mail");
    if (is_own)
        item.work_kind = STR_ABSENT;
    item.has_max_runtime = asked_ms >= 0;
    item.max_runtime_ms = asked_ms;
    return check(r, &item, &v, &err) == ERR_OK ? v.max_runtime_ms : -1;
}

RIG_TEST(test_own_work_may_run_for_a_day_and_catalog_work_for_two_minutes, r)
{
    enum { DAY_MS = 86400000, HOUR_MS = 3600000, NOT_GIVEN = -1, REFUSED = -1 };
    static const struct {
        int64_t setting_ms, asked_ms, own_ms, catalog_ms;
    } cases[] = {
        {0, NOT_GIVEN, HOUR_MS, 125000},      {0, 125001, 125001, REFUSED},
        {0, DAY_MS, DAY_MS, REFUSED},         {0, DAY_MS + 1, REFUSED, REFUSED},
        {5000, NOT_GIVEN, 5000, 5000},        {5000, 5001, REFUSED, REFUSED},
        {DAY_MS, NOT_GIVEN, HOUR_MS, DAY_MS}, {DAY_MS, DAY_MS, DAY_MS, DAY_MS},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        r->settings.jobs_max_runtime_ms = cases[i].setting_ms;
        assert_int_equal(runtime_of(r, true, cases[i].asked_ms), cases[i].own_ms);
        assert_int_equal(runtime_of(r, false, cases[i].asked_ms), cases[i].catalog_ms);
    }
}

/* [JOB-130] and AJ-38: strictly later than now. */
RIG_TEST(test_execution_at_must_lie_in_the_future, r)
{
    static const int64_t after_us[] = {-60000000, -1, 0, 1, 1000};
    for (size_t i = 0; i < LENGTH_OF(after_us); i++) {
        struct submit_item item = rig_item();
        char text[TIME_TEXT_MAX];
        item.type = STR("DEFERRED");
        item.execution_at = time_text_us(r->wall_us + after_us[i], text);
        struct submit_values v;
        struct err err = {.code = ERR_OK};
        enum err_code code = check(r, &item, &v, &err);
        assert_int_equal(code, after_us[i] > 0 ? ERR_OK : ERR_JOB_VALIDATION_FAILED);
        if (code == ERR_OK)
            assert_true(v.execution_ms * 1000 >= r->wall_us + after_us[i]);
    }
}

/* [JOB-289] [JOB-298] */
RIG_TEST(test_payload_size_and_allowed_types_follow_the_settings, r)
{
    struct submit_item item = rig_item();
    struct submit_values v;
    struct err err = {.code = ERR_OK};
    r->settings.jobs_payload_max_bytes = 7;
    item.payload = STR("{\"a\":1}");
    assert_int_equal(check(r, &item, &v, &err), ERR_OK);
    item.payload = STR("{\"a\":10}");
    assert_int_equal(check(r, &item, &v, &err), ERR_JOB_VALIDATION_FAILED);
    assert_int_equal(settings_set(&r->settings, "jobs.types", "EXECUTE,DEFERRED", ORIGIN_FLAG, &err), ERR_OK);
    item = rig_item();
    item.type = STR("EMIT_EVENT");
    assert_int_equal(check(r, &item, &v, &err), ERR_JOB_VALIDATION_FAILED);
}

/* [JOB-170] [JOB-149] refused as a failed write, the first job untouched; the next id is another one */
RIG_TEST_UNSHARED(test_an_id_given_twice_never_becomes_a_second_job, r, "ids of a lane differ by its slot")
{
    int64_t client = rig_new_client(r, NULL);
    rig_pass(r, 10); /* an instant of its own, so that its first id is the job's */
    struct submit_item first = rig_submit_default(r, client);
    struct job_view before = rig_view(r, first.id);
    rig_forget_ids(r);
    struct submit_item item = rig_item();
    struct submit_command *twice = rig_post_submit(r, client, &item, 1);
    rig_step(r);
    assert_int_equal(twice->items[0].id, first.id); /* the generator did give it again */
    assert_int_equal(twice->base.result, ERR_STORAGE_DB_ERROR);
    struct job_view after = rig_view(r, first.id);
    assert_int_equal(after.job.low, before.job.low);
    assert_int_equal(after.seq, before.seq);
    assert_int_equal(rig_live_count(r), 1);
    struct submit_item next = rig_submit_default(r, client);
    assert_int_equal(next.err.code, ERR_OK);
    assert_true(next.id > first.id);
}

int main(void)
{
    return rig_run_all();
}
