/* The contracts in the binary: they load, hold what they must, and their own examples are valid. */
#include <stdio.h>

#include "case.h"

#include "base/must.h"
#include "schema/openapi.h"
#include "schema/embedded.h"

#include "base/banned.h"

static struct openapi *load(const char *name)
{
    struct openapi *c = NULL;
    struct err err;
    if (openapi_load(openapi_embedded(name), &c, &err) != ERR_OK)
        fail_msg("%s: %s", name, err.detail);
    return c;
}

static const struct schema *component(struct openapi *c, const char *name)
{
    char pointer[100];
    const struct schema *s = NULL;
    struct err err;
    snprintf(pointer, sizeof pointer, "#/components/schemas/%s", name);
    if (openapi_schema(c, pointer, &s, &err) != ERR_OK)
        fail_msg("%s", err.detail);
    return s;
}

/* The one that checks a body before its handler does, x-weir-check; `path` as JSON Pointer writes it. */
static const struct schema *check_of(struct openapi *c, const char *path)
{
    char pointer[200];
    const struct schema *s = NULL;
    struct err err;
    snprintf(pointer, sizeof pointer, "#/paths/%s/post/requestBody/content/application~1json/x-weir-check",
             path);
    if (openapi_schema(c, pointer, &s, &err) != ERR_OK)
        fail_msg("%s", err.detail);
    return s;
}

static void check_body(const struct schema *s, const char *body, const char *keyword, const char *pointer,
                       const char *text)
{
    struct arena *a = arena_new(4096);
    const struct json *value;
    struct err err;
    struct schema_violation v;
    assert_int_equal(json_parse(a, str_of(body), &value, &err), ERR_OK);
    bool valid = schema_check(s, value, &v);
    if (!keyword) {
        if (!valid)
            fail_msg("%s refused: %s", body, v.text);
    } else {
        assert_false(valid);
        assert_string_equal(v.keyword, keyword);
        assert_string_equal(v.pointer, pointer);
        assert_string_equal(v.text, text);
    }
    arena_free(a);
}

static bool is_prose(const struct json *j)
{
    bool is_text = str_is(j->key, "description") || str_is(j->key, "summary");
    return (is_text && j->type == JSON_STRING) || (str_is(j->key, "examples") && j->type == JSON_ARRAY);
}

/* The tree of the YAML text without its prose. */
static void expect_same(const struct json *yaml, const struct json *json)
{
    assert_int_equal(yaml->type, json->type);
    assert_true(str_equal(yaml->text, json->text));
    const struct json *j = json->child;
    for (const struct json *y = yaml->child; y; y = y->next) {
        if (yaml->type == JSON_OBJECT && is_prose(y))
            continue;
        assert_non_null(j);
        assert_true(str_equal(y->key, j->key));
        expect_same(y, j);
        j = j->next;
    }
    assert_null(j);
}

TEST(what_is_read_at_the_start_says_what_the_contract_says)
{
    for (const struct embedded_file *file = embedded_contracts; file->name; file++) {
        struct err err;
        struct openapi *from_yaml = load(file->name), *from_json = NULL;
        assert_int_equal(openapi_load(file->json, &from_json, &err), ERR_OK);
        expect_same(openapi_document(from_yaml), openapi_document(from_json));
        assert_true(file->json.len < file->text.len);
        openapi_free(from_yaml);
        openapi_free(from_json);
    }
}

TEST(every_contract_loads_and_its_schemas_compile)
{
    for (const struct embedded_file *file = embedded_contracts; file->name; file++) {
        struct openapi *c = load(file->name);
        const struct json *schemas = json_get(json_get(openapi_document(c), "components"), "schemas");
        assert_true(schemas && schemas->count);
        for (const struct json *j = schemas->child; j; j = j->next) {
            char name[80];
            snprintf(name, sizeof name, "%.*s", STR_ARG(j->key));
            (void)component(c, name);
        }
        openapi_free(c);
    }
    assert_null(openapi_embedded("nothing").ptr);
}

