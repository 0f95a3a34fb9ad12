/* The payloads of signals, each by its own schema: the files in the binary, through the code that judges. */
#include <stdio.h>
#include <string.h>

#include "case.h"

#include "api/engine/signal_schemas.h"
#include "base/must.h"

#include "base/banned.h"

static struct signal_schemas *schemas;

static int set_up(void **state)
{
    struct err err;
    (void)state;
    return signal_schemas_new(embedded_signal_schemas, &schemas, &err) == ERR_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    schemas = signal_schemas_free(schemas);
    return 0;
}

/* fault NULL: it has to pass. */
static void check(enum signal_type t, const char *payload, const char *fault)
{
    struct arena *a = arena_new(4096);
    const struct json *j;
    struct err err;
    char said[SIGNAL_FAULT_MAX] = "";
    assert_int_equal(json_parse(a, str_of(payload), &j, &err), ERR_OK);
    bool fits = signal_schema_fits(schemas, t, j, said);
    if (fits != !fault || (fault && strcmp(said, fault) != 0))
        fail_msg("%s %s: %s, wanted: %s", signal_type_text(t), payload, fits ? "passed" : said,
                 fault ? fault : "to pass");
    arena_free(a);
}

struct sample {
    enum signal_type type;
    const char *payload, *fault;
};

static void check_all(const struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(samples[i].type, samples[i].payload, samples[i].fault);
}

#define CHECK_ALL(samples) check_all(samples, LENGTH_OF(samples))

/* The members of a payload that passes, for each type. */
static const char *const good[SIGNAL_TYPE_COUNT] = {
    [SIGNAL_PAUSE] = "\"reason\":\"full\"",
    [SIGNAL_RESUME] = "",
    [SIGNAL_CANCEL] = "\"reason\":\"by mistake\"",
    [SIGNAL_RETRY_STEP] = "\"stepId\":\"a\",\"force\":true",
    [SIGNAL_RETRY_RUN] = "\"reason\":\"late data\",\"force\":false",
    [SIGNAL_UPDATE_PARAMS] = "\"params\":{\"day\":null}",
    [SIGNAL_INJECT_OVERRIDE] = "\"stepId\":\"a\",\"override\":{\"x\":1}",
    [SIGNAL_ESCALATE_ALERT] = "\"level\":\"P1\",\"note\":\"look\"",
    [SIGNAL_SKIP_STEP] = "\"stepId\":\"a\",\"reason\":\"Sunday\"",
    [SIGNAL_UPDATE_TARGET] = "\"stepId\":\"a\",\"newTarget\":{\"schema\":\"b\"}",
    [SIGNAL_EMERGENCY_STOP] = "\"reason\":\"fire\",\"forceKill\":true",
};

static void check_with(enum signal_type t, const char *more, const char *fault)
{
    char payload[200];
    snprintf(payload, sizeof payload, "{%s%s%s}", good[t], *good[t] && *more ? "," : "", more);
    check(t, payload, fault);
}

/* [SIG-034] */
TEST(every_type_takes_its_own_payload_and_no_other_member)
{
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
        check_with((enum signal_type)t, "", NULL);
        check_with((enum signal_type)t, "\"extra\":1", "extra is not a known field");
    }
}

/* [SIG-020] */
TEST(force_kill_is_for_emergency_stop_alone)
{
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++)
        if (t != SIGNAL_EMERGENCY_STOP)
            check_with((enum signal_type)t, "\"forceKill\":true", "forceKill is not a known field");
    check(SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\",\"forceKill\":true}", NULL);
}

/* [SIG-037] [SIG-039] */
TEST(pause_and_cancel_take_a_reason_or_nothing)
{
    static const struct sample samples[] = {
        {SIGNAL_PAUSE, "{}", NULL},
        {SIGNAL_PAUSE, "{\"reason\":\"\"}", NULL},
        {SIGNAL_PAUSE, "{\"reason\":5}", "reason must be a string"},
        {SIGNAL_PAUSE, "{\"reason\":null}", "reason must be a string"},
        {SIGNAL_CANCEL, "{}", NULL},
        {SIGNAL_CANCEL, "{\"reason\":\"by mistake\"}", NULL},
        {SIGNAL_CANCEL, "{\"reason\":5}", "reason must be a string"},
        {SIGNAL_CANCEL, "[]", "the value must be an object"},
    };
    CHECK_ALL(samples);
}

