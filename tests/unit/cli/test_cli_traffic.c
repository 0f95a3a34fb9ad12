/* The judgement of `weir traffic`: what it lets pass, and that no single change of a job gets past it. */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "base/time_text.h"
#include "cli/traffic/judge.h"
#include "cli/traffic/latency.h"
#include "cli/traffic/mix.h"

#include "base/banned.h"

#define BASE_US INT64_C(1794787200000000) /* 2026-11-16T00:00:00Z */

static const char fast_job[] =
    "{\"state\":\"SUCCEEDED\",\"outcome\":\"SUCCESS\",\"attempt\":1,\"max_retries\":3,"
    "\"max_runtime_ms\":125000,\"error\":null,\"definition\":{\"work_kind\":\"SUCCESS_FAST\","
    "\"duration_ms\":1000,\"should_fail\":false,\"payload_size\":4096}}";

/* FNV-1a of 4096 bytes of the alphabet over and over, computed in another language. */
static const char fast_result[] = "{\"scenario\":\"SUCCESS_FAST\",\"payload_bytes\":4096,"
                                  "\"checksum\":\"fnv1a:407b698f40431005\"}";

static const struct {
    const char *name, *state;
} states[] = {{"created", "CREATED"},         {"queued", "QUEUED"},        {"assigned", "ASSIGNED"},
              {"running", "RUNNING"},         {"succeeded", "SUCCEEDED"},  {"failed", "FAILED"},
              {"canceled", "CANCELED"},       {"lease_expired", "QUEUED"}, {"timed_out", "FAILED"},
              {"retries_exhausted", "FAILED"}};

static const char *state_after(struct str name)
{
    for (size_t i = 0; i < LENGTH_OF(states); i++)
        if (str_is(name, states[i].name))
            return states[i].state;
    fail_msg("no event %.*s", STR_ARG(name));
    return NULL;
}

struct made {
    const char *kind, *outcome, *events, *result;
    int64_t run_ms;
};

/* A report whose events stand a millisecond apart, but for runs. */
static void make_report(const struct made *m, struct strbuf *out)
{
    struct str rest = str_of(m->events);
    char text[TIME_TEXT_MAX], started[TIME_TEXT_MAX] = "";
    const char *before = NULL;
    int64_t us = BASE_US, started_us = 0;
    strbuf_addf(out, "{\"outcome\":\"%s\",\"result\":%s,\"events\":[", m->outcome,
                m->result ? m->result : "null");
    for (int seq = 1; rest.len; seq++) {
        struct str name = str_cut(&rest, ' ');
        us += before && strcmp(before, "RUNNING") == 0 ? m->run_ms * 1000 : 1000;
        const char *after = state_after(name);
        if (strcmp(after, "RUNNING") == 0) {
            started_us = us;
            time_text_ms(us / 1000, started);
        }
        strbuf_addf(out, "%s{\"seq\":%d,\"event_name\":\"job.%.*s\",\"prev_state\":", seq > 1 ? "," : "", seq,
                    STR_ARG(name));
        strbuf_addf(out, before ? "\"%s\"" : "null%s", before ? before : "");
        time_text_us(us, text);
        strbuf_addf(out, ",\"next_state\":\"%s\",\"timestamp\":\"%s\",\"payload\":{\"scenario\":\"%s\"}}",
                    after, text, m->kind);
        before = after;
    }
    strbuf_addf(out, "],\"started_at\":%s%s%s,", *started ? "\"" : "", *started ? started : "null",
                *started ? "\"" : "");
    time_text_ms(us / 1000, text);
    strbuf_addf(out, "\"finished_at\":\"%s\",\"duration_ms\":%lld}", text,
                (long long)(started_us ? (us - started_us) / 1000 : 0));
}

static struct traffic_yardstick yard_of(enum work_kind kind)
{
    return (struct traffic_yardstick){.expected = &traffic_expectations[kind],
                                      .time_scale = 1,
                                      .slack_ms = 2000,
                                      .max_retries = 3,
                                      .max_runtime_ms = 125000};
}

static bool passes(struct traffic_yardstick *y, struct str text, bool is_job, struct traffic_finding *f)
{
    struct arena *a = arena_new(4096);
    const struct json *j;
    struct err err;
    int64_t us;
    assert_int_equal(json_parse(a, text, &j, &err), ERR_OK);
    bool ok = is_job ? judge_job(y, j, f) : judge_report(y, j, &us, f);
    if (!ok)
        assert_true(f->expected[0] && f->found[0] && f->next[0]);
    arena_free(a);
    return ok;
}

