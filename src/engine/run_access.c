/* Runs and steps by their names. */
#include "base/must.h"
#include "engine/append.h"
#include "engine/run_index.h"
#include "runs/event_key.h"

#include "base/banned.h"

struct run_row *run_prefetch(struct unit *u, struct str run_id)
{
    struct run_id_row key = {.id = run_id};
    const struct run_id_row *id = unit_prefetch(u, &table_run_id_row, &key);
    return id ? unit_prefetch(u, &table_run_row, &(struct run_row){.num = id->run}) : NULL;
}

struct run_row *run_find(struct unit *u, struct str run_id)
{
    struct run_id_row key = {.id = run_id};
    const struct run_id_row *id = unit_fetch(u, &table_run_id_row, &key);
    return id ? run_by_number(u, id->run) : NULL;
}

struct run_row *run_by_number(struct unit *u, int64_t num)
{
    return unit_fetch(u, &table_run_row, &(struct run_row){.num = num});
}

struct run_row *run_add(struct unit *u, const struct run_row *row)
{
    struct run_row *run = ARENA_NEW(u->arena, struct run_row);
    struct run_id_row *id = ARENA_NEW(u->arena, struct run_id_row);
    *run = *row;
    run->num = unit_id(u);
    run->created_ms = u->locked_at_ms;
    run->state = RUN_PENDING;
    *id = (struct run_id_row){.id = run->id, .run = run->num};
    unit_insert(u, &table_run_id_row, id);
    unit_insert(u, &table_run_row, run);
    unit_list(u, run->tenant, LIST_RUNS, run->num, false);
    unit_list(u, run->tenant, LIST_RUNS_IN + RUN_PENDING, run->num, false);
    return run;
}

struct run_step_row *run_step(struct unit *u, const struct run_row *run, int64_t idx)
{
    return unit_fetch(u, &table_run_step_row, &(struct run_step_row){.run = run->num, .idx = idx});
}

static bool is_step(struct unit *u, int64_t run, int64_t place, const void *name)
{
    const struct run_step_row *s =
        unit_fetch(u, &table_run_step_row, &(struct run_step_row){.run = run, .idx = place});
    return s && str_equal(s->step, *(const struct str *)name);
}

int64_t run_step_find(struct unit *u, const struct run_row *run, int64_t hash, struct str name)
{
    return run_index_find(u, run->num, hash, is_step, &name);
}

struct str run_event_name(const struct run_event_row *e)
{
    return e->name.ptr ? e->name : str_of(run_event_text((enum run_event_type)e->type));
}

struct str run_event_plan(const struct run_row *run, const struct run_event_row *e)
{
    return e->plan.ptr ? e->plan : run->plan;
}

struct str run_event_version(const struct run_row *run, const struct run_event_row *e)
{
    return e->version.ptr ? e->version : run->version;
}

void run_event_key(const struct run_row *run, const struct run_event_row *e, uint8_t out[DIGEST_BYTES])
{
    struct event_key_parts p = {.run_id = run->id,
                                .step_id = e->step,
                                .logical_attempt = e->attempt,
                                .event_type = run_event_name(e),
                                .plan_id = run_event_plan(run, e),
                                .plan_version = run_event_version(run, e)};
    event_key_digest(&p, out);
}
