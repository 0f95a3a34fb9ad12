/* API keys: create (with rotation), renew, revoke. Who may: nobody needs to authenticate for a client's
 * first key (its id is unguessable, AJ-07); later a valid key of that client or the operator. */
#include "base/must.h"
#include "jobs/creates.h"

#include "base/banned.h"

static struct client_row client_key(const struct key_command *c)
{
    return (struct client_row){.uuid = {(const char *)c->client_id.bytes, sizeof c->client_id.bytes}};
}

static struct str scope_of(struct unit *u, int64_t client)
{
    return arena_printf(u->arena, "keys:%lld", (long long)client);
}

static void load_key(struct unit *u, struct command *base)
{
    struct key_command *c = (struct key_command *)base;
    struct client_row key = client_key(c);
    unit_want(u, &table_client_row, &key);
    if (u->load_err.code != ERR_OK)
        return;
    const struct client_row *client = unit_row(u, &table_client_row, &key);
    if (!client)
        return;
    struct key_head_row head_key = {.client = client->num};
    unit_want(u, &table_key_head_row, &head_key);
    if (c->who.kind == PRINCIPAL_KEY)
        unit_want(u, &table_api_key_row, &(struct api_key_row){.id = c->who.key});
    if (c->action == KEY_CREATE)
        creates_want(u, scope_of(u, client->num), &c->once);
    if (c->action == KEY_REVOKE)
        unit_want(u, &table_api_key_row, &(struct api_key_row){.id = c->key_id});
    if (u->load_err.code != ERR_OK)
        return;
    const struct key_head_row *head = unit_row(u, &table_key_head_row, &head_key);
    if (head && head->active)
        unit_want(u, &table_api_key_row, &(struct api_key_row){.id = head->active});
}

/* The head as this batch sees it; a key made earlier in the batch is known to the unit too. */
static struct api_key_row *active_key(struct unit *u, const struct key_head_row *head)
{
    struct api_key_row key = {.id = head ? head->active : 0};
    if (!key.id || !unit_knows(u, &table_api_key_row, &key))
        return NULL;
    struct api_key_row *row = unit_row(u, &table_api_key_row, &key);
    return row && !row->revoked_ms && row->expires_ms > u->now_ms ? row : NULL;
}

/* A key that was valid when its request was read may have been revoked by a command before this one. */
static enum err_code check_still_valid(struct unit *u, const struct key_command *c, struct err *err)
{
    const struct api_key_row *key = unit_row(u, &table_api_key_row, &(struct api_key_row){.id = c->who.key});
    if (key && !key->revoked_ms)
        return ERR_OK;
    return err_set(err, ERR_AUTH_KEY_CONFLICT, "the key was replaced or revoked meanwhile");
}

static enum err_code check_allowed(struct unit *u, const struct key_command *c,
                                   const struct client_row *client, const struct key_head_row *head,
                                   struct err *err)
{
    switch (c->who.kind) {
    case PRINCIPAL_OPERATOR:
        return ERR_OK;
    case PRINCIPAL_KEY:
        if (c->who.client == client->num)
            return check_still_valid(u, c, err);
        return err_set(err, ERR_AUTH_FORBIDDEN, "the client is another one");
    case PRINCIPAL_DOMAIN:
    case PRINCIPAL_NONE:
        break;
    }
    if (c->action == KEY_CREATE && !head)
        return ERR_OK;
    return err_set(err, ERR_AUTH_INVALID_CREDENTIALS, "this client has had a key; send one that is valid");
}

static void revoke(struct unit *u, struct api_key_row *key)
{
    key->revoked_ms = u->now_ms;
    unit_update(u, &table_api_key_row, key);
    u->keys_changed = true;
}

static void add_key(struct unit *u, struct key_command *c, const struct client_row *client,
                    struct key_head_row *head)
{
    struct api_key_row *key = ARENA_NEW(u->arena, struct api_key_row);
    *key = (struct api_key_row){.id = unit_new_id(u),
                                .low = (int64_t)uuid_v7_random_low(),
                                .client = client->num,
                                .client_uuid = arena_str(u->arena, client->uuid),
                                .hash = {arena_copy(u->arena, c->new_hash, KEY_HASH_BYTES), KEY_HASH_BYTES},
                                .created_ms = u->now_ms,
                                .expires_ms = u->now_ms + u->settings->keys_ttl_seconds * 1000};
    unit_insert(u, &table_api_key_row, key);
    if (head) {
        head->active = key->id;
        unit_update(u, &table_key_head_row, head);
    } else {
        head = ARENA_NEW(u->arena, struct key_head_row);
        *head = (struct key_head_row){.client = client->num, .active = key->id};
        unit_insert(u, &table_key_head_row, head);
    }
    u->keys_changed = true;
    c->key_id = key->id;
    c->key_low = (uint64_t)key->low;
    c->created_ms = key->created_ms;
    c->expires_ms = key->expires_ms;
    c->fresh = true;
}

