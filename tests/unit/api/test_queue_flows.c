/* How many attempts ended in the last minute: slots, sums of nodes, what stays in memory; names in metrics.
 * */
#include "api/metrics/queues.h"
#include "unit/kernel/rig.h"

#include "base/banned.h"

#define START_MS INT64_C(1800000000000)

static int64_t completed_at(const struct queue_flow *f, int64_t now_ms)
{
    int64_t completed, failed;
    flow_per_minute(f, now_ms, &completed, &failed);
    return completed;
}

RIG_TEST(a_rate_is_what_the_last_minute_holds, r)
{
    struct queue_flow f = {0};
    flow_add(&f, START_MS, 10, 3);
    flow_add(&f, START_MS + 15000, 5, 0);
    assert_int_equal(completed_at(&f, START_MS + 15000), 15);
    assert_int_equal(completed_at(&f, START_MS + 59999), 15);
    assert_int_equal(completed_at(&f, START_MS + 65000), 10); /* half of the oldest slot is older */
    assert_int_equal(completed_at(&f, START_MS + 70000), 5);
    assert_int_equal(completed_at(&f, START_MS + 90000), 0);
    flow_add(&f, START_MS + 90000, 1, 0); /* slots are used again */
    assert_int_equal(completed_at(&f, START_MS + 90000), 1);
    flow_add(&f, START_MS, 100, 0); /* too late to count */
    assert_int_equal(completed_at(&f, START_MS + 90000), 1);
}

RIG_TEST(flows_are_added_slot_by_slot, r)
{
    struct queue_flow a = {0}, b = {0};
    flow_add(&a, START_MS, 1, 1);
    flow_add(&b, START_MS, 2, 0);
    flow_add(&b, START_MS + 20000, 4, 0);
    struct queue_flow sum = flow_from_bytes(a.slot, flow_bytes(&a.counts));
    flow_merge(&sum, &b);
    assert_int_equal(completed_at(&sum, START_MS + 20000), 7);
    assert_int_equal(completed_at(&sum, START_MS + 75000), 4);
    flow_subtract(&sum, &b);
    assert_int_equal(completed_at(&sum, START_MS + 20000), 1);
    flow_subtract(&sum, &a);
    assert_true(flow_is_empty(&sum));
}

/* --- in memory and in rows ------------------------------------------------------------------------- */

static struct job_notice ended(int64_t client, const char *queue, bool success)
{
    return (struct job_notice){.client = client,
                               .queue = str_of(queue),
                               .event = {.event = success ? JOB_EVENT_SUCCEEDED : JOB_EVENT_FAILED,
                                         .prev = JOB_RUNNING,
                                         .next = success ? JOB_SUCCEEDED : JOB_FAILED}};
}

struct sum {
    int64_t now_ms, completed, failed;
};

static void add_one(int64_t client, struct str queue, const struct queue_flow *flow, void *arg)
{
    struct sum *s = arg;
    int64_t completed, failed;
    (void)client;
    (void)queue;
    flow_per_minute(flow, s->now_ms, &completed, &failed);
    s->completed += completed;
    s->failed += failed;
}

static struct sum sum_of(struct queue_flows *f, int64_t client, int64_t now_ms)
{
    struct sum s = {.now_ms = now_ms};
    queue_flows_each(f, client, add_one, &s);
    return s;
}

struct saving {
    struct command base;
    struct queue_flows *flows;
};

static enum err_code decide_save(struct unit *u, struct command *c, struct err *err)
{
    (void)err;
    (void)queue_flows_save(((struct saving *)c)->flows, u);
    return ERR_OK;
}
static const struct command_type save_type = {"save", NULL, decide_save};

static void save(struct rig *r, struct queue_flows *f)
{
    struct saving *s = ARENA_NEW(r->arena, struct saving);
    s->flows = f;
    rig_post(r, &s->base, &save_type);
    rig_step(r);
    queue_flows_saved(f, s->base.result == ERR_OK);
}

static int64_t now_of(const struct rig *r)
{
    return r->wall_us / 1000;
}

enum { TOLD_MAX = 8 };

static struct unit told(struct notice some[TOLD_MAX], const struct job_notice *rows, size_t count)
{
    assert_true(count <= TOLD_MAX);
    for (size_t i = 0; i < count; i++)
        some[i] = (struct notice){&job_notices, &rows[i]};
    return (struct unit){.notices = {.list = some, .count = count}};
}

static void commit(struct rig *r, struct queue_flows *f, const struct job_notice *rows, size_t count)
{
    struct notice list[TOLD_MAX];
    struct unit u = told(list, rows, count);
    u.now_ms = now_of(r);
    queue_flows_committed(f, &u);
}

