/* GET /v1/jobs/{job_id}/events: a page, or a live stream (text/event-stream; Last-Event-ID resumes). */
#include "api/handlers.h"
#include "api/event_feed.h"
#include "api/jobs/encode.h"
#include "base/hash.h"

#include "base/banned.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000, STREAM_PAGE = 64 };

static bool read_after(struct call *c, const char *parameter, struct str header, int64_t *ret_after)
{
    struct str text;
    if (!call_query(c, parameter, &text))
        return false;
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
    struct page p = {.c = c};
    int64_t after;
    struct job_view v;
    size_t count = 0;
    if (!read_after(c, "cursor", STR_ABSENT, &after) || !call_limit(c, PAGE_DEFAULT, PAGE_MAX, &p.limit) ||
        !call_read_job(c, &p.r, &v) || !page_open(&p))
        return;
    struct event *events = ARENA_ARRAY(c->x->arena, struct event, (size_t)p.limit);
    (void)!job_view_events(p.r, c->x->arena, &v, (uint32_t)after, (size_t)p.limit, events, &count, &p.err);
    for (size_t i = 0; i < count; i++)
        encode_event(&p.w, &events[i], &v.job);
    uint32_t last = count ? events[count - 1].seq : v.seq;
    p.more = last < v.seq;
    page_close(&p, "next_cursor", page_number(&p, last));
}

/* --- live ------------------------------------------------------------------------------------------- */

struct job_feed {
    struct event_feed base;
    uint64_t progress; /* digest of the one that the client has; 0: none */
};

/* Without an id: Last-Event-ID stays the number of the last event. */
static void write_progress(struct job_feed *f, struct str progress)
{
    uint64_t digest = progress.ptr ? hash_fnv1a(HASH_FNV_START, progress.ptr, progress.len) : 0;
    if (digest && digest != f->progress)
        strbuf_addf(&f->base.out, "event: progress\ndata: %.*s\n\n", STR_ARG(progress));
    f->progress = digest;
}

static void write_events(struct event_feed *f, const struct job_row *job, const struct event *events,
                         size_t count)
{
    struct strbuf *out = &f->out;
    for (size_t i = 0; i < count; i++) {
        struct json_writer w;
        strbuf_addf(out, "id: %u\nevent: %s\ndata: ", events[i].seq, job_event_text(events[i].event));
        jw_start(&w, out);
        encode_event(&w, &events[i], job);
        strbuf_add_text(out, "\n\n");
        f->sent = events[i].seq;
    }
}

/* A final job's stream ends by itself; a retry that its client asks for starts a new history to follow. */
static enum err_code read_job(struct event_feed *f, struct reader *r, bool *ret_ends, struct err *err)
{
    struct job_view v;
    bool found = false;
    if (job_view_read(r, f->scratch, f->number, &v, &found, err) != ERR_OK)
        return err->code;
    while (found && f->sent < v.seq && f->out.len < EVENT_FEED_PART_BYTES) {
        struct event events[STREAM_PAGE];
        size_t count;
        if (job_view_events(r, f->scratch, &v, (uint32_t)f->sent, STREAM_PAGE, events, &count, err) != ERR_OK)
            return err->code;
        write_events(f, &v.job, events, count);
        if (!count) /* the rest of the history is damaged: nothing to wait for */
            f->sent = v.seq;
    }
    f->more = found && f->sent < v.seq;
    if (found && !f->more && v.is_live)
        write_progress(CONTAINER_OF(f, struct job_feed, base), v.task.progress);
    *ret_ends = !found || (!f->more && !v.is_live);
    return ERR_OK;
}

static void start_stream(struct call *c)
{
    struct reader *r;
    struct job_view v;
    struct event_feed *f = &ARENA_NEW(c->x->arena, struct job_feed)->base;
    if (!read_after(c, "cursor", http_header(c->x, "Last-Event-ID"), &f->sent) || !call_read_job(c, &r, &v))
        return;
    f->read = read_job;
    f->number = v.job.id;
    event_feed_start(c, f);
}

void handle_get_job_events(struct call *c)
{
    if (c->accept == ACCEPT_EVENT_STREAM)
        start_stream(c);
    else
        send_page(c);
}
