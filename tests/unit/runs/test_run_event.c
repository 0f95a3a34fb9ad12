/* The envelope: what is refused and why, what passes, and that nothing is lost on the way through. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "runs/run_event.h"

#include "base/banned.h"

/* Members of a good envelope, as JSON; NULL leaves one out. */
struct envelope {
    const char *event_id, *event_type, *run_id, *tenant_id, *project_id, *environment_id, *plan_id,
        *plan_version;
    const char *engine_attempt, *logical_attempt, *key, *emitted_at, *step_id, *payload, *more;
};

#define GOOD                                                                                                 \
    .event_id = "\"7d1a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b\"", .event_type = "\"StepStarted\"",                 \
    .run_id = "\"run-1\"", .tenant_id = "\"t\"", .project_id = "\"p\"", .environment_id = "\"e\"",           \
    .plan_id = "\"plan\"", .plan_version = "\"1\"", .engine_attempt = "1", .logical_attempt = "1",           \
    .emitted_at = "\"2026-11-15T10:00:00.000Z\"", .step_id = "\"s\""

static void add(struct strbuf *out, const char *name, const char *value)
{
    if (value)
        strbuf_addf(out, "%s\"%s\":%s", out->len > 1 ? "," : "", name, value);
}

static struct str unquoted(const char *json)
{
    size_t n = strlen(json);
    return n >= 2 && json[0] == '"' ? (struct str){json + 1, n - 2} : str_of(json);
}

static void add_key(struct strbuf *out, const struct envelope *e)
{
    char key[EVENT_KEY_LEN + 1], quoted[EVENT_KEY_LEN + 3];
    struct event_key_parts p = {.logical_attempt =
                                    e->logical_attempt ? strtoll(e->logical_attempt, NULL, 10) : 1};
    p.run_id = e->run_id ? unquoted(e->run_id) : STR("");
    p.step_id = e->step_id ? unquoted(e->step_id) : (struct str){0};
    p.event_type = e->event_type ? unquoted(e->event_type) : STR("");
    p.plan_id = e->plan_id ? unquoted(e->plan_id) : STR("");
    p.plan_version = e->plan_version ? unquoted(e->plan_version) : STR("");
    event_key(&p, key);
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    add(out, "idempotencyKey", e->key ? e->key : quoted);
}

static void text_of(const struct envelope *e, struct strbuf *out)
{
    strbuf_add_char(out, '{');
    add(out, "eventId", e->event_id);
    add(out, "eventType", e->event_type);
    add(out, "runId", e->run_id);
    add(out, "tenantId", e->tenant_id);
    add(out, "projectId", e->project_id);
    add(out, "environmentId", e->environment_id);
    add(out, "planId", e->plan_id);
    add(out, "planVersion", e->plan_version);
    add(out, "engineAttemptId", e->engine_attempt);
    add(out, "logicalAttemptId", e->logical_attempt);
    add(out, "emittedAt", e->emitted_at);
    add(out, "stepId", e->step_id);
    add(out, "payload", e->payload);
    if (!e->key || *e->key)
        add_key(out, e);
    if (e->more)
        strbuf_addf(out, ",%s", e->more);
    strbuf_add_char(out, '}');
}

/* The code, and a word that the detail has to hold. */
static enum err_code decode(const struct envelope *e, const char *word)
{
    struct arena *a = arena_new(1 << 14);
    struct strbuf text = {0};
    struct run_event event;
    struct err err = {0};
    const struct json *j;
    text_of(e, &text);
    assert_int_equal(json_parse(a, strbuf_str(&text), &j, &err), ERR_OK);
    enum err_code code = run_event_decode(j, &event, &err);
    if (code != ERR_OK && word)
        assert_non_null(strstr(err.detail, word));
    strbuf_free(&text);
    arena_free(a);
    return code;
}

#define REFUSED(word, ...)                                                                                   \
    assert_int_equal(decode(&(struct envelope){GOOD, __VA_ARGS__}, word), ERR_EVENT_INVALID)
#define TAKEN(...) assert_int_equal(decode(&(struct envelope){GOOD, __VA_ARGS__}, NULL), ERR_OK)