TEST(submit_refuses_shape_faults_and_names_the_field)
{
    struct openapi *c = load("jobs");
    const struct schema *s = component(c, "SubmitJob");
    check_body(s, "{\"type\":\"EXECUTE\"}", NULL, NULL, NULL);
    check_body(s, "{\"type\":\"DEFERRED\",\"execution_at\":null,\"callback\":null,\"priority\":4.0}", NULL,
               NULL, NULL);
    check_body(s, "{}", "required", "", "type is required");
    check_body(s, "[]", "type", "", "the value must be an object");
    check_body(s, "{\"type\":5}", "type", "/type", "type must be a string");
    check_body(s, "{\"type\":\"EXECUTE\",\"priorty\":1}", "additionalProperties", "/priorty",
               "priorty is not a known field");
    check_body(s, "{\"type\":\"EXECUTE\",\"priority\":1.5}", "type", "/priority",
               "priority must be an integer");
    check_body(s, "{\"type\":\"EXECUTE\",\"execution_at\":7}", "type", "/execution_at",
               "execution_at must be a string or null");
    check_body(s, "{\"type\":\"EXECUTE\",\"payload\":[]}", "type", "/payload", "payload must be an object");
    check_body(s, "{\"type\":\"EXECUTE\",\"idempotency_key\":\"\"}", "minLength", "/idempotency_key",
               "idempotency_key must have at least 1 character");
    openapi_free(c);
}

/* Values have a code of their own (RFA_JOB_VALIDATION_FAILED), so the schema must let them pass. */
TEST(submit_leaves_values_to_the_job_rules)
{
    struct openapi *c = load("jobs");
    const struct schema *s = component(c, "SubmitJob");
    check_body(s, "{\"type\":\"NOPE\",\"work_kind\":\"NOPE\",\"queue\":\"!\",\"priority\":99}", NULL, NULL,
               NULL);
    check_body(s, "{\"type\":\"DEFERRED\",\"execution_at\":\"yesterday\",\"callback\":\"ftp:\"}", NULL, NULL,
               NULL);
    check_body(s, "{\"type\":\"EXECUTE\",\"max_runtime_ms\":-1,\"max_retries\":1000000}", NULL, NULL, NULL);
    openapi_free(c);
}

TEST(batch_checks_the_envelope_and_leaves_items_alone)
{
    struct openapi *c = load("jobs");
    const struct schema *s = check_of(c, "~1v1~1jobs:batch");
    check_body(s, "{\"jobs\":[{},{\"unknown\":1}]}", NULL, NULL, NULL);
    check_body(s, "{\"jobs\":[]}", "minItems", "/jobs", "jobs must have at least 1 item");
    check_body(s, "{\"jobs\":[{},3]}", "type", "/jobs/1", "/jobs/1 must be an object");
    struct strbuf many = {0};
    strbuf_add_text(&many, "{\"jobs\":[{}");
    for (int i = 0; i < 1000; i++)
        strbuf_add_text(&many, ",{}");
    strbuf_add_text(&many, "]}");
    check_body(s, many.ptr, "maxItems", "/jobs", "jobs must have at most 1000 items");
    strbuf_free(&many);
    openapi_free(c);
}

TEST(worker_calls_are_checked_strictly)
{
    struct openapi *c = load("worker");
    const struct schema *claim = component(c, "Claim");
    const struct schema *finish = component(c, "FinishBatch");
    check_body(claim, "{\"worker_id\":\"w\",\"queues\":[\"a\"],\"max\":256,\"wait_ms\":30000}", NULL, NULL,
               NULL);
    check_body(claim, "{\"worker_id\":\"w\",\"queues\":[\"a\"],\"max\":257}", "maximum", "/max",
               "max must be at most 256");
    check_body(claim, "{\"worker_id\":\"w\",\"queues\":[\"a\"],\"max\":0}", "minimum", "/max",
               "max must be at least 1");
    check_body(claim, "{\"worker_id\":\"w\",\"queues\":[\"a\",1],\"max\":1}", "type", "/queues/1",
               "/queues/1 must be a string");
    check_body(claim, "{\"worker_id\":\"\",\"queues\":[\"a\"],\"max\":1}", "minLength", "/worker_id",
               "worker_id must have at least 1 character");
    check_body(finish,
               "{\"tasks\":[{\"task_id\":\"t\",\"token\":\"1\",\"outcome\":\"success\",\"result\":{}}]}",
               NULL, NULL, NULL);
    check_body(finish, "{\"tasks\":[{\"task_id\":\"t\",\"outcome\":\"success\"}]}", "required", "/tasks/0",
               "/tasks/0/token is required");
    check_body(finish, "{\"tasks\":[{\"task_id\":\"t\",\"token\":\"1\",\"outcome\":\"maybe\"}]}", "enum",
               "/tasks/0/outcome", "/tasks/0/outcome must be one of success, failure");
    openapi_free(c);
}