static bool made_passes(const struct made *m, struct traffic_yardstick *y)
{
    struct strbuf text = {0};
    struct traffic_finding f;
    make_report(m, &text);
    bool ok = passes(y, strbuf_str(&text), false, &f);
    strbuf_free(&text);
    return ok;
}

static const char run_ok[] = "created queued assigned running succeeded";

static struct made made_fast(const char *events, int64_t run_ms)
{
    return (struct made){"SUCCESS_FAST", "SUCCESS", events, fast_result, run_ms};
}

/* Replaces the first `from`; the result must not pass. */
static void change_is_seen(const char *text, const char *from, const char *to, bool is_job)
{
    struct strbuf changed = {0};
    struct traffic_yardstick y = yard_of(WORK_SUCCESS_FAST);
    struct traffic_finding f;
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("%s is not in %s", from, text);
    strbuf_addf(&changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    if (passes(&y, strbuf_str(&changed), is_job, &f))
        fail_msg("%s -> %s was not seen", from, to);
    strbuf_free(&changed);
}

/* Every fact of a job that the catalog fixes. */
TEST(test_any_single_change_of_a_job_is_a_surprise)
{
    static const char *const changes[][2] = {{"SUCCEEDED", "FAILED"},
                                             {"SUCCESS\"", "FAILED\""},
                                             {"\"attempt\":1", "\"attempt\":2"},
                                             {"SUCCESS_FAST", "OTHER"},
                                             {":1000", ":1001"},
                                             {"false", "true"},
                                             {"4096", "4097"},
                                             {"\"max_retries\":3,", ""},
                                             {"\"error\":null", "\"error\":{\"code\":\"x\"}"},
                                             {"\"definition\"", "\"d\""}};
    struct traffic_yardstick y = yard_of(WORK_SUCCESS_FAST);
    struct traffic_finding f;
    assert_true(passes(&y, str_of(fast_job), true, &f));
    for (size_t i = 0; i < LENGTH_OF(changes); i++)
        change_is_seen(fast_job, changes[i][0], changes[i][1], true);
}

TEST(test_any_single_change_of_a_report_is_a_surprise)
{
    static const char *const changes[][2] = {
        {"SUCCESS\"", "FAILED\""},
        {"job.assigned", "job.canceled"},
        {"\"seq\":3", "\"seq\":4"},
        {"\"prev_state\":\"QUEUED\"", "\"prev_state\":\"CREATED\""},
        {"\"prev_state\":\"RUNNING\"", "\"prev_state\":null"},
        {":00:00.002000Z", ":00:00.000900Z"},
        {"{\"scenario\":\"SUCCESS_FAST\"}", "{\"scenario\":\"RUNS_LONG\"}"},
        {"{\"scenario\":\"SUCCESS_FAST\"}", "{}"},
        {"\"payload_bytes\":4096", "\"payload_bytes\":4095"},
        {"407b698f", "507b698f"},
        {"\"duration_ms\":1003", "\"duration_ms\":1013"},
        {"\"started_at\":\"2026", "\"started_at\":\"2025"},
        {"\"finished_at\"", "\"f\""},
    };
    struct made m = made_fast(run_ok, 1003);
    struct traffic_yardstick y = yard_of(WORK_SUCCESS_FAST);
    struct strbuf text = {0};
    assert_true(made_passes(&m, &y));
    make_report(&m, &text);
    for (size_t i = 0; i < LENGTH_OF(changes); i++)
        change_is_seen(text.ptr, changes[i][0], changes[i][1], false);
    strbuf_free(&text);
}

TEST(test_a_run_may_be_neither_early_nor_late)
{
    static const struct {
        int64_t run_ms;
        double scale, early;
        bool fine;
    } runs[] = {{998, 1, 0, false}, {999, 1, 0, true},   {3000, 1, 0, true},  {3001, 1, 0, false},
                {9, 0.01, 0, true}, {8, 0.01, 0, false}, {910, 1, 0.1, true}, {890, 1, 0.1, false}};
    for (size_t i = 0; i < LENGTH_OF(runs); i++) {
        struct made m = made_fast(run_ok, runs[i].run_ms);
        struct traffic_yardstick y = yard_of(WORK_SUCCESS_FAST);
        y.time_scale = runs[i].scale;
        y.early = runs[i].early;
        assert_int_equal(made_passes(&m, &y), runs[i].fine);
    }
}

TEST(test_events_follow_the_pattern_of_the_kind)
{
    static const struct {
        enum work_kind kind;
        const char *outcome, *events;
        int64_t run_ms;
        bool fine;
    } cases[] = {
        {WORK_FAIL_IMMEDIATE, "FAILED", "created queued assigned running failed", 500, true},
        {WORK_FAIL_IMMEDIATE, "FAILED", "created queued assigned running timed_out", 500, false},
        {WORK_FAIL_IMMEDIATE, "FAILED", "created queued assigned lease_expired assigned running failed", 500,
         true},
        {WORK_FAIL_IMMEDIATE, "FAILED", "created queued lease_expired assigned running failed", 500, false},
        {WORK_RUNS_OVER_TIMEOUT, "FAILED", "created queued assigned running timed_out", 125000, true},
        {WORK_RUNS_OVER_TIMEOUT, "FAILED", "created queued assigned running timed_out", 124000, false},
        {WORK_CANCEL_BEFORE_START, "CANCELED", "created queued canceled", 0, true},
        {WORK_CANCEL_BEFORE_START, "CANCELED", "created queued assigned canceled", 0, false},
        {WORK_CANCEL_DURING_RUN, "CANCELED", "created queued assigned running canceled", 20, true},
        {WORK_CANCEL_DURING_RUN, "CANCELED", "created queued canceled", 0, false},
        {WORK_RETRY_LIMIT_REACHED, "FAILED",
         "created queued assigned running failed queued assigned running failed queued assigned running "
         "failed "
         "queued assigned running failed retries_exhausted",
         3000, true},
        {WORK_RETRY_LIMIT_REACHED, "FAILED",
         "created queued assigned running failed queued assigned running failed queued assigned running "
         "failed "
         "queued assigned running failed",
         3000, false},
        {WORK_RETRY_LIMIT_REACHED, "FAILED",
         "created queued assigned running failed queued assigned running failed retries_exhausted", 3000,
         false},
        {WORK_SCHEDULED_FAR_FUTURE, "CANCELED", "created canceled", 0, true},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct traffic_yardstick y = yard_of(cases[i].kind);
        struct made m = {traffic_expectations[cases[i].kind].name, cases[i].outcome, cases[i].events, NULL,
                         cases[i].run_ms};
        if (made_passes(&m, &y) != cases[i].fine)
            fail_msg("%s: %s", m.kind, m.events);
    }
}

/* Queued within a second of its time, or of the restart; never before. */
TEST(test_a_due_job_is_queued_in_time)
{
    static const struct {
        int64_t due_ms, from_ms, stopped_ms, killed_ms, until_ms; /* from the start; it is queued at 2 */
        bool fine;
    } cases[] = {{2, 0, 0, 0, 0, true},
                 {3, 0, 0, 0, 0, false},
                 {-998, 0, 0, 0, 0, true},
                 {-999, 0, 0, 0, 0, false},
                 {-5000, 0, 0, 0, 0, false},
                 {-5000, -6000, -6000, -900, -500, true},
                 {-5000, -6000, -6000, 2, 500, true},
                 {-5000, -6000, -6000, 3, 500, false}, /* it was queued before the server was killed */
                 {-5000, -6000, -4999, 3, 500, true},  /* and due before it stood still */
                 {-5000, -4000, -4000, -900, -500, false},
                 {-5000, -6000, -6000, -2500, -2000, false}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct made m = made_fast(run_ok, 1003);
        struct traffic_yardstick y = yard_of(WORK_SUCCESS_FAST);
        y.due_us = BASE_US + cases[i].due_ms * 1000;
        y.late_from_us = BASE_US + cases[i].from_ms * 1000;
        y.late_stopped_us = BASE_US + cases[i].stopped_ms * 1000;
        y.late_killed_us = BASE_US + cases[i].killed_ms * 1000;
        y.late_until_us = BASE_US + cases[i].until_ms * 1000;
        if (made_passes(&m, &y) != cases[i].fine)
            fail_msg("case %zu", i);
    }
}

TEST(test_every_kind_has_a_row_and_may_be_sent)
{
    for (int k = 0; k < WORK_KIND_COUNT; k++) {
        const struct traffic_expectation *e = &traffic_expectations[k];
        assert_string_equal(e->name, work_kind_text((enum work_kind)k));
        assert_true(e->weight > 0 && e->events && traffic_help_text(e->help));
        /* The first word of the catalog's outcome is our end, where no help leads elsewhere. */
        bool plain = e->help == HELP_NOTHING || e->help == HELP_REFUSAL || traffic_help_is_receiver(e->help);
        if (plain)
            assert_true(str_starts(str_of(work_expected_outcome((enum work_kind)k)), traffic_end_text(e)));
    }
}

TEST(test_a_mix_is_read_and_repeats_by_its_seed)
{
    struct traffic_mix a, b;
    struct err err;
    int64_t drawn[WORK_KIND_COUNT] = {0};
    assert_int_equal(traffic_mix_parse("all,SUCCESS_SLOW:0", &a, &err), ERR_OK);
    assert_int_equal(traffic_mix_parse("all,SUCCESS_SLOW:0", &b, &err), ERR_OK);
    traffic_mix_start(&a, 7);
    traffic_mix_start(&b, 7);
    for (int i = 0; i < 5000; i++) {
        enum work_kind kind = traffic_mix_next(&a);
        assert_int_equal(kind, traffic_mix_next(&b));
        drawn[kind]++;
        if (i == WORK_KIND_COUNT - 2) /* one of each before chance decides */
            for (int k = 0; k < WORK_KIND_COUNT; k++)
                assert_int_equal(drawn[k], k != WORK_SUCCESS_SLOW);
    }
    assert_true(drawn[WORK_SUCCESS_FAST] > drawn[WORK_RUNS_LONG] * 10);
    assert_int_equal(drawn[WORK_SUCCESS_SLOW], 0);
}

TEST(test_a_mix_that_means_nothing_is_refused)
{
    static const char *const bad[] = {"",      "FOO",           "SUCCESS_FAST:x", "SUCCESS_FAST:-1",
                                      "all:3", "SUCCESS_FAST,,"};
    struct traffic_mix m;
    struct traffic_expectation e[WORK_KIND_COUNT];
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_int_equal(traffic_mix_parse(bad[i], &m, &err), ERR_CONFIG_INVALID);
    assert_int_equal(traffic_mix_parse("SUCCESS_FAST:0", &m, &err), ERR_OK);
    assert_int_equal(m.weight_sum, 0);
    memcpy(e, traffic_expectations, sizeof e);
    assert_int_equal(traffic_expect_override("SUCCESS_FAST=FAILED,RUNS_LONG=CANCELED", e, &err), ERR_OK);
    assert_int_equal(e[WORK_SUCCESS_FAST].ends, JOB_FAILED);
    assert_int_equal(e[WORK_RUNS_LONG].ends, JOB_CANCELED);
    assert_int_equal(traffic_expect_override("SUCCESS_FAST", e, &err), ERR_CONFIG_INVALID);
    assert_int_equal(traffic_expect_override("FOO=FAILED", e, &err), ERR_CONFIG_INVALID);
}

/* --- delivery logs ----------------------------------------------------------------------------------- */

#define TRY(status, error, ms)                                                                               \
    "{\"at\":\"2026-11-16T00:00:00Z\",\"status\":" status ",\"error\":" error ",\"duration_ms\":" ms "}"
#define GOOD TRY("200", "null", "3")
#define HUNG TRY("null", "\"timeout\"", "5000")
#define BAD  TRY("500", "\"http_status\"", "2")
#define LATE TRY("200", "null", "251")
#define ITEM(id, state, next, tries)                                                                         \
    "{\"delivery_id\":\"" id "\",\"event_name\":\"job.x\",\"state\":\"" state "\",\"next_attempt_at\":" next \
    ",\"attempts\":[" tries "]}"
#define TWO(second, first) "{\"items\":[" second "," first "],\"next_cursor\":null}"

static enum judge_log log_of(enum traffic_help help, const char *page, int attempts_of_first)
{
    struct traffic_delivery seen[] = {{.id = STR("a"), .attempts = attempts_of_first},
                                      {.id = STR("b"), .attempts = 1}};
    struct arena *arena = arena_new(4096);
    const struct json *json;
    struct traffic_finding f = {0};
    struct err err;
    int64_t next_us;
    assert_int_equal(json_parse(arena, str_of(page), &json, &err), ERR_OK);
    enum judge_log log = judge_deliveries(help, json, seen, 2, &next_us, &f);
    assert_true((log == LOG_RIGHT) == !f.found[0]);
    arena_free(arena);
    return log;
}

TEST(test_a_delivery_log_must_tell_what_the_receiver_did)
{
#define B_GOOD ITEM("b", "delivered", "null", GOOD)
    static const struct {
        enum traffic_help help;
        const char *page;
        int attempts_of_first;
        enum judge_log log;
    } rows[] = {
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", GOOD)), 1, LOG_RIGHT},
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", HUNG "," GOOD)), 2, LOG_RIGHT},
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", GOOD "," GOOD)), 2, LOG_WRONG},
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", GOOD)), 2, LOG_WRONG}, /* not logged */
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "exhausted", "null", BAD)), 1, LOG_WRONG},
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", BAD)), 1, LOG_WRONG},
        {HELP_RECEIVER_OK, TWO(B_GOOD, ITEM("a", "delivered", "null", "")), 1, LOG_WRONG},
        {HELP_RECEIVER_OK, TWO(ITEM("a", "delivered", "null", GOOD), B_GOOD), 1, LOG_WRONG}, /* order */
        {HELP_RECEIVER_OK, "{\"items\":[" B_GOOD "]}", 1, LOG_WRONG},
        {HELP_RECEIVER_OK, "{}", 1, LOG_WRONG},
        {HELP_RECEIVER_OK, TWO(ITEM("b", "pending", "null", ""), ITEM("a", "delivered", "null", GOOD)), 1,
         LOG_OPEN},
        {HELP_RECEIVER_HANGS,
         TWO(ITEM("b", "delivered", "null", HUNG "," GOOD), ITEM("a", "delivered", "null", HUNG "," GOOD)), 2,
         LOG_RIGHT},
        {HELP_RECEIVER_HANGS, TWO(B_GOOD, ITEM("a", "delivered", "null", HUNG "," GOOD)), 2, LOG_WRONG},
        {HELP_RECEIVER_FAILS_ONCE,
         TWO(ITEM("b", "delivered", "null", BAD "," GOOD), ITEM("a", "delivered", "null", BAD "," GOOD)), 2,
         LOG_RIGHT},
        {HELP_RECEIVER_FAILS_ONCE,
         TWO(ITEM("b", "delivered", "null", BAD "," GOOD), ITEM("a", "delivered", "null", GOOD)), 2,
         LOG_WRONG},
        {HELP_RECEIVER_FAILS, TWO(B_GOOD, ITEM("a", "exhausted", "null", BAD "," BAD)), 2, LOG_RIGHT},
        {HELP_RECEIVER_FAILS, TWO(B_GOOD, ITEM("a", "delivered", "null", BAD "," GOOD)), 2, LOG_WRONG},
        {HELP_RECEIVER_FAILS, TWO(ITEM("b", "exhausted", "null", BAD), ITEM("a", "exhausted", "null", BAD)),
         1, LOG_WRONG},
        {HELP_RECEIVER_SLOW, TWO(ITEM("b", "delivered", "null", LATE), ITEM("a", "delivered", "null", LATE)),
         1, LOG_RIGHT},
        {HELP_RECEIVER_SLOW, TWO(ITEM("b", "delivered", "null", LATE), ITEM("a", "delivered", "null", GOOD)),
         1, LOG_WRONG},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++)
        if (log_of(rows[i].help, rows[i].page, rows[i].attempts_of_first) != rows[i].log)
            fail_msg("row %zu is judged otherwise", i);
}

