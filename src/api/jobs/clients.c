/* Clients and their callback secrets. */
#include "api/handlers.h"
#include "api/jobs/job_calls.h"
#include "api/jobs/encode.h"
#include "base/random.h"

#include "base/banned.h"

bool call_create_once(struct call *c, struct create_once *ret_once)
{
    if (!call_idempotency_key(c, &ret_once->name))
        return false;
    if (ret_once->name.ptr)
        call_body_fingerprint(c->body, NULL, ret_once->fingerprint);
    return true;
}

bool call_needs_caller(struct call *c)
{
    if (c->who.kind != PRINCIPAL_NONE)
        return true;
    call_fail(c, ERR_AUTH_INVALID_CREDENTIALS, "this call needs the client's API key or the operator token");
    return false;
}

void call_mark_replay(struct call *c, bool replayed)
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
    call_mark_replay(c, command->replayed);
    call_object(c, 201, &w);
    encode_text(&w, "client_id", id);
    jw_key(&w, "webhook_secret"); /* shown once */
    jw_str(&w, command->replayed ? STR_ABSENT : secret_text(c, command->webhook_secret));
    encode_time_ms(&w, "created_at", command->created_ms);
    call_send_object(c, &w);
}

void handle_create_client(struct call *c)
{
    struct create_client_command *command = ARENA_NEW(c->x->arena, struct create_client_command);
    if (c->who.kind == PRINCIPAL_NONE && !call_take_from_address(c, ADDRESS_CLIENTS))
        return;
    command->by_operator = c->who.kind == PRINCIPAL_OPERATOR;
    if (!call_create_once(c, &command->once))
        return;
    if (!command->by_operator)
        command->once.name = STR_ABSENT; /* whose it would be nobody can tell (jobs/decide_client.c) */
    command->client_id = uuid_v4();
    random_bytes(command->webhook_secret, sizeof command->webhook_secret);
    call_post(c, &command->base, &create_client_command_type, 0, client_created);
}

/* --- callback secret -------------------------------------------------------------------------------- */

static void secret_rotated(struct call *c)
{
    struct rotate_secret_command *command = (struct rotate_secret_command *)c->command;
    struct json_writer w;
    call_object(c, 200, &w);
    encode_str(&w, "webhook_secret", secret_text(c, command->secret));
    call_send_object(c, &w);
}

void handle_rotate_webhook_secret(struct call *c)
{
    struct rotate_secret_command *command = ARENA_NEW(c->x->arena, struct rotate_secret_command);
    if (!call_needs_caller(c) || !call_client_param(c, &command->client_id))
        return;
    command->who = c->who;
    random_bytes(command->secret, sizeof command->secret);
    call_post(c, &command->base, &rotate_secret_command_type, 0, secret_rotated);
}