TEST(plans_and_runs_are_checked_strictly)
{
    struct openapi *c = load("engine");
    const struct schema *plan = component(c, "PutPlan");
    const struct schema *run = component(c, "StartRun");
    check_body(plan,
               "{\"planId\":\"p\",\"planVersion\":\"1\",\"onFailure\":\"wait\",\"steps\":[{\"stepId\":\"a\","
               "\"dependsOn\":[],\"queue\":\"q\",\"config\":{},\"maxAttempts\":100}]}",
               NULL, NULL, NULL);
    check_body(plan, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[]}", "minItems", "/steps",
               "steps must have at least 1 item");
    check_body(plan, "{\"planId\":\"p\",\"planVersion\":1,\"steps\":[{\"stepId\":\"a\"}]}", "type",
               "/planVersion", "planVersion must be a string");
    check_body(plan, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"\"}]}", "minLength",
               "/steps/0/stepId", "/steps/0/stepId must have at least 1 character");
    check_body(plan,
               "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\",\"maxAttempts\":101}]}",
               "maximum", "/steps/0/maxAttempts", "/steps/0/maxAttempts must be at most 100");
    check_body(
        plan,
        "{\"planId\":\"p\",\"planVersion\":\"1\",\"onFailure\":\"stop\",\"steps\":[{\"stepId\":\"a\"}]}",
        "enum", "/onFailure", "onFailure must be one of fail, wait");
    check_body(run, "{\"planId\":\"p\",\"planVersion\":\"1\",\"projectId\":\"x\",\"environmentId\":\"e\"}",
               NULL, NULL, NULL);
    check_body(run, "{\"planId\":\"p\",\"planVersion\":\"1\",\"projectId\":\"x\"}", "required", "",
               "environmentId is required");
    check_body(
        run,
        "{\"planId\":\"p\",\"planVersion\":\"1\",\"projectId\":\"x\",\"environmentId\":\"e\",\"params\":[]}",
        "type", "/params", "params must be an object");
    openapi_free(c);
}

/* Events and signals have codes for every fault of theirs, so the schema must let these pass. */
TEST(events_and_signals_are_left_to_their_own_rules)
{
    struct openapi *c = load("engine");
    const struct schema *append = check_of(c, "~1engine~1v1~1runs~1{run_id}~1events");
    const struct schema *signal = check_of(c, "~1engine~1v1~1runs~1{run_id}~1signals");
    check_body(append, "{\"eventId\":1,\"unknown\":[]}", NULL, NULL, NULL);
    check_body(append, "{\"events\":\"none\"}", NULL, NULL, NULL);
    check_body(append, "[]", "type", "", "the value must be an object");
    check_body(append, "{}", "minProperties", "", "the value must have at least 1 member");
    check_body(signal, "{}", NULL, NULL, NULL);
    check_body(signal, "{\"signalId\":1,\"signalType\":\"NOPE\",\"payload\":[],\"audit\":{}}", NULL, NULL,
               NULL);
    check_body(signal, "{\"signalID\":1}", "additionalProperties", "/signalID",
               "signalID is not a known field");
    check_body(signal, "{\"audit\":{\"reason\":1}}", "type", "/audit/reason",
               "/audit/reason must be a string");
    check_body(signal, "{\"audit\":{\"actor\":1}}", "additionalProperties", "/audit/actor",
               "/audit/actor is not a known field");
    openapi_free(c);
}