#pragma GCC diagnostic ignored "-Woverride-init"

/* [RUN-026] [RUN-027] [RUN-028] [RUN-029] [RUN-030] [RUN-031] [RUN-032] [RUN-033] */
TEST(test_every_text_is_required_and_not_empty)
{
    TAKEN(.payload = NULL);
    REFUSED("eventId", .event_id = NULL);
    REFUSED("eventId", .event_id = "\"7d1a2b3c-4d5e-1f60-8a7b-9c0d1e2f3a4b\""); /* version 1 */
    REFUSED("eventId", .event_id = "\"7d1a2b3c-4d5e-5f60-8a7b-9c0d1e2f3a4b\""); /* version 5 */
    REFUSED("eventId", .event_id = "\"7d1a2b3c-4d5e-4f60-0a7b-9c0d1e2f3a4b\""); /* variant */
    REFUSED("eventId", .event_id = "\"junk\"");
    REFUSED("eventType", .event_type = NULL);
    REFUSED("eventType", .event_type = "\"\"");
    REFUSED("runId", .run_id = NULL);
    REFUSED("runId", .run_id = "\"\"");
    REFUSED("tenantId", .tenant_id = NULL);
    REFUSED("tenantId", .tenant_id = "\"\"");
    REFUSED("projectId", .project_id = NULL);
    REFUSED("projectId", .project_id = "\"\"");
    REFUSED("environmentId", .environment_id = NULL);
    REFUSED("environmentId", .environment_id = "\"\"");
    REFUSED("planId", .plan_id = NULL);
    REFUSED("planId", .plan_id = "\"\"");
    REFUSED("planVersion", .plan_version = NULL);
    REFUSED("planVersion", .plan_version = "\"\"");
    REFUSED("planVersion", .plan_version = "1");
    REFUSED("runId", .run_id = "\"a\\u0000b\"");
}

/* [RUN-034] [RUN-035] [RUN-043] */
TEST(test_attempts_are_whole_numbers_from_one)
{
    TAKEN(.logical_attempt = "2147483647", .engine_attempt = "2147483647");
    REFUSED("engineAttemptId", .engine_attempt = NULL);
    REFUSED("engineAttemptId", .engine_attempt = "\"1\"");
    REFUSED("engineAttemptId", .engine_attempt = "0");
    REFUSED("engineAttemptId", .engine_attempt = "1.5");
    REFUSED("logicalAttemptId", .logical_attempt = NULL);
    REFUSED("logicalAttemptId", .logical_attempt = "\"1\"");
    REFUSED("logicalAttemptId", .logical_attempt = "1.5");
    REFUSED("logicalAttemptId", .logical_attempt = "0");
    REFUSED("logicalAttemptId", .logical_attempt = "-1");
    REFUSED("logicalAttemptId", .logical_attempt = "2147483648");
}

/* [RUN-036] [RUN-037] */
TEST(test_key_and_time_have_their_form)
{
    TAKEN(.emitted_at = "\"2026-11-15T10:00:00+00:00\"");
    REFUSED("idempotencyKey", .key = "");
    REFUSED("emittedAt", .emitted_at = NULL);
    REFUSED("emittedAt", .emitted_at = "\"2026-11-15T10:00:00+02:00\"");
    REFUSED("emittedAt", .emitted_at = "\"yesterday\"");
    const struct envelope e = {GOOD,
                               .key = "\"7f4b974658a54fb2aee9ecb9cefebd2eec27f3fd01f0f8c0d031dfc4a5b96e3c\""};
    assert_int_equal(decode(&e, "SHA-256"), ERR_IDEMPOTENCY_KEY_MISMATCH);
}

