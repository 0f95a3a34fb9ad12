#include "cli/stream_follow.h"

#include <inttypes.h>
#include <poll.h>

#include "base/clock.h"
#include "base/must.h"

#include "base/banned.h"

enum {
    RECONNECT_PAUSE_MS = 500,
    RECONNECT_GIVE_UP_MS = 30000, /* without being connected once */
    END_GRACE_MS = 1000,          /* the server ends the stream behind the last event; if not, we do */
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

/* Why the server ends the stream; asked again it says so as an answer. */
static bool is_problem(const struct json *event)
{
    const struct json *type = json_get(event, "type");
    return type && type->type == JSON_STRING && str_starts(type->text, "urn:weir:problem:");
}

static bool take_event(void *self, struct str id, struct str data)
{
    struct stream_follower *f = self;
    struct arena *a = arena_new(4096);
    const struct json *event;
    struct err err;
    (void)id;
    if (json_parse(a, data, &event, &err) == ERR_OK && !is_problem(event)) {
        f->heard = true;
        f->on_event(f->self, event, data);
        f->ended_since_ms = f->has_ended(f->self) ? now_ms() : 0;
    }
    arena_free(a);
    return !ferror(stdout);
}

static bool go_on(void *self)
{
    struct stream_follower *f = self;
    if (f->on_idle)
        f->on_idle(f->self);
    if (f->ended_since_ms && now_ms() >= f->ended_since_ms + END_GRACE_MS)
        return false;
    return now_ms() < f->deadline_ms;
}

static bool take_bytes(void *self, struct str bytes)
{
    struct stream_follower *f = self;
    if (!event_stream_feed(&f->stream, bytes, take_event, f))
        return false;
    if (f->on_idle)
        f->on_idle(f->self);
    return true;
}

/* At least 1: 0 means no limit to the call. */
static int64_t time_left_ms(const struct stream_follower *f)
{
    int64_t left = f->deadline_ms - now_ms();
    return left > 1 ? left : 1;
}

/* One connection, until it ends for whatever reason. CLI_OK: look at the follower for what is next. */
static int follow_once(struct stream_follower *f, struct err *ret_lost)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct server_answer answer CLEANUP(server_answer_free) = {.arena = arena_new(4096)};
    server_url(f->in, &url);
    strbuf_add_str(&url, f->path);
    event_stream_reset(&f->stream);
    struct http_call call = {
        .method = "GET",
        .url = url.ptr,
        .trust = server_trust(f->in),
        .bearer = f->bearer(f->self),
        .accept = "text/event-stream",
        .last_event_id = f->stream.last_id.len ? f->stream.last_id.ptr : NULL,
        .timeout_ms = f->deadline_ms == INT64_MAX ? 0 : time_left_ms(f),
        .on_bytes = take_bytes,
        .on_idle = go_on,
        .self = f,
    };
    ret_lost->code = http_call(&call, &answer.http, ret_lost);
    f->connected = answer.http.status == 200;
    bool unanswered = ret_lost->code == ERR_OK && answer.http.status == 0; /* go_on has ended it before */
    if (ret_lost->code != ERR_OK || answer.http.status == 200 || unanswered)
        return CLI_OK;
    struct err err;
    if (json_parse(answer.arena, strbuf_str(&answer.http.body), &answer.json, &err) != ERR_OK)
        answer.json = NULL;
    if (answer.http.status >= 500) { /* starting or draining: it will be back */
        err_set(ret_lost, ERR_STORAGE_UNAVAILABLE, "the server answers %ld", answer.http.status);
        return CLI_OK;
    }
    return server_judge(&answer, f->advice);
}

static int give_up_or_pause(const struct stream_follower *f, const struct err *lost, bool *told)
{
    if (lost->code == ERR_CONFIG_INVALID || (lost->code != ERR_OK && !f->heard && !f->after) ||
        now_ms() >= f->lost_since_ms + RECONNECT_GIVE_UP_MS)
        return cli_err(lost);
    if (!*told)
        cli_note(f->in, "The connection was lost; trying again.");
    *told = true;
    int64_t left_ms = time_left_ms(f);
    poll(NULL, 0, (int)(left_ms < RECONNECT_PAUSE_MS ? left_ms : RECONNECT_PAUSE_MS));
    return CLI_OK;
}

static int follow_until_end(struct stream_follower *f)
{
    bool told = false;
    for (;;) {
        struct err lost = {.code = ERR_OK};
        int code = follow_once(f, &lost);
        if (code != CLI_OK || f->has_ended(f->self))
            return code;
        if (now_ms() >= f->deadline_ms) {
            cli_fault("the %s has not ended after the time given with --timeout", f->subject);
            return CLI_TIMEOUT;
        }
        if (f->stream.broken || ferror(stdout)) {
            cli_fault(f->stream.broken ? "the server sent an event without end" : "cannot write the output");
            return CLI_FAILED;
        }
        if (f->connected && f->ask_ended && f->ask_ended(f->self))
            return CLI_OK;
        if (f->connected) {
            f->lost_since_ms = now_ms();
            told = false;
        }
        code = give_up_or_pause(f, &lost, &told);
        if (code != CLI_OK)
            return code;
    }
}

int stream_follow(struct stream_follower *f)
{
    int64_t timeout_ms;
    if (f->timeout && !duration_parse(str_of(f->timeout), &timeout_ms)) {
        cli_fault("--timeout must be a time such as 500ms, 30s or 5m, not \"%.40s\"", f->timeout);
        return CLI_USAGE;
    }
    f->deadline_ms = f->timeout ? now_ms() + timeout_ms : INT64_MAX;
    f->lost_since_ms = now_ms();
    if (f->after)
        strbuf_addf(&f->stream.last_id, "%" PRId64, f->after);
    int code = follow_until_end(f);
    event_stream_free(&f->stream);
    return code;
}
