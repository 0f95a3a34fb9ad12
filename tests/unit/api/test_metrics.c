/* Counting in many threads, reading in another: nothing is lost and no page contradicts itself. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "case.h"

#include "api/metrics.h"
#include "base/must.h"

#include "base/banned.h"

enum { THREADS = 4, EACH = 20000 };

static const struct route routes[] = {{HTTP_GET, "/a", "getA", NULL}, {HTTP_GET, "/b", "getB", NULL}};

/* The value of the line that starts with `series` and a space; -1 when there is none. */
static double value_of(const struct strbuf *page, const char *series)
{
    size_t len = strlen(series);
    for (struct str rest = strbuf_str(page); rest.len;) {
        struct str line = str_cut(&rest, '\n');
        if (line.len > len && line.ptr[len] == ' ' && memcmp(line.ptr, series, len) == 0)
            return strtod(line.ptr + len + 1, NULL);
    }
    return -1;
}

static void write_page(struct metrics *m, struct strbuf *page)
{
    const struct metrics_around around = {.kernel = {.queued = 7, .storing = true}, .log_dropped = 3};
    strbuf_clear(page);
    metrics_write(m, &around, page);
    metrics_write_jobs(m, &around.kernel, &(struct metrics_of_jobs){.keys_expiring = -1}, page);
}

static void *count_many(void *arg)
{
    struct metrics *m = arg;
    for (int i = 0; i < EACH; i++) {
        metrics_request(m, (size_t)(i % 3), i % 2 ? 200 : 404, i % 4 * 1000);
        metrics_idempotent_replay(m);
        metrics_heartbeats(m, 2);
        metrics_problem(m, ERR_JOB_NOT_FOUND);
    }
    return NULL;
}

TEST(counts_of_all_threads_add_up)
{
    struct metrics *m = metrics_new(routes, LENGTH_OF(routes));
    struct strbuf page = {0};
    pthread_t threads[THREADS];
    double before = 0;
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, count_many, m) == 0);
    for (double now = 0; now < THREADS * EACH;) {
        write_page(m, &page);
        now = value_of(&page, "weir_idempotent_replays_total");
        assert_true(now >= before);
        before = now;
        double top = value_of(
            &page, "weir_http_request_seconds_bucket{operation=\"getA\",status=\"200\",le=\"+Inf\"}");
        assert_true(top ==
                    value_of(&page, "weir_http_request_seconds_count{operation=\"getA\",status=\"200\"}"));
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    write_page(m, &page);
    assert_true(value_of(&page, "weir_worker_heartbeats_total") == 2.0 * THREADS * EACH);
    assert_true(value_of(&page, "weir_http_problems_total{code=\"RFA_JOB_NOT_FOUND\"}") == THREADS * EACH);
    double sum = 0;
    static const char *const operations[] = {"getA", "getB", "none"};
    for (size_t i = 0; i < LENGTH_OF(operations); i++)
        for (int ok = 0; ok < 2; ok++) {
            char series[128];
            snprintf(series, sizeof series, "weir_http_requests_total{operation=\"%s\",status=\"%d\"}",
                     operations[i], ok ? 200 : 404);
            sum += value_of(&page, series);
        }
    assert_true(sum == THREADS * EACH);
    strbuf_free(&page);
    metrics_free(m);
}

TEST(a_value_falls_into_the_bucket_of_its_bound)
{
    struct metrics *m = metrics_new(routes, LENGTH_OF(routes));
    struct strbuf page = {0};
    metrics_request(m, 0, 200, -5); /* the clock was set back */
    metrics_request(m, 0, 200, 100);
    metrics_request(m, 0, 200, 101);
    metrics_request(m, 0, 200, 400LL * 1000000);
    write_page(m, &page);
#define BUCKET(le) "weir_http_request_seconds_bucket{operation=\"getA\",status=\"200\",le=\"" le "\"}"
    assert_true(value_of(&page, BUCKET("0.0001")) == 2);
    assert_true(value_of(&page, BUCKET("0.00025")) == 3);
    assert_true(value_of(&page, BUCKET("300")) == 3);
    assert_true(value_of(&page, BUCKET("+Inf")) == 4);
    assert_true(value_of(&page, "weir_http_request_seconds_sum{operation=\"getA\",status=\"200\"}") > 400);
    strbuf_free(&page);
    metrics_free(m);
}

TEST(streams_strange_statuses_and_webhooks_have_their_place)
{
    struct metrics *m = metrics_new(routes, LENGTH_OF(routes));
    struct strbuf page = {0};
    metrics_stream(m, 1, 200);
    metrics_request(m, 99, 299, 1);
    metrics_webhook(m, true, 2000);
    metrics_webhook(m, false, 3000);
    metrics_webhook(m, false, 3000);
    write_page(m, &page);
    assert_true(value_of(&page, "weir_http_requests_total{operation=\"getB\",status=\"200\"}") == 1);
    assert_true(value_of(&page, "weir_http_request_seconds_count{operation=\"getB\",status=\"200\"}") == -1);
    assert_true(value_of(&page, "weir_http_requests_total{operation=\"none\",status=\"0\"}") == 1);
    assert_true(value_of(&page, "webhook_deliveries_total") == 1);
    assert_true(value_of(&page, "webhook_failures_total") == 2);
    assert_true(value_of(&page, "weir_webhook_seconds_count") == 3);
    assert_true(value_of(&page, "job_queue_depth") == 7);
    assert_true(value_of(&page, "weir_log_dropped_total") == 3);
    strbuf_free(&page);
    metrics_free(m);
}

TEST(two_sets_of_metrics_do_not_mix)
{
    struct metrics *a = metrics_new(routes, 1), *b = metrics_new(routes, 2);
    struct strbuf page = {0};
    metrics_idempotent_replay(a);
    metrics_idempotent_replay(b);
    metrics_idempotent_replay(b);
    write_page(a, &page);
    assert_true(value_of(&page, "weir_idempotent_replays_total") == 1);
    metrics_free(a);
    write_page(b, &page);
    assert_true(value_of(&page, "weir_idempotent_replays_total") == 2);
    strbuf_free(&page);
    metrics_free(b);
}

TEST(a_commit_is_measured_when_it_wrote)
{
    struct metrics *m = metrics_new(routes, 1);
    struct strbuf page = {0};
    struct unit wrote = {.wrote = true}, empty = {0};
    metrics_committed(m, &wrote);
    metrics_batch(m, &(struct kernel_stats){.commands = 5, .last_commit_us = 3000});
    metrics_committed(m, &empty);
    metrics_batch(m, &(struct kernel_stats){.commands = 9, .last_commit_us = 10});
    metrics_committed(m, &wrote);
    metrics_batch(m, &(struct kernel_stats){.commands = 12, .commit_errors = 1, .last_commit_us = 10});
    write_page(m, &page);
    assert_true(value_of(&page, "weir_commit_batch_commands_count") == 1);
    assert_true(value_of(&page, "weir_commit_batch_commands_sum") == 5);
    assert_true(value_of(&page, "weir_commit_seconds_bucket{le=\"0.0025\"}") == 0);
    assert_true(value_of(&page, "weir_commit_seconds_bucket{le=\"0.005\"}") == 1);
    strbuf_free(&page);
    metrics_free(m);
}
