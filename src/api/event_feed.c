#include "api/event_feed.h"

#include "api/reads.h"

#include "base/banned.h"

enum { PING_MS = 15000, SCRATCH_BYTES = 4096 };

/* Sends the new events. False: the stream is over. */
static bool follow(struct call *c, struct event_feed *f)
{
    struct err err = {.code = ERR_OK};
    bool ends = false, listens = true;
    struct reader *r = api_read_begin(c->api, &err);
    arena_reset(f->scratch);
    if (!r)
        return true; /* the store is away: the next tick tries again */
    f->more = false;
    if (f->read(f, r, &ends, &err) != ERR_OK)
        reads_end(c->api->reads);
    if (f->out.len)
        listens = http_stream_write(c->x, strbuf_str(&f->out));
    strbuf_clear(&f->out);
    if (listens && f->more)
        http_stream_more(c->x);
    return listens && !ends;
}

/* The server calls this when the client or the server goes away; a feed that we end, we free ourselves. */
static void stream_ended(struct http_exchange *x)
{
    struct call *c = x->data;
    struct event_feed *f = c->data;
    followers_leave(c->api->followers, f->followed);
    f->scratch = arena_free(f->scratch);
    strbuf_free(&f->out);
}

/* The last event says why, as a problem; nothing comes behind it. */
static void turn_away(struct call *c, struct event_feed *f, const struct err *why)
{
    struct json_writer w;
    c->err = *why;
    metrics_problem(c->api->metrics, why->code);
    strbuf_clear(&f->out);
    strbuf_add_text(&f->out, "event: end\ndata: ");
    jw_start(&w, &f->out);
    problem_write(&w, why, &c->x->request_id);
    strbuf_add_text(&f->out, "\n\n");
    http_stream_write(c->x, strbuf_str(&f->out));
    c->x->close_after = true;
}

/* Looks whether the caller may still listen, and when that is to be asked next. */
static bool admits(struct call *c, struct event_feed *f, int64_t now_ms)
{
    struct err err = {.code = ERR_OK};
    int64_t wall_ms = clock_wall_ms(c->api->config.clock);
    arena_reset(f->scratch);
    if (credential_check(c, f->scratch, wall_ms, &err) != ERR_OK) {
        turn_away(c, f, &err);
        return false;
    }
    int64_t ping_ms = f->ping_at_ms > now_ms ? f->ping_at_ms - now_ms : PING_MS;
    int64_t left_ms = c->credential.look_at_ms - wall_ms;
    http_stream_tick_in(c->x, left_ms < ping_ms ? left_ms : ping_ms);
    return true;
}

static void end_stream(struct http_exchange *x)
{
    stream_ended(x);
    http_stream_end(x);
}

static void stream_tick(struct http_exchange *x)
{
    struct call *c = x->data;
    struct event_feed *f = c->data;
    int64_t now_ms = clock_mono_ms(c->api->config.clock);
    bool ping = now_ms >= f->ping_at_ms; /* looks at the store too: a tick lost to an error is made up for */
    if ((!f->started || ping || credential_is_due(c, clock_wall_ms(c->api->config.clock))) &&
        !admits(c, f, now_ms)) {
        reads_request_end(c->api->reads);
        end_stream(x);
        return;
    }
    if (http_stream_waits(x)) /* the client has not taken the part before */
        return;
    uint64_t news = followed_news(f->followed), elsewhere = followers_elsewhere(c->api->followers);
    if (f->started && !f->more && news == f->news && elsewhere == f->elsewhere && !ping)
        return;
    f->started = true;
    f->news = news;
    f->elsewhere = elsewhere;
    bool more = follow(c, f);
    reads_request_end(c->api->reads);
    if (!more) {
        end_stream(x);
        return;
    }
    if (ping) {
        http_stream_write(x, STR(": ping\n\n"));
        f->ping_at_ms = now_ms + PING_MS;
    }
}

void event_feed_start(struct call *c, struct event_feed *f)
{
    /* Joined before the first read in follow(): events committed in between are announced. */
    f->followed = followers_join(c->api->followers, f->number);
    f->scratch = arena_new(SCRATCH_BYTES);
    f->ping_at_ms = clock_mono_ms(c->api->config.clock) + PING_MS;
    c->data = f;
    credential_begin(c);
    c->x->status = 200;
    c->x->content_type = "text/event-stream";
    c->x->on_stream_tick = stream_tick;
    c->x->on_stream_end = stream_ended;
    http_stream_begin(c->x, PING_MS); /* its first tick sends what there is */
}
