#include "cli/top_view.h"

#include <math.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/columns.h"

#include "base/banned.h"

/* X(name in JSON, heading, metric, label) */
#define RATES(X)                                                                                             \
    X("requests", ">requests/s", "weir_http_requests_total", NULL)                                           \
    X("submitted", ">submits/s", "jobs_submitted_total", NULL)                                               \
    X("started", ">starts/s", "jobs_running_total", NULL)                                                    \
    X("succeeded", ">succeeded/s", "jobs_succeeded_total", NULL)                                             \
    X("failed", ">failed/s", "jobs_failed_total", NULL)                                                      \
    X("run_events", ">run events/s", "weir_run_events_total", NULL)                                          \
    X("delivered", ">webhooks/s", "webhook_deliveries_total", NULL)                                          \
    X("refused", ">refused/s", "weir_http_problems_total", NULL)                                             \
    X("commits", ">commits/s", "weir_commit_batches_total", NULL)

/* X(name, histogram, label) */
#define LATENCIES(X)                                                                                         \
    X("submit", "weir_http_request_seconds", "operation=\"submitJob\"")                                      \
    X("submit batch", "weir_http_request_seconds", "operation=\"submitJobBatch\"")                           \
    X("get job", "weir_http_request_seconds", "operation=\"getJob\"")                                        \
    X("start task", "weir_http_request_seconds", "operation=\"startTasks\"")                                 \
    X("finish task", "weir_http_request_seconds", "operation=\"finishTasks\"")                               \
    X("append events", "weir_http_request_seconds", "operation=\"appendRunEvents\"")                         \
    X("signal", "weir_http_request_seconds", "operation=\"sendSignal\"")                                     \
    X("commit", "weir_commit_seconds", NULL)                                                                 \
    X("wait in queue", "job_queue_wait_seconds", NULL)                                                       \
    X("webhook", "weir_webhook_seconds", NULL)

/* X(heading, metric, label) */
#define GAUGES(X)                                                                                            \
    X(">scheduled", "weir_jobs_in_state", "state=\"CREATED\"")                                               \
    X(">queued", "weir_jobs_in_state", "state=\"QUEUED\"")                                                   \
    X(">assigned", "weir_jobs_in_state", "state=\"ASSIGNED\"")                                               \
    X(">running", "weir_jobs_in_state", "state=\"RUNNING\"")                                                 \
    X(">workers", "weir_workers", NULL)                                                                      \
    X(">connections", "weir_http_connections", NULL)                                                         \
    X(">WAL pages", "weir_wal_pages", NULL)

enum { BAR_COLUMNS = 20, PARTITIONS_SHOWN_MAX = 4 };

/* --- numbers --------------------------------------------------------------------------------------- */

static double seconds_between(const struct top_frame *f)
{
    double s = (double)(f->now->mono_ms - f->before->mono_ms) / 1000;
    return s > 0.001 ? s : 0.001;
}

static double rate_of(const struct top_frame *f, const char *metric, const char *label)
{
    double was = metrics_sum(&f->before->metrics, metric, label);
    double is = metrics_sum(&f->now->metrics, metric, label);
    return (is < was ? is : is - was) / seconds_between(f); /* less: core was started anew */
}

static void add_rate(struct text_table *t, double rate)
{
    text_table_addf(t, rate > 0 && rate < 10 ? "%.1f" : "%.0f", rate);
}

static void add_ms(struct text_table *t, double seconds)
{
    double ms = seconds * 1000;
    text_table_addf(t, ms < 10 ? "%.2f ms" : "%.0f ms", ms);
}

static const struct json *list_of(const struct top_look *l, const char *name)
{
    const struct json *m = l->topology ? json_get(l->topology, name) : NULL;
    return m && m->type == JSON_ARRAY ? m->child : NULL;
}

/* --- parts of the frame ---------------------------------------------------------------------------- */

static void show(struct text_table *t, const struct top_frame *f, FILE *out)
{
    text_table_print(t, out, f->width, f->colour);
    text_table_free(t);
    fputc('\n', out);
}

static void draw_head(const struct top_frame *f, FILE *out)
{
    static const char *const headings[] = {"!server", "!state", ">core up", ">memory", ">CPU", "!time"};
    char text[TIME_TEXT_MAX], age[32];
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    double started = metrics_sum(&f->now->metrics, "weir_process_start_time_seconds", NULL);
    text_age(f->now->wall_ms / 1000 - (int64_t)started, age, sizeof age);
    struct str state = json_text(f->now->ready, "status");
    text_table_add(t, str_of(f->url));
    text_table_add_tone(t, state, tone_of_state(state));
    text_table_add(t, str_of(age));
    text_table_addf(t, "%.0f MB",
                    metrics_sum(&f->now->metrics, "weir_process_resident_memory_bytes", NULL) / 1e6);
    text_table_addf(t, "%.0f %%", 100 * rate_of(f, "weir_process_cpu_seconds_total", NULL));
    text_table_add(t, time_text_ms(f->now->wall_ms, text));
    show(t, f, out);
}

