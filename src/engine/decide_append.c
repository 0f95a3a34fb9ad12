/* Events of engines outside, and the ids they shall have. */
#include "base/must.h"
#include "engine/engine_commands.h"
#include "engine/run_index.h"
#include "engine/tenant.h"

#include "base/banned.h"

/* --- append ---------------------------------------------------------------------------------------- */

/* One that was bad from the start has no name, and keeps its error. */
static bool is_good(const struct append_item *item)
{
    return item->write.name.ptr != NULL;
}

static void load_append(struct unit *u, struct command *base)
{
    struct append_command *c = (struct append_command *)base;
    const struct run_row *run = run_prefetch(u, c->run_id);
    tenant_prefetch(u, c->tenant);
    for (size_t i = 0; run && i < c->item_count; i++)
        if (is_good(&c->items[i]))
            append_prefetch(u, run, &c->items[i].write);
}

static struct run_row *open_run(struct unit *u, const struct append_command *c,
                                const struct append_item *first)
{
    return run_add(u, &(struct run_row){.id = c->run_id,
                                        .tenant = tenant_number(u, c->tenant),
                                        .tenant_name = c->tenant,
                                        .project = first->project,
                                        .environment = first->environment,
                                        .plan = first->write.plan,
                                        .version = first->write.version});
}

static enum err_code check_envelope(const struct run_row *run, const struct append_item *item,
                                    struct err *err)
{
    const struct {
        const char *name;
        struct str has, says;
    } parts[] = {{"tenantId", run->tenant_name, item->tenant},
                 {"projectId", run->project, item->project},
                 {"environmentId", run->environment, item->environment}};
    for (size_t i = 0; i < LENGTH_OF(parts); i++)
        if (!str_equal(parts[i].has, parts[i].says))
            return err_set(err, ERR_ENVELOPE_MISMATCH, "the run has another %s", parts[i].name);
    return ERR_OK;
}

/* NULL: not by this one, which has its error. */
static struct run_row *open_by(struct unit *u, const struct append_command *c, struct append_item *first)
{
    if (!str_equal(first->tenant, c->tenant)) {
        err_set(&first->err, ERR_AUTHZ_TENANT_FORBIDDEN, "tenantId is not the token's tenant");
        return NULL;
    }
    bool may = append_may_open(u, tenant_number(u, c->tenant), &first->write, &first->err) == ERR_OK;
    return may ? open_run(u, c, first) : NULL;
}

static enum err_code decide_append(struct unit *u, struct command *base, struct err *err)
{
    struct append_command *c = (struct append_command *)base;
    struct run_row *run = run_find(u, c->run_id);
    if (run && !str_equal(run->tenant_name, c->tenant))
        return err_set(err, ERR_AUTHZ_TENANT_FORBIDDEN, "the run is another tenant's");
    if (run && run->plan_num)
        return err_set(err, ERR_RUN_NOT_EXTERNAL, "Weir executes this run; its events are written by Weir");
    for (size_t i = 0; i < c->item_count; i++) {
        struct append_item *item = &c->items[i];
        if (!is_good(item))
            continue;
        item->err = (struct err){.code = ERR_OK};
        if (!run)
            run = open_by(u, c, item);
        if (run && check_envelope(run, item, &item->err) == ERR_OK)
            (void)!append_event(u, run, &item->write, &item->place, &item->err);
    }
    return ERR_OK;
}

const struct command_type append_command_type = {"append", load_append, decide_append};

/* --- event ids ------------------------------------------------------------------------------------- */

static struct event_id_row id_key(const struct event_id_command *c)
{
    return (struct event_id_row){.run = c->run_id, .key = {(const char *)c->key, sizeof c->key}};
}

static void load_event_id(struct unit *u, struct command *base)
{
    const struct event_id_command *c = (struct event_id_command *)base;
    struct event_id_row key = id_key(c);
    (void)run_prefetch(u, c->run_id);
    tenant_prefetch(u, c->tenant);
    unit_prefetch(u, &table_event_id_row, &key);
}

/* By its digest alone: the caller has no more than that. */
static bool has_key(struct unit *u, int64_t run, int64_t place, const void *arg)
{
    const struct event_id_command *c = arg;
    const struct run_row *of = run_by_number(u, run);
    const struct run_event_row *e =
        unit_fetch(u, &table_run_event_row, &(struct run_event_row){.run = run, .seq = place});
    uint8_t key[DIGEST_BYTES];
    if (!of || !e)
        return false;
    run_event_key(of, e, key);
    return memcmp(key, c->key, sizeof key) == 0;
}

static const struct run_event_row *written(struct unit *u, const struct event_id_command *c,
                                           const struct run_row *run)
{
    struct str key = {(const char *)c->key, sizeof c->key};
    int64_t seq = run_index_find(u, run->num, run_index_hash(RUN_INDEX_KEY, key), has_key, c);
    return seq > 0 ? unit_fetch(u, &table_run_event_row, &(struct run_event_row){.run = run->num, .seq = seq})
                   : NULL;
}

static enum err_code decide_event_id(struct unit *u, struct command *base, struct err *err)
{
    struct event_id_command *c = (struct event_id_command *)base;
    const struct run_row *run = run_find(u, c->run_id);
    struct event_id_row key = id_key(c);
    const struct event_id_row *known = unit_fetch(u, &table_event_id_row, &key);
    if (run && !str_equal(run->tenant_name, c->tenant))
        return err_set(err, ERR_AUTHZ_TENANT_FORBIDDEN, "the run is another tenant's");
    int64_t tenant = tenant_number(u, c->tenant);
    if (known && known->tenant != tenant)
        return err_set(err, ERR_AUTHZ_TENANT_FORBIDDEN, "the run is another tenant's");
    const struct run_event_row *e = run ? written(u, c, run) : NULL;
    struct str id = e ? e->event_id : known ? known->event_id : STR_ABSENT; /* a written event counts first */
    if (id.ptr) {
        memcpy(c->event_id.bytes, id.ptr, sizeof c->event_id.bytes);
        return ERR_OK;
    }
    struct event_id_row *row = ARENA_NEW(u->arena, struct event_id_row);
    *row = (struct event_id_row){.run = c->run_id,
                                 .key = key.key,
                                 .tenant = tenant,
                                 .created_ms = u->now_ms,
                                 .event_id =
                                     (struct str){(const char *)c->event_id.bytes, sizeof c->event_id.bytes}};
    unit_insert(u, &table_event_id_row, row);
    return ERR_OK;
}

const struct command_type event_id_command_type = {"event_id", load_event_id, decide_event_id};
