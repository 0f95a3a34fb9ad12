/* GET /v1/jobs, GET /v1/reports (JSON and CSV), GET /v1/reports/summary; GET /ops/v1/jobs for operators.
 *
 * Newest first, the caller's only; an operator's are those of one client, or of all. State filters are
 * answered from the listing of that state; the other filters look at rows one by one, at most LOOK_MAX of
 * them, so a page may be short and still have a next_cursor: a call never scans a whole history. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "api/ops/operators.h"
#include "base/time_text.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

enum { LOOK_MAX = 2000, IDS_A_READ = 256 };

struct page {
    struct job_view *views;
    size_t count;
    int64_t next_below; /* 0: this was the last page */
};

static bool read_filter(struct call *c, struct list_filter *ret)
{
    struct list_query_texts q;
    struct err err = {.code = ERR_OK};
    const struct {
        const char *name;
        struct str *text;
    } parameters[] = {{"state", &q.state},
                      {"outcome", &q.outcome},
                      {"type", &q.type},
                      {"kind", &q.kind},
                      {"work_kind", &q.work_kind},
                      {"queue", &q.queue},
                      {"created_after", &q.created_after},
                      {"created_before", &q.created_before},
                      {"limit", &q.limit},
                      {"cursor", &q.cursor}};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if (http_query(c->x, parameters[i].name, parameters[i].text, &err) != ERR_OK) {
            call_problem(c, &err);
            return false;
        }
    if (list_filter_parse(&q, ret, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* client 0: of all of them. */
static enum err_code read_ids(struct reader *r, int64_t client, const struct list_filter *f, int64_t below,
                              int64_t *ids, size_t *ret_count, struct err *err)
{
    struct list_query q = {.owner_key = client,
                           .below_id = below,
                           .from_id = f->from_id,
                           .limit = IDS_A_READ,
                           .bucket = LIST_ALL};
    bool is_live = f->has_state && !job_state_is_final(f->state);
    if (!client)
        return r->ops->reader_jobs(r, &q, is_live ? (int64_t)f->state : -1, ids, ret_count, err);
    q.queue = f->queue;
    if (is_live)
        return r->ops->reader_live(r, &q, f->state, ids, ret_count, err);
    if (f->has_state)
        q.bucket = (uint8_t)(1 + f->state);
    return r->ops->reader_list(r, &q, ids, ret_count, err);
}

static enum err_code read_page(struct reader *r, struct arena *a, int64_t client, const struct list_filter *f,
                               struct page *ret, struct err *err)
{
    int64_t ids[IDS_A_READ], below = f->below_id;
    size_t count = IDS_A_READ, looked = 0;
    *ret = (struct page){.views = ARENA_ARRAY(a, struct job_view, (size_t)f->limit)};
    while (!f->nothing && count == IDS_A_READ) {
        if (read_ids(r, client, f, below, ids, &count, err) != ERR_OK)
            return err->code;
        for (size_t i = 0; i < count; i++) {
            if (ret->count == (size_t)f->limit || looked++ == LOOK_MAX) {
                ret->next_below = below;
                return ERR_OK;
            }
            struct job_view *v = &ret->views[ret->count];
            bool found;
            if (job_view_read(r, a, ids[i], v, &found, err) != ERR_OK)
                return err->code;
            ret->count += found && list_filter_matches(f, v);
            below = ids[i];
        }
    }
    return ERR_OK;
}

/* Runs the whole read; false: answered. */
static bool list(struct call *c, struct page *ret)
{
    struct list_filter f;
    struct err err = {.code = ERR_OK};
    if (!read_filter(c, &f))
        return false;
    f.queues = c->who.power.queues;
    struct reader *r = api_read_begin(c->api, &err);
    if (r)
        (void)!read_page(r, c->x->arena, c->who.client, &f, ret, &err);
    if (err.code == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

static void end_page(struct call *c, struct json_writer *w, const struct page *p)
{
    jw_array_end(w);
    encode_str(w, "next_cursor", p->next_below ? list_cursor_text(c->x->arena, p->next_below) : STR_ABSENT);
    jw_object_end(w);
    call_send(c);
}

static void send_page(struct call *c, const struct page *p,
                      void (*encode)(struct json_writer *w, const struct job_view *v))
{
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    for (size_t i = 0; i < p->count; i++)
        encode(&w, &p->views[i]);
    end_page(c, &w, p);
}

/* --- of all clients --------------------------------------------------------------------------------- */

static void encode_job_of_client(struct json_writer *w, const struct job_view *v, struct call *c,
                                 struct reader *r, struct err *err)
{
    jw_object(w);
    if (encode_client_id(w, r, c->x->arena, v->job.client, err) != ERR_OK)
        return;
    encode_job_members(w, v);
    jw_object_end(w);
}

void handle_list_jobs_of_all(struct call *c)
{
    struct list_filter f;
    struct page p;
    struct json_writer w;
    struct err err = {.code = ERR_OK};
    int64_t client;
    if (!read_filter(c, &f))
        return;
    struct reader *r = api_read_begin(c->api, &err);
    if (r && !call_query_client(c, r, &client))
        return;
    if (!r || read_page(r, c->x->arena, client, &f, &p, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    for (size_t i = 0; i < p.count && err.code == ERR_OK; i++)
        encode_job_of_client(&w, &p.views[i], c, r, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    end_page(c, &w, &p);
}

void handle_list_jobs(struct call *c)
{
    struct page p;
    if (list(c, &p))
        send_page(c, &p, encode_job);
}

/* --- reports ---------------------------------------------------------------------------------------- */

static void encode_report(struct json_writer *w, const struct job_view *v)
{
    jw_object(w);
    encode_report_members(w, v);
    encode_text(w, "type", job_type_text((enum job_type)v->job.type));
    encode_text(w, "work_kind", work_kind_text((enum work_kind)v->job.kind));
    encode_str(w, "queue", v->job.queue);
    encode_text(w, "state", job_state_text(v->state));
    encode_int(w, "attempt", v->attempt);
    encode_time_ms(w, "created_at", v->job.created_ms);
    encode_str(w, "kind", v->job.kind_name);
    jw_object_end(w);
}

static void csv_text(struct strbuf *out, const char *text)
{
    strbuf_add_text(out, text ? text : "");
    strbuf_add_char(out, ',');
}

static void csv_time(struct strbuf *out, int64_t ms)
{
    char text[TIME_TEXT_MAX];
    if (ms)
        strbuf_add_str(out, time_text_ms(ms, text));
    strbuf_add_char(out, ',');
}

/* No value can hold a comma or quote: ids, enums, times, numbers, names of queues and kinds. */
static void csv_row(struct strbuf *out, const struct job_view *v)
{
    struct uuid id = uuid_from_v7(v->job.id, (uint64_t)v->job.low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    csv_text(out, text);
    csv_text(out, job_type_text((enum job_type)v->job.type));
    csv_text(out, work_kind_text((enum work_kind)v->job.kind));
    strbuf_addf(out, "%.*s,", STR_ARG(v->job.queue));
    csv_text(out, job_state_text(v->state));
    csv_text(out, job_outcome_text(v->state));
    strbuf_addf(out, "%lld,", (long long)v->attempt);
    csv_time(out, v->job.created_ms);
    csv_time(out, v->started_ms);
    csv_time(out, v->finished_ms);
    if (!v->is_live)
        strbuf_addf(out, "%lld", (long long)job_ran_ms(v));
    strbuf_addf(out, ",%.*s\r\n", STR_ARG(v->job.kind_name));
}

static void send_csv(struct call *c, const struct page *p)
{
    struct strbuf *out = &c->x->reply_body;
    strbuf_add_text(out,
                    "job_id,type,work_kind,queue,state,outcome,attempt,created_at,started_at,finished_at,"
                    "duration_ms,kind\r\n");
    for (size_t i = 0; i < p->count; i++)
        csv_row(out, &p->views[i]);
    if (p->next_below)
        http_reply_header(c->x, "X-Next-Cursor", list_cursor_text(c->x->arena, p->next_below));
    c->x->status = 200;
    c->x->content_type = "text/csv; charset=utf-8";
    call_send(c);
}

void handle_list_reports(struct call *c)
{
    struct page p;
    if (!list(c, &p))
        return;
    if (c->accept == ACCEPT_CSV)
        send_csv(c, &p);
    else
        send_page(c, &p, encode_report);
}

/* --- summary: one row, kept in the transaction -------------------------------------------------------- */

static void encode_counts(struct json_writer *w, const struct client_counts *n)
{
    int64_t total = 0;
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        total += n->by_state[s];
    encode_int(w, "total", total);
    jw_key(w, "by_state");
    jw_object(w);
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        encode_int(w, job_state_text((enum job_state)s), n->by_state[s]);
    jw_object_end(w);
    jw_key(w, "by_outcome");
    jw_object(w);
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        if (job_outcome_text((enum job_state)s))
            encode_int(w, job_outcome_text((enum job_state)s), n->by_state[s]);
    jw_object_end(w);
    jw_key(w, "by_work_kind");
    jw_object(w);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (n->by_kind[k])
            encode_int(w, work_kind_text((enum work_kind)k), n->by_kind[k]);
    jw_object_end(w);
}

void handle_get_report_summary(struct call *c)
{
    struct stats_row row = {.client = c->who.client};
    struct err err = {.code = ERR_OK};
    bool found = false;
    struct reader *r = api_read_begin(c->api, &err);
    if (r)
        (void)!r->ops->reader_row(r, &table_stats_row, &row, c->x->arena, &found, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    struct client_counts counts;
    counts_from_bytes(&counts, found ? row.counts : STR(""));
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_counts(&w, &counts);
    jw_object_end(&w);
    call_send(c);
}
