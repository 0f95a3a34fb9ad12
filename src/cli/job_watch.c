/* weir job watch: follows a job's event stream until the job is final, across lost connections. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/event_stream.h"
#include "cli/job_internal.h"
#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

enum {
    RECONNECT_PAUSE_MS = 500,
    RECONNECT_GIVE_UP_MS = 30000, /* without being connected once */
    FINAL_GRACE_MS = 1000,        /* the server ends the stream behind the last event; if not, we do */
};

struct watch {
    const struct invocation *in;
    struct str job_id;
    struct event_stream stream;
    struct text_table *table;
    int64_t previous_us;
    int64_t deadline_ms;    /* INT64_MAX: none */
    int64_t final_since_ms; /* 0: not final */
    bool connected;         /* the last connection was answered with a stream */
    int64_t lost_since_ms;
    enum job_state state;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static bool is_final(const struct watch *w)
{
    return w->state != JOB_NO_STATE && job_state_is_final(w->state);
}

static bool take_event(void *self, struct str id, struct str data)
{
    struct watch *w = self;
    struct arena *a = arena_new(4096);
    const struct json *event;
    struct err err;
    (void)id;
    if (json_parse(a, data, &event, &err) == ERR_OK) {
        const struct json *next = json_get(event, "next_state");
        if (next && !job_state_parse(next->text, &w->state))
            w->state = JOB_NO_STATE;
        w->final_since_ms = is_final(w) ? now_ms() : 0;
        if (w->in->json) {
            printf("%.*s\n", STR_ARG(data));
        } else {
            job_event_row(w->table, event, &w->previous_us);
            text_table_show(w->table, stdout);
        }
        fflush(stdout);
    }
    arena_free(a);
    return !ferror(stdout);
}

static bool take_bytes(void *self, struct str bytes)
{
    struct watch *w = self;
    return event_stream_feed(&w->stream, bytes, take_event, w);
}

static bool go_on(void *self)
{
    struct watch *w = self;
    if (w->final_since_ms && now_ms() >= w->final_since_ms + FINAL_GRACE_MS)
        return false;
    return now_ms() < w->deadline_ms;
}

/* At least 1: 0 means no limit to the call. */
static int64_t time_left_ms(const struct watch *w)
{
    int64_t left = w->deadline_ms - now_ms();
    return left > 1 ? left : 1;
}

/* One connection, until it ends for whatever reason. CLI_OK: look at the watch for what is next. */
static int follow_once(struct watch *w, struct err *ret_lost)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct server_answer answer CLEANUP(server_answer_free) = {.arena = arena_new(4096)};
    const char *last_id = w->stream.last_id.len ? w->stream.last_id.ptr : NULL;
    server_url(w->in, &url);
    strbuf_add_str(&url, job_path(answer.arena, w->job_id, "/events"));
    event_stream_reset(&w->stream);
    struct http_call call = {
        .method = "GET",
        .url = url.ptr,
        .bearer = server_key(w->in),
        .accept = "text/event-stream",
        .last_event_id = last_id,
        .timeout_ms = w->deadline_ms == INT64_MAX ? 0 : time_left_ms(w),
        .on_bytes = take_bytes,
        .on_idle = go_on,
        .self = w,
    };
    ret_lost->code = http_call(&call, &answer.http, ret_lost);
    w->connected = answer.http.status == 200;
    if (ret_lost->code != ERR_OK || answer.http.status == 200)
        return CLI_OK;
    struct err err;
    if (json_parse(answer.arena, strbuf_str(&answer.http.body), &answer.json, &err) != ERR_OK)
        answer.json = NULL;
    if (answer.http.status >= 500) { /* starting or draining: it will be back */
        err_set(ret_lost, ERR_STORAGE_UNAVAILABLE, "the server answers %ld", answer.http.status);
        return CLI_OK;
    }
    return server_judge(&answer, call.bearer != NULL);
}

static int give_up_or_pause(const struct watch *w, const struct err *lost, bool *told)
{
    bool never_heard = !w->stream.last_id.len && w->state == JOB_NO_STATE;
    if (lost->code == ERR_CONFIG_INVALID || (lost->code != ERR_OK && never_heard) ||
        now_ms() >= w->lost_since_ms + RECONNECT_GIVE_UP_MS)
        return cli_err(lost);
    if (!*told)
        cli_note(w->in, "The connection was lost; trying again.");
    *told = true;
    poll(NULL, 0, RECONNECT_PAUSE_MS);
    return CLI_OK;
}

static int watch_until_final(struct watch *w)
{
    bool told = false;
    for (;;) {
        struct err lost = {.code = ERR_OK};
        int code = follow_once(w, &lost);
        if (code != CLI_OK)
            return code;
        if (is_final(w))
            return w->state == JOB_SUCCEEDED ? CLI_OK : CLI_FAILED;
        if (now_ms() >= w->deadline_ms) {
            cli_fault("the job is not final after the time given with --timeout");
            return CLI_TIMEOUT;
        }
        if (w->stream.broken || ferror(stdout)) {
            cli_fault(w->stream.broken ? "the server sent an event without end" : "cannot write the output");
            return CLI_FAILED;
        }
        if (w->connected) {
            w->lost_since_ms = now_ms();
            told = false;
        }
        code = give_up_or_pause(w, &lost, &told);
        if (code != CLI_OK)
            return code;
    }
}

/* Rows come one by one, so the columns have to be wide enough from the start. */
static struct text_table *new_event_table(const struct invocation *in)
{
    static const size_t widths[JOB_EVENT_COLUMNS] = {3, 27, 11, 21, 9, 0};
    struct text_table *t = text_table_new(job_event_headings, JOB_EVENT_COLUMNS);
    if (in->quiet)
        text_table_hide_headings(t);
    for (size_t i = 0; i < JOB_EVENT_COLUMNS; i++)
        text_table_widen(t, i, widths[i]);
    return t;
}

int job_follow(const struct invocation *in, struct str job_id)
{
    int64_t timeout_ms;
    const char *timeout = in->flags->value[FLAG_TIMEOUT];
    struct watch w = {
        .in = in,
        .job_id = job_id,
        .deadline_ms = INT64_MAX,
        .lost_since_ms = now_ms(),
        .state = JOB_NO_STATE,
    };
    if (timeout && !duration_parse(str_of(timeout), &timeout_ms)) {
        cli_fault("--timeout must be a time such as 500ms, 30s or 5m, not \"%.40s\"", timeout);
        return CLI_USAGE;
    }
    if (timeout)
        w.deadline_ms = now_ms() + timeout_ms;
    w.table = new_event_table(in);
    int code = watch_until_final(&w);
    text_table_free(w.table);
    event_stream_free(&w.stream);
    return code;
}

int command_job_watch(const struct invocation *in)
{
    return job_follow(in, str_of(in->args[0]));
}