ARENA_TEST(test_an_open_log_says_when_it_goes_on, arena)
{
    static const char page[] =
        TWO(ITEM("b", "pending", "null", ""), ITEM("a", "pending", "\"2026-11-16T00:00:00.500Z\"", BAD));
    const struct json *json;
    struct traffic_finding f;
    struct err err;
    int64_t next_us = 0;
    assert_int_equal(json_parse(arena, STR(page), &json, &err), ERR_OK);
    assert_int_equal(judge_deliveries(HELP_RECEIVER_FAILS, json, NULL, 0, &next_us, &f), LOG_OPEN);
    assert_int_equal(next_us, BASE_US + 500000);
}

TEST(test_a_scale_is_read_off_a_run)
{
    assert_float_equal(judge_scale_of(1004, 1000), 1, 1e-9);
    assert_float_equal(judge_scale_of(102, 10000), 0.01, 1e-9);
    assert_float_equal(judge_scale_of(251, 1000), 0.25, 1e-9);
    assert_float_equal(judge_scale_of(112, 110000), 0.001, 1e-9);
    assert_float_equal(judge_scale_of(9, 1000), 0.009, 1e-9);
    assert_float_equal(judge_scale_of(0, 1000), 0, 1e-9);
}

TEST(test_percentiles_are_right_within_a_step)
{
    struct latency *l = must_alloc(sizeof *l);
    assert_int_equal(latency_at(l, 0.5), 0);
    for (int64_t us = 1; us <= 100000; us++)
        latency_add(l, us);
    assert_in_range(latency_at(l, 0.5), 50000, 52000);
    assert_in_range(latency_at(l, 0.99), 99000, 103000);
    latency_add(l, INT64_MAX);
    latency_add(l, -5);
    assert_true(latency_at(l, 1) > INT64_C(1) << 40);
    free(l);
}
