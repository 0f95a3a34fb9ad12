/* Runs of plans that Weir executes. */
#include "base/must.h"
#include "engine/engine_commands.h"
#include "engine/run_begin.h"
#include "engine/tenant.h"

#include "base/banned.h"

static void load_run(struct unit *u, struct command *base)
{
    const struct run_command *c = (const struct run_command *)base;
    (void)run_prefetch(u, c->run_id);
    tenant_prefetch(u, c->tenant);
}

static enum err_code decide_run(struct unit *u, struct command *base, struct err *err)
{
    struct run_command *c = (struct run_command *)base;
    struct str fingerprint = {(const char *)c->fingerprint, sizeof c->fingerprint};
    const struct run_row *former = run_find(u, c->run_id);
    if (former && (!str_equal(former->tenant_name, c->tenant) || !former->fingerprint.ptr ||
                   !str_equal(former->fingerprint, fingerprint)))
        return err_set(err, ERR_RUN_CONFLICT, "this runId was used before, for something else");
    if (former) {
        c->status = (enum run_status)former->state;
        return ERR_OK;
    }
    struct run_row row = {.id = c->run_id,
                          .tenant = tenant_number(u, c->tenant),
                          .tenant_name = c->tenant,
                          .project = c->project,
                          .environment = c->environment,
                          .plan = c->plan,
                          .version = c->version,
                          .fingerprint = fingerprint,
                          .params = c->params};
    if (run_begin(u, &row, err) == NULL)
        return err->code;
    c->created = true;
    c->status = RUN_PENDING;
    return ERR_OK;
}

const struct command_type run_command_type = {"run", load_run, decide_run,
                                              COMMAND_ANSWER(struct run_command, created)};