TEST(reports_of_engines_and_admins_are_checked_strictly)
{
    struct openapi *c = load("engine");
    const struct schema *id = component(c, "RegisterEventId");
    const struct schema *processed = component(c, "SignalProcessed");
    const struct schema *settle = component(c, "Settle");
    check_body(id, "{\"idempotencyKey\":\"7f4b97\"}", "minLength", "/idempotencyKey",
               "idempotencyKey must have at least 64 characters");
    check_body(processed, "{\"status\":\"failure\",\"errorCode\":\"X\"}", NULL, NULL, NULL);
    check_body(processed, "{\"status\":\"maybe\"}", "enum", "/status",
               "status must be one of success, failure");
    check_body(processed, "{}", "required", "", "status is required");
    check_body(settle, "{}", NULL, NULL, NULL);
    check_body(settle, "{\"reason\":\"no\"}", NULL, NULL, NULL);
    check_body(settle, "{\"why\":\"no\"}", "additionalProperties", "/why", "why is not a known field");
    openapi_free(c);
}

/* A step's task has other members than a job's. */
TEST(a_claimed_step_names_run_and_step)
{
    struct openapi *c = load("worker");
    const struct schema *task = component(c, "Task"), *step = component(c, "StepTask");
    static const char good[] =
        "{\"task_id\":\"t\",\"token\":\"1\",\"kind\":\"step\",\"run_id\":\"r\",\"step_id\":\"s\","
        "\"queue\":\"q\",\"attempt\":1,\"lease_expires_at\":\"x\",\"max_runtime_ms\":1,"
        "\"definition\":{\"planId\":\"p\",\"planVersion\":\"1\"},\"payload\":{\"inputs\":{}}}";
    static const char bad[] = "{\"task_id\":\"t\",\"token\":\"1\",\"kind\":\"step\",\"job_id\":\"j\","
                              "\"attempt\":1,\"lease_expires_at\":\"x\"}";
    assert_true(task && step);
    check_body(task, good, NULL, NULL, NULL);
    check_body(step, bad, "required", "", "run_id is required");
    check_body(task, bad, "oneOf", "", "the value must have exactly one of the forms allowed");
    openapi_free(c);
}

/* ---- what stands beside a schema ---- */

/* Values with x-weir-values tell people what is good and are judged elsewhere; their types are checked. */
TEST(values_that_are_judged_elsewhere_are_not_checked)
{
    static const char yaml[] =
        "paths: {}\n"
        "components: {schemas: {Kind: {type: string, enum: [A]}, Body: {type: object, properties: {\n"
        "  free: {$ref: '#/components/schemas/Kind', x-weir-values: rules},\n"
        "  bound: {$ref: '#/components/schemas/Kind'},\n"
        "  number: {type: integer, minimum: 1, maximum: 2, x-weir-values: rules},\n"
        "  text: {type: string, minLength: 3, maxLength: 4, x-weir-values: rules}}}}}\n";
    struct openapi *c;
    struct err err;
    assert_int_equal(openapi_load(str_of(yaml), &c, &err), ERR_OK);
    const struct schema *s = component(c, "Body");
    check_body(s, "{\"free\":\"B\",\"number\":7,\"text\":\"\"}", NULL, NULL, NULL);
    check_body(s, "{\"bound\":\"B\"}", "enum", "/bound", "bound must be one of A");
    check_body(s, "{\"free\":1}", "type", "/free", "free must be a string");
    check_body(s, "{\"number\":\"1\"}", "type", "/number", "number must be an integer");
    openapi_free(c);
}

/* What is left of a body, in canonical form. */
static void expect_dropped(const struct schema *s, const char *body, const char *left)
{
    struct arena *a = arena_new(4096);
    struct strbuf text = {0};
    const struct json *value;
    struct err err;
    assert_int_equal(json_parse(a, str_of(body), &value, &err), ERR_OK);
    schema_drop_nulls(s, value);
    json_canonical(value, NULL, &text);
    assert_string_equal(text.ptr, left);
    strbuf_free(&text);
    arena_free(a);
}