/* [SIG-038] */
TEST(resume_takes_nothing)
{
    check(SIGNAL_RESUME, "{}", NULL);
    check(SIGNAL_RESUME, "{\"reason\":\"go on\"}", "reason is not a known field");
}

/* [SIG-040] [SIG-041] */
TEST(retries_take_force_as_a_boolean_only)
{
    static const struct sample samples[] = {
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}", NULL},
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"a\",\"force\":false}", NULL},
        {SIGNAL_RETRY_STEP, "{}", "stepId is required"},
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"\"}", "stepId must have at least 1 character"},
        {SIGNAL_RETRY_STEP, "{\"stepId\":7}", "stepId must be a string"},
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"a\",\"force\":\"x\"}", "force must be true or false"},
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"a\",\"force\":1}", "force must be true or false"},
        {SIGNAL_RETRY_RUN, "{}", NULL},
        {SIGNAL_RETRY_RUN, "{\"reason\":\"late data\"}", NULL},
        {SIGNAL_RETRY_RUN, "{\"force\":true}", NULL},
        {SIGNAL_RETRY_RUN, "{\"force\":\"x\"}", "force must be true or false"},
        {SIGNAL_RETRY_RUN, "{\"reason\":true}", "reason must be a string"},
    };
    CHECK_ALL(samples);
}

/* [SIG-042] [SIG-043] [SIG-046] */
TEST(changes_need_an_object)
{
    static const struct sample samples[] = {
        {SIGNAL_UPDATE_PARAMS, "{\"params\":{}}", NULL},
        {SIGNAL_UPDATE_PARAMS, "{\"params\":{\"a\":{\"b\":[1]}}}", NULL},
        {SIGNAL_UPDATE_PARAMS, "{}", "params is required"},
        {SIGNAL_UPDATE_PARAMS, "{\"params\":[]}", "params must be an object"},
        {SIGNAL_UPDATE_PARAMS, "{\"params\":null}", "params must be an object"},
        {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":{}}", NULL},
        {SIGNAL_INJECT_OVERRIDE, "{\"override\":{}}", "stepId is required"},
        {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\"}", "override is required"},
        {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":\"x\"}", "override must be an object"},
        {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"a\",\"newTarget\":{}}", NULL},
        {SIGNAL_UPDATE_TARGET, "{\"newTarget\":{}}", "stepId is required"},
        {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"a\"}", "newTarget is required"},
        {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"a\",\"newTarget\":[]}", "newTarget must be an object"},
        {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"\",\"newTarget\":{}}", "stepId must have at least 1 character"},
    };
    CHECK_ALL(samples);
}

/* [SIG-024] [SIG-044] */
TEST(an_alert_has_one_of_four_levels)
{
    static const char unknown[] = "level must be one of INFO, WARNING, CRITICAL, P1";
    static const struct sample samples[] = {
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"INFO\"}", NULL},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"WARNING\"}", NULL},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"CRITICAL\"}", NULL},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"P1\",\"note\":\"\"}", NULL},
        {SIGNAL_ESCALATE_ALERT, "{}", "level is required"},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"LOW\"}", unknown},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"p1\"}", unknown},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"\"}", unknown},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":1}", "level must be a string"},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"P1\",\"note\":1}", "note must be a string"},
    };
    CHECK_ALL(samples);
}

/* [SIG-045] */
TEST(a_step_is_skipped_by_its_name)
{
    check(SIGNAL_SKIP_STEP, "{\"stepId\":\"a\"}", NULL);
    check(SIGNAL_SKIP_STEP, "{}", "stepId is required");
    check(SIGNAL_SKIP_STEP, "{\"reason\":\"Sunday\"}", "stepId is required");
    check(SIGNAL_SKIP_STEP, "{\"stepId\":\"\"}", "stepId must have at least 1 character");
    check(SIGNAL_SKIP_STEP, "{\"stepId\":\"a\",\"force\":true}", "force is not a known field");
}

/* [SIG-047] An empty reason is for policy to refuse. */
TEST(an_emergency_stop_says_why)
{
    check(SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\"}", NULL);
    check(SIGNAL_EMERGENCY_STOP, "{\"reason\":\"\"}", NULL);
    check(SIGNAL_EMERGENCY_STOP, "{}", "reason is required");
    check(SIGNAL_EMERGENCY_STOP, "{\"forceKill\":true}", "reason is required");
    check(SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\",\"forceKill\":1}", "forceKill must be true or false");
    check(SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\",\"forceKill\":\"true\"}",
          "forceKill must be true or false");
}

