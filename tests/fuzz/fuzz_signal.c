/* Any bytes as the body of a signal: JSON, the contract's SignalRequest, then `payload` by the schema of
 * every signal. The oracle is the table of seed 003 section 1.1, written here a second time: which members
 * each has, of what type, which it needs; nothing else. Params are merged as UPDATE_PARAMS does: twice is
 * once. */
#include "api/engine/signal_schemas.h"
#include "base/json_merge.h"
#include "base/must.h"
#include "schema/openapi.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { REASON, STEP, FLAG, OBJECT, LEVEL };

struct member {
    const char *name;
    enum kind kind;
    bool needed;
};

static const struct member members[SIGNAL_TYPE_COUNT][3] = {
    [SIGNAL_PAUSE] = {{"reason", REASON, false}},
    [SIGNAL_CANCEL] = {{"reason", REASON, false}},
    [SIGNAL_RETRY_STEP] = {{"stepId", STEP, true}, {"force", FLAG, false}},
    [SIGNAL_RETRY_RUN] = {{"reason", REASON, false}, {"force", FLAG, false}},
    [SIGNAL_UPDATE_PARAMS] = {{"params", OBJECT, true}},
    [SIGNAL_INJECT_OVERRIDE] = {{"stepId", STEP, true}, {"override", OBJECT, true}},
    [SIGNAL_ESCALATE_ALERT] = {{"level", LEVEL, true}, {"note", REASON, false}},
    [SIGNAL_SKIP_STEP] = {{"stepId", STEP, true}, {"reason", REASON, false}},
    [SIGNAL_UPDATE_TARGET] = {{"stepId", STEP, true}, {"newTarget", OBJECT, true}},
    [SIGNAL_EMERGENCY_STOP] = {{"reason", REASON, true}, {"forceKill", FLAG, false}},
};

static const struct schema *request_schema(void)
{
    static const struct schema *schema;
    if (!schema) {
        static struct openapi *c; /* lives as long as the schema */
        struct err err;
        MUST(openapi_load(openapi_embedded("engine"), &c, &err) == ERR_OK);
        MUST(openapi_schema(c, "#/components/schemas/SignalRequest", &schema, &err) == ERR_OK);
    }
    return schema;
}

static const struct signal_schemas *payload_schemas(void)
{
    static struct signal_schemas *schemas;
    struct err err;
    if (!schemas)
        MUST(signal_schemas_new(embedded_signal_schemas, &schemas, &err) == ERR_OK);
    return schemas;
}

static size_t characters(struct str s)
{
    size_t count = 0;
    for (size_t at = 0; at < s.len; count++)
        at += str_utf8_sequence((struct str){s.ptr + at, s.len - at});
    return count;
}

static bool is_good(const struct json *j, enum kind kind)
{
    bool text = j->type == JSON_STRING;
    switch (kind) {
    case REASON:
        return text && characters(j->text) <= 2000;
    case STEP:
        return text && j->text.len && characters(j->text) <= 256;
    case FLAG:
        return j->type == JSON_TRUE || j->type == JSON_FALSE;
    case OBJECT:
        return j->type == JSON_OBJECT;
    case LEVEL:
        return text && (str_is(j->text, "INFO") || str_is(j->text, "WARNING") ||
                        str_is(j->text, "CRITICAL") || str_is(j->text, "P1"));
    }
    return false;
}

static bool fits(const struct member *table, const struct json *payload)
{
    uint32_t known = 0;
    if (payload->type != JSON_OBJECT)
        return false;
    for (size_t i = 0; i < LENGTH_OF(members[0]) && table[i].name; i++) {
        const struct json *j = json_get(payload, table[i].name);
        if (j ? !is_good(j, table[i].kind) : table[i].needed)
            return false;
        known += j != NULL;
    }
    return known == payload->count;
}

/* RFC 7396: a patch applied again changes nothing; members that are null in it are gone. */
static void check_merge(struct arena *a, const struct json *before, const struct json *patch)
{
    struct strbuf once = {0}, twice = {0};
    struct json_writer w;
    const struct json *first, *second;
    struct err err;
    jw_start(&w, &once);
    json_merge(before, patch, &w);
    MUST(json_parse(a, strbuf_str(&once), &first, &err) == ERR_OK);
    jw_start(&w, &twice);
    json_merge(first, patch, &w);
    MUST(json_parse(a, strbuf_str(&twice), &second, &err) == ERR_OK && json_equal(first, second));
    for (const struct json *m = patch->child; m; m = m->next) {
        bool kept = false;
        for (const struct json *n = first->child; n; n = n->next)
            kept |= str_equal(n->key, m->key);
        MUST(kept == (m->type != JSON_NULL));
    }
    strbuf_free(&once);
    strbuf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(4096);
    const struct json *body, *payload;
    struct schema_violation violation;
    struct err err;
    if (json_parse(a, (struct str){(const char *)data, size}, &body, &err) == ERR_OK &&
        schema_check(request_schema(), body, &violation) && (payload = json_get(body, "payload"))) {
        for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
            char fault[SIGNAL_FAULT_MAX] = "";
            bool good = signal_schema_fits(payload_schemas(), (enum signal_type)t, payload, fault);
            MUST(good == fits(members[t], payload) && good == !fault[0]);
        }
        const struct json *params = json_get(payload, "params");
        if (params && params->type == JSON_OBJECT) {
            check_merge(a, NULL, params);
            check_merge(a, payload, params);
        }
    }
    arena_free(a);
    return 0;
}
