#include "cli/traffic/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/time_text.h"
#include "cli/traffic/judge_internal.h"

#include "base/banned.h"

static const char look_job[] = "weir job get JOB_ID -o json";
static const char look_report[] = "weir job report JOB_ID";

bool finding_set(struct traffic_finding *f, const char *next, const char *expected, const char *found_format,
                 ...)
{
    va_list ap;
    *f = (struct traffic_finding){.next = next};
    snprintf(f->expected, sizeof f->expected, "%s", expected);
    va_start(ap, found_format);
    vsnprintf(f->found, sizeof f->found, found_format, ap);
    va_end(ap);
    return false;
}

static bool member_int(const struct json *object, const char *name, int64_t *ret)
{
    const struct json *j = json_get(object, name);
    return j && json_to_int(j, ret);
}

static struct str shown(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    struct str s = !j ? STR("nothing") : j->type == JSON_STRING ? j->text : j->source;
    return (struct str){s.ptr, s.len < 80 ? s.len : 80};
}

static bool text_is(const struct json *object, const char *name, const char *wanted, const char *look,
                    struct traffic_finding *f)
{
    char expected[100];
    if (wanted ? str_equal(json_text(object, name), str_of(wanted))
               : !json_get(object, name) || json_get(object, name)->type == JSON_NULL)
        return true;
    snprintf(expected, sizeof expected, "%s %s", name, wanted ? wanted : "null");
    return finding_set(f, look, expected, "%s %.*s", name, STR_ARG(shown(object, name)));
}

static bool int_is(const struct json *object, const char *name, int64_t wanted, const char *look,
                   struct traffic_finding *f)
{
    int64_t value;
    char expected[100];
    if (member_int(object, name, &value) && value == wanted)
        return true;
    snprintf(expected, sizeof expected, "%s %lld", name, (long long)wanted);
    return finding_set(f, look, expected, "%s %.*s", name, STR_ARG(shown(object, name)));
}

static bool bool_is(const struct json *object, const char *name, bool wanted, const char *look,
                    struct traffic_finding *f)
{
    const struct json *j = json_get(object, name);
    if (j && j->type == (wanted ? JSON_TRUE : JSON_FALSE))
        return true;
    char expected[100];
    snprintf(expected, sizeof expected, "%s %s", name, wanted ? "true" : "false");
    return finding_set(f, look, expected, "%s %.*s", name, STR_ARG(shown(object, name)));
}

int64_t judge_attempts(const struct traffic_yardstick *y)
{
    switch (y->expected->attempts) {
    case ATTEMPTS_NONE:
        return 0;
    case ATTEMPTS_ONE:
        return 1;
    case ATTEMPTS_TWO:
        return 2;
    case ATTEMPTS_ALL:
        return y->max_retries + 1;
    }
    must_fail("every number of attempts is listed", __FILE__, __LINE__, __func__);
}

static bool judge_definition(const struct traffic_yardstick *y, const struct json *job,
                             struct traffic_finding *f)
{
    const struct traffic_expectation *e = y->expected;
    const struct json *d = json_get(job, "definition");
    int64_t from_ms = e->clock == CLOCK_LIMIT ? y->max_runtime_ms : 0;
    return text_is(d, "work_kind", e->name, look_job, f) &&
           int_is(d, "duration_ms", from_ms + e->duration_ms, look_job, f) &&
           bool_is(d, "should_fail", e->fails, look_job, f) &&
           int_is(d, "payload_size", e->payload_kb * 1024, look_job, f);
}

static bool judge_error(const struct traffic_yardstick *y, const struct json *job, struct traffic_finding *f)
{
    const struct traffic_expectation *e = y->expected;
    const struct json *error = json_get(job, "error");
    if (!e->reason)
        return text_is(job, "error", NULL, look_job, f);
    const char *code = e->clock == CLOCK_LIMIT ? err_wire(ERR_EXEC_TIMEOUT) : e->reason;
    return text_is(error, "code", code, look_job, f) &&
           bool_is(error, "retryable", e->retryable, look_job, f);
}