static void draw_rates(const struct top_frame *f, FILE *out)
{
#define X(json, heading, metric, label) heading,
    static const char *const headings[] = {RATES(X)};
#undef X
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
#define X(json, heading, metric, label) add_rate(t, rate_of(f, metric, label));
    RATES(X)
#undef X
    show(t, f, out);
}

static void draw_gauges(const struct top_frame *f, FILE *out)
{
#define X(heading, metric, label) heading,
    static const char *const headings[] = {GAUGES(X)};
#undef X
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
#define X(heading, metric, label) text_table_addf(t, "%.0f", metrics_sum(&f->now->metrics, metric, label));
    GAUGES(X)
#undef X
    show(t, f, out);
}

/* Only what happened since the look before: no row of dashes. */
static void draw_latencies(const struct top_frame *f, FILE *out)
{
    static const char *const headings[] = {"!latency", ">p50", ">p95", ">p99"};
    static const double quantiles[] = {0.5, 0.95, 0.99};
    static const struct {
        const char *name, *metric, *label;
    } rows[] = {
#define X(name, metric, label) {name, metric, label},
        LATENCIES(X)
#undef X
    };
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    size_t shown = 0;
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        double values[LENGTH_OF(quantiles)];
        bool any = true;
        for (size_t q = 0; q < LENGTH_OF(quantiles); q++)
            any = any && metrics_quantile(&f->before->metrics, &f->now->metrics, rows[i].metric,
                                          rows[i].label, quantiles[q], &values[q]);
        if (!any)
            continue;
        text_table_add(t, str_of(rows[i].name));
        for (size_t q = 0; q < LENGTH_OF(quantiles); q++)
            add_ms(t, values[q]);
        shown++;
    }
    if (shown)
        show(t, f, out);
    else
        text_table_free(t);
}

/* Of a list of the topology; nothing without one. */
static void draw_list(const struct top_frame *f, const char *name, const struct list_column *columns,
                      size_t count, FILE *out)
{
    const struct json *list = f->now->topology ? json_get(f->now->topology, name) : NULL;
    if (!list || list->type != JSON_ARRAY)
        return;
    struct text_table *t = columns_table(columns, count);
    for (const struct json *item = list->child; item; item = item->next)
        columns_row(t, columns, count, item);
    show(t, f, out);
}

static double number_of(const struct json *object, const char *name)
{
    const struct json *m = json_get(object, name);
    double value = 0;
    return m && json_to_double(m, &value) ? value : 0;
}

static void bar_text(double ratio, struct strbuf *out)
{
    int full = (int)lround((ratio < 0 ? 0 : ratio > 1 ? 1 : ratio) * BAR_COLUMNS);
    strbuf_clear(out);
    for (int i = 0; i < BAR_COLUMNS; i++)
        strbuf_add_text(out, i < full ? "\xe2\x96\x88" : "\xc2\xb7");
}

static void add_queue(struct text_table *t, const struct json *q, struct str partition)
{
    struct strbuf bar CLEANUP(strbuf_free) = {0};
    struct str level = json_text(q, "level");
    double ratio = number_of(q, "ratio");
    bar_text(ratio, &bar);
    text_table_add(t, json_text(q, "component"));
    text_table_add(t, partition);
    text_table_addf(t, "%.0f %%", ratio * 100);
    text_table_add_tone(t, strbuf_str(&bar), tone_of_state(level));
    text_table_add_tone(t, level, tone_of_state(level));
}

/* The queues of one component that stand one behind the other; of many partitions the fullest one. */
static const struct json *draw_component(struct text_table *t, const struct json *first)
{
    struct str component = json_text(first, "component");
    const struct json *fullest = first, *q = first;
    size_t count = 0;
    for (; q && str_equal(json_text(q, "component"), component); q = q->next, count++)
        if (number_of(q, "ratio") > number_of(fullest, "ratio"))
            fullest = q;
    if (count > PARTITIONS_SHOWN_MAX) {
        char text[48];
        snprintf(text, sizeof text, "fullest of %zu", count);
        add_queue(t, fullest, str_of(text));
        return q;
    }
    for (; first != q; first = first->next) {
        const struct json *p = json_get(first, "partition");
        add_queue(t, first, p && p->type != JSON_NULL ? p->text : STR_ABSENT);
    }
    return q;
}

static void draw_pressure(const struct top_frame *f, FILE *out)
{
    static const char *const headings[] = {"!queue", "partition", ">full", "!", "!level"};
    const struct json *q = list_of(f->now, "pressure");
    if (!q)
        return;
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    while (q)
        q = draw_component(t, q);
    show(t, f, out);
}

/* --- queues of jobs, by what waits in them; from the metrics, so `other` is all that have no series
 * --------- */

enum { QUEUES_SHOWN_MAX = 10 };

struct shown_queue {
    struct str labels;
    double depth, running, oldest_s;
};

static double of_queue(const struct top_look *l, const char *metric, struct str labels)
{
    for (size_t i = 0; i < l->metrics.count; i++)
        if (str_is(l->metrics.samples[i].name, metric) && str_equal(l->metrics.samples[i].labels, labels))
            return l->metrics.samples[i].value;
    return 0;
}

