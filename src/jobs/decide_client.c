/* Clients: open to anyone, or the operator's to make (AJ-07, clients.registration); the row never changes
 * afterwards. */
#include "base/must.h"
#include "jobs/client_state.h"
#include "jobs/creates.h"

#include "base/banned.h"

/* Only the operator's keys are remembered: those of unauthenticated callers would be one space for all of
 * them, and a caller that guesses one would be given another's client. */
static const struct str scope = {"clients:operator", 16};

static struct client_row client_of(const struct create_row *former)
{
    return (struct client_row){.uuid = former->uuid};
}

static void load_create(struct unit *u, struct command *base)
{
    const struct create_client_command *c = (const struct create_client_command *)base;
    const struct create_row *former = creates_prefetch(u, scope, &c->once);
    if (!former)
        return;
    struct client_row key = client_of(former);
    unit_prefetch(u, &table_client_row, &key);
}

/* The client that the first call made. One that never got a key may have been dropped since: the key is free
 * again. */
static const struct create_row *find_former(struct unit *u, const struct create_client_command *c,
                                            struct err *err)
{
    const struct create_row *former = creates_find(u, scope, &c->once, err);
    if (!former || err->code != ERR_OK)
        return NULL;
    struct client_row key = client_of(former);
    if (!unit_has(u, &table_client_row, &key) || unit_row(u, &table_client_row, &key))
        return former;
    unit_delete(u, &table_create_row, former);
    return NULL;
}

static enum err_code check_registration(const struct unit *u, const struct create_client_command *c,
                                        struct err *err)
{
    if (c->by_operator || settings_registration_is_open(u->settings))
        return ERR_OK;
    return err_set(err, ERR_AUTH_FORBIDDEN,
                   "only the operator makes clients here: send the operator token, or set "
                   "clients.registration to open");
}

static struct str bytes_in(struct unit *u, const void *bytes, size_t len)
{
    return (struct str){arena_copy(u->arena, bytes, len), len};
}

/* Of a shared store: another lane gave the number, and jobs or the first key of that client are in this
 * batch. */
static bool is_given(struct unit *u, int64_t num)
{
    return unit_has(u, &table_stats_row, &(struct stats_row){.client = num}) ||
           unit_has(u, &table_client_number_row, &(struct client_number_row){.keyless = 1, .num = num}) ||
           unit_has(u, &table_client_number_row, &(struct client_number_row){.num = num});
}

static enum err_code decide_create(struct unit *u, struct command *base, struct err *err)
{
    struct create_client_command *c = (struct create_client_command *)base;
    if (check_registration(u, c, err) != ERR_OK)
        return err->code;
    const struct create_row *former = find_former(u, c, err);
    if (err->code != ERR_OK)
        return err->code;
    if (former) {
        memcpy(c->client_id.bytes, former->uuid.ptr, sizeof c->client_id.bytes);
        c->created_ms = former->created_ms;
        c->replayed = true;
        return ERR_OK;
    }
    int64_t num = u->store->next_client++; /* a failed commit leaves a gap, nothing more */
    while (is_given(u, num))
        num = u->store->next_client++;
    struct client_row *client = ARENA_NEW(u->arena, struct client_row);
    *client = (struct client_row){.uuid = bytes_in(u, c->client_id.bytes, sizeof c->client_id.bytes),
                                  .num = num,
                                  .created_ms = u->now_ms};
    unit_insert(u, &table_client_row, client);
    client_number_insert(u, client, true);
    struct client_secret_row *secret = ARENA_NEW(u->arena, struct client_secret_row);
    *secret = (struct client_secret_row){.client = num,
                                         .secret = bytes_in(u, c->webhook_secret, sizeof c->webhook_secret)};
    unit_insert(u, &table_client_secret_row, secret);
    struct stats_row *stats = ARENA_NEW(u->arena, struct stats_row);
    struct client_counts none = {0};
    *stats = (struct stats_row){.client = num, .counts = bytes_in(u, &none, sizeof none)};
    unit_insert(u, &table_stats_row, stats);
    creates_add(u, scope, &c->once, &c->client_id);
    c->created_ms = u->now_ms;
    return ERR_OK;
}

const struct command_type create_client_command_type = {
    "create_client", load_create, decide_create, COMMAND_ANSWER(struct create_client_command, replayed)};

static struct client_row client_key(const struct uuid *id)
{
    return (struct client_row){.uuid = {(const char *)id->bytes, sizeof id->bytes}};
}

static void load_rotate(struct unit *u, struct command *base)
{
    struct rotate_secret_command *c = (struct rotate_secret_command *)base;
    struct client_row key = client_key(&c->client_id);
    const struct client_row *client = unit_prefetch(u, &table_client_row, &key);
    if (client)
        unit_prefetch(u, &table_client_secret_row, &(struct client_secret_row){.client = client->num});
}

static enum err_code decide_rotate(struct unit *u, struct command *base, struct err *err)
{
    struct rotate_secret_command *c = (struct rotate_secret_command *)base;
    struct client_row key = client_key(&c->client_id);
    const struct client_row *client = unit_row(u, &table_client_row, &key);
    if (!client || client_state_of(u, client->num) == CLIENT_DELETED)
        return err_set(err, ERR_CLIENT_NOT_FOUND, "no client has this id");
    if (c->who.kind == PRINCIPAL_KEY && c->who.client != client->num)
        return err_set(err, ERR_AUTH_FORBIDDEN, "the client is another one");
    struct client_secret_row *secret =
        unit_row(u, &table_client_secret_row, &(struct client_secret_row){.client = client->num});
    if (!secret)
        return err_set(err, ERR_STORE_CORRUPT, "the client has no secret row");
    secret->former = secret->secret;
    secret->secret = bytes_in(u, c->secret, sizeof c->secret);
    secret->rotated_ms = u->now_ms;
    unit_update(u, &table_client_secret_row, secret);
    return ERR_OK;
}

const struct command_type rotate_secret_command_type = {"rotate_secret", load_rotate, decide_rotate};