bool judge_job(struct traffic_yardstick *y, const struct json *job, struct traffic_finding *ret)
{
    const struct traffic_expectation *e = y->expected;
    const char *ends = traffic_end_text(e);
    if (!member_int(job, "max_retries", &y->max_retries) ||
        !member_int(job, "max_runtime_ms", &y->max_runtime_ms))
        return finding_set(ret, look_job, "max_retries and max_runtime_ms in the job",
                           "one of them is missing");
    return text_is(job, "state", ends, "weir job explain JOB_ID; the server's log for this job_id", ret) &&
           text_is(job, "outcome", job_outcome_text(e->ends), look_job, ret) &&
           int_is(job, "attempt", judge_attempts(y), look_report, ret) && judge_definition(y, job, ret) &&
           judge_error(y, job, ret);
}

/* The runner's payload is the alphabet over and over; its checksum can be computed by anybody. */
static uint64_t alphabet_checksum(int64_t bytes)
{
    uint64_t sum = HASH_FNV_START;
    for (; bytes > 26; bytes -= 26)
        sum = hash_fnv1a(sum, "abcdefghijklmnopqrstuvwxyz", 26);
    return hash_fnv1a(sum, "abcdefghijklmnopqrstuvwxyz", (size_t)bytes);
}

static bool judge_result(const struct traffic_yardstick *y, const struct json *report,
                         struct traffic_finding *f)
{
    const struct json *result = json_get(report, "result"), *data = json_get(result, "data");
    int64_t bytes = y->expected->payload_kb * 1024;
    char sum[40];
    if (y->expected->ends != JOB_SUCCEEDED)
        return text_is(report, "result", NULL, look_report, f);
    if (data) { /* LARGE_OUTPUT carries the bytes, as many as fit beside their frame */
        if (!member_int(result, "payload_bytes", &bytes) || bytes != (int64_t)data->text.len ||
            (int64_t)result->source.len > y->expected->payload_kb * 1024)
            return finding_set(f, look_report, "payload_bytes of data, all within the payload size",
                               "payload_bytes %.*s, %zu bytes of data",
                               STR_ARG(shown(result, "payload_bytes")), data->text.len);
    }
    snprintf(sum, sizeof sum, "fnv1a:%016llx", (unsigned long long)alphabet_checksum(bytes));
    return text_is(result, "scenario", y->expected->name, look_report, f) &&
           int_is(result, "payload_bytes", bytes, look_report, f) &&
           text_is(result, "checksum", sum, look_report, f);
}

bool judge_report(const struct traffic_yardstick *y, const struct json *report, int64_t *ret_us,
                  struct traffic_finding *ret)
{
    const struct json *events = json_get(report, "events");
    *ret_us = 0;
    return text_is(report, "outcome", job_outcome_text(y->expected->ends), look_report, ret) &&
           judge_events(y, events, ret_us, ret) && judge_times(y, report, events, ret) &&
           judge_result(y, report, ret);
}

bool judge_refusal(long status, const struct json *problem, long wanted_status, const char *wanted_code,
                   struct traffic_finding *ret)
{
    struct str code = json_text(problem, "code");
    char expected[100];
    if (status == wanted_status && str_equal(code, str_of(wanted_code)))
        return true;
    snprintf(expected, sizeof expected, "HTTP %ld %s", wanted_status, wanted_code);
    return finding_set(ret, "docs/errors.md; the server's log", expected, "HTTP %ld %.*s", status,
                       STR_ARG(code));
}

double judge_scale_of(int64_t ran_ms, int64_t duration_ms)
{
    if (duration_ms <= 0 || ran_ms <= 0)
        return 0;
    /* Two digits: the digits behind them come from the machine's delay, not the scale. */
    double scale = (double)ran_ms / (double)duration_ms;
    double unit = pow(10, floor(log10(scale)) - 1);
    return floor(scale / unit + 1e-6) * unit; /* 0.009 / 0.0001 is a little less than 90 */
}