TEST(optional_members_that_are_null_are_dropped)
{
    static const char yaml[] = "paths: {}\n"
                               "components: {schemas: {\n"
                               "  Item: {type: object, required: [id], properties: {id: {type: string}, "
                               "note: {type: [string, 'null']}}},\n"
                               "  More: {allOf: [{$ref: '#/components/schemas/Item'}, {type: object, "
                               "properties: {x: {type: integer}}}]},\n"
                               "  Either: {oneOf: [{$ref: '#/components/schemas/Item'}, {type: object, "
                               "properties: {list: {type: array,\n"
                               "    items: {$ref: '#/components/schemas/More'}}}}]},\n"
                               "  Body: {type: object, properties: {item: {$ref: "
                               "'#/components/schemas/Item'}, free: {type: object},\n"
                               "    either: {$ref: '#/components/schemas/Either'}}}}}\n";
    struct openapi *c;
    struct err err;
    assert_int_equal(openapi_load(str_of(yaml), &c, &err), ERR_OK);
    const struct schema *s = component(c, "Body");
    expect_dropped(s, "{\"item\":null,\"free\":null}", "{}");
    expect_dropped(s, "{\"item\":{\"note\":null,\"id\":\"a\"}}", "{\"item\":{\"id\":\"a\"}}");
    /* needed, unknown, the caller's own: left as they came */
    expect_dropped(s, "{\"item\":{\"id\":null},\"what\":null,\"free\":{\"item\":null}}",
                   "{\"free\":{\"item\":null},\"item\":{\"id\":null},\"what\":null}");
    expect_dropped(s, "{\"either\":{\"list\":[{\"id\":\"a\",\"note\":null,\"x\":null},null,{\"id\":null}]}}",
                   "{\"either\":{\"list\":[{\"id\":\"a\"},null,{\"id\":null}]}}");
    expect_dropped(s, "null", "null");
    openapi_free(c);
}

/* ---- examples ---- */

struct examples {
    struct arena *arena;
    const struct json *root;
    int checked;
};

static void check_example(struct examples *e, const struct json *schema, const struct json *example)
{
    const struct schema *compiled;
    struct err err;
    struct schema_violation v;
    if (schema_compile(e->arena, e->root, schema, &compiled, &err) != ERR_OK)
        fail_msg("%s", err.detail);
    if (!schema_check(compiled, example, &v)) {
        struct strbuf text = {0};
        json_canonical(example, NULL, &text);
        fail_msg("%s: %s", v.text, text.ptr);
    }
    e->checked++;
}

/* A media type has schema and example(s); a schema that has examples is one of components. */
static void walk_examples(struct examples *e, const struct json *j)
{
    const struct json *schema = json_get(j, "schema"), *example = json_get(j, "example"),
                      *named = json_get(j, "examples");
    if (schema && example)
        check_example(e, schema, example);
    for (const struct json *n = schema && named ? named->child : NULL; n; n = n->next)
        check_example(e, schema, json_get(n, "value"));
    bool components = json_get(j, "type") && named && named->type == JSON_ARRAY;
    for (const struct json *n = components ? named->child : NULL; n; n = n->next)
        check_example(e, j, n);
    for (const struct json *child = j->child; child; child = child->next)
        walk_examples(e, child);
}

TEST(every_example_is_valid_by_its_own_schema)
{
    int total = 0;
    for (const struct embedded_file *file = embedded_contracts; file->name; file++) {
        struct openapi *c = load(file->name);
        struct examples e = {.arena = arena_new(64 * 1024), .root = openapi_document(c)};
        walk_examples(&e, e.root);
        arena_free(e.arena);
        openapi_free(c);
        total += e.checked;
    }
    print_message("%d examples\n", total);
    assert_true(total >= 40);
}

/* ---- what is refused ---- */

TEST(unknown_keyword_is_refused_by_name)
{
    struct openapi *c;
    const struct schema *schema;
    struct err err;
    assert_int_equal(openapi_load(STR("a: {type: string, pattern: a}\n"), &c, &err), ERR_OK);
    assert_int_equal(openapi_schema(c, "#/a", &schema, &err), ERR_CONFIG_INVALID);
    assert_string_equal(err.detail, "schema keyword \"pattern\" is not supported");
    assert_int_equal(openapi_schema(c, "#/b", &schema, &err), ERR_CONFIG_INVALID);
    assert_string_equal(err.detail, "#/b leads nowhere in this document");
    openapi_free(c);
}

