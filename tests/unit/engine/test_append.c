/* The append authority: what is written, what is a duplicate, what is refused, and that an event and what it
 * does to the run are one. */
#include "unit/engine/engine_rig.h"

#include "engine/run_index.h"

#include "base/banned.h"

/* --- writing ------------------------------------------------------------------------------------------- */

/* [RUN-006] [RUN-007] [RUN-008] [RUN-009] [RUN-010] [RUN-011] [RUN-012] [RUN-013] [RUN-014] [RUN-017]
 * [RUN-092]: numbers of one run do not depend on another's */
RIG_TEST(test_events_are_numbered_from_one_in_every_run, r)
{
    static const struct {
        const char *type, *step;
        int64_t attempt;
    } events[] = {{"RunQueued", NULL, 1},   {"RunStarted", NULL, 1}, {"StepStarted", "a", 1},
                  {"StepFailed", "a", 1},   {"StepStarted", "a", 2}, {"StepCompleted", "a", 2},
                  {"StepSkipped", "b", 1},  {"RunPaused", NULL, 1},  {"RunResumed", NULL, 1},
                  {"RunCompleted", NULL, 1}};
    for (size_t i = 0; i < LENGTH_OF(events); i++) {
        assert_int_equal(append_good(r, "one", events[i].type, events[i].step, events[i].attempt), i + 1);
        assert_int_equal(append_good(r, "two", events[i].type, events[i].step, events[i].attempt), i + 1);
    }
    assert_status(r, "one", "COMPLETED");
    assert_step(r, "one", "a", "SUCCESS");
    assert_step(r, "one", "b", "SKIPPED");
    assert_int_equal(step_of(r, "one", "a").attempt, 2);
    assert_int_equal(run_of(r, "one").step_count, 2);
    assert_int_equal(run_of(r, "one").inconsistent, 0);
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, NULL), 0);
}

/* [RUN-015] [RUN-016] */
RIG_TEST(test_runs_fail_and_are_cancelled_from_wherever_they_are, r)
{
    static const char *const ends[] = {"RunFailed", "RunCancelled"};
    for (size_t end = 0; end < LENGTH_OF(ends); end++)
        for (int before = 0; before < 3; before++) {
            const char *run = arena_printf(r->arena, "r-%zu-%d", end, before).ptr;
            append_good(r, run, "RunQueued", NULL, 1);
            if (before > 0)
                append_good(r, run, "RunStarted", NULL, 1);
            if (before > 1)
                append_good(r, run, "RunPaused", NULL, 1);
            append_good(r, run, ends[end], NULL, 1);
            assert_status(r, run, end ? "CANCELLED" : "FAILED");
            assert_true(run_of(r, run).ended_ms > 0);
        }
}

/* [RUN-040] [RUN-041] [RUN-093] */
RIG_TEST(test_the_time_of_a_record_is_ours_and_the_producers_stays_as_it_was, r)
{
    size_t count;
    rig_pass(r, 3600000);
    append_one(r, "run", &(struct outside){.type = "RunStarted", .emitted = "2020-01-01T00:00:00Z"});
    rig_pass(r, 5000);
    append_one(r, "run", &(struct outside){.type = "RunCompleted", .emitted = "2099-01-01T00:00:00.123456Z"});
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_int_equal(count, 2);
    assert_true(str_is(e[0].emitted, "2020-01-01T00:00:00Z"));
    assert_true(str_is(e[1].emitted, "2099-01-01T00:00:00.123456Z"));
    assert_int_equal(e[1].persisted_ms, r->wall_us / 1000);
    assert_int_equal(e[1].persisted_ms - e[0].persisted_ms, 5000);
}

