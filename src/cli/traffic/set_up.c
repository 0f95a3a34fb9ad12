/* Flags, the first account, the server's time scale and clock, and what the server can do. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/random.h"
#include "base/time_text.h"
#include "cli/server_call.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum {
    JOBS_DEFAULT = 1000,
    JOBS_MAX = 100000000,
    SLACK_MS_DEFAULT = 2000,
    RATE_MAX = 1000000,
    PROBE_MS_MAX = 180000,
    PROBE_HINT_MS = 5000,
    REACH_MS_MAX = 30000, /* for a first callback */
    REACH_LOOK_MS = 200,
    DESCRIPTORS = 8192,
    PROBE_LONG_ENOUGH_MS = 100, /* below, a run is too short to tell its scale from its delay */
};
#define SCALE_MIN    0.00001
#define SCALE_MAX    1000
#define EARLY_LEARNT 0.1 /* two digits are kept of a learnt scale */

/* --- flags ------------------------------------------------------------------------------------------ */

static int flag_real(const struct invocation *in, enum flag_id id, double min, double max, double *ret)
{
    const char *text = in->flags->value[id];
    char *end;
    if (!text)
        return CLI_OK;
    double value = strtod(text, &end);
    if (*text && !*end && value >= min && value <= max) {
        *ret = value;
        return CLI_OK;
    }
    cli_fault("--%s must be a number from %g to %g, not \"%.40s\"", flag_table[id].name, min, max, text);
    return CLI_USAGE;
}

static int read_numbers(struct traffic *s)
{
    const struct flags *f = s->in->flags;
    struct err err;
    int64_t seed = (int64_t)(random_u64() >> 33); /* short enough to type again */
    s->jobs = JOBS_DEFAULT;
    s->slack_ms = SLACK_MS_DEFAULT;
    if (flags_int(f, FLAG_JOBS, 1, JOBS_MAX, &s->jobs, &err) != ERR_OK ||
        flags_int(f, FLAG_SEED, 0, INT64_MAX, &seed, &err) != ERR_OK)
        return cli_err(&err);
    s->seed = (uint64_t)seed;
    if (flags_has(f, FLAG_FOR)) {
        if (!duration_parse(str_of(f->value[FLAG_FOR]), &s->for_ms) || !s->for_ms) {
            cli_fault("--for takes a time such as 90s, 10m or 1h, not \"%.40s\"", f->value[FLAG_FOR]);
            return CLI_USAGE;
        }
        s->jobs = flags_has(f, FLAG_JOBS) ? s->jobs : JOBS_MAX;
    }
    if (flags_has(f, FLAG_SLACK) && !duration_parse(str_of(f->value[FLAG_SLACK]), &s->slack_ms)) {
        cli_fault("--slack takes a time such as 500ms or 5s, not \"%.40s\"", f->value[FLAG_SLACK]);
        return CLI_USAGE;
    }
    int code = flag_real(s->in, FLAG_RATE, 0, RATE_MAX, &s->rate);
    return code != CLI_OK ? code : flag_real(s->in, FLAG_TIME_SCALE, SCALE_MIN, SCALE_MAX, &s->time_scale);
}

static bool is_restart(enum traffic_help help)
{
    return help == HELP_RESTART;
}

/* Told at once, and again with the result: an untried kind is not "as expected". */
static void leave_out(struct traffic *s, bool (*which)(enum traffic_help), const char *why)
{
    struct strbuf names CLEANUP(strbuf_free) = {0};
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (s->mix.weights[k] && which(s->expected[k].help)) {
            s->left_out[k] = why;
            traffic_mix_leave_out(&s->mix, (enum work_kind)k);
            strbuf_addf(&names, "%s%s", names.len ? ", " : "", s->expected[k].name);
        }
    if (names.len)
        cli_note(s->in, "left out: %s: %s", names.ptr, why);
}

static int mix_is_empty(const struct traffic *s)
{
    if (s->mix.weight_sum)
        return CLI_OK;
    cli_fault("--mix leaves no work kind to send");
    return CLI_USAGE;
}