TEST(keywords_with_wrong_values_are_refused)
{
    static const char *const bad[] = {
        "{\"type\":\"strng\"}",
        "{\"type\":[]}",
        "{\"type\":[\"string\",5]}",
        "{\"enum\":1}",
        "{\"minimum\":\"1\"}",
        "{\"minLength\":-1}",
        "{\"maxItems\":1.5}",
        "{\"multipleOf\":0}",
        "{\"multipleOf\":-1}",
        "{\"multipleOf\":1.0000000000000000001}",
        "{\"required\":[1]}",
        "{\"required\":\"a\"}",
        "{\"properties\":[]}",
        "{\"properties\":{\"a\":1}}",
        "{\"items\":[]}",
        "{\"allOf\":[]}",
        "{\"anyOf\":{}}",
        "{\"uniqueItems\":1}",
        "{\"$ref\":1}",
        "{\"$ref\":\"#/nowhere\"}",
        "{\"$ref\":\"other.json\"}",
        "{\"$ref\":\"#name\"}",
        "{\"$ref\":\"#/$defs/a~2\"}",
        "{\"$ref\":\"#/%zz\"}",
        "{\"$ref\":\"#/%2\"}",
        "{\"dependentRequired\":{\"a\":1}}",
        "{\"not\":{\"$id\":\"x\"}}",
        "{\"$defs\":{\"a\":{\"nope\":1}}}",
        "5",
        "\"string\"",
        "null",
        "{\"Type\":\"string\"}",
        "{\"\":1}",
        "{\"if\":3}",
    };
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        struct arena *a = arena_new(1024);
        const struct json *root;
        const struct schema *s;
        struct err err = {0};
        assert_int_equal(json_parse(a, str_of(bad[i]), &root, &err), ERR_OK);
        if (schema_compile(a, root, root, &s, &err) != ERR_CONFIG_INVALID)
            fail_msg("%s was taken", bad[i]);
        assert_true(err.detail[0]);
        arena_free(a);
    }
}

TEST(circles_on_one_value_are_refused)
{
    static const char *const circles[] = {
        "{\"$ref\":\"#\"}",
        "{\"allOf\":[{\"$ref\":\"#\"}]}",
        "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"not\":{\"$ref\":\"#/$defs/a\"}}}}",
        "{\"properties\":{\"x\":{\"if\":{\"$ref\":\"#/properties/x\"}}}}",
        "{\"dependentSchemas\":{\"x\":{\"$ref\":\"#\"}}}",
    };
    for (size_t i = 0; i < LENGTH_OF(circles); i++) {
        struct arena *a = arena_new(1024);
        const struct json *root;
        const struct schema *s;
        struct err err;
        assert_int_equal(json_parse(a, str_of(circles[i]), &root, &err), ERR_OK);
        if (schema_compile(a, root, root, &s, &err) != ERR_CONFIG_INVALID)
            fail_msg("%s was taken", circles[i]);
        arena_free(a);
    }
}