/* [RUN-091]: all that was written is read back */
RIG_TEST(test_a_record_is_what_was_written, r)
{
    size_t count;
    struct append_item a = append_one(
        r, "run", &(struct outside){.type = "RunStarted", .payload = "{\"a\": [1, 2.50]}", .version = "7"});
    struct append_item b = append_one(
        r, "run",
        &(struct outside){.type = "StepStarted", .step = "st\xC3\xA4p", .plan = "other", .version = "8"});
    const struct run_row run = run_of(r, "run");
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_true(str_is(e[0].payload, "{\"a\": [1, 2.50]}"));
    assert_null(e[1].payload.ptr);
    assert_true(str_is(e[1].step, "st\xC3\xA4p"));
    assert_null(e[0].step.ptr);
    assert_true(str_is(run_event_plan(&run, &e[0]), "p") && str_is(run_event_version(&run, &e[0]), "7"));
    assert_true(str_is(run_event_plan(&run, &e[1]), "other") && str_is(run_event_version(&run, &e[1]), "8"));
    assert_memory_equal(e[0].event_id.ptr, a.place.event_id.bytes, 16);
    uint8_t key[DIGEST_BYTES];
    run_event_key(&run, &e[0], key);
    assert_memory_equal(key, a.write.key, sizeof key);
    run_event_key(&run, &e[1], key);
    assert_memory_equal(key, b.write.key, sizeof key);
}

/* --- duplicates ---------------------------------------------------------------------------------------- */

static void expect_same_place(const struct run_place *a, const struct run_place *b)
{
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->persisted_ms, b->persisted_ms);
    assert_memory_equal(a->event_id.bytes, b->event_id.bytes, sizeof a->event_id.bytes);
}

/* [RUN-048] [RUN-049] [RUN-076] [RUN-077] [RUN-078] [RUN-079]: also with another eventId, payload, time; also
 * after a restart; nothing is written */
RIG_TEST(test_a_duplicate_is_answered_with_what_is_stored_and_writes_nothing, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct append_item first = append_one(r, "run", &(struct outside){.type = "StepStarted", .step = "a"});
    append_good(r, "run", "StepFailed", "a", 1);
    for (int turn = 0; turn < 3; turn++) {
        rig_pass(r, 1000);
        rig_step(r);
        size_t commits = r->commits;
        struct outside again = {.type = "StepStarted", .step = "a", .payload = "{\"other\":1}"};
        if (turn == 1)
            again.event_id = first.place.event_id;
        struct append_item second = append_one(r, "run", &again);
        assert_int_equal(second.err.code, ERR_OK);
        assert_true(second.place.duplicate);
        expect_same_place(&first.place, &second.place);
        assert_int_equal(r->commits, commits);
        if (turn == 1)
            rig_restart(r, 10);
    }
    assert_story(r, "run", "RunStarted StepStarted:a:1 StepFailed:a:1");
    assert_step(r, "run", "a", "FAILED");
    assert_int_equal(run_of(r, "run").inconsistent, 0);
}

/* [RUN-078] in one batch: by many commands, and within one */
RIG_TEST(test_duplicates_that_come_together_are_written_once, r)
{
    enum { TOGETHER = 50 };
    struct append_command *c[TOGETHER];
    struct append_item items[2] = {outside_item(r, "run", &(struct outside){.type = "RunStarted"}),
                                   outside_item(r, "run", &(struct outside){.type = "RunStarted"})};
    for (int i = 0; i < TOGETHER; i++)
        c[i] = post_append(r, TENANT, "run", items, 2);
    rig_step(r);
    for (int i = 0; i < TOGETHER; i++) {
        assert_int_equal(c[i]->base.result, ERR_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(c[i]->items[k].err.code, ERR_OK);
            assert_int_equal(c[i]->items[k].place.duplicate, i > 0 || k > 0);
            expect_same_place(&c[i]->items[k].place, &c[0]->items[0].place);
        }
    }
    assert_story(r, "run", "RunStarted");
}

/* AR-05: another plan version is another key, and no valid transition */
RIG_TEST(test_a_second_start_under_another_key_is_stored_and_changes_nothing, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct append_item again = append_one(r, "run", &(struct outside){.type = "RunStarted", .version = "2"});
    assert_int_equal(again.err.code, ERR_OK);
    assert_int_equal(again.place.seq, 2);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(run_of(r, "run").inconsistent, 1);
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, NULL), 1);
}

/* --- refusals ------------------------------------------------------------------------------------------ */

/* AR-09: of one run; another run may have it */
RIG_TEST(test_an_event_id_belongs_to_one_key_of_a_run, r)
{
    struct append_item first = append_one(r, "run", &(struct outside){.type = "RunStarted"});
    struct outside thief = {.type = "RunPaused", .event_id = first.place.event_id};
    assert_int_equal(append_one(r, "run", &thief).err.code, ERR_EVENT_ID_CONFLICT);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(append_one(r, "other", &thief).err.code, ERR_OK);
    assert_story(r, "run", "RunStarted");
}