static int read_mix(struct traffic *s)
{
    const struct flags *f = s->in->flags;
    struct err err;
    if (traffic_mix_parse(f->value[FLAG_MIX] ? f->value[FLAG_MIX] : "all", &s->mix, &err) != ERR_OK)
        return cli_err(&err);
    traffic_mix_start(&s->mix, s->seed);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        s->expected[k] = traffic_expectations[k];
    if (flags_has(f, FLAG_EXPECT) &&
        traffic_expect_override(f->value[FLAG_EXPECT], s->expected, &err) != ERR_OK)
        return cli_err(&err);
    if (!flags_has(f, FLAG_RESTART))
        leave_out(s, is_restart, "it needs --restart DIR, the data directory of the server on this machine");
    return mix_is_empty(s);
}

static bool mix_has_receivers(const struct traffic *s)
{
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (s->mix.weights[k] && traffic_help_is_receiver(s->expected[k].help))
            return true;
    return false;
}

/* --- probes: a few jobs before the mix -------------------------------------------------------------- */

static int ask(struct traffic *s, const char *method, const char *path, const char *body,
               struct server_answer *ret)
{
    struct server_call call = {
        .method = method, .path = str_of(path), .body = str_of(body), .bearer = s->current->caller.key};
    return server_try(s->in, &call, ret);
}

/* The receiver works while the probes wait: one of them has a callback. */
static void wait_a_little(struct traffic *s, int64_t ms)
{
    struct pollfd p = {.fd = s->receiver ? receiver_fd(s->receiver) : -1, .events = POLLIN};
    int64_t until_ms = traffic_now_ms() + ms, left_ms;
    while ((left_ms = until_ms - traffic_now_ms()) > 0) {
        (void)!poll(&p, 1, (int)left_ms);
        if (s->receiver)
            receiver_work(s->receiver);
    }
}

static int submit_probe(struct traffic *s, enum work_kind kind, char job_id[UUID_TEXT_LEN + 1])
{
    struct server_answer answer;
    char body[200];
    int64_t created_us, sent_us = clock_wall_us(&clock_system);
    snprintf(body, sizeof body, "{\"type\":\"EXECUTE\",\"priority\":9,\"work_kind\":\"%s\"%s%s%s}",
             s->expected[kind].name, s->probe_port ? ",\"callback\":\"" : "",
             s->probe_port ? receiver_url(s->probe_port) : "", s->probe_port ? "\"" : "");
    int code = ask(s, "POST", "/v1/jobs", body, &answer);
    if (code == CLI_OK)
        code = server_judge(&answer, server_advice_key);
    if (code == CLI_OK) {
        struct str id = json_text(answer.json, "job_id");
        snprintf(job_id, UUID_TEXT_LEN + 1, "%.*s", STR_ARG(id));
        int64_t half_us = (clock_wall_us(&clock_system) - sent_us) / 2;
        if (time_parse_us(json_text(answer.json, "created_at"), &created_us))
            s->clock_offset_us = created_us - (sent_us + half_us);
        if (llabs(s->clock_offset_us) < half_us + 5000)
            s->clock_offset_us = 0; /* created_at is in whole milliseconds: one clock */
        s->current->jobs++;
    }
    server_answer_free(&answer);
    return code;
}

/* CLI_OK with ret_ms -1: not final yet. */
static int read_probe(struct traffic *s, const char *job_id, int64_t *ret_ms)
{
    struct server_answer answer;
    char path[80];
    snprintf(path, sizeof path, "/v1/jobs/%s/report", job_id);
    *ret_ms = -1;
    int code = ask(s, "GET", path, NULL, &answer);
    if (code == CLI_OK && answer.http.status != 404 && answer.http.status != 429)
        code = server_judge(&answer, server_advice_key);
    const struct json *j = json_get(answer.json, "duration_ms");
    if (code == CLI_OK && answer.http.status == 200 && j)
        (void)!json_to_int(j, ret_ms);
    server_answer_free(&answer);
    return code;
}