/* A chain of references is bounded, so that a check cannot run out of stack whatever the value. */
TEST(long_chains_of_references_are_refused)
{
    for (int links = SCHEMA_CHAIN_MAX - 2; links <= 2000; links = links < 40 ? links + 1 : links * 5) {
        struct strbuf text = {0};
        strbuf_add_text(&text, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{");
        for (int i = 0; i < links; i++)
            strbuf_addf(&text, "\"a%d\":{\"$ref\":\"#/$defs/a%d\"},", i, i + 1);
        strbuf_addf(&text, "\"a%d\":{\"type\":\"null\"}}}", links);
        struct arena *a = arena_new(4096);
        const struct json *root;
        const struct schema *s;
        struct err err;
        assert_int_equal(json_parse(a, strbuf_str(&text), &root, &err), ERR_OK);
        enum err_code code = schema_compile(a, root, root, &s, &err);
        assert_int_equal(code, links + 2 <= SCHEMA_CHAIN_MAX ? ERR_OK : ERR_CONFIG_INVALID);
        arena_free(a);
        strbuf_free(&text);
    }
}

ARENA_TEST(long_names_are_cut_between_characters, a)
{
    const struct json *root, *value;
    const struct schema *s;
    struct err err;
    struct schema_violation v;
    struct strbuf text = {0};
    strbuf_add_text(&text, "{\"x");
    for (int i = 0; i < 200; i++)
        strbuf_add_text(&text, "\xE2\x82\xAC");
    strbuf_add_text(&text, "\":1}");
    assert_int_equal(json_parse(a, STR("{\"additionalProperties\":false}"), &root, &err), ERR_OK);
    assert_int_equal(schema_compile(a, root, root, &s, &err), ERR_OK);
    assert_int_equal(json_parse(a, strbuf_str(&text), &value, &err), ERR_OK);
    assert_false(schema_check(s, value, &v));
    assert_true(str_is_utf8(str_of(v.text)) && str_is_utf8(str_of(v.pointer)));
    assert_true(strlen(v.pointer) >= sizeof v.pointer - 4);
    strbuf_free(&text);
}

ARENA_TEST(a_nul_in_a_name_does_not_hide_the_rest, a)
{
    const struct json *root, *value;
    const struct schema *s;
    struct err err;
    struct schema_violation v;
    assert_int_equal(json_parse(a, STR("{\"additionalProperties\":false}"), &root, &err), ERR_OK);
    assert_int_equal(schema_compile(a, root, root, &s, &err), ERR_OK);
    assert_int_equal(json_parse(a, STR("{\"type\\u0000x\":1}"), &value, &err), ERR_OK);
    assert_false(schema_check(s, value, &v));
    assert_string_equal(v.text, "type\xEF\xBF\xBDx is not a known field");
}

/* ---- YAML ---- */

TEST(yaml_gives_the_json_that_people_mean)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"a: 1\nb: [true, null, ~, -1.5e3]\nc:\n", "{\"a\":1,\"b\":[true,null,null,-1500],\"c\":null}"},
        {"'404': x\n404: y2\n", NULL}, /* one key, twice */
        {"a: no\nb: 1_000\nc: 0x10\nd: 2026-11-15\ne: .5\nf: True\ng: 01",
         "{\"a\":\"no\",\"b\":\"1_000\",\"c\":\"0x10\",\"d\":\"2026-11-15\",\"e\":\".5\",\"f\":"
         "\"True\",\"g\":\"01\"}"},
        {"a: 'true'\nb: \"1\"\nc: |\n  two\n  lines\n",
         "{\"a\":\"true\",\"b\":\"1\",\"c\":\"two\\nlines\\n\"}"},
        {"{\"json\": [1, {\"is\": \"yaml\"}]}", "{\"json\":[1,{\"is\":\"yaml\"}]}"},
        {"a: null x", "{\"a\":\"null x\"}"},
        {"a: &x 1\nb: *x\n", NULL},
        {"a: !!str 1\n", NULL},
        {"a: 1\na: 2\n", NULL},
        {"a: 1\n---\nb: 2\n", NULL},
        {"[a, b]: 1\n", NULL},
        {"a: [1, 2\n", NULL},
        {"a: \"\\xZZ\"\n", NULL},
        {"", NULL},
        {"a: \xFF\n", NULL},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct arena *a = arena_new(1024);
        const struct json *root;
        struct err err = {0};
        enum err_code code = yaml_to_json(a, str_of(cases[i].yaml), &root, &err);
        if ((code == ERR_OK) != (cases[i].json != NULL))
            fail_msg("%s: %s", cases[i].yaml, code == ERR_OK ? "was taken" : err.detail);
        if (code == ERR_OK) {
            struct strbuf text = {0};
            json_canonical(root, NULL, &text);
            assert_string_equal(text.ptr, cases[i].json);
            strbuf_free(&text);
        }
        arena_free(a);
    }
}

TEST(yaml_depth_is_bounded)
{
    for (int depth = JSON_DEPTH_MAX - 1; depth <= 5000; depth += depth < 70 ? 1 : 4930) {
        struct strbuf text = {0};
        for (int i = 0; i < depth; i++)
            strbuf_add_char(&text, '[');
        for (int i = 0; i < depth; i++)
            strbuf_add_char(&text, ']');
        struct arena *a = arena_new(1024);
        const struct json *root;
        struct err err;
        assert_int_equal(yaml_to_json(a, strbuf_str(&text), &root, &err),
                         depth <= JSON_DEPTH_MAX ? ERR_OK : ERR_CONFIG_INVALID);
        arena_free(a);
        strbuf_free(&text);
    }
}
