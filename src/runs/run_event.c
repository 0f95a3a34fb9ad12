#include "runs/run_event.h"

#include <stdio.h>
#include <string.h>

#include "base/json_members.h"
#include "base/must.h"
#include "base/time_text.h"
#include "base/uuid.h"

#include "base/banned.h"

/* --- reading ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
    bool bar;
} texts[] = {
#define X(member, name, bar) {name, offsetof(struct run_event, member), bar},
    RUN_EVENT_TEXTS(X)
#undef X
};

/* Members of the envelope besides the texts. */
static const char *const others[] = {"eventId",          "emittedAt",      "engineAttemptId",
                                     "logicalAttemptId", "idempotencyKey", "payload"};

static bool is_known(struct str key)
{
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        if (str_is(key, texts[i].name))
            return true;
    for (size_t i = 0; i < LENGTH_OF(others); i++)
        if (str_is(key, others[i]))
            return true;
    return false;
}

static enum err_code refuse_unknown(const struct json *j, struct err *err)
{
    if (j->type != JSON_OBJECT)
        return err_set(err, ERR_EVENT_INVALID, "an event is a JSON object");
    for (const struct json *m = j->child; m; m = m->next)
        if (!is_known(m->key))
            return err_set(err, ERR_EVENT_INVALID, "%.*s is no member of an event",
                           (int)(m->key.len > 64 ? 64 : m->key.len), m->key.ptr);
    return ERR_OK;
}

static enum err_code read_text(const struct json *j, const char *name, struct str *ret, struct err *err)
{
    const struct json *m = json_get(j, name);
    if (!m)
        return err_set(err, ERR_EVENT_INVALID, "%s is missing", name);
    if (m->type != JSON_STRING || !m->text.len)
        return err_set(err, ERR_EVENT_INVALID, "%s has to be a text that is not empty", name);
    if (m->text.len > RUN_ID_MAX)
        return err_set(err, ERR_EVENT_INVALID, "%s is longer than %d bytes", name, RUN_ID_MAX);
    if (memchr(m->text.ptr, '\0', m->text.len))
        return err_set(err, ERR_EVENT_INVALID, "%s holds a zero byte", name);
    *ret = m->text;
    return ERR_OK;
}

static enum err_code read_texts(const struct json *j, struct run_event *e, struct err *err)
{
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct str *text = (struct str *)((char *)e + texts[i].offset);
        if (text == &e->step_id && !json_get(j, texts[i].name))
            continue;
        if (read_text(j, texts[i].name, text, err) != ERR_OK)
            return err->code;
        if (!texts[i].bar && memchr(text->ptr, '|', text->len))
            return err_set(err, ERR_EVENT_INVALID, "%s may not contain |", texts[i].name);
    }
    e->type = run_event_of(e->event_type);
    bool needs_step = e->type != RUN_EVENT_UNKNOWN && run_event_is_step(e->type);
    if (needs_step && !e->step_id.ptr)
        return err_set(err, ERR_EVENT_INVALID, "stepId is missing: %s is about a step",
                       run_event_text(e->type));
    if (e->step_id.ptr && e->type != RUN_EVENT_UNKNOWN && !needs_step)
        return err_set(err, ERR_EVENT_INVALID, "%s is about the run: it has no stepId",
                       run_event_text(e->type));
    return ERR_OK;
}

static bool is_v4(struct str text)
{
    struct uuid u;
    return uuid_parse(text, &u) && u.bytes[6] >> 4 == 4 && u.bytes[8] >> 6 == 2;
}

static enum err_code read_attempt(const struct json *j, const char *name, int64_t *ret, struct err *err)
{
    const struct json *m = json_get(j, name);
    if (!m || m->type != JSON_NUMBER || !json_to_int(m, ret) || *ret < 1 || *ret > RUN_ATTEMPT_MAX)
        return err_set(err, ERR_EVENT_INVALID, "%s has to be a whole number from 1 to %d", name,
                       RUN_ATTEMPT_MAX);
    return ERR_OK;
}

static enum err_code read_rest(const struct json *j, struct run_event *e, struct err *err)
{
    int64_t at;
    const struct json *payload = json_get(j, "payload");
    if (read_text(j, "eventId", &e->event_id, err) != ERR_OK ||
        read_text(j, "emittedAt", &e->emitted_at, err) != ERR_OK ||
        read_text(j, "idempotencyKey", &e->key, err) != ERR_OK ||
        read_attempt(j, "engineAttemptId", &e->engine_attempt, err) != ERR_OK ||
        read_attempt(j, "logicalAttemptId", &e->logical_attempt, err) != ERR_OK)
        return err->code;
    if (!is_v4(e->event_id))
        return err_set(err, ERR_EVENT_INVALID, "eventId has to be a UUID of version 4");
    if (!time_parse_us(e->emitted_at, &at))
        return err_set(err, ERR_EVENT_INVALID, "emittedAt has to be an RFC 3339 time in UTC");
    if (payload && payload->type != JSON_OBJECT)
        return err_set(err, ERR_EVENT_INVALID, "payload has to be an object");
    e->payload = payload ? payload->source : (struct str){0};
    return ERR_OK;
}

struct event_key_parts run_event_key_parts(const struct run_event *e)
{
    return (struct event_key_parts){.run_id = e->run_id,
                                    .step_id = e->step_id,
                                    .logical_attempt = e->logical_attempt,
                                    .event_type = e->event_type,
                                    .plan_id = e->plan_id,
                                    .plan_version = e->plan_version};
}

enum err_code run_event_decode(const struct json *j, struct run_event *ret_event, struct err *err)
{
    struct run_event *e = ret_event;
    char wanted[EVENT_KEY_LEN + 1];
    *e = (struct run_event){0};
    if (refuse_unknown(j, err) != ERR_OK || read_texts(j, e, err) != ERR_OK || read_rest(j, e, err) != ERR_OK)
        return err->code;
    struct event_key_parts parts = run_event_key_parts(e);
    event_key(&parts, wanted);
    if (!str_is(e->key, wanted))
        return err_set(err, ERR_IDEMPOTENCY_KEY_MISMATCH,
                       "idempotencyKey is not the SHA-256 of runId|stepId or RUN|logicalAttemptId|eventType|"
                       "planId|planVersion");
    return ERR_OK;
}

/* --- writing ------------------------------------------------------------------------------------------- */

void run_event_write(const struct run_event *e, struct json_writer *w)
{
    encode_str(w, "eventId", e->event_id);
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        const struct str *text = (const struct str *)((const char *)e + texts[i].offset);
        if (!text->ptr)
            continue;
        encode_str(w, texts[i].name, *text);
    }
    encode_int(w, "engineAttemptId", e->engine_attempt);
    encode_int(w, "logicalAttemptId", e->logical_attempt);
    encode_str(w, "idempotencyKey", e->key);
    encode_str(w, "emittedAt", e->emitted_at);
    if (e->payload.ptr) {
        jw_key(w, "payload");
        jw_raw(w, e->payload);
    }
}