RIG_TEST(test_an_envelope_says_what_the_first_one_said, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    const struct outside others[] = {{.type = "RunPaused", .tenant = "evil"},
                                     {.type = "RunPaused", .project = "evil"},
                                     {.type = "RunPaused", .environment = "evil"}};
    for (size_t i = 0; i < LENGTH_OF(others); i++)
        assert_int_equal(append_one(r, "run", &others[i]).err.code, ERR_ENVELOPE_MISMATCH);
    assert_story(r, "run", "RunStarted");
}

/* Whoever's name stands in the envelope: a run is opened for the caller alone, and not by what is refused. */
RIG_TEST(test_a_run_is_not_opened_by_an_event_that_is_refused, r)
{
    struct run_row run;
    assert_int_equal(append_one(r, "run", &(struct outside){.type = "RunStarted", .tenant = "evil"}).err.code,
                     ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_false(find_run(r, "run", &run));
    struct append_item items[2] = {
        outside_item(r, "run", &(struct outside){.type = "RunQueued", .tenant = "evil"}),
        outside_item(r, "run", &(struct outside){.type = "RunStarted"})};
    struct append_command *c = post_append(r, TENANT, "run", items, 2);
    rig_step(r);
    assert_int_equal(c->items[0].err.code, ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_int_equal(c->items[1].err.code, ERR_OK);
    assert_story(r, "run", "RunStarted");
}

RIG_TEST(test_a_run_of_another_tenant_is_not_written, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct append_item item = outside_item(r, "run", &(struct outside){.type = "RunPaused"});
    struct append_command *c = post_append(r, "evil", "run", &item, 1);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_story(r, "run", "RunStarted");
}

RIG_TEST(test_a_run_that_weir_executes_takes_no_events_from_outside, r)
{
    put_plan(r, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\"}]}");
    start_run(r, "run", "p");
    assert_int_equal(append_one(r, "run", &(struct outside){.type = "RunStarted"}).err.code,
                     ERR_RUN_NOT_EXTERNAL);
    assert_story(r, "run", "RunQueued");
}

/* Each item stands alone. */
RIG_TEST(test_items_of_a_batch_stand_alone, r)
{
    struct append_item items[5] = {
        outside_item(r, "run", &(struct outside){.type = "RunStarted"}),
        {.err = {.code = ERR_EVENT_INVALID}}, /* could not be read */
        outside_item(r, "run", &(struct outside){.type = "RunPaused", .project = "evil"}),
        outside_item(r, "run", &(struct outside){.type = "RunStarted"}),
        outside_item(r, "run", &(struct outside){.type = "RunCompleted"})};
    struct append_command *c = post_append(r, TENANT, "run", items, 5);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->items[0].place.seq, 1);
    assert_int_equal(c->items[1].err.code, ERR_EVENT_INVALID);
    assert_int_equal(c->items[2].err.code, ERR_ENVELOPE_MISMATCH);
    assert_true(c->items[3].place.duplicate);
    assert_int_equal(c->items[4].place.seq, 2);
    assert_status(r, "run", "COMPLETED");
}

RIG_TEST(test_a_failed_commit_leaves_nothing, r)
{
    struct run_row run;
    r->failures = 1;
    assert_int_equal(append_one(r, "run", &(struct outside){.type = "RunStarted"}).err.code,
                     ERR_STORAGE_DB_ERROR);
    assert_false(find_run(r, "run", &run));
    assert_int_equal(append_good(r, "run", "RunStarted", NULL, 1), 1);
    r->failures = 1;
    assert_int_equal(append_one(r, "run", &(struct outside){.type = "StepStarted", .step = "a"}).err.code,
                     ERR_STORAGE_DB_ERROR);
    assert_story(r, "run", "RunStarted");
    assert_int_equal(append_good(r, "run", "StepStarted", "a", 1), 2);
}

/* Two commands of one batch to the same run, in a long history of commits that fail, rows that cannot be read
 * and restarts: what the writer thinks of a run is what was committed last, whatever it keeps in memory. */
RIG_TEST(test_a_run_goes_on_from_what_was_committed_last_whatever_failed_between, r)
{
    enum { ROUNDS = 120, RUNS = 3 };
    static const char *const runs[RUNS] = {"one", "two", "three"};
    int64_t seq[RUNS] = {0}, done[RUNS] = {0};
    for (int at = 0; at < RUNS; at++)
        seq[at] = append_good(r, runs[at], "RunStarted", NULL, 1);
    for (int round = 0; round < ROUNDS; round++) {
        int at = round % RUNS;
        bool commit_fails = round % 7 == 3, read_fails = round % 11 == 5 && !r->shared;
        const struct outside begins = {.type = "StepStarted", .step = "a", .attempt = done[at] + 1};
        const struct outside fails = {.type = "StepFailed", .step = "a", .attempt = done[at] + 1};
        struct append_item first = outside_item(r, runs[at], &begins);
        struct append_item second = outside_item(r, runs[at], &fails);
        struct append_command *x = post_append(r, TENANT, runs[at], &first, 1);
        struct append_command *y = post_append(r, TENANT, runs[at], &second, 1);
        r->failures = commit_fails;
        r->fetches_left = read_fails ? round % 3 : -1;
        rig_step(r);
        r->fetches_left = -1;
        if (round % 13 == 12)
            rig_restart(r, 5);
        bool good = !commit_fails && !read_fails;
        assert_int_equal(x->base.result == ERR_OK && y->base.result == ERR_OK, good);
        if (!good)
            continue;
        assert_int_equal(x->items[0].place.seq, ++seq[at]);
        assert_int_equal(y->items[0].place.seq, ++seq[at]);
        done[at]++;
        assert_int_equal(run_of(r, runs[at]).last_seq, seq[at]);
        assert_int_equal(step_of(r, runs[at], "a").attempt, done[at]);
        assert_int_equal(step_of(r, runs[at], "a").state, STEP_FAILED);
    }
}

/* --- unknown types -------------------------------------------------------------------------------------- */

/* [RUN-005] [RUN-019] [RUN-020] [RUN-021] [RUN-025] [RUN-090] */
RIG_TEST(test_unknown_types_are_stored_untouched_and_change_no_state, r)
{
    static const char *const names[] = {"FooHappened", "SignalAccepted", "SignalRejected", "runstarted"};
    size_t count;
    append_good(r, "run", "RunStarted", NULL, 1);
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        struct append_item item = append_one(
            r, "run",
            &(struct outside){.type = names[i], .step = i % 2 ? "a" : NULL, .payload = "{\"x\":[ ]}"});
        assert_int_equal(item.err.code, ERR_OK);
        assert_int_equal(item.place.seq, 2 + i);
        assert_int_equal(run_of(r, "run").last_seq, 2 + i);
        assert_status(r, "run", "RUNNING");
        assert_true(append_one(r, "run", &(struct outside){.type = names[i], .step = i % 2 ? "a" : NULL})
                        .place.duplicate);
    }
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_true(str_is(e[1].name, "FooHappened") && str_is(e[1].payload, "{\"x\":[ ]}"));
    assert_int_equal(run_of(r, "run").step_count, 0);
    assert_int_equal(run_of(r, "run").inconsistent, 0);
    assert_int_equal(append_good(r, "run", "RunCompleted", NULL, 1), 6);
    assert_status(r, "run", "COMPLETED");
}

