#include "api/engine/engine_contract.h"

#include <stdlib.h>

#include "api/engine/audit.h"
#include "api/worker/encode_step_task.h"
#include "base/must.h"
#include "engine/run_timers.h"
#include "engine/step_task.h"
#include "schema/embedded.h"
#include "store/verify_rules.h"

#include "base/banned.h"

static void engine_close(void *self)
{
    struct engine_api *e = self;
    signal_schemas_free(e->signal_schemas);
    signal_limits_free(e->signal_limits);
    policy_point_free(e->policy_point);
    free(e);
}

static enum err_code engine_open(struct api *a, void **ret_self, struct err *err)
{
    struct engine_api *e = must_alloc(sizeof *e);
    e->api = a;
    e->signal_limits = signal_limits_new(a->config.settings);
    e->policy_point = policy_point_new(a);
    if (signal_schemas_new(embedded_signal_schemas, &e->signal_schemas, err) != ERR_OK) {
        engine_close(e);
        return err->code;
    }
    *ret_self = e;
    return ERR_OK;
}

static void engine_stop(void *self)
{
    policy_point_stop(((struct engine_api *)self)->policy_point);
}

static void committed(void *self, const struct unit *u)
{
    engine_committed(((struct engine_api *)self)->api, u);
}

static bool serve_internal(void *self, struct http_exchange *x)
{
    return policy_point_serve(((struct engine_api *)self)->policy_point, x);
}

static void measure(void *self, struct overload_queues *q)
{
    policy_point_depth(((struct engine_api *)self)->policy_point, &q->policy_questions, &q->policy_capacity);
}

static void write_metrics(void *self, struct call *c, const struct kernel_stats *k)
{
    const struct engine_api *e = self;
    uint64_t asked, unanswered;
    (void)k;
    policy_point_counts(e->policy_point, &asked, &unanswered);
    metrics_write_runs(e->api->metrics, asked, unanswered, &c->x->reply_body);
}

#define POINTER(row, ...) &table_##row,
static const struct table *const engine_tables[] = {RUN_TABLES(POINTER) NULL};
#undef POINTER
static const struct contract_task engine_tasks[] = {{&step_task_owner, encode_step_task}, {.owner = NULL}};
static const struct timer_kind *const engine_timers[] = {&run_grace_timer, NULL};
static const char *const engine_openapi[] = {"engine", NULL};

const struct contract engine_contract = {
    .name = "engine",
    .tables = engine_tables,
    .verify = &verify_runs,
    .tasks = engine_tasks,
    .timers = engine_timers,
    .openapi = engine_openapi,
    .open = engine_open,
    .stop = engine_stop,
    .close = engine_close,
    .committed = committed,
    .serve_internal = serve_internal,
    .measure = measure,
    .write_metrics = write_metrics,
};
