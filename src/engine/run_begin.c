#include "engine/run_begin.h"

#include "engine/schedule.h"

#include "base/banned.h"

struct run_row *run_begin(struct unit *u, const struct run_row *row, struct err *err)
{
    struct plan_row key = {.tenant = row->tenant, .plan = row->plan, .version = row->version};
    const struct plan_row *plan = unit_fetch(u, &table_plan_row, &key);
    if (!plan) {
        err_set(err, ERR_PLAN_NOT_FOUND, "the tenant has no plan of this name and version");
        return NULL;
    }
    struct run_row with_plan = *row;
    with_plan.plan_num = plan->num;
    with_plan.on_failure = plan->on_failure;
    struct run_row *run = run_add(u, &with_plan);
    schedule_begin(u, run, plan);
    return run;
}