/* --- layer 3 -------------------------------------------------------------------------------------------- */

/* [RUN-104] [RUN-112] [RUN-117] [RUN-118] [RUN-119] [RUN-120] [RUN-122] [RUN-123] [RUN-124] [RUN-125]
 * [RUN-126]: policy A, whatever comes before and after */
RIG_TEST(test_an_invalid_transition_is_told_once_and_corrupts_nothing, r)
{
    struct alert_row alert;
    append_good(r, "run", "RunStarted", NULL, 1);
    rig_pass(r, 1234);
    struct append_item bad = append_one(r, "run", &(struct outside){.type = "StepCompleted", .step = "a"});
    assert_int_equal(bad.err.code, ERR_OK);
    const struct run_row run = run_of(r, "run");
    assert_int_equal(run.inconsistent, 1);
    assert_status(r, "run", "RUNNING");
    assert_step(r, "run", "a", "PENDING");
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, &alert), 1);
    assert_int_equal(alert.run, run.num); /* tenant, project and environment are the run's */
    assert_int_equal(alert.tenant, run.tenant);
    assert_int_equal(alert.severity, SEVERITY_CRITICAL);
    assert_true(str_is(alert.code, "INVALID_TRANSITION"));
    assert_memory_equal(alert.event_id.ptr, bad.place.event_id.bytes, 16);
    assert_true(str_is(alert.event_type, "StepCompleted"));
    assert_int_equal(alert.seq, 2);
    assert_int_equal(alert.persisted_ms, bad.place.persisted_ms);
    assert_true(str_is(alert.prior, "PENDING") && str_is(alert.attempted, "SUCCESS"));
    append_good(r, "run", "StepStarted", "a", 1); /* goes on as if nothing had been */
    append_good(r, "run", "RunCompleted", NULL, 1);
    append_good(r, "run", "StepStarted", "b", 1);
    assert_status(r, "run", "COMPLETED");
    assert_step(r, "run", "a", "RUNNING");
    assert_step(r, "run", "b", "PENDING");
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, NULL), 2);
}

