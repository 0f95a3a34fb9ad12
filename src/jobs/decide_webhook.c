/* Webhooks: registered and removed here; what is asked of one that is there: decide_delivery.c. */
#include "jobs/creates.h"
#include "jobs/webhook_fingerprint.h"

#include "base/banned.h"

static struct str scope_of(struct unit *u, int64_t client)
{
    return arena_printf(u->arena, "webhooks:%lld", (long long)client);
}

static struct webhook_key_row guard_key(int64_t client, const uint8_t fingerprint[16])
{
    return (struct webhook_key_row){.client = client, .fingerprint = {(const char *)fingerprint, 16}};
}

static void load_create(struct unit *u, struct command *base)
{
    struct create_webhook_command *c = (struct create_webhook_command *)base;
    struct webhook_key_row guard = guard_key(c->client, c->fingerprint);
    (void)creates_prefetch(u, scope_of(u, c->client), &c->once);
    unit_prefetch(u, &table_webhook_key_row, &guard);
}

static enum err_code decide_create(struct unit *u, struct command *base, struct err *err)
{
    struct create_webhook_command *c = (struct create_webhook_command *)base;
    const struct create_row *former = creates_find(u, scope_of(u, c->client), &c->once, err);
    if (err->code != ERR_OK)
        return err->code;
    if (former) {
        struct uuid id;
        memcpy(id.bytes, former->uuid.ptr, sizeof id.bytes);
        c->replayed = true;
        c->created_ms = former->created_ms;
        if (!uuid_split_v7(&id, &c->id, &c->low))
            return err_set(err, ERR_STORE_CORRUPT, "a webhook id in creates is not one");
        return ERR_OK;
    }
    struct webhook_key_row guard = guard_key(c->client, c->fingerprint);
    if (unit_row(u, &table_webhook_key_row, &guard))
        return err_set(err, ERR_WEBHOOK_CONFLICT, "this url is registered for the same events already");
    const struct client_hooks *hooks = hooks_of(&u->store->hooks, c->client);
    if (hooks && (int64_t)hooks->count >= u->settings->webhooks_max_per_client)
        return err_set(err, ERR_WEBHOOK_CONFLICT, "the client has %zu webhooks, and may have no more",
                       hooks->count);
    struct webhook_row *row = ARENA_NEW(u->arena, struct webhook_row);
    *row = (struct webhook_row){.id = unit_id(u),
                                .low = unit_uuid_tail(u),
                                .client = c->client,
                                .url = c->url,
                                .events = c->events,
                                .created_ms = u->now_ms,
                                .secret = {(const char *)c->secret, sizeof c->secret},
                                .enabled = 1};
    struct webhook_key_row *guard_row = ARENA_NEW(u->arena, struct webhook_key_row);
    *guard_row = guard;
    guard_row->webhook = row->id;
    unit_insert(u, &table_webhook_row, row);
    unit_insert(u, &table_webhook_key_row, guard_row);
    c->id = row->id;
    c->low = (uint64_t)row->low;
    c->created_ms = row->created_ms;
    struct uuid id = uuid_from_v7(c->id, c->low);
    creates_add(u, scope_of(u, c->client), &c->once, &id);
    return ERR_OK;
}

const struct command_type create_webhook_command_type = {"create_webhook", load_create, decide_create,
                                                         COMMAND_ANSWER(struct create_webhook_command, id)};

static void load_delete(struct unit *u, struct command *base)
{
    struct delete_webhook_command *c = (struct delete_webhook_command *)base;
    struct webhook_row key = {.id = c->id};
    const struct webhook_row *row = unit_prefetch(u, &table_webhook_row, &key);
    if (!row)
        return;
    uint8_t fingerprint[16];
    webhook_fingerprint(row->url, row->events, fingerprint);
    struct webhook_key_row guard = guard_key(row->client, fingerprint);
    guard.fingerprint = arena_str(u->arena, guard.fingerprint);
    unit_prefetch(u, &table_webhook_key_row, &guard);
}

static enum err_code decide_delete(struct unit *u, struct command *base, struct err *err)
{
    struct delete_webhook_command *c = (struct delete_webhook_command *)base;
    struct webhook_row key = {.id = c->id};
    const struct webhook_row *row = unit_row(u, &table_webhook_row, &key);
    if (!row || (uint64_t)row->low != c->low)
        return err_set(err, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
    if (row->client != c->client)
        return err_set(err, ERR_AUTH_FORBIDDEN, "the webhook belongs to another client");
    uint8_t fingerprint[16];
    webhook_fingerprint(row->url, row->events, fingerprint);
    struct webhook_key_row guard = guard_key(row->client, fingerprint);
    if (unit_has(u, &table_webhook_key_row, &guard) && unit_row(u, &table_webhook_key_row, &guard))
        unit_delete(u, &table_webhook_key_row, &guard);
    unit_delete(u, &table_webhook_row, row);
    return ERR_OK;
}

const struct command_type delete_webhook_command_type = {"delete_webhook", load_delete, decide_delete};
