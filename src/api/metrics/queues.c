#include "api/metrics/queues.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/metrics.h"
#include "base/hash.h"
#include "base/must.h"
#include "jobs/job_notices.h"

#include "base/banned.h"

#define OTHER "other"

struct queue_series {
    struct map_node node;
    uint64_t completed, failed;
    int64_t depth, running, oldest_us; /* as told last */
    size_t name_len;
    char name[];
};

struct queue_metrics {
    pthread_mutex_t lock;
    struct map by_name;
    struct queue_series **list; /* the first one is `other` */
    size_t count, names_max;
    int64_t told_ms;
};

static struct queue_series *add(struct queue_metrics *q, struct str name)
{
    struct queue_series *s = must_alloc(sizeof *s + name.len + 1);
    s->name_len = name.len;
    memcpy(s->name, name.ptr, name.len);
    map_put(&q->by_name, &s->node, hash_secret(name.ptr, name.len));
    q->list[q->count++] = s;
    return s;
}

struct queue_metrics *queue_metrics_new(size_t names_max)
{
    struct queue_metrics *q = must_alloc(sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    q->names_max = names_max;
    q->list = must_alloc((names_max + 1) * sizeof(struct queue_series *));
    add(q, STR(OTHER));
    return q;
}

struct queue_metrics *queue_metrics_free(struct queue_metrics *q)
{
    if (!q)
        return NULL;
    for (size_t i = 0; i < q->count; i++)
        free(q->list[i]);
    free(q->list);
    map_free(&q->by_name);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}

static struct queue_series *series_of(struct queue_metrics *q, struct str name)
{
    for (struct map_node *n = map_first(&q->by_name, hash_secret(name.ptr, name.len)); n; n = map_next(n)) {
        struct queue_series *s = CONTAINER_OF(n, struct queue_series, node);
        if (s->name_len == name.len && memcmp(s->name, name.ptr, name.len) == 0)
            return s;
    }
    return q->count <= q->names_max ? add(q, name) : q->list[0];
}

void queue_metrics_committed(struct queue_metrics *q, const struct unit *u)
{
    const struct job_notice *n;
    pthread_mutex_lock(&q->lock);
    for (size_t at = 0; (n = job_notices_next_end(&u->notices, &at));) {
        struct queue_series *s = series_of(q, n->queue);
        *(job_notice_is_success(n) ? &s->completed : &s->failed) += 1;
    }
    pthread_mutex_unlock(&q->lock);
}

int64_t queue_metrics_told_ms(struct queue_metrics *q)
{
    pthread_mutex_lock(&q->lock);
    int64_t told_ms = q->told_ms;
    pthread_mutex_unlock(&q->lock);
    return told_ms;
}

void queue_metrics_tell(struct queue_metrics *q, const struct queue_views *views, int64_t now_ms)
{
    pthread_mutex_lock(&q->lock);
    q->told_ms = now_ms;
    for (size_t i = 0; i < q->count; i++)
        q->list[i]->depth = q->list[i]->running = q->list[i]->oldest_us = 0;
    for (size_t i = 0; i < views->count; i++) {
        const struct queue_sum *sum = &views->list[i]->sum;
        struct queue_series *s = series_of(q, sum->queue);
        s->depth += sum->queued;
        s->running += sum->running;
        if (sum->oldest_us && (!s->oldest_us || sum->oldest_us < s->oldest_us))
            s->oldest_us = sum->oldest_us;
    }
    pthread_mutex_unlock(&q->lock);
}

static int64_t age_seconds(const struct queue_series *s, int64_t now_ms)
{
    int64_t age_ms = s->oldest_us ? now_ms - s->oldest_us / 1000 : 0;
    return age_ms > 0 ? age_ms / 1000 : 0;
}

static const struct {
    const char *name, *type, *help;
} families[] = {
    {"weir_queue_depth", "gauge", "Jobs in QUEUED, by queue, of all clients"},
    {"weir_queue_running", "gauge", "Jobs in ASSIGNED or RUNNING, by queue"},
    {"weir_queue_oldest_age_seconds", "gauge", "Since when the oldest QUEUED job is QUEUED, by queue"},
    {"weir_queue_completed_total", "counter", "Jobs that succeeded, by queue"},
    {"weir_queue_failed_total", "counter", "Attempts that failed, by queue"},
};

static int64_t value_of(const struct queue_series *s, size_t family, int64_t now_ms)
{
    const int64_t values[] = {s->depth, s->running, age_seconds(s, now_ms), (int64_t)s->completed,
                              (int64_t)s->failed};
    _Static_assert(LENGTH_OF(values) == LENGTH_OF(families), "one value a family");
    return values[family];
}

/* It appears when there may be queues without a series of their own, or one has this name. */
static bool shows_other(const struct queue_metrics *q)
{
    const struct queue_series *s = q->list[0];
    return q->count > q->names_max || s->completed || s->failed || s->depth || s->running;
}

void queue_metrics_write(struct queue_metrics *q, int64_t now_ms, struct strbuf *out)
{
    pthread_mutex_lock(&q->lock);
    for (size_t f = 0; f < LENGTH_OF(families); f++) {
        metrics_head(out, families[f].name, families[f].type, families[f].help);
        for (size_t i = shows_other(q) ? 0 : 1; i < q->count; i++)
            strbuf_addf(out, "%s{queue=\"%s\"} %lld\n", families[f].name, q->list[i]->name,
                        (long long)value_of(q->list[i], f, now_ms));
    }
    pthread_mutex_unlock(&q->lock);
}
