/* Plans: put once, never changed. */
#include "base/must.h"
#include "base/varint.h"
#include "engine/engine_commands.h"
#include "engine/run_index.h"
#include "engine/tenant.h"

#include "base/banned.h"

static void load_plan(struct unit *u, struct command *base)
{
    const struct plan_command *c = (struct plan_command *)base;
    tenant_prefetch(u, c->tenant);
}

static struct str numbers(struct unit *u, const uint32_t *list, uint32_t count)
{
    struct strbuf b = {0};
    for (uint32_t i = 0; i < count; i++)
        varint_put(&b, list[i]);
    struct str bytes = b.len ? arena_str(u->arena, strbuf_str(&b)) : STR("");
    strbuf_free(&b);
    return bytes;
}

static void add_step(struct unit *u, int64_t plan, const struct plan_step *s, int64_t idx)
{
    struct plan_step_row *row = ARENA_NEW(u->arena, struct plan_step_row);
    *row = (struct plan_step_row){.plan = plan,
                                  .idx = idx,
                                  .max_attempts = s->max_attempts,
                                  .step = s->id,
                                  .queue = s->queue,
                                  .needs = numbers(u, s->dependencies, s->dependency_count),
                                  .feeds = numbers(u, s->dependents, s->dependent_count),
                                  .config = s->config,
                                  .timeout_ms = s->timeout_ms,
                                  .delay_ms = s->delay_ms};
    unit_insert(u, &table_plan_step_row, row);
    run_index_add(u, plan, run_index_hash(RUN_INDEX_STEP, s->id), idx);
}

static void list_plan(struct unit *u, const struct plan_row *plan)
{
    struct plan_version_row *row = ARENA_NEW(u->arena, struct plan_version_row);
    *row = (struct plan_version_row){.tenant = plan->tenant,
                                     .back = -plan->num,
                                     .created_ms = plan->created_ms,
                                     .step_count = plan->step_count,
                                     .plan = plan->plan,
                                     .version = plan->version};
    unit_insert(u, &table_plan_version_row, row);
}

static enum err_code decide_plan(struct unit *u, struct command *base, struct err *err)
{
    struct plan_command *c = (struct plan_command *)base;
    const struct plan *p = c->plan;
    struct str fingerprint = {(const char *)c->fingerprint, sizeof c->fingerprint};
    struct plan_row key = {.tenant = tenant_number(u, c->tenant), .plan = p->id, .version = p->version};
    const struct plan_row *former = unit_fetch(u, &table_plan_row, &key);
    if (former && !str_equal(former->fingerprint, fingerprint))
        return err_set(err, ERR_PLAN_CONFLICT, "this version of the plan was put with other content");
    if (former) {
        c->created_ms = former->created_ms;
        return ERR_OK;
    }
    struct plan_row *row = ARENA_NEW(u->arena, struct plan_row);
    *row = key;
    row->num = unit_id(u);
    row->created_ms = c->created_ms = u->now_ms;
    row->on_failure = p->on_failure;
    row->step_count = p->step_count;
    row->fingerprint = fingerprint;
    unit_insert(u, &table_plan_row, row);
    list_plan(u, row);
    for (uint32_t i = 0; i < p->step_count; i++)
        add_step(u, row->num, &p->steps[i], i);
    c->created = true;
    return ERR_OK;
}

const struct command_type plan_command_type = {"plan", load_plan, decide_plan,
                                               COMMAND_ANSWER(struct plan_command, created)};