/* [RUN-127]: neither a duplicate nor a restart tells it again */
RIG_TEST(test_an_alert_is_raised_once, r)
{
    append_good(r, "run", "RunPaused", NULL, 1);
    for (int i = 0; i < 3; i++) {
        assert_true(append_one(r, "run", &(struct outside){.type = "RunPaused"}).place.duplicate);
        rig_restart(r, 5);
    }
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, NULL), 1);
}

/* AR-02 */
RIG_TEST(test_being_queued_sets_a_time_and_never_a_state, r)
{
    append_good(r, "run", "RunQueued", NULL, 1);
    int64_t queued = run_of(r, "run").queued_ms;
    assert_int_equal(queued, r->wall_us / 1000);
    rig_pass(r, 100);
    append_good(r, "run", "RunQueued", NULL, 2);
    append_good(r, "run", "RunStarted", NULL, 1);
    append_good(r, "run", "RunQueued", NULL, 3);
    assert_int_equal(run_of(r, "run").queued_ms, queued);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(run_of(r, "run").inconsistent, 0);
}

/* --- layer 2 -------------------------------------------------------------------------------------------- */

static void validate_appends(struct rig *r, const char *how)
{
    struct err err;
    assert_int_equal(settings_set(&r->settings, "engine.append_validation", how, ORIGIN_FLAG, &err), ERR_OK);
}

/* [RUN-111] [RUN-113] [RUN-114] [RUN-115] [RUN-116]: also when it would be valid by now, also after a
 * restart */
RIG_TEST(test_layer_two_refuses_for_good_and_in_the_same_words, r)
{
    validate_appends(r, "on");
    append_good(r, "run", "RunStarted", NULL, 1);
    struct outside early = {.type = "StepCompleted", .step = "a"};
    struct append_item refused = append_one(r, "run", &early);
    assert_int_equal(refused.err.code, ERR_INVALID_TRANSITION);
    assert_story(r, "run", "RunStarted");
    append_good(r, "run", "StepStarted", "a", 1); /* now it could be */
    for (int i = 0; i < 2; i++) {
        rig_pass(r, 60000);
        struct append_item again = append_one(r, "run", &early);
        assert_int_equal(again.err.code, ERR_INVALID_TRANSITION);
        assert_string_equal(again.err.detail, refused.err.detail);
        assert_false(again.place.duplicate);
        rig_restart(r, 10);
    }
    assert_story(r, "run", "RunStarted StepStarted:a:1");
    assert_int_equal(run_of(r, "run").inconsistent, 0);
    assert_int_equal(count_alerts(r, ALERT_TRANSITION, NULL), 0);
    /* The negative control: switched off, the same event is written. */
    validate_appends(r, "off");
    assert_int_equal(append_one(r, "run", &early).err.code, ERR_OK);
    assert_step(r, "run", "a", "SUCCESS");
}

/* [RUN-113] [RUN-115] What is refused opens no run, and is refused for good all the same: when another event
 * has opened it, and after a restart. To another tenant, whose run it may become, nothing was said. */