/* [RUN-038] [RUN-039] [RUN-018] */
TEST(test_step_events_name_a_step_and_run_events_none)
{
    for (int i = 0; i < RUN_EVENT_COUNT; i++) {
        char type[32];
        snprintf(type, sizeof type, "\"%s\"", run_event_text((enum run_event_type)i));
        if (run_event_is_step((enum run_event_type)i)) {
            TAKEN(.event_type = type);
            REFUSED("stepId", .event_type = type, .step_id = NULL);
            REFUSED("stepId", .event_type = type, .step_id = "\"\"");
        } else {
            TAKEN(.event_type = type, .step_id = NULL);
            REFUSED("stepId", .event_type = type);
            REFUSED("stepId", .event_type = type, .step_id = "\"\"");
            REFUSED("tenantId", .event_type = type, .step_id = NULL, .tenant_id = NULL);
        }
    }
}

/* [RUN-073] [RUN-074] */
TEST(test_the_delimiter_is_in_no_part_of_the_key)
{
    REFUSED("|", .run_id = "\"a|b\"");
    REFUSED("|", .event_type = "\"a|b\"");
    REFUSED("|", .plan_id = "\"a|b\"");
    REFUSED("|", .plan_version = "\"a|b\"");
    REFUSED("|", .step_id = "\"a|b\"");
    TAKEN(.tenant_id = "\"a|b\"", .project_id = "\"a|b\"", .environment_id = "\"a|b\""); /* not parts of it */
}

/* [RUN-090] [RUN-062] [RUN-089] [RUN-041] */
TEST(test_unknown_types_pass_and_unknown_members_do_not)
{
    TAKEN(.event_type = "\"FooHappened\"");
    TAKEN(.event_type = "\"FooHappened\"", .step_id = NULL);
    TAKEN(.payload = "{\"a\":[1,2]}");
    REFUSED("payload", .payload = "[1]");
    REFUSED("payload", .payload = "\"x\"");
    REFUSED("payload", .payload = "null");
    REFUSED("persistedAt", .more = "\"persistedAt\":\"2026-11-15T10:00:00Z\"");
    REFUSED("runSeq", .more = "\"runSeq\":1");
}

/* [RUN-072] [RUN-087]: tenant, project, environment and engine attempt take no part in the key. */
TEST(test_the_key_does_not_know_whose_event_it_is)
{
    struct envelope e = {GOOD};
    struct strbuf text = {0};
    text_of(&e, &text);
    char *key = strstr(text.ptr, "idempotencyKey") + strlen("idempotencyKey") + 2;
    char quoted[EVENT_KEY_LEN + 3];
    snprintf(quoted, sizeof quoted, "%.*s", EVENT_KEY_LEN + 2, key);
    TAKEN(.key = quoted, .tenant_id = "\"other\"", .project_id = "\"other\"", .environment_id = "\"other\"",
          .engine_attempt = "7");
    strbuf_free(&text);
}

/* [RUN-089]: all that was written is there again. */
ARENA_TEST(test_an_event_is_written_as_it_was_read, a)
{
    const struct envelope e = {GOOD, .payload = "{\"b\":1,\"a\":[\"x\",null]}", .tenant_id = "\"t \\u00fc\""};
    struct strbuf text = {0}, again = {0};
    struct run_event event;
    struct json_writer w;
    struct err err;
    const struct json *j, *back;
    text_of(&e, &text);
    assert_int_equal(json_parse(a, strbuf_str(&text), &j, &err), ERR_OK);
    assert_int_equal(run_event_decode(j, &event, &err), ERR_OK);
    jw_start(&w, &again);
    jw_object(&w);
    run_event_write(&event, &w);
    jw_object_end(&w);
    assert_int_equal(json_parse(a, strbuf_str(&again), &back, &err), ERR_OK);
    assert_true(json_equal(j, back));
    strbuf_free(&text);
    strbuf_free(&again);
}

TEST(test_only_an_object_is_an_event)
{
    static const char *const others[] = {"[]", "1", "null", "\"x\"", "true", "{}"};
    for (size_t i = 0; i < LENGTH_OF(others); i++) {
        struct arena *a = arena_new(1 << 12);
        struct run_event event;
        struct err err;
        const struct json *j;
        assert_int_equal(json_parse(a, str_of(others[i]), &j, &err), ERR_OK);
        assert_int_equal(run_event_decode(j, &event, &err), ERR_EVENT_INVALID);
        arena_free(a);
    }
}
