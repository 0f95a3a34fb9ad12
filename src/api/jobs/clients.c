/* Clients, their API keys and callback secrets. */
#include "api/jobs/encode.h"
#include "api/jobs/handlers.h"
#include "base/random.h"

#include "base/banned.h"

static bool read_once(struct call *c, struct create_once *once)
{
    if (!call_idempotency_key(c, &once->name))
        return false;
    if (once->name.ptr)
        call_body_fingerprint(c->body, NULL, once->fingerprint);
    return true;
}

static void mark_replay(struct call *c, bool replayed)
{
    if (replayed)
        http_reply_header(c->x, "Idempotency-Replayed", STR("true"));
}

static struct str secret_text(struct call *c, const uint8_t *secret)
{
    return webhook_secret_text(c->x->arena, (struct str){(const char *)secret, WEBHOOK_SECRET_BYTES});
}

static void client_created(struct call *c)
{
    struct create_client_command *command = (struct create_client_command *)c->command;
    struct json_writer w;
    char id[UUID_TEXT_LEN + 1];
    uuid_text(&command->client_id, id);
    mark_replay(c, command->replayed);
    call_json(c, 201, &w);
    jw_object(&w);
    jw_key(&w, "client_id");
    jw_text(&w, id);
    jw_key(&w, "webhook_secret"); /* shown once */
    jw_str(&w, command->replayed ? STR_ABSENT : secret_text(c, command->webhook_secret));
    encode_time_ms(&w, "created_at", command->created_ms);
    jw_object_end(&w);
    call_send(c);
}

void handle_create_client(struct call *c)
{
    struct create_client_command *command = ARENA_NEW(c->x->arena, struct create_client_command);
    if (!read_once(c, &command->once))
        return;
    command->client_id = uuid_v4();
    random_bytes(command->webhook_secret, sizeof command->webhook_secret);
    call_post(c, &command->base, &create_client_command_type, 0, client_created);
}

/* --- keys ------------------------------------------------------------------------------------------ */

static void encode_key(struct call *c, int status)
{
    const struct key_command *command = (const struct key_command *)c->command;
    struct json_writer w;
    char text[API_KEY_TEXT_MAX];
    mark_replay(c, command->replayed);
    call_trace_id(c, "weir.key_id", command->key_id, command->key_low);
    call_json(c, status, &w);
    jw_object(&w);
    jw_key(&w, "api_key"); /* only a hash is stored: shown once, null ever after */
    jw_str(&w, command->fresh ? auth_key_text(c->data, command->key_id, text) : STR_ABSENT);
    encode_uuid_v7(&w, "key_id", command->key_id, command->key_low);
    encode_time_ms(&w, "created_at", command->created_ms);
    encode_time_ms(&w, "expires_at", command->expires_ms);
    jw_object_end(&w);
    call_send(c);
}

static void key_created(struct call *c)
{
    encode_key(c, 201);
}
static void key_renewed(struct call *c)
{
    encode_key(c, 200);
}

static void key_revoked(struct call *c)
{
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "revoked");
    jw_bool(&w, true);
    jw_object_end(&w);
    call_send(c);
}

/* The command of the path's client; NULL: answered. */
static struct key_command *key_command(struct call *c, enum key_action action)
{
    struct key_command *command = ARENA_NEW(c->x->arena, struct key_command);
    command->action = action;
    command->who = c->who;
    if (!call_uuid_param(c, "client_id", &command->client_id)) {
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
        return NULL;
    }
    return command;
}

static void add_new_key(struct call *c, struct key_command *command)
{
    struct new_key *key = ARENA_NEW(c->x->arena, struct new_key);
    auth_make_key(key);
    memcpy(command->new_hash, key->hash, sizeof command->new_hash);
    c->data = key;
}

void handle_create_key(struct call *c)
{
    struct key_command *command = key_command(c, KEY_CREATE);
    if (!command || !read_once(c, &command->once))
        return;
    const struct json *rotate = json_get(c->body, "rotate");
    command->rotate = rotate && rotate->type == JSON_TRUE;
    add_new_key(c, command);
    call_post(c, &command->base, &key_command_type, 0, key_created);
}

static bool need_caller(struct call *c)
{
    if (c->who.kind != PRINCIPAL_NONE)
        return true;
    call_fail(c, ERR_AUTH_INVALID_CREDENTIALS, "this call needs the client's API key or the operator token");
    return false;
}

void handle_renew_key(struct call *c)
{
    struct key_command *command = need_caller(c) ? key_command(c, KEY_RENEW) : NULL;
    if (!command)
        return;
    add_new_key(c, command);
    call_post(c, &command->base, &key_command_type, 0, key_renewed);
}

void handle_revoke_key(struct call *c)
{
    struct key_command *command = need_caller(c) ? key_command(c, KEY_REVOKE) : NULL;
    struct uuid id;
    if (!command)
        return;
    if (!uuid_parse(json_get(c->body, "key_id")->text, &id) ||
        !uuid_split_v7(&id, &command->key_id, &command->key_low)) {
        command->key_id = 0; /* no key has it: the decider says so after it has checked the caller */
        command->key_low = 0;
    } else {
        call_trace_id(c, "weir.key_id", command->key_id, command->key_low);
    }
    call_post(c, &command->base, &key_command_type, 0, key_revoked);
}

/* --- callback secret -------------------------------------------------------------------------------- */

static void secret_rotated(struct call *c)
{
    struct rotate_secret_command *command = (struct rotate_secret_command *)c->command;
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "webhook_secret");
    jw_str(&w, secret_text(c, command->secret));
    jw_object_end(&w);
    call_send(c);
}

void handle_rotate_secret(struct call *c)
{
    struct rotate_secret_command *command = ARENA_NEW(c->x->arena, struct rotate_secret_command);
    if (!need_caller(c))
        return;
    if (!call_uuid_param(c, "client_id", &command->client_id)) {
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
        return;
    }
    command->who = c->who;
    random_bytes(command->secret, sizeof command->secret);
    call_post(c, &command->base, &rotate_secret_command_type, 0, secret_rotated);
}