static int run_probe(struct traffic *s, enum work_kind kind, char job_id[UUID_TEXT_LEN + 1],
                     int64_t *ret_ran_ms)
{
    int64_t begun_ms = traffic_now_ms(), waited_ms = 0;
    bool told = false;
    int code = submit_probe(s, kind, job_id);
    *ret_ran_ms = -1;
    while (code == CLI_OK && *ret_ran_ms < 0 && waited_ms < PROBE_MS_MAX) {
        int64_t pause_ms = 10 + waited_ms / 20;
        wait_a_little(s, pause_ms);
        code = read_probe(s, job_id, ret_ran_ms);
        waited_ms = traffic_now_ms() - begun_ms;
        if (waited_ms > PROBE_HINT_MS && !told) {
            cli_note(s->in, "a first job has not ended yet: the server is busy, or has no runner");
            told = true;
        }
    }
    if (code == CLI_OK && *ret_ran_ms < 0) {
        cli_fault("job %s did not end within %d s: `weir job explain` says why (runner.processes 0?)", job_id,
                  PROBE_MS_MAX / 1000);
        return CLI_FAILED;
    }
    return code;
}

/* Longer kinds until a run is long beside the machine's own delays and two agree; the shorter one counts. */
static int learn_scale(struct traffic *s, int64_t first_ms)
{
    static const enum work_kind longer[] = {WORK_SUCCESS_FAST, WORK_SUCCESS_NORMAL, WORK_RUNS_LONG};
    char job_id[UUID_TEXT_LEN + 1];
    int64_t best_ms = first_ms, other_ms = first_ms;
    int code = CLI_OK;
    size_t i = 0;
    for (bool sure = best_ms >= 5 * PROBE_LONG_ENOUGH_MS; !sure && i + 1 < LENGTH_OF(longer);) {
        code = run_probe(s, longer[++i], job_id, &best_ms);
        if (code == CLI_OK && best_ms >= PROBE_LONG_ENOUGH_MS)
            code = run_probe(s, longer[i], job_id, &other_ms);
        if (code != CLI_OK)
            return code;
        int64_t most_ms = best_ms > other_ms ? best_ms : other_ms;
        sure = best_ms >= PROBE_LONG_ENOUGH_MS && llabs(best_ms - other_ms) * 20 < most_ms;
        if (best_ms >= PROBE_LONG_ENOUGH_MS && other_ms < best_ms)
            best_ms = other_ms;
    }
    s->time_scale = judge_scale_of(best_ms, s->expected[longer[i]].duration_ms);
    s->early = EARLY_LEARNT;
    if (s->time_scale < SCALE_MIN)
        s->time_scale = SCALE_MIN;
    cli_note(s->in, "the server's time scale is about %g, by the length of its runs; --time-scale states it",
             s->time_scale);
    return CLI_OK;
}

static int find_scale(struct traffic *s, char job_id[UUID_TEXT_LEN + 1])
{
    const struct traffic_expectation *fast = &traffic_expectations[WORK_SUCCESS_FAST];
    int64_t ran_ms;
    int code = run_probe(s, WORK_SUCCESS_FAST, job_id, &ran_ms);
    if (code != CLI_OK)
        return code;
    if (s->time_scale <= 0)
        return learn_scale(s, ran_ms);
    double wanted_ms = (double)fast->duration_ms * s->time_scale;
    if ((double)ran_ms < floor(wanted_ms) - 1 || (double)ran_ms > wanted_ms + (double)s->slack_ms)
        cli_fault("--time-scale %g looks wrong: a SUCCESS_FAST ran %lld ms instead of %.0f; the server's "
                  "runner.time_scale looks like %g. Going on",
                  s->time_scale, (long long)ran_ms, wanted_ms, judge_scale_of(ran_ms, fast->duration_ms));
    return CLI_OK;
}

/* --- do callbacks come here? ------------------------------------------------------------------------- */

/* The result of the first attempts to call the probe back. */
enum reach { REACH_UNKNOWN, REACH_ARRIVES, REACH_DENIED, REACH_FAILS };

