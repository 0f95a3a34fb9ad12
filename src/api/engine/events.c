/* GET /engine/v1/runs/{runId}/events: records after a runSeq, as a page or as a stream that goes on. */
#include "api/engine/encode.h"
#include "api/engine/handlers.h"

#include "base/banned.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, PING_MS = 15000, STREAM_PAGE = 256 };

static bool read_after(struct call *c, struct str header, int64_t *ret_after)
{
    struct str text;
    if (!call_query(c, "after", &text))
        return false;
    if (!text.ptr)
        text = header;
    *ret_after = 0;
    if (!text.ptr || str_to_int(text, 0, INT64_MAX - 1, ret_after))
        return true;
    call_fail(c, ERR_REQUEST_MALFORMED, "after has to be a runSeq, 0 or more");
    return false;
}

/* --- a page ------------------------------------------------------------------------------------------ */

struct page {
    struct json_writer w;
    const struct run_row *run;
    int64_t last, count;
};

static bool encode_item(const void *row, void *arg)
{
    struct page *p = arg;
    encode_run_event(&p->w, p->run, row);
    p->last = ((const struct run_event_row *)row)->seq;
    p->count++;
    return true;
}

static void send_page(struct call *c)
{
    int64_t after, limit = PAGE_DEFAULT;
    struct reader *r;
    struct run_row run;
    struct err err;
    struct str text;
    if (!read_after(c, STR_ABSENT, &after) || !call_query(c, "limit", &text))
        return;
    if (text.ptr && !str_to_int(text, 1, PAGE_MAX, &limit)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "limit has to be 1 to %d", PAGE_MAX);
        return;
    }
    if (!call_read_run(c, &r, &run))
        return;
    struct page p = {.run = &run, .last = after};
    call_json(c, 200, &p.w);
    jw_object(&p.w);
    jw_key(&p.w, "items");
    jw_array(&p.w);
    struct run_event_row from = {.run = run.num, .seq = after + 1};
    if (r->ops->reader_range(r, &table_run_event_row, &from, (size_t)limit, encode_item, &p, &err) !=
        ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&p.w);
    /* A page that is not full is the last one, also of a damaged run that says it has more. */
    encode_next(c, &p.w, p.count == limit && p.last < run.last_seq, p.last);
    jw_object_end(&p.w);
    call_send(c);
}

/* --- live --------------------------------------------------------------------------------------------- */

struct follower {
    struct run_row run;
    int64_t ping_at_ms, sent;
    struct followed *followed;
    uint64_t suspicions; /* of the followers, when it last looked */
    bool started;
    struct arena *scratch;
    struct strbuf out;
};

static bool write_event(const void *row, void *arg)
{
    const struct run_event_row *e = row;
    struct follower *f = arg;
    struct json_writer w;
    strbuf_addf(&f->out, "id: %lld\n", (long long)e->seq);
    if (e->type != RUN_EVENT_UNKNOWN) /* what others call theirs may hold the end of a line */
        strbuf_addf(&f->out, "event: %.*s\n", STR_ARG(run_event_name(e)));
    strbuf_add_text(&f->out, "data: ");
    jw_start(&w, &f->out);
    encode_run_event(&w, &f->run, e);
    strbuf_add_text(&f->out, "\n\n");
    f->sent = e->seq;
    return true;
}

/* Sends what is new. An ended run's stream ends by itself, behind its last record. */
static bool follow(struct call *c, struct follower *f)
{
    struct err err = {.code = ERR_OK};
    struct run_row now = {.num = f->run.num};
    bool found = false, more = true;
    struct reader *r = api_read_begin(c->api, &err);
    arena_reset(f->scratch);
    if (!r)
        return true; /* the store is away: the next tick tries again */
    if (r->ops->reader_row(r, &table_run_row, &now, f->scratch, &found, &err) != ERR_OK) {
        reads_end(c->api->reads);
        return true;
    }
    if (!found)
        return false;
    while (f->sent < now.last_seq) {
        int64_t before = f->sent;
        struct run_event_row from = {.run = now.num, .seq = f->sent + 1};
        if (r->ops->reader_range(r, &table_run_event_row, &from, STREAM_PAGE, write_event, f, &err) !=
            ERR_OK) {
            reads_end(c->api->reads);
            break;
        }
        if (f->sent == before) /* damaged: nothing to wait for */
            f->sent = now.last_seq;
    }
    if (f->out.len)
        more = http_stream_write(c->x, strbuf_str(&f->out));
    strbuf_clear(&f->out);
    return more && (!run_status_is_final((enum run_status)now.state) || f->sent < now.last_seq);
}

static void stream_ended(struct http_exchange *x)
{
    struct call *c = x->data;
    struct follower *f = c->data;
    followers_leave(c->api->followers, f->followed);
    f->scratch = arena_free(f->scratch);
    strbuf_free(&f->out);
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
    struct follower *f = ARENA_NEW(c->x->arena, struct follower);
    if (!read_after(c, http_header(c->x, "Last-Event-ID"), &after) || !call_read_run(c, &r, &f->run))
        return;
    /* Joined before the first read in follow(): what is committed in between is announced. */
    f->followed = followers_join(c->api->followers, f->run.num);
    f->sent = after;
    f->scratch = arena_new(4096);
    f->ping_at_ms = clock_mono_ms(c->api->config.clock) + PING_MS;
    c->data = f;
    c->x->status = 200;
    c->x->content_type = "text/event-stream";
    c->x->on_stream_tick = stream_tick;
    c->x->on_stream_end = stream_ended;
    http_stream_begin(c->x, PING_MS);
}

void handle_run_events(struct call *c)
{
    if (c->accept == ACCEPT_EVENTS)
        start_stream(c);
    else
        send_page(c);
}
