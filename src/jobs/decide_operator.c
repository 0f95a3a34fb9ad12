/* What operators do to clients. Every change and its record are one write. */
#include "base/must.h"
#include "jobs/client_state.h"
#include "jobs/job_move.h"
#include "jobs/operator_commands.h"
#include "jobs/webhook_fingerprint.h"

#include "base/banned.h"

static struct client_row client_key(const struct operator_command *c)
{
    return (struct client_row){.uuid = {(const char *)c->client_id.bytes, sizeof c->client_id.bytes}};
}

static void load_operator(struct unit *u, struct command *base)
{
    const struct operator_command *c = (const struct operator_command *)base;
    struct client_row key = client_key(c);
    for (size_t i = 0; c->action == OPERATOR_PURGE_JOBS && i < c->id_count; i++)
        (void)unit_prefetch_task(u, c->ids[i]);
    const struct client_row *client = unit_prefetch(u, &table_client_row, &key);
    if (!client)
        return;
    unit_prefetch(u, &table_client_state_row, &(struct client_state_row){.client = client->num});
    if (c->action != OPERATOR_DELETE)
        return;
    unit_prefetch(u, &table_client_secret_row, &(struct client_secret_row){.client = client->num});
    unit_prefetch(u, &table_key_head_row, &(struct key_head_row){.client = client->num});
    for (size_t i = 0; i < c->id_count; i++)
        unit_prefetch(u, &table_api_key_row, &(struct api_key_row){.id = c->ids[i]});
}

static void record(struct unit *u, const struct operator_command *c)
{
    struct operator_action_row *row = ARENA_NEW(u->arena, struct operator_action_row);
    *row = (struct operator_action_row){
        .back = -unit_id(u),
        .low = unit_uuid_tail(u),
        .at_ms = u->now_ms,
        .action = c->action,
        .changed = c->changed,
        .client = {arena_copy(u->arena, c->client_id.bytes, sizeof c->client_id.bytes),
                   sizeof c->client_id.bytes},
        .actor = arena_str(u->arena, c->actor)};
    unit_insert(u, &table_operator_action_row, row);
}

/* --- purge-jobs ---------------------------------------------------------------------------------- */

static void purge_jobs(struct unit *u, struct operator_command *c, const struct client_row *client)
{
    for (size_t i = 0; i < c->id_count; i++) {
        struct task *t = unit_task(u, c->ids[i]);
        if (!t || t->row.client != client->num || !task_is_job(&t->row))
            continue;
        job_cancel(u, t, "purged");
        c->changed++;
    }
    if (c->changed)
        record(u, c);
}

/* --- delete --------------------------------------------------------------------------------------- */

static void delete_keys(struct unit *u, struct operator_command *c, const struct client_row *client)
{
    struct key_head_row head = {.client = client->num};
    for (size_t i = 0; i < c->id_count; i++) {
        struct api_key_row key = {.id = c->ids[i]};
        const struct api_key_row *row = unit_row(u, &table_api_key_row, &key);
        if (!row || row->client != client->num)
            continue;
        unit_delete(u, &table_api_key_row, row);
        c->changed++;
    }
    if (unit_row(u, &table_key_head_row, &head))
        unit_delete(u, &table_key_head_row, &head);
}

static void delete_webhook(struct unit *u, int64_t id)
{
    const struct webhook_row *row = unit_fetch(u, &table_webhook_row, &(struct webhook_row){.id = id});
    if (!row)
        return;
    uint8_t *fingerprint = arena_alloc(u->arena, 16);
    webhook_fingerprint(row->url, row->events, fingerprint);
    struct webhook_key_row guard = {.client = row->client, .fingerprint = {(const char *)fingerprint, 16}};
    if (unit_fetch(u, &table_webhook_key_row, &guard))
        unit_delete(u, &table_webhook_key_row, &guard);
    unit_delete(u, &table_webhook_row, row);
}

/* Memory follows when the batch is published. */
static void delete_webhooks(struct unit *u, struct operator_command *c, const struct client_row *client)
{
    const struct client_hooks *all = hooks_of(&u->store->hooks, client->num);
    for (size_t i = 0; all && i < all->count; i++, c->changed++)
        delete_webhook(u, all->hooks[i].id);
}

static void delete_queue(const struct queue_row *row, void *arg)
{
    struct unit *u = arg;
    if (unit_fetch(u, &table_queue_row, row))
        unit_delete(u, &table_queue_row, row);
}

static void delete_client(struct unit *u, struct operator_command *c, const struct client_row *client)
{
    struct client_secret_row secret = {.client = client->num};
    delete_keys(u, c, client);
    delete_webhooks(u, c, client);
    queue_settings_each(&u->store->queues, client->num, delete_queue, u);
    if (unit_row(u, &table_client_secret_row, &secret))
        unit_delete(u, &table_client_secret_row, &secret);
}

/* ---------------------------------------------------------------------------------------------------- */

static enum err_code check_idle(struct unit *u, const struct client_row *client, struct err *err)
{
    struct client_counts counts;
    unit_read_counts(u, client->num, &counts);
    int64_t unfinished = counts_unfinished(&counts);
    if (unfinished <= 0)
        return ERR_OK;
    return err_set(err, ERR_CLIENT_CONFLICT, "the client has %lld unfinished jobs; purge them first",
                   (long long)unfinished);
}

static enum err_code decide_operator(struct unit *u, struct command *base, struct err *err)
{
    struct operator_command *c = (struct operator_command *)base;
    struct client_row key = client_key(c);
    const struct client_row *client = unit_row(u, &table_client_row, &key);
    if (!client)
        return err_set(err, ERR_CLIENT_NOT_FOUND, "no client has this id");
    c->state = client_state_of(u, client->num);
    if (c->action == OPERATOR_PURGE_JOBS) {
        purge_jobs(u, c, client);
        return ERR_OK;
    }
    enum client_state to;
    if (!client_move(c->state, c->action, &to)) {
        if (c->state == CLIENT_DELETED && c->action != OPERATOR_DELETE)
            return err_set(err, ERR_CLIENT_NOT_FOUND, "the client was deleted");
        return ERR_OK; /* it is there already */
    }
    if (to == CLIENT_DELETED && check_idle(u, client, err) != ERR_OK)
        return err->code;
    if (to == CLIENT_DELETED)
        delete_client(u, c, client);
    client_state_set(u, client->num, to);
    c->state = to;
    c->moved = true;
    record(u, c);
    return ERR_OK;
}

const struct command_type operator_command_type = {"operator", load_operator, decide_operator,
                                                   COMMAND_ANSWER(struct operator_command, state),
                                                   .critical = true};