static void answer_existing(struct key_command *c, const struct api_key_row *key)
{
    c->key_id = key->id;
    c->key_low = (uint64_t)key->low;
    c->created_ms = key->created_ms;
    c->expires_ms = key->expires_ms;
}

static enum err_code create(struct unit *u, struct key_command *c, const struct client_row *client,
                            struct key_head_row *head, struct err *err)
{
    const struct create_row *former = creates_find(u, scope_of(u, client->num), &c->once, err);
    if (err->code != ERR_OK)
        return err->code;
    struct api_key_row *active = active_key(u, head);
    if (former) { /* the secret is shown once only; the id says which key the first call made */
        struct uuid id;
        memcpy(id.bytes, former->uuid.ptr, sizeof id.bytes);
        if (active)
            answer_existing(c, active);
        c->replayed = true;
        if (!uuid_split_v7(&id, &c->key_id, &c->key_low))
            return err_set(err, ERR_STORE_CORRUPT, "a key id in creates is not one");
        c->created_ms = former->created_ms;
        if (!active || active->id != c->key_id)
            c->expires_ms = former->created_ms + u->settings->keys_ttl_seconds * 1000;
        return ERR_OK;
    }
    if (active && !c->rotate) {
        answer_existing(c, active);
        return ERR_OK;
    }
    if (active)
        revoke(u, active);
    add_key(u, c, client, head);
    struct uuid id = uuid_from_v7(c->key_id, c->key_low);
    creates_add(u, scope_of(u, client->num), &c->once, &id);
    return ERR_OK;
}

static enum err_code renew(struct unit *u, struct key_command *c, const struct client_row *client,
                           struct key_head_row *head, struct err *err)
{
    struct api_key_row *active = active_key(u, head);
    if (!active)
        return err_set(err, ERR_AUTH_KEY_CONFLICT, "the client has no active key to renew");
    if (c->who.kind == PRINCIPAL_KEY && active->id != c->who.key)
        return err_set(err, ERR_AUTH_KEY_CONFLICT, "the key was replaced meanwhile");
    revoke(u, active);
    add_key(u, c, client, head);
    return ERR_OK;
}

static enum err_code revoke_one(struct unit *u, struct key_command *c, const struct client_row *client,
                                struct key_head_row *head, struct err *err)
{
    struct api_key_row *key = unit_row(u, &table_api_key_row, &(struct api_key_row){.id = c->key_id});
    if (!key || (uint64_t)key->low != c->key_low || key->client != client->num)
        return err_set(err, ERR_AUTH_KEY_NOT_FOUND, "the client has no key of this id");
    if (key->revoked_ms)
        return ERR_OK;
    revoke(u, key);
    if (head && head->active == key->id) {
        head->active = 0;
        unit_update(u, &table_key_head_row, head);
    }
    return ERR_OK;
}

static enum err_code decide_key(struct unit *u, struct command *base, struct err *err)
{
    struct key_command *c = (struct key_command *)base;
    struct client_row key = client_key(c);
    const struct client_row *client = unit_row(u, &table_client_row, &key);
    if (!client)
        return err_set(err, ERR_CLIENT_NOT_FOUND, "no client has this id");
    struct key_head_row *head =
        unit_row(u, &table_key_head_row, &(struct key_head_row){.client = client->num});
    if (check_allowed(u, c, client, head, err) != ERR_OK)
        return err->code;
    switch (c->action) {
    case KEY_CREATE:
        return create(u, c, client, head, err);
    case KEY_RENEW:
        return renew(u, c, client, head, err);
    case KEY_REVOKE:
        return revoke_one(u, c, client, head, err);
    }
    return ERR_OK;
}

static void reset_key(struct command *base)
{
    struct key_command *c = (struct key_command *)base;
    c->fresh = c->replayed = false;
}

const struct command_type key_command_type = {"key", load_key, decide_key, NULL, reset_key};
