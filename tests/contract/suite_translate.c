#include "suite_translate.h"

#include "base/must.h"

#include "base/banned.h"

enum shape { SHAPE_VALUE, SHAPE_SCHEMA, SHAPE_LIST, SHAPE_MAP };

/* What stands behind a keyword; whatever is not here holds no schema. */
static const struct {
    const char *name;
    enum shape shape;
} shapes[] = {
    {"properties", SHAPE_MAP},
    {"definitions", SHAPE_MAP},
    {"$defs", SHAPE_MAP},
    {"patternProperties", SHAPE_MAP},
    {"dependentSchemas", SHAPE_MAP},
    {"allOf", SHAPE_LIST},
    {"anyOf", SHAPE_LIST},
    {"oneOf", SHAPE_LIST},
    {"prefixItems", SHAPE_LIST},
    {"items", SHAPE_SCHEMA},
    {"contains", SHAPE_SCHEMA},
    {"not", SHAPE_SCHEMA},
    {"additionalItems", SHAPE_SCHEMA},
    {"if", SHAPE_SCHEMA},
    {"then", SHAPE_SCHEMA},
    {"else", SHAPE_SCHEMA},
    {"propertyNames", SHAPE_SCHEMA},
    {"additionalProperties", SHAPE_SCHEMA},
};

static enum shape shape_of(struct str key)
{
    for (size_t i = 0; i < LENGTH_OF(shapes); i++)
        if (str_is(key, shapes[i].name))
            return shapes[i].shape;
    return SHAPE_VALUE;
}

static void add_schema(struct json_writer *w, const struct json *schema);

static void add_value(struct json_writer *w, const struct json *value)
{
    struct strbuf text = {0};
    json_canonical(value, NULL, &text);
    jw_raw(w, strbuf_str(&text));
    strbuf_free(&text);
}

static void add_list(struct json_writer *w, const struct json *list)
{
    jw_array(w);
    for (const struct json *j = list->child; j; j = j->next)
        add_schema(w, j);
    jw_array_end(w);
}

static void add_map(struct json_writer *w, const struct json *map)
{
    jw_object(w);
    for (const struct json *j = map->child; j; j = j->next) {
        jw_key_str(w, j->key);
        add_schema(w, j);
    }
    jw_object_end(w);
}

static void add_reference(struct json_writer *w, struct str ref)
{
    struct strbuf text = {0};
    static const struct {
        const char *old, *new;
    } moves[] = {{"#/definitions/", "#/$defs/"}, {"#/items/", "#/prefixItems/"}};
    for (size_t i = 0; i < LENGTH_OF(moves); i++)
        if (str_starts(ref, moves[i].old)) {
            strbuf_add_text(&text, moves[i].new);
            ref.ptr += strlen(moves[i].old);
            ref.len -= strlen(moves[i].old);
            break;
        }
    strbuf_add_str(&text, ref);
    jw_str(w, strbuf_str(&text));
    strbuf_free(&text);
}

static void add_dependencies(struct json_writer *w, const struct json *value)
{
    static const char *const names[] = {"dependentRequired", "dependentSchemas"};
    for (int schemas = 0; schemas < 2; schemas++) {
        jw_key(w, names[schemas]);
        jw_object(w);
        for (const struct json *j = value->child; j; j = j->next) {
            if ((j->type != JSON_ARRAY) != schemas)
                continue;
            jw_key_str(w, j->key);
            if (schemas)
                add_schema(w, j);
            else
                add_value(w, j);
        }
        jw_object_end(w);
    }
}

static void add_keyword(struct json_writer *w, const struct json *schema, const struct json *j)
{
    const struct json *items = json_get(schema, "items");
    bool tuple = items && items->type == JSON_ARRAY;
    if (str_is(j->key, "dependencies")) {
        add_dependencies(w, j);
        return;
    }
    if (str_is(j->key, "additionalItems") && !tuple)
        return; /* draft 7: means nothing without a list of items */
    if (str_is(j->key, "definitions"))
        jw_key(w, "$defs");
    else if (str_is(j->key, "items") && tuple)
        jw_key(w, "prefixItems");
    else if (str_is(j->key, "additionalItems"))
        jw_key(w, "items");
    else
        jw_key_str(w, j->key);

    enum shape shape = j == items && tuple ? SHAPE_LIST : shape_of(j->key);
    if (shape == SHAPE_MAP && j->type == JSON_OBJECT)
        add_map(w, j);
    else if (shape == SHAPE_LIST && j->type == JSON_ARRAY)
        add_list(w, j);
    else if (shape == SHAPE_SCHEMA)
        add_schema(w, j);
    else if (str_is(j->key, "$ref") && j->type == JSON_STRING)
        add_reference(w, j->text);
    else
        add_value(w, j);
}

static void add_schema(struct json_writer *w, const struct json *schema)
{
    if (schema->type != JSON_OBJECT) {
        add_value(w, schema);
        return;
    }
    jw_object(w);
    for (const struct json *j = schema->child; j; j = j->next)
        add_keyword(w, schema, j);
    jw_object_end(w);
}

void suite_translate(const struct json *schema, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    add_schema(&w, schema);
}

/* ---- what must be refused ---- */

static const char *const unsupported[] = {
    "pattern",        "patternProperties", "unevaluatedItems", "unevaluatedProperties", "$anchor",
    "$dynamicAnchor", "$dynamicRef",       "$vocabulary",      "contentEncoding",       "contentMediaType",
    "contentSchema",  "definitions",       "additionalItems",  "dependencies",          "tilda~field",
    "slash/field",    "percent%field",
};

static const char *refusal(const struct json *schema, bool root);

static const char *refusal_of_keyword(const struct json *j, bool root)
{
    for (size_t i = 0; i < LENGTH_OF(unsupported); i++)
        if (str_is(j->key, unsupported[i]))
            return unsupported[i];
    if (str_is(j->key, "$id") && !root)
        return "$id inside";
    if (str_is(j->key, "$ref") && j->type == JSON_STRING && !str_starts(j->text, "#"))
        return "$ref to another document";
    enum shape shape = shape_of(j->key);
    if (shape == SHAPE_SCHEMA)
        return refusal(j, false);
    if (shape == SHAPE_VALUE)
        return NULL;
    for (const struct json *part = j->child; part; part = part->next) {
        const char *why = refusal(part, false);
        if (why)
            return why;
    }
    return NULL;
}

static const char *refusal(const struct json *schema, bool root)
{
    if (schema->type != JSON_OBJECT)
        return NULL;
    for (const struct json *j = schema->child; j; j = j->next) {
        const char *why = refusal_of_keyword(j, root);
        if (why)
            return why;
    }
    return NULL;
}

const char *suite_refusal(const struct json *schema)
{
    return refusal(schema, true);
}