static enum reach read_reach(const struct json *page)
{
    const struct json *items = json_get(page, "items"), *tried, *status;
    enum reach reach = REACH_UNKNOWN;
    for (const struct json *d = items ? items->child : NULL; d; d = d->next) {
        tried = json_get(d, "attempts");
        for (const struct json *a = tried ? tried->child : NULL; a; a = a->next) {
            status = json_get(a, "status");
            if (status && status->type != JSON_NULL)
                return REACH_ARRIVES;
            reach = str_is(json_text(a, "error"), "refused_by_policy") ? REACH_DENIED : REACH_FAILS;
        }
    }
    return reach;
}

static int find_reach(struct traffic *s, const char *job_id, enum reach *ret)
{
    struct server_answer answer;
    char path[80];
    int code = CLI_OK;
    snprintf(path, sizeof path, "/v1/jobs/%s/deliveries", job_id);
    *ret = REACH_UNKNOWN;
    for (int64_t begun_ms = traffic_now_ms(); code == CLI_OK && *ret == REACH_UNKNOWN;) {
        if (traffic_now_ms() - begun_ms > REACH_MS_MAX)
            return CLI_OK;
        wait_a_little(s, REACH_LOOK_MS);
        code = ask(s, "GET", path, NULL, &answer);
        if (code == CLI_OK && answer.http.status != 429)
            code = server_judge(&answer, server_advice_key);
        if (code == CLI_OK)
            *ret = read_reach(answer.json);
        server_answer_free(&answer);
    }
    return code;
}

static bool is_local(const char *url)
{
    return strstr(url, "//127.") || strstr(url, "//localhost") || strstr(url, "//[::1]");
}

/* Kinds whose callbacks cannot come are not sent: SUCCEEDED alone would not be what the catalog says. A
 * local server whose callbacks fail for another reason has to explain that in its surprises. */
static int find_deliveries(struct traffic *s, const char *job_id, const char *url)
{
    enum reach reach;
    int code = find_reach(s, job_id, &reach);
    s->probe_port = receiver_close(s->probe_port);
    if (code != CLI_OK)
        return code;
    if (reach == REACH_DENIED)
        leave_out(s, traffic_help_is_receiver,
                  "the server may not call this machine's receivers (127.0.0.0/8): set "
                  "webhooks.allow_cidrs=127.0.0.0/8 or webhooks.allow_private=true");
    else if (reach != REACH_ARRIVES && !is_local(url))
        leave_out(s, traffic_help_is_receiver,
                  "the server's callbacks do not reach this machine: run it where the server runs");
    else if (reach != REACH_ARRIVES)
        cli_note(s->in, "a first callback did not arrive within %d s: is gateway.processes 0?",
                 REACH_MS_MAX / 1000);
    return mix_is_empty(s);
}

static int open_receiver(struct traffic *s)
{
    struct rlimit limit; /* each receiver is a descriptor, each of its connections another */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
        (void)!setrlimit(RLIMIT_NOFILE, &limit);
    }
    s->receiver = receiver_new(traffic_delivery_arrived);
    s->first_address = random_u64() >> 8;
    s->probe_port = receiver_open(s->receiver, s->first_address, RECEIVER_OK, NULL);
    if (s->probe_port)
        return CLI_OK;
    cli_fault("no loopback address for a receiver of callbacks: %s", strerror(errno));
    return CLI_FAILED;
}

int traffic_set_up(struct traffic *s)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct uuid run = uuid_v4();
    char job_id[UUID_TEXT_LEN + 1];
    uuid_text(&run, s->run_id);
    server_url(s->in, &url);
    int code = read_numbers(s);
    if (code == CLI_OK)
        code = read_mix(s);
    if (code == CLI_OK && flags_has(s->in->flags, FLAG_RESTART))
        code = traffic_restart_possible(s);
    if (code == CLI_OK)
        code = traffic_account_add(s);
    if (code == CLI_OK && mix_has_receivers(s))
        code = open_receiver(s);
    if (code == CLI_OK)
        code = find_scale(s, job_id);
    if (code == CLI_OK && s->receiver)
        code = find_deliveries(s, job_id, url.ptr);
    s->calls = traffic_calls_new(url.ptr, server_trust(s->in));
    return code;
}
