/* GET /v1/jobs/{job_id}/events: a page, or a live stream (text/event-stream; Last-Event-ID resumes). */
#include "api/jobs/encode.h"
#include "api/jobs/handlers.h"

#include "base/banned.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, PING_MS = 15000, STREAM_PAGE = 64 };

static bool read_after(struct call *c, const char *parameter, struct str header, int64_t *ret_after)
{
    struct err err;
    struct str text = STR_ABSENT;
    if (http_query(c->x, parameter, &text, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!text.ptr)
        text = header;
    *ret_after = 0;
    if (text.ptr && !str_to_int(text, 0, UINT32_MAX, ret_after)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "%s is not one this server gave", parameter);
        return false;
    }
    return true;
}

static void send_page(struct call *c)
{
    int64_t after, limit;
    struct reader *r;
    struct job_view v;
    struct err err = {.code = ERR_OK};
    if (!read_after(c, "cursor", STR_ABSENT, &after) || !call_limit(c, PAGE_DEFAULT, PAGE_MAX, &limit) ||
        !call_read_job(c, &r, &v))
        return;
    struct event *events = ARENA_ARRAY(c->x->arena, struct event, (size_t)limit);
    size_t count = 0;
    enum err_code code =
        job_view_events(r, c->x->arena, &v, (uint32_t)after, (size_t)limit, events, &count, &err);
    if (code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    for (size_t i = 0; i < count; i++)
        encode_event(&w, &events[i], (uint64_t)v.job.low);
    jw_array_end(&w);
    jw_key(&w, "next_cursor");
    uint32_t last = count ? events[count - 1].seq : v.seq;
    if (last < v.seq)
        jw_str(&w, arena_printf(c->x->arena, "%u", last));
    else
        jw_null(&w);
    jw_object_end(&w);
    call_send(c);
}

/* --- live ------------------------------------------------------------------------------------------- */

struct follower {
    int64_t job;
    uint64_t low;
    int64_t ping_at_ms;
    struct followed *followed;
    uint64_t suspicions; /* of the followers, when it last looked */
    bool started;        /* the first tick sends what there is */
    uint32_t sent;       /* seq of the last event the client has */
    struct arena *scratch;
};

static void write_events(struct follower *f, const struct event *events, size_t count, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++) {
        struct json_writer w;
        strbuf_addf(out, "id: %u\nevent: %s\ndata: ", events[i].seq, job_event_text(events[i].event));
        jw_start(&w, out);
        encode_event(&w, &events[i], f->low);
        strbuf_add_text(out, "\n\n");
        f->sent = events[i].seq;
    }
}

/* Sends what is new. A final job's stream ends by itself; a retry would start a new history to follow. */
static bool follow(struct call *c, struct follower *f)
{
    struct err err = {.code = ERR_OK};
    struct job_view v;
    bool found = false, more = true;
    struct reader *r = api_read_begin(c->api, &err);
    struct strbuf out = {0};
    arena_reset(f->scratch);
    if (!r)
        return true; /* the store is away: the next tick tries again */
    if (job_view_read(r, f->scratch, f->job, &v, &found, &err) != ERR_OK) {
        reads_end(c->api->reads);
        return true;
    }
    if (!found)
        return false;
    while (f->sent < v.seq) {
        struct event events[STREAM_PAGE];
        size_t count;
        if (job_view_events(r, f->scratch, &v, f->sent, STREAM_PAGE, events, &count, &err) != ERR_OK) {
            reads_end(c->api->reads);
            break;
        }
        write_events(f, events, count, &out);
        if (!count) /* the rest of the history is damaged: nothing to wait for */
            f->sent = v.seq;
    }
    if (out.len)
        more = http_stream_write(c->x, strbuf_str(&out));
    strbuf_free(&out);
    return more && (v.is_live || f->sent < v.seq); /* what could not be read now is tried again */
}

/* The server calls this when the client or the server goes away; a stream that we end, we free ourselves. */
static void stream_ended(struct http_exchange *x)
{
    struct call *c = x->data;
    struct follower *f = c->data;
    followers_leave(c->api->followers, f->followed);
    f->scratch = arena_free(f->scratch);
}

static void stream_tick(struct http_exchange *x)
{
    struct call *c = x->data;
    struct follower *f = c->data;
    int64_t now_ms = clock_mono_ms(c->api->config.clock);
    bool ping = now_ms >= f->ping_at_ms; /* looks at the store too: a tick lost to an error is made up for */
    uint64_t suspicions = followers_suspicions(c->api->followers);
    if (f->started && followed_seq(f->followed) <= f->sent && suspicions == f->suspicions && !ping)
        return;
    f->started = true;
    f->suspicions = suspicions;
    bool more = follow(c, f);
    reads_request_end(c->api->reads);
    if (!more) {
        stream_ended(x);
        http_stream_end(x);
        return;
    }
    if (ping) {
        http_stream_write(x, STR(": ping\n\n"));
        f->ping_at_ms = now_ms + PING_MS;
    }
}

static void start_stream(struct call *c)
{
    int64_t after;
    struct reader *r;
    struct job_view v;
    if (!read_after(c, "cursor", http_header(c->x, "Last-Event-ID"), &after) || !call_read_job(c, &r, &v))
        return;
    /* Joined before the first read in follow(): what is committed in between is announced. */
    struct follower *f = ARENA_NEW(c->x->arena, struct follower);
    *f = (struct follower){.job = v.job.id,
                           .low = (uint64_t)v.job.low,
                           .followed = followers_join(c->api->followers, v.job.id),
                           .sent = (uint32_t)after,
                           .scratch = arena_new(4096)};
    c->data = f;
    c->x->status = 200;
    c->x->content_type = "text/event-stream";
    c->x->on_stream_tick = stream_tick;
    c->x->on_stream_end = stream_ended;
    f->ping_at_ms = clock_mono_ms(c->api->config.clock) + PING_MS;
    http_stream_begin(c->x, PING_MS); /* its first tick sends what there is */
}

void handle_get_events(struct call *c)
{
    if (c->accept == ACCEPT_EVENTS)
        start_stream(c);
    else
        send_page(c);
}
