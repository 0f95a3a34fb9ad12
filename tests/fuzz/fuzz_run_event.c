/* Any bytes as a run event. What is accepted stands in the log and makes a key, so it must be storable: texts
 * of 1 to RUN_ID_MAX bytes without a zero, no '|' where the key has one, a step exactly where there has to be
 * one. No fuzzer finds a SHA-256: an event whose only fault is its key gets the right one, made here a second
 * time from the formula of the contract, and has to pass then; what is written of it reads back as itself. */
#include "base/must.h"
#include "runs/run_event.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void right_key(const struct run_event *e, char out[EVENT_KEY_LEN + 1])
{
    struct strbuf text = {0};
    uint8_t digest[DIGEST_BYTES];
    strbuf_addf(&text, "%.*s|%.*s|%lld|%.*s|%.*s|%.*s", STR_ARG(e->run_id),
                STR_ARG(e->step_id.ptr ? e->step_id : STR("RUN")), (long long)e->logical_attempt,
                STR_ARG(e->event_type), STR_ARG(e->plan_id), STR_ARG(e->plan_version));
    digest_sha256(text.ptr, text.len, digest);
    strbuf_clear(&text);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        strbuf_addf(&text, "%02x", digest[i]);
    memcpy(out, text.ptr, EVENT_KEY_LEN + 1);
    strbuf_free(&text);
}

static void check_text(struct str text, bool bar)
{
    MUST(text.len >= 1 && text.len <= RUN_ID_MAX && str_is_utf8(text));
    MUST(!memchr(text.ptr, '\0', text.len) && (bar || !memchr(text.ptr, '|', text.len)));
}

static void check_accepted(const struct run_event *e)
{
#define X(member, name, bar)                                                                                 \
    if (e->member.ptr || &e->member != &e->step_id)                                                          \
        check_text(e->member, bar);
    RUN_EVENT_TEXTS(X)
#undef X
    MUST(e->type == run_event_of(e->event_type));
    MUST(e->type == RUN_EVENT_UNKNOWN || run_event_is_step(e->type) == (e->step_id.ptr != NULL));
    MUST(e->engine_attempt >= 1 && e->engine_attempt <= RUN_ATTEMPT_MAX);
    MUST(e->logical_attempt >= 1 && e->logical_attempt <= RUN_ATTEMPT_MAX);
    MUST(e->event_id.len == 36 && e->key.len == EVENT_KEY_LEN);
    MUST(!e->payload.ptr || (e->payload.ptr[0] == '{' && e->payload.ptr[e->payload.len - 1] == '}'));
}

static void check_round_trip(struct arena *a, const struct run_event *e)
{
    struct strbuf text = {0};
    struct json_writer w;
    const struct json *j;
    struct run_event again;
    struct err err;
    jw_start(&w, &text);
    jw_object(&w);
    run_event_write(e, &w);
    jw_object_end(&w);
    MUST(json_parse(a, strbuf_str(&text), &j, &err) == ERR_OK);
    MUST(run_event_decode(j, &again, &err) == ERR_OK);
#define X(member, name, bar)                                                                                 \
    MUST(str_equal(again.member, e->member) && (again.member.ptr != NULL) == (e->member.ptr != NULL));
    RUN_EVENT_TEXTS(X)
#undef X
    MUST(str_equal(again.event_id, e->event_id) && str_equal(again.emitted_at, e->emitted_at));
    MUST(str_equal(again.key, e->key) && str_equal(again.payload, e->payload));
    MUST(again.engine_attempt == e->engine_attempt && again.logical_attempt == e->logical_attempt);
    strbuf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(4096);
    const struct json *j;
    struct run_event e;
    struct err err;
    char key[EVENT_KEY_LEN + 1];
    if (json_parse(a, (struct str){(const char *)data, size}, &j, &err) == ERR_OK) {
        enum err_code code = run_event_decode(j, &e, &err);
        if (code == ERR_OK || code == ERR_IDEMPOTENCY_KEY_MISMATCH) {
            right_key(&e, key);
            MUST((code == ERR_OK) == str_is(e.key, key));
            e.key = str_of(key);
            check_accepted(&e);
            check_round_trip(a, &e);
        } else {
            MUST(code == ERR_EVENT_INVALID && err.detail[0]);
        }
    }
    arena_free(a);
    return 0;
}
