/* GET /engine/v1/runs/{runId}/events: records after a runSeq, as a page or as a stream that goes on. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "api/event_feed.h"
#include "base/must.h"

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

struct event_list {
    struct page page;
    struct run_row run;
    struct run_event_row from;
};

static enum err_code show_event(struct page *p, const void *row)
{
    struct event_list *l = CONTAINER_OF(p, struct event_list, page);
    encode_run_event(&p->w, &l->run, row);
    l->from.seq = ((const struct run_event_row *)row)->seq + 1;
    p->given++;
    return ERR_OK;
}

/* A page that is not full is the last one, also of a damaged run that says it has more. */
static void send_page(struct call *c)
{
    struct event_list l = {.page.c = c};
    struct page *p = &l.page;
    int64_t after;
    if (!read_after(c, STR_ABSENT, &after) || !call_limit(c, PAGE_DEFAULT, PAGE_MAX, &p->limit) ||
        !call_read_run(c, &p->r, &l.run) || !page_open(p))
        return;
    l.from = (struct run_event_row){.run = l.run.num, .seq = after + 1};
    page_walk_rows(p, &table_run_event_row, &l.from, (size_t)p->limit + 1, show_event);
    page_close(p, "nextCursor", page_number(p, l.from.seq - 1));
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