RIG_TEST(test_layer_two_opens_no_run_by_what_it_refuses, r)
{
    struct run_row run;
    struct outside early = {.type = "StepStarted", .step = "a"};
    struct outside others = {.type = "StepStarted", .step = "a", .tenant = "tenant-2"};
    validate_appends(r, "on");
    struct append_item refused = append_one(r, "run", &early);
    assert_int_equal(refused.err.code, ERR_INVALID_TRANSITION);
    assert_false(find_run(r, "run", &run));
    for (int i = 0; i < 3; i++) {
        struct append_item again = append_one(r, "run", &early);
        assert_int_equal(again.err.code, ERR_INVALID_TRANSITION);
        assert_string_equal(again.err.detail, refused.err.detail);
        assert_int_equal(find_run(r, "run", &run), i > 0);
        if (i == 0)
            append_good(r, "run", "RunStarted", NULL, 1);
        rig_restart(r, 10);
    }
    assert_story(r, "run", "RunStarted");
    assert_int_equal(append_one(r, "run2", &early).err.code, ERR_INVALID_TRANSITION);
    struct append_item items[2] = {
        outside_item(r, "run2", &(struct outside){.type = "RunStarted", .tenant = "tenant-2"}),
        outside_item(r, "run2", &others)};
    struct append_command *c = post_append(r, "tenant-2", "run2", items, 2);
    rig_step(r);
    assert_int_equal(c->items[1].err.code, ERR_OK);
    assert_story(r, "run2", "RunStarted StepStarted:a:1");
}

/* [RUN-116] Also when its eventId has become another event's meanwhile. */
RIG_TEST(test_a_refusal_stays_what_it_was_when_its_event_id_is_taken, r)
{
    validate_appends(r, "on");
    struct outside early = {.type = "StepCompleted", .step = "a", .event_id = uuid_v4()};
    struct outside other = {.type = "RunStarted", .event_id = early.event_id};
    struct append_item refused = append_one(r, "run", &early);
    assert_int_equal(refused.err.code, ERR_INVALID_TRANSITION);
    assert_int_equal(append_one(r, "run", &other).err.code, ERR_OK);
    struct append_item again = append_one(r, "run", &early);
    assert_int_equal(again.err.code, ERR_INVALID_TRANSITION);
    assert_string_equal(again.err.detail, refused.err.detail);
    /* The negative control: one that was never refused hears of the id. */
    early.step = "b";
    assert_int_equal(append_one(r, "run", &early).err.code, ERR_EVENT_ID_CONFLICT);
}

/* What is there already is a duplicate before anybody asks whether it would be valid. */
RIG_TEST(test_layer_two_does_not_refuse_duplicates, r)
{
    append_good(r, "run", "RunPaused", NULL, 1); /* invalid, and stored */
    validate_appends(r, "on");
    assert_true(append_one(r, "run", &(struct outside){.type = "RunPaused"}).place.duplicate);
    append_good(r, "run", "RunStarted", NULL, 1);
    assert_true(append_one(r, "run", &(struct outside){.type = "RunStarted"}).place.duplicate);
    assert_int_equal(append_good(r, "run", "FooHappened", NULL, 1), 3);
    assert_int_equal(append_good(r, "run", "RunQueued", NULL, 1), 4);
}

/* In one batch: what the item before it did counts. */
RIG_TEST(test_layer_two_sees_what_its_batch_has_done, r)
{
    validate_appends(r, "on");
    struct append_item items[4] = {
        outside_item(r, "run", &(struct outside){.type = "RunStarted"}),
        outside_item(r, "run", &(struct outside){.type = "StepCompleted", .step = "a"}),
        outside_item(r, "run", &(struct outside){.type = "StepStarted", .step = "a"}),
        outside_item(r, "run", &(struct outside){.type = "StepCompleted", .step = "a"})};
    struct append_command *c = post_append(r, TENANT, "run", items, 4);
    rig_step(r);
    assert_int_equal(c->items[0].err.code, ERR_OK);
    assert_int_equal(c->items[1].err.code, ERR_INVALID_TRANSITION);
    assert_int_equal(c->items[2].err.code, ERR_OK);
    assert_int_equal(c->items[3].err.code, ERR_INVALID_TRANSITION);
    assert_string_equal(c->items[1].err.detail, c->items[3].err.detail);
    assert_story(r, "run", "RunStarted StepStarted:a:1");
}

