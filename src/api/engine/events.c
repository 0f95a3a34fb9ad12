/* GET /engine/v1/runs/{runId}/events: records after a runSeq, as a page or as a stream that goes on. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "api/event_feed.h"

#include "base/banned.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, STREAM_PAGE = 256 };

static bool read_after(struct call *c, struct str header, int64_t *ret_after)
{
    struct str text, cursor;
    if (!call_query(c, "after", &text) || !call_query(c, "cursor", &cursor))
        return false;
    text = cursor.ptr ? cursor : text.ptr ? text : header;
    *ret_after = 0;
    if (!text.ptr || str_to_int(text, 0, INT64_MAX - 1, ret_after))
        return true;
    call_fail(c, ERR_REQUEST_MALFORMED, "after and cursor have to be a runSeq, 0 or more");
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

struct run_feed {
    struct event_feed base;
    struct run_row run;
};

static bool write_event(const void *row, void *arg)
{
    const struct run_event_row *e = row;
    struct run_feed *f = arg;
    struct strbuf *out = &f->base.out;
    struct json_writer w;
    strbuf_addf(out, "id: %lld\n", (long long)e->seq);
    if (e->type != RUN_EVENT_UNKNOWN) /* names of outside engines may hold the end of a line */
        strbuf_addf(out, "event: %.*s\n", STR_ARG(run_event_name(e)));
    strbuf_add_text(out, "data: ");
    jw_start(&w, out);
    encode_run_event(&w, &f->run, e);
    strbuf_add_text(out, "\n\n");
    f->base.sent = e->seq;
    return out->len < EVENT_FEED_PART_BYTES;
}

/* An ended run's stream ends by itself, behind its last record. */
static enum err_code read_run(struct event_feed *f, struct reader *r, bool *ret_ends, struct err *err)
{
    struct run_row now = {.num = f->number};
    bool found = false;
    if (r->ops->reader_row(r, &table_run_row, &now, f->scratch, &found, err) != ERR_OK)
        return err->code;
    while (found && f->sent < now.last_seq && f->out.len < EVENT_FEED_PART_BYTES) {
        int64_t before = f->sent;
        struct run_event_row from = {.run = now.num, .seq = f->sent + 1};
        if (r->ops->reader_range(r, &table_run_event_row, &from, STREAM_PAGE, write_event,
                                 CONTAINER_OF(f, struct run_feed, base), err) != ERR_OK)
            return err->code;
        if (f->sent == before) /* damaged: nothing to wait for */
            f->sent = now.last_seq;
    }
    f->more = found && f->sent < now.last_seq;
    *ret_ends = !found || (!f->more && run_status_is_final((enum run_status)now.state));
    return ERR_OK;
}

static void start_stream(struct call *c)
{
    struct reader *r;
    struct run_feed *f = ARENA_NEW(c->x->arena, struct run_feed);
    if (!read_after(c, http_header(c->x, "Last-Event-ID"), &f->base.sent) || !call_read_run(c, &r, &f->run))
        return;
    f->base.read = read_run;
    f->base.number = f->run.num;
    event_feed_start(c, &f->base);
}

void handle_get_run_events(struct call *c)
{
    if (c->accept == ACCEPT_EVENT_STREAM)
        start_stream(c);
    else
        send_page(c);
}