static double queue_rate(const struct top_frame *f, const char *metric, struct str labels)
{
    double was = of_queue(f->before, metric, labels), is = of_queue(f->now, metric, labels);
    return (is < was ? is : is - was) / seconds_between(f);
}

/* Keeps the fullest ones, in order. */
static size_t note_queue(struct shown_queue *list, size_t count, const struct shown_queue *q)
{
    size_t at = count;
    while (at && (list[at - 1].depth < q->depth ||
                  (list[at - 1].depth == q->depth && list[at - 1].running < q->running)))
        at--;
    if (at == QUEUES_SHOWN_MAX)
        return count;
    if (count == QUEUES_SHOWN_MAX)
        count--;
    memmove(list + at + 1, list + at, (count - at) * sizeof *list);
    list[at] = *q;
    return count + 1;
}

static void draw_queues(const struct top_frame *f, FILE *out)
{
    static const char *const headings[] = {"!jobs in", ">depth",  ">oldest",
                                           ">running", ">done/s", ">failed/s"};
    struct shown_queue list[QUEUES_SHOWN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < f->now->metrics.count; i++) {
        const struct metric_sample *s = &f->now->metrics.samples[i];
        if (!str_is(s->name, "weir_queue_depth"))
            continue;
        struct shown_queue q = {s->labels, s->value, of_queue(f->now, "weir_queue_running", s->labels),
                                of_queue(f->now, "weir_queue_oldest_age_seconds", s->labels)};
        count = note_queue(list, count, &q);
    }
    if (!count)
        return;
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    for (size_t i = 0; i < count; i++) {
        struct str name = list[i].labels;
        char age[32];
        str_cut(&name, '"');
        text_age((int64_t)list[i].oldest_s, age, sizeof age);
        text_table_add(t, str_cut(&name, '"'));
        text_table_addf(t, "%.0f", list[i].depth);
        text_table_add(t, list[i].depth ? str_of(age) : STR_ABSENT);
        text_table_addf(t, "%.0f", list[i].running);
        add_rate(t, queue_rate(f, "weir_queue_completed_total", list[i].labels));
        add_rate(t, queue_rate(f, "weir_queue_failed_total", list[i].labels));
    }
    show(t, f, out);
}

static const struct list_column processes[] = {
    {"!process", "name"}, {"domain", "domain"},      {">pid", "pid"},
    {"!state", "state"},  {">restarts", "restarts"}, {"started", "started_at"},
};
static const struct list_column objectives[] = {
    {"!objective", "name"},  {">value", "value"}, {">target", "target"},
    {">samples", "samples"}, {"!level", "level"},
};
static const struct list_column domains[] = {
    {"!domain", "name"},
    {">allowed", "intensity"},
    {">in window", "restarts_in_window"},
    {"!state", "state"},
};

void top_draw(const struct top_frame *f, FILE *out)
{
    draw_head(f, out);
    draw_rates(f, out);
    draw_gauges(f, out);
    draw_queues(f, out);
    draw_list(f, "processes", processes, LENGTH_OF(processes), out);
    draw_pressure(f, out);
    draw_latencies(f, out);
    draw_list(f, "slos", objectives, LENGTH_OF(objectives), out);
    draw_list(f, "domains", domains, LENGTH_OF(domains), out);
}

/* --- for programs ---------------------------------------------------------------------------------- */

static void write_latency(const struct top_frame *f, struct json_writer *w, const char *name,
                          const char *metric, const char *label)
{
    static const struct {
        const char *name;
        double quantile;
    } wanted[] = {{"p50_ms", 0.5}, {"p95_ms", 0.95}, {"p99_ms", 0.99}};
    double seconds;
    if (!metrics_quantile(&f->before->metrics, &f->now->metrics, metric, label, 0.5, &seconds))
        return;
    jw_key(w, name);
    jw_object(w);
    for (size_t i = 0; i < LENGTH_OF(wanted); i++) {
        if (!metrics_quantile(&f->before->metrics, &f->now->metrics, metric, label, wanted[i].quantile,
                              &seconds))
            continue;
        jw_key(w, wanted[i].name);
        jw_double(w, seconds * 1000);
    }
    jw_object_end(w);
}

void top_write_json(const struct top_frame *f, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    encode_int(&w, "window_ms", f->now->mono_ms - f->before->mono_ms);
    jw_key(&w, "rates");
    jw_object(&w);
#define X(json, heading, metric, label)                                                                      \
    jw_key(&w, json);                                                                                        \
    jw_double(&w, rate_of(f, metric, label));
    RATES(X)
#undef X
    jw_object_end(&w);
    jw_key(&w, "latencies");
    jw_object(&w);
#define X(name, metric, label) write_latency(f, &w, name, metric, label);
    LATENCIES(X)
#undef X
    jw_object_end(&w);
    jw_key(&w, "topology");
    if (f->now->topology)
        jw_raw(&w, f->now->topology->source);
    else
        jw_null(&w);
    jw_key(&w, "readiness");
    if (f->now->ready)
        jw_raw(&w, f->now->ready->source);
    else
        jw_null(&w);
    jw_object_end(&w);
}
