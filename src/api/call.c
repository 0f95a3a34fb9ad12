/* The parts that every handler shares: its answers, the way to the commit thread and back, values of the
 * request. */
#include <stdatomic.h>
#include <stdio.h>

#include "api/api.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

enum { PRESSED_WAIT_MS = 5000 };

static bool is_of_credentials(enum err_code code)
{
    return code == ERR_AUTH_INVALID_CREDENTIALS || code == ERR_AUTH_TOKEN_EXPIRED ||
           code == ERR_AUTH_API_KEY_DISABLED;
}

/* A caller that tries out credentials may do so only at a limited rate. */
static struct err limited(const struct call *c, const struct err *err)
{
    struct err instead;
    bool counts = is_of_credentials(err->code) && !c->x->over_unix_socket;
    bool may = !counts || address_limits_take(c->api->address_limits, &c->x->peer, ADDRESS_ANONYMOUS,
                                              &instead) == ERR_OK;
    return may ? *err : instead;
}

void call_problem(struct call *c, const struct err *err)
{
    struct err shown = limited(c, err);
    c->err = shown;
    metrics_problem(c->api->metrics, shown.code);
    if (err_http_status(shown.code) >= 500)
        reads_end(c->api->reads); /* it may have been a read that failed: the next one begins anew */
    if (shown.code == ERR_STORE_FSYNC)
        shown.code = ERR_STORAGE_DB_ERROR; /* the catalog's codes and words; the log has the exact ones */
    if (shown.code == ERR_STORE_CORRUPT)
        err_set(&shown, ERR_INTERNAL, "stored data of this request is damaged; the log says which");
    problem_reply(c->x, &shown);
    http_answer(c->x);
}

void call_problem_of_policy(struct call *c, const struct err *err, const struct uuid *policy_id)
{
    c->err = *err;
    metrics_problem(c->api->metrics, err->code);
    problem_reply_with(c->x, err, "policyDecisionId", policy_id);
    http_answer(c->x);
}

void call_fail(struct call *c, enum err_code code, const char *fmt, ...)
{
    struct err err = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.detail, sizeof err.detail, fmt, ap);
    va_end(ap);
    call_problem(c, &err);
}

void call_json(struct call *c, int status, struct json_writer *w)
{
    c->x->status = status;
    c->x->content_type = "application/json";
    strbuf_clear(&c->x->reply_body);
    jw_start(w, &c->x->reply_body);
}

void call_send(struct call *c)
{
    http_answer(c->x);
}

void call_object(struct call *c, int status, struct json_writer *w)
{
    call_json(c, status, w);
    jw_object(w);
}

void call_send_object(struct call *c, struct json_writer *w)
{
    jw_object_end(w);
    call_send(c);
}

void call_write_refusal(const struct call *c, const struct err *err, struct json_writer *w)
{
    jw_object(w);
    jw_key(w, "error");
    problem_write(w, err, &c->x->request_id);
    jw_object_end(w);
}

void call_say(struct call *c, const char *what)
{
    struct json_writer w;
    call_object(c, 200, &w);
    encode_bool(&w, what, true);
    call_send_object(c, &w);
}

/* --- reading ---------------------------------------------------------------------------------------- */

struct reader *call_reader(struct call *c)
{
    struct err err;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r)
        call_problem(c, &err);
    return r;
}