/* Lengths are characters, not bytes. */
TEST(texts_are_bounded)
{
    static const struct {
        enum signal_type type;
        const char *before, *after, *name;
        int most;
    } cases[] = {
        {SIGNAL_RETRY_STEP, "{\"stepId\":\"", "\"}", "stepId", 256},
        {SIGNAL_INJECT_OVERRIDE, "{\"override\":{},\"stepId\":\"", "\"}", "stepId", 256},
        {SIGNAL_SKIP_STEP, "{\"stepId\":\"", "\"}", "stepId", 256},
        {SIGNAL_UPDATE_TARGET, "{\"newTarget\":{},\"stepId\":\"", "\"}", "stepId", 256},
        {SIGNAL_PAUSE, "{\"reason\":\"", "\"}", "reason", 2000},
        {SIGNAL_CANCEL, "{\"reason\":\"", "\"}", "reason", 2000},
        {SIGNAL_RETRY_RUN, "{\"reason\":\"", "\"}", "reason", 2000},
        {SIGNAL_SKIP_STEP, "{\"stepId\":\"a\",\"reason\":\"", "\"}", "reason", 2000},
        {SIGNAL_ESCALATE_ALERT, "{\"level\":\"P1\",\"note\":\"", "\"}", "note", 2000},
        {SIGNAL_EMERGENCY_STOP, "{\"reason\":\"", "\"}", "reason", 2000},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        for (int length = cases[i].most; length <= cases[i].most + 1; length++) {
            char fault[100];
            struct strbuf text = {0};
            strbuf_add_text(&text, cases[i].before);
            for (int n = 0; n < length; n++)
                strbuf_add_text(&text, "\xC3\xA4");
            strbuf_add_text(&text, cases[i].after);
            snprintf(fault, sizeof fault, "%s must have at most %d characters", cases[i].name, cases[i].most);
            check(cases[i].type, text.ptr, length > cases[i].most ? fault : NULL);
            strbuf_free(&text);
        }
}

TEST(examples_are_valid_by_their_own_schema)
{
    size_t checked = 0;
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
        struct arena *a = arena_new(8192);
        const struct json *root;
        struct err err;
        char name[64], fault[SIGNAL_FAULT_MAX];
        snprintf(name, sizeof name, "%s.v1", signal_schema((enum signal_type)t));
        assert_int_equal(json_parse(a, embedded_text(embedded_signal_schemas, name), &root, &err), ERR_OK);
        const struct json *id = json_get(root, "$id"), *examples = json_get(root, "examples");
        snprintf(name, sizeof name, "urn:weir:schema:signal:%s.v1", signal_schema((enum signal_type)t));
        assert_true(id && str_is(id->text, name));
        assert_true(examples && examples->count > 0);
        for (const struct json *e = examples->child; e; e = e->next, checked++)
            if (!signal_schema_fits(schemas, (enum signal_type)t, e, fault))
                fail_msg("%s: %s", name, fault);
        arena_free(a);
    }
    assert_null(embedded_signal_schemas[SIGNAL_TYPE_COUNT].name);
    assert_true(checked >= SIGNAL_TYPE_COUNT);
}

TEST(what_is_missing_or_broken_is_told_by_name)
{
    static const struct {
        const char *text, *detail;
    } cases[] = {
        {"{", "signal schema Cancel.v1: "},
        {"{\"type\":\"objct\"}", "signal schema Cancel.v1: "},
        {"{\"pattern\":\"a\"}", "signal schema Cancel.v1: schema keyword \"pattern\" is not supported"},
        {NULL, "signal schema Cancel.v1 is not there"},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct embedded_file files[SIGNAL_TYPE_COUNT + 1];
        struct signal_schemas *s = NULL;
        struct err err = {.code = ERR_OK};
        memcpy(files, embedded_signal_schemas, sizeof files);
        assert_string_equal(files[0].name, "Cancel.v1");
        files[0] = cases[i].text ? (struct embedded_file){"Cancel.v1", str_of(cases[i].text), STR_ABSENT}
                                 : (struct embedded_file){"Cancel.v2", STR("{}"), STR_ABSENT};
        assert_int_equal(signal_schemas_new(files, &s, &err), ERR_CONFIG_INVALID);
        assert_null(s);
        assert_memory_equal(err.detail, cases[i].detail, strlen(cases[i].detail));
    }
}

int main(void)
{
    return test_run("tests", set_up, tear_down);
}
