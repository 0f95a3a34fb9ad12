/* GET /v1/jobs, GET /v1/reports (JSON and CSV), GET /v1/reports/summary; GET /ops/v1/jobs for operators.
 *
 * Newest first, the caller's only; an operator's are those of one client, or of all. State filters are
 * answered from the listing of that state; the other filters look at rows one by one. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "api/ops/operators.h"
#include "base/must.h"
#include "base/time_text.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

struct job_list {
    struct page page;
    struct list_filter filter;
    int64_t client; /* 0: of all of them */
    /* One job into the answer. */
    enum err_code (*show)(struct job_list *l, const struct job_view *v);
};

static struct job_list *list_of(struct page *p)
{
    return CONTAINER_OF(p, struct job_list, page);
}

static bool read_filter(struct call *c, struct list_filter *ret)
{
    struct list_query_texts q;
    struct err err;
#define X(name)                                                                                              \
    if (!call_query(c, #name, &q.name))                                                                      \
        return false;
    JOB_FILTERS(X)
    X(limit)
    X(cursor)
#undef X
    if (list_filter_parse(&q, ret, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

static enum err_code read_ids(struct page *p, const struct list_query *q, int64_t *ids, size_t *ret_count)
{
    const struct list_filter *f = &list_of(p)->filter;
    const struct store_ops *ops = p->r->ops;
    bool is_live = f->has_state && !job_state_is_final(f->state);
    if (!q->owner_key)
        return ops->reader_jobs(p->r, q, is_live ? (int64_t)f->state : -1, ids, ret_count, &p->err);
    if (is_live)
        return ops->reader_live(p->r, q, f->state, ids, ret_count, &p->err);
    return ops->reader_list(p->r, q, ids, ret_count, &p->err);
}

static enum err_code look_at(struct page *p, int64_t id)
{
    struct job_list *l = list_of(p);
    struct job_view v;
    bool found;
    if (job_view_read(p->r, p->c->x->arena, id, &v, &found, &p->err) != ERR_OK || !found ||
        !list_filter_matches(&l->filter, &v))
        return p->err.code;
    p->given++;
    return l->show(l, &v);
}

static void walk(struct job_list *l)
{
    struct list_filter *f = &l->filter;
    struct list_query q = {.owner_key = l->client,
                           .below_id = f->below_id,
                           .from_id = f->from_id,
                           .bucket = f->has_state ? (uint8_t)(1 + f->state) : LIST_ALL,
                           .queue = f->queue};
    l->page.limit = f->limit;
    if (!f->nothing)
        page_walk(&l->page, &q, read_ids, look_at);
    f->below_id = q.below_id;
}

static void send_list(struct job_list *l)
{
    if (!page_open(&l->page))
        return;
    walk(l);
    page_close(&l->page, "next_cursor", list_cursor_text(l->page.c->x->arena, l->filter.below_id));
}

static enum err_code show_job(struct job_list *l, const struct job_view *v)
{
    encode_job(&l->page.w, v);
    return ERR_OK;
}

void handle_list_jobs(struct call *c)
{
    struct job_list l = {.page.c = c, .client = c->who.client, .show = show_job};
    if (!read_filter(c, &l.filter))
        return;
    l.filter.queues = c->who.power.queues;
    send_list(&l);
}

/* --- of all clients --------------------------------------------------------------------------------- */

static enum err_code show_job_of_client(struct job_list *l, const struct job_view *v)
{
    struct page *p = &l->page;
    jw_object(&p->w);
    if (encode_client_id(&p->w, p->r, p->c->x->arena, v->job.client, &p->err) == ERR_OK)
        encode_job_members(&p->w, v);
    jw_object_end(&p->w);
    return p->err.code;
}

void handle_list_jobs_of_all(struct call *c)
{
    struct job_list l = {.page.c = c, .show = show_job_of_client};
    if (read_filter(c, &l.filter) && page_read(&l.page) && call_query_client(c, l.page.r, &l.client))
        send_list(&l);
}

/* --- reports ---------------------------------------------------------------------------------------- */

static enum err_code show_report(struct job_list *l, const struct job_view *v)
{
    struct json_writer *w = &l->page.w;
    jw_object(w);
    ENDED_FIELDS(ENCODE_FIELD)
    REPORT_ROW_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    return ERR_OK;
}

static void csv_uuid_v7(struct strbuf *out, int64_t id, uint64_t low)
{
    struct uuid uuid = uuid_from_v7(id, low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&uuid, text);
    strbuf_add_text(out, text);
}

static void csv_time(struct strbuf *out, int64_t ms)
{
    char text[TIME_TEXT_MAX];
    if (ms)
        strbuf_add_str(out, time_text_ms(ms, text));
}

static void csv_int(struct strbuf *out, bool is_there, int64_t value)
{
    if (is_there)
        strbuf_addf(out, "%lld", (long long)value);
}

#define CSV_ID           csv_uuid_v7
#define CSV_WORD         strbuf_add_text
#define CSV_WORD_OR_NULL csv_word
#define CSV_TEXT         strbuf_add_str
#define CSV_TEXT_OR_NULL strbuf_add_str
#define CSV_TIME         csv_time
#define CSV_TIME_OR_NULL csv_time
#define CSV_INT(out, n)  csv_int(out, true, n)
#define CSV_INT_OR_NULL  csv_int

static void csv_word(struct strbuf *out, const char *word)
{
    strbuf_add_text(out, word ? word : "");
}

#define COLUMN(name) CSV_COLUMN_##name
enum csv_column { REPORT_CSV_COLUMNS(COLUMN), CSV_COLUMN_COUNT };

/* No value can hold a comma or quote: ids, enums, times, numbers, names of queues and kinds. */
static void csv_cell(struct strbuf *out, const struct job_view *v, enum csv_column column)
{
    switch (column) {
#define CELL(word, name, ...)                                                                                \
    case CSV_COLUMN_##name:                                                                                  \
        CSV_##word(out, __VA_ARGS__);                                                                        \
        return;
        ENDED_FIELDS(CELL)
        REPORT_ROW_FIELDS(CELL)
#undef CELL
    case CSV_COLUMN_COUNT:
        return;
    }
}

static void csv_end(struct strbuf *out, enum csv_column column)
{
    strbuf_add_text(out, column + 1 < CSV_COLUMN_COUNT ? "," : "\r\n");
}

static void csv_headings(struct strbuf *out)
{
#define HEADING(name) #name
    static const char *const headings[] = {REPORT_CSV_COLUMNS(HEADING)};
    for (enum csv_column column = 0; column < CSV_COLUMN_COUNT; column++) {
        strbuf_add_text(out, headings[column]);
        csv_end(out, column);
    }
}

static enum err_code show_csv(struct job_list *l, const struct job_view *v)
{
    struct strbuf *out = &l->page.c->x->reply_body;
    for (enum csv_column column = 0; column < CSV_COLUMN_COUNT; column++) {
        csv_cell(out, v, column);
        csv_end(out, column);
    }
    return ERR_OK;
}

static void send_csv(struct job_list *l)
{
    struct http_exchange *x = l->page.c->x;
    if (!page_read(&l->page))
        return;
    csv_headings(&x->reply_body);
    walk(l);
    if (l->page.err.code != ERR_OK) {
        call_problem(l->page.c, &l->page.err);
        return;
    }
    if (l->page.more)
        http_reply_header(x, "X-Next-Cursor", list_cursor_text(x->arena, l->filter.below_id));
    x->status = 200;
    x->content_type = "text/csv; charset=utf-8";
    call_send(l->page.c);
}

void handle_list_reports(struct call *c)
{
    bool is_csv = c->accept == ACCEPT_CSV;
    struct job_list l = {.page.c = c, .client = c->who.client, .show = is_csv ? show_csv : show_report};
    if (!read_filter(c, &l.filter))
        return;
    l.filter.queues = c->who.power.queues;
    (is_csv ? send_csv : send_list)(&l);
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
    bool found;
    struct reader *r = call_reader(c);
    if (!r || !call_row(c, r, &table_stats_row, &row, &found))
        return;
    struct client_counts counts;
    counts_from_bytes(&counts, found ? row.counts : STR(""));
    struct json_writer w;
    call_object(c, 200, &w);
    encode_counts(&w, &counts);
    call_send_object(c, &w);
}