bool call_row(struct call *c, struct reader *r, const struct table *t, void *row, bool *ret_found)
{
    struct err err;
    if (r->ops->reader_row(r, t, row, c->x->arena, ret_found, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* --- the way to the commit thread and back ------------------------------------------------------- */

static void command_done(struct command *command)
{
    http_resume(((struct call *)command->owner)->x);
}

/* The command of a parked request. It is taken back without an answer when keys have changed: its handler
 * looks whether the caller's key still holds, and posts it again. */
static bool command_abandoned(const struct command *command)
{
    const struct call *c = command->owner;
    return atomic_load_explicit(&c->x->gone, memory_order_relaxed) || credential_is_stale(c);
}

static void resumed(struct http_exchange *x)
{
    struct call *c = x->data;
    if (c->command->result != ERR_OK)
        call_problem(c, &c->command->err);
    else
        c->finish(c);
    reads_request_end(c->api->reads);
}

static void timed_out(struct http_exchange *x)
{
    call_fail(x->data, ERR_EXEC_TIMEOUT,
              "the server did not get to it in time; it may still be done: ask again with the same key");
}

/* The parties that take turns when there is much to do: clients, tenants, and the built-in domains as one. */
static int64_t flow_of(const struct call *c)
{
    if (!c->claims || c->who.client)
        return c->who.client;
    struct str tenant = c->claims->tenant_id;
    return (int64_t)hash_fnv1a(HASH_FNV_START, tenant.ptr, tenant.len);
}

/* From degraded on calls wait less long than usual, except those that are never refused. */
static int64_t timeout_ms(const struct call *c, const struct command_type *type)
{
    int64_t ms = c->api->config.settings->request_timeout_ms;
    bool hurries = !type->critical && overload_level(c->api->overload) >= PRESSURE_DEGRADED;
    return hurries ? ms / 2 : ms;
}

void call_post(struct call *c, struct command *command, const struct command_type *type,
               int64_t extra_wait_ms, void (*finish)(struct call *c))
{
    command->type = type;
    command->owner = c;
    command->done = command_done;
    command->abandoned = command_abandoned;
    command->received_us = c->x->received_us;
    command->bytes = c->x->body.len;
    c->command = command;
    c->finish = finish;
    c->x->on_resume = resumed;
    c->x->on_timeout = timed_out;
    command->client = flow_of(c);
    c->x->timeout_at_ms = clock_mono_ms(c->api->config.clock) + extra_wait_ms + timeout_ms(c, type);
    if (!kernel_post_in_round(c->api->kernel, command))
        call_problem(c, &command->err);
}

int64_t call_wait_ms(const struct call *c, int64_t asked_ms)
{
    if (atomic_load(&c->api->draining))
        return 0;
    bool shorter = overload_level(c->api->overload) >= PRESSURE_DEGRADED && asked_ms > PRESSED_WAIT_MS;
    return shorter ? PRESSED_WAIT_MS : asked_ms;
}

/* --- shared decoding ------------------------------------------------------------------------------ */

bool call_uuid_param(struct call *c, const char *name, struct uuid *ret)
{
    return uuid_parse(route_param(&c->match, name), ret);
}

bool call_client_param(struct call *c, struct uuid *ret)
{
    if (call_uuid_param(c, "client_id", ret))
        return true;
    call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
    return false;
}

bool call_webhook_param(struct call *c, int64_t *ret_id, uint64_t *ret_low)
{
    struct uuid id;
    if (call_uuid_param(c, "webhook_id", &id) && uuid_split_v7(&id, ret_id, ret_low))
        return true;
    call_fail(c, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
    return false;
}

bool call_job_id(struct call *c, int64_t *ret_key, uint64_t *ret_low)
{
    struct uuid id;
    c->job_id = route_param(&c->match, "job_id");
    if (call_uuid_param(c, "job_id", &id) && uuid_split_v7(&id, ret_key, ret_low))
        return true;
    if (c->x->method == HTTP_POST && !uuid_parse(c->job_id, &id))
        call_fail(c, ERR_REQUEST_MALFORMED, "job_id is not a UUID");
    else
        call_fail(c, ERR_JOB_NOT_FOUND, "no job has this id");
    return false;
}

bool call_idempotency_key(struct call *c, struct str *ret_key)
{
    struct str key = http_header(c->x, "Idempotency-Key");
    bool ok = !key.ptr || (key.len >= 1 && key.len <= CREATE_NAME_MAX);
    for (size_t i = 0; ok && i < key.len; i++)
        ok = key.ptr[i] > 0x1f && key.ptr[i] < 0x7f;
    if (!ok) {
        call_fail(c, ERR_REQUEST_MALFORMED, "Idempotency-Key must have 1 to 255 visible ASCII characters");
        return false;
    }
    *ret_key = key;
    return true;
}

void call_body_fingerprint(const struct json *body, const char *skip_key, uint8_t out[16])
{
    uint8_t digest[DIGEST_BYTES];
    struct strbuf text = {0};
    json_canonical(body, skip_key, &text);
    digest_sha256(text.ptr, text.len, digest);
    memcpy(out, digest, 16);
    strbuf_free(&text);
}

bool call_take_from_address(struct call *c, enum address_budget budget)
{
    struct err err;
    if (c->x->over_unix_socket ||
        address_limits_take(c->api->address_limits, &c->x->peer, budget, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* --- who asks ---------------------------------------------------------------------------------------- */

struct str call_actor(const struct call *c)
{
    if (c->claims)
        return c->claims->subject;
    return http_header(c->x, "Authorization").ptr ? STR("operator") : STR("local");
}