/* --- marks that fall together --------------------------------------------------------------------------- */

/* Writes marks of its own where the next ones want to stand: they point at records that are others. */
static void occupy(struct rig *r, int64_t run, int64_t hash, int64_t place, int count)
{
    for (int i = 0; i < count; i++) {
        struct run_index_row *m = ARENA_NEW(r->arena, struct run_index_row);
        *m = (struct run_index_row){
            .run = run, .hash = (int64_t)((uint64_t)hash + (uint64_t)i), .place = place};
        struct row_change change = {&table_run_index_row, ROW_INSERT, m};
        struct change_set c = {.rows = &change, .row_count = 1, .first_chunk = r->store->next_chunk};
        struct err err;
        assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
    }
}

static void clear(struct rig *r, int64_t run, int64_t hash, int count)
{
    for (int i = 0; i < count; i++) {
        struct run_index_row m = {.run = run, .hash = (int64_t)((uint64_t)hash + (uint64_t)i)};
        struct row_change change = {&table_run_index_row, ROW_DELETE, &m};
        struct change_set c = {.rows = &change, .row_count = 1, .first_chunk = r->store->next_chunk};
        struct err err;
        assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
    }
}

/* Digests that agree in their first 64 bits cannot be made here; marks that were there before stand for
 * them. */
RIG_TEST(test_marks_that_fall_together_are_told_apart, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    const struct run_row run = run_of(r, "run");
    struct append_item item = outside_item(r, "run", &(struct outside){.type = "StepStarted", .step = "a"});
    struct str key = {(const char *)item.write.key, DIGEST_BYTES};
    struct str id = {(const char *)item.write.event_id.bytes, 16};
    const int64_t hashes[] = {run_index_hash(RUN_INDEX_KEY, key), run_index_hash(RUN_INDEX_EVENT_ID, id),
                              run_index_hash(RUN_INDEX_STEP, STR("a"))};
    for (size_t i = 0; i < LENGTH_OF(hashes); i++)
        occupy(r, run.num, hashes[i], 1, 3);
    struct append_command *c = post_append(r, TENANT, "run", &item, 1);
    rig_step(r);
    assert_int_equal(c->items[0].err.code, ERR_OK);
    assert_false(c->items[0].place.duplicate);
    assert_int_equal(c->items[0].place.seq, 2);
    assert_true(append_one(r, "run", &(struct outside){.type = "StepStarted", .step = "a"}).place.duplicate);
    assert_int_equal(
        append_one(r, "run", &(struct outside){.type = "RunPaused", .event_id = item.write.event_id})
            .err.code,
        ERR_EVENT_ID_CONFLICT);
    append_good(r, "run", "StepCompleted", "a", 1);
    assert_step(r, "run", "a", "SUCCESS");
    assert_int_equal(run_of(r, "run").step_count, 1);
    for (size_t i = 0; i < LENGTH_OF(hashes); i++)
        clear(r, run.num, hashes[i], 3);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

/* Two nodes write to one run and number it as one; tenants that both see for the first time get two
 * numbers. */
RIG_TEST(test_nodes_write_as_one, r)
{
    if (!r->shared)
        return;
    append_good(r, "run", "RunStarted", NULL, 1);
    for (int i = 1; i <= 6; i++) {
        rig_switch_node(r);
        assert_true(append_one(r, "run", &(struct outside){.type = "RunStarted"}).place.duplicate);
        assert_int_equal(append_good(r, "run", "Note", NULL, i), 1 + i);
    }
    for (int i = 0; i < 6; i++) {
        const char *tenant = arena_printf(r->arena, "tenant-%d", i).ptr,
                   *run = arena_printf(r->arena, "t%d", i).ptr;
        struct append_item item =
            outside_item(r, run, &(struct outside){.type = "RunStarted", .tenant = tenant});
        struct append_command *c = post_append(r, tenant, run, &item, 1);
        rig_step(r);
        assert_int_equal(c->items[0].err.code, ERR_OK);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(run_of(r, run).tenant,
                                 run_of(r, arena_printf(r->arena, "t%d", k).ptr).tenant);
        rig_switch_node(r);
    }
}

int main(void)
{
    return rig_run_all();
}