RIG_TEST(what_ended_is_counted_by_client_and_forgotten_when_it_is_old, r)
{
    struct queue_flows *f = queue_flows_new();
    struct job_notice some[] = {ended(1, "mail", true),
                                ended(1, "mail", false),
                                ended(1, "images", true),
                                ended(2, "mail", true),
                                {.client = 1, .event = {.event = JOB_EVENT_QUEUED}}};
    commit(r, f, some, LENGTH_OF(some));
    struct sum one = sum_of(f, 1, now_of(r)), all = sum_of(f, 0, now_of(r));
    assert_int_equal(one.completed, 2);
    assert_int_equal(one.failed, 1);
    assert_int_equal(all.completed, 3);
    rig_pass(r, 120000);
    save(r, f);
    all = sum_of(f, 0, now_of(r) - 120000);
    assert_int_equal(all.completed, 0);
    queue_flows_free(f);
}

static bool add_stored(const void *row, void *arg)
{
    const struct queue_flow_row *r = row;
    struct queue_flow flow = flow_from_bytes(r->slot, r->counts);
    add_one(r->client, r->queue, &flow, arg);
    return true;
}

static struct sum stored(struct rig *r)
{
    struct sum s = {.now_ms = now_of(r)};
    struct err err;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, &table_queue_flow_row, add_stored, &s, &err),
                     ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return s;
}

/* Two nodes: each adds what it has counted, once; a store with one writer is not written to. */
RIG_TEST(nodes_add_what_they_counted_to_one_row, r)
{
    struct queue_flows *f = queue_flows_new(), *g = queue_flows_new();
    struct job_notice success = ended(1, "mail", true), failure = ended(1, "mail", false);
    commit(r, f, &success, 1);
    save(r, f);
    commit(r, g, &success, 1);
    commit(r, g, &failure, 1);
    save(r, g);
    if (r->shared) {
        save(r, f);
        save(r, g);
        assert_int_equal(stored(r).completed, 2);
        assert_int_equal(stored(r).failed, 1);
        assert_int_equal(sum_of(f, 0, now_of(r)).completed, 0);
    } else {
        assert_int_equal(rig_rows(r, &table_queue_flow_row), 0);
        assert_int_equal(sum_of(g, 0, now_of(r)).completed, 1);
    }
    queue_flows_free(f);
    queue_flows_free(g);
}

/* --- metrics --------------------------------------------------------------------------------------- */

static void expect(struct queue_metrics *q, const char *line, bool there)
{
    struct strbuf out = {0};
    queue_metrics_write(q, START_MS, &out);
    assert_int_equal(strstr(out.ptr, line) != NULL, there);
    strbuf_free(&out);
}

RIG_TEST(so_many_names_have_series_and_the_rest_are_one, r)
{
    struct queue_metrics *q = queue_metrics_new(2);
    struct job_notice some[] = {ended(1, "a", true), ended(2, "a", false), ended(1, "b", true),
                                ended(1, "c", true), ended(1, "d", false), ended(1, "other", true)};
    struct notice notices[TOLD_MAX];
    struct unit u = told(notices, some, LENGTH_OF(some));
    expect(q, "other", false);
    queue_metrics_committed(q, &u);
    expect(q, "weir_queue_completed_total{queue=\"a\"} 1\n", true);
    expect(q, "weir_queue_failed_total{queue=\"a\"} 1\n", true);
    expect(q, "weir_queue_completed_total{queue=\"other\"} 2\n", true);
    expect(q, "weir_queue_failed_total{queue=\"other\"} 1\n", true);
    expect(q, "queue=\"c\"", false);
    struct queue_view c = {.sum = {.queue = STR("c"), .queued = 4, .oldest_us = (START_MS - 7000) * 1000}},
                      d = {.sum = {.queue = STR("d"), .queued = 1, .oldest_us = (START_MS - 3000) * 1000}};
    struct queue_view *list[] = {&c, &d};
    queue_metrics_tell(q, &(struct queue_views){list, 2}, START_MS);
    expect(q, "weir_queue_depth{queue=\"other\"} 5\n", true);
    expect(q, "weir_queue_oldest_age_seconds{queue=\"other\"} 7\n", true);
    queue_metrics_tell(q, &(struct queue_views){list, 0}, START_MS);
    expect(q, "weir_queue_depth{queue=\"other\"} 0\n", true);
    queue_metrics_free(q);
}

int main(void)
{
    return rig_run_all();
}
