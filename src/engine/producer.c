#include "engine/producer.h"

#include "base/json_members.h"
#include "base/must.h"
#include "base/time_text.h"
#include "runs/event_key.h"

#include "base/banned.h"

enum { ERROR_TEXT_MAX = 1024, OPAQUE_SKIP_MAX = 1 << 20 };

/* --- payloads -------------------------------------------------------------------------------------- */

static struct str finish(struct unit *u, struct strbuf *b)
{
    struct str text = arena_str(u->arena, strbuf_str(b));
    strbuf_free(b);
    return text;
}

struct str payload_reason(struct unit *u, struct str reason)
{
    struct strbuf b = {0};
    struct json_writer w;
    if (!reason.ptr)
        return STR_ABSENT;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "reason", reason);
    jw_object_end(&w);
    return finish(u, &b);
}

static struct str cut(struct str text)
{
    size_t len = text.len < ERROR_TEXT_MAX ? text.len : ERROR_TEXT_MAX;
    while (len && len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    return (struct str){text.ptr, len};
}

struct str payload_error(struct unit *u, struct str code, struct str message, bool retryable)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "reason", cut(code));
    jw_key(&w, "error");
    jw_object(&w);
    encode_str(&w, "code", cut(code));
    encode_str(&w, "message", cut(message));
    encode_bool(&w, "retryable", retryable);
    jw_object_end(&w);
    jw_object_end(&w);
    return finish(u, &b);
}

struct str payload_output(struct unit *u, struct str result)
{
    struct strbuf b = {0};
    struct json_writer w;
    if (!result.ptr)
        return STR_ABSENT;
    jw_start(&w, &b);
    jw_object(&w);
    jw_key(&w, "output");
    jw_raw(&w, result);
    jw_object_end(&w);
    return finish(u, &b);
}

/* --- producing ------------------------------------------------------------------------------------- */

/* False: there was one of this key. */
static bool write_event(struct unit *u, struct run_row *run, struct str name, enum run_event_type type,
                        const struct run_step_row *step, int64_t attempt, struct str payload)
{
    char now[TIME_TEXT_MAX];
    struct run_write w = {.type = type,
                          .name = name,
                          .step = step ? step->step : STR_ABSENT,
                          .step_idx = step ? step->idx : -1,
                          .attempt = attempt,
                          .engine_attempt = 1, /* there is no provider that counts its own (RUN-045) */
                          .event_id = unit_uuid_v4(u),
                          .emitted = arena_str(u->arena, time_text_ms(u->locked_at_ms, now)),
                          .plan = run->plan,
                          .version = run->version,
                          .payload = payload};
    struct event_key_parts parts = {.run_id = run->id,
                                    .step_id = w.step,
                                    .logical_attempt = attempt,
                                    .event_type = name,
                                    .plan_id = run->plan,
                                    .plan_version = run->version};
    struct run_place place = {0};
    struct err err;
    event_key_digest(&parts, w.key);
    if (append_event(u, run, &w, &place, &err) != ERR_OK && u->load_err.code == ERR_OK)
        u->load_err = err; /* cannot be; if it is, nothing of this batch is written */
    return !place.duplicate;
}

void produce_opaque(struct unit *u, struct run_row *run, struct str type, int64_t attempt, struct str payload)
{
    for (int64_t skip = 1; skip <= OPAQUE_SKIP_MAX; skip *= 2) {
        if (write_event(u, run, type, RUN_EVENT_UNKNOWN, NULL, attempt, payload))
            return;
        attempt += skip; /* an engine outside may use the name, and any number */
    }
}

static bool is_allowed(const struct run_row *run, const struct produced *p, struct transition_fault *fault)
{
    enum run_status status = (enum run_status)run->state;
    if (!run_event_is_step(p->type))
        return run_apply(&status, p->type, fault) != TRANSITION_INVALID;
    struct step_state step = {p->step->attempt, (enum step_status)p->step->state};
    return step_apply(&step, status, p->type, p->attempt, fault) != TRANSITION_INVALID;
}

static struct str fault_payload(struct unit *u, const struct produced *p,
                                const struct transition_fault *fault)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_bool(&w, "invalidTransitionDetected", true);
    encode_text(&w, "expectedState", fault->attempted);
    encode_text(&w, "actualState", fault->prior);
    encode_text(&w, "attemptedEventType", run_event_text(p->type));
    jw_object_end(&w);
    return finish(u, &b);
}

bool produce(struct unit *u, struct run_row *run, const struct produced *p)
{
    struct transition_fault fault = {0};
    if (is_allowed(run, p, &fault)) {
        write_event(u, run, str_of(run_event_text(p->type)), p->type, p->step, p->attempt, p->payload);
        return true;
    }
    struct produced failed = {
        .type = RUN_EVENT_RunFailed, .attempt = 1, .payload = fault_payload(u, p, &fault)};
    struct transition_fault unused;
    if (is_allowed(run, &failed, &unused))
        write_event(u, run, str_of(run_event_text(failed.type)), failed.type, NULL, 1, failed.payload);
    return false;
}
