/* From a JSON document to the compiled tree. One table says which keywords there are. */
#include "schema/schema_internal.h"

#include "base/must.h"

#include "base/banned.h"

/* Schemas inside schemas: far above any contract, far below the stack. */
enum { NESTING_MAX = 256 };

struct compiler {
    struct arena *arena;
    const struct json *root;
    struct schema *compiled; /* newest first; a node is compiled once, so recursion ends */
    unsigned nesting;
    struct err *err;
};

typedef enum err_code (*keyword_fn)(struct compiler *c, struct schema *s, const struct json *value);

static enum err_code compile(struct compiler *c, const struct json *node, const struct schema **ret_schema);

static enum err_code refuse(struct compiler *c, const struct json *value, const char *wanted)
{
    return err_set(c->err, ERR_CONFIG_INVALID, "schema keyword \"%.*s\" must be %s", STR_ARG(value->key),
                   wanted);
}

/* ---- values of keywords ---- */

static enum err_code take_count(struct compiler *c, const struct json *value, int64_t *ret_count)
{
    if (!json_to_int(value, ret_count) || *ret_count < 0)
        return refuse(c, value, "an integer, zero or more");
    return ERR_OK;
}

static enum err_code take_number(struct compiler *c, const struct json *value, const struct json **ret_number)
{
    if (value->type != JSON_NUMBER)
        return refuse(c, value, "a number");
    *ret_number = value;
    return ERR_OK;
}

static enum err_code take_list(struct compiler *c, const struct json *value, struct schema_list *list)
{
    if (value->type != JSON_ARRAY || !value->count)
        return refuse(c, value, "a list of schemas, not empty");
    list->at = ARENA_ARRAY(c->arena, const struct schema *, value->count);
    for (const struct json *j = value->child; j; j = j->next) {
        enum err_code code = compile(c, j, &list->at[list->count++]);
        if (code != ERR_OK)
            return code;
    }
    return ERR_OK;
}

static enum err_code take_members(struct compiler *c, const struct json *value,
                                  struct schema_members *members)
{
    if (value->type != JSON_OBJECT)
        return refuse(c, value, "an object of schemas");
    members->at = ARENA_ARRAY(c->arena, struct schema_named, value->count);
    for (const struct json *j = value->child; j; j = j->next) {
        struct schema_named *named = &members->at[members->count++];
        named->name = j->key;
        enum err_code code = compile(c, j, &named->schema);
        if (code != ERR_OK)
            return code;
    }
    return ERR_OK;
}

static enum err_code take_names(struct compiler *c, const struct json *value, struct str **ret_names,
                                uint32_t *ret_count)
{
    if (value->type != JSON_ARRAY)
        return refuse(c, value, "a list of names");
    struct str *names = ARENA_ARRAY(c->arena, struct str, value->count);
    uint32_t n = 0;
    for (const struct json *j = value->child; j; j = j->next) {
        if (j->type != JSON_STRING)
            return refuse(c, value, "a list of names");
        names[n++] = j->text;
    }
    *ret_names = names;
    *ret_count = n;
    return ERR_OK;
}

/* ---- keywords ---- */

static bool type_bits(struct str name, uint32_t *bits)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } types[] = {{"null", 1 << JSON_NULL},    {"boolean", TYPE_BOOLEAN},    {"number", 1 << JSON_NUMBER},
                 {"integer", TYPE_INTEGER},   {"string", 1 << JSON_STRING}, {"array", 1 << JSON_ARRAY},
                 {"object", 1 << JSON_OBJECT}};
    for (size_t i = 0; i < LENGTH_OF(types); i++)
        if (str_is(name, types[i].name)) {
            *bits |= types[i].bits;
            return true;
        }
    return false;
}

static enum err_code key_type(struct compiler *c, struct schema *s, const struct json *value)
{
    bool ok = value->type == JSON_STRING && type_bits(value->text, &s->types);
    if (value->type == JSON_ARRAY && value->count) {
        ok = true;
        for (const struct json *j = value->child; j && ok; j = j->next)
            ok = j->type == JSON_STRING && type_bits(j->text, &s->types);
    }
    return ok ? ERR_OK : refuse(c, value, "a JSON type or a list of them");
}

static enum err_code key_enum(struct compiler *c, struct schema *s, const struct json *value)
{
    if (value->type != JSON_ARRAY)
        return refuse(c, value, "a list of values");
    s->one_of_values = value;
    return ERR_OK;
}

static enum err_code key_const(struct compiler *c, struct schema *s, const struct json *value)
{
    (void)c;
    s->only_value = value;
    return ERR_OK;
}

static enum err_code key_multiple_of(struct compiler *c, struct schema *s, const struct json *value)
{
    static const struct json zero = {.type = JSON_NUMBER, .text = {"0", 1}};
    if (value->type != JSON_NUMBER || value->text.len > 18 || json_number_compare(value, &zero) <= 0)
        return refuse(c, value, "a number above zero, written with at most 18 characters");
    s->multiple_of = value;
    return ERR_OK;
}

static enum err_code key_unique_items(struct compiler *c, struct schema *s, const struct json *value)
{
    if (value->type != JSON_TRUE && value->type != JSON_FALSE)
        return refuse(c, value, "true or false");
    s->unique_items = value->type == JSON_TRUE;
    return ERR_OK;
}

static enum err_code key_required(struct compiler *c, struct schema *s, const struct json *value)
{
    return take_names(c, value, &s->required, &s->required_count);
}

static enum err_code key_dependent_required(struct compiler *c, struct schema *s, const struct json *value)
{
    if (value->type != JSON_OBJECT)
        return refuse(c, value, "an object of lists of names");
    struct schema_members *members = &s->dependent_required;
    members->at = ARENA_ARRAY(c->arena, struct schema_named, value->count);
    for (const struct json *j = value->child; j; j = j->next) {
        struct schema_named *named = &members->at[members->count++];
        named->name = j->key;
        enum err_code code = take_names(c, j, &named->required, &named->required_count);
        if (code != ERR_OK)
            return code;
    }
    return ERR_OK;
}

static enum err_code key_defs(struct compiler *c, struct schema *s, const struct json *value)
{
    (void)s;
    struct schema_members unused = {0}; /* compiled so that nothing unsupported hides in it */
    return take_members(c, value, &unused);
}

static enum err_code key_id(struct compiler *c, struct schema *s, const struct json *value)
{
    (void)value;
    if (s->node != c->root)
        return err_set(c->err, ERR_CONFIG_INVALID,
                       "schema keyword \"$id\" is supported in the root of the document only");
    return ERR_OK;
}

/* ---- $ref ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One segment of a JSON Pointer in a URI: "%25" is %, then "~1" is / and "~0" is ~. */
static bool decode_segment(struct arena *a, struct str in, struct str *ret_name)
{
    char *out = arena_copy(a, in.ptr, in.len);
    size_t bytes = 0, n = 0;
    for (size_t i = 0; i < in.len; i++) {
        int high = in.ptr[i] == '%' && i + 2 < in.len ? hex_value(in.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_value(in.ptr[i + 2]) : -1;
        if (in.ptr[i] == '%' && low < 0)
            return false;
        out[bytes++] = low < 0 ? in.ptr[i] : (char)(high << 4 | low);
        i += low < 0 ? 0 : 2;
    }
    for (size_t i = 0; i < bytes; i++) {
        char c = out[i];
        if (c == '~') {
            char next = ++i < bytes ? out[i] : 0;
            if (next != '0' && next != '1')
                return false;
            c = next == '0' ? '~' : '/';
        }
        out[n++] = c;
    }
    *ret_name = (struct str){out, n};
    return true;
}

static const struct json *child_by_segment(const struct json *parent, struct str name)
{
    int64_t index = -1;
    if (parent->type == JSON_ARRAY && !str_to_int(name, 0, UINT32_MAX, &index))
        return NULL;
    for (const struct json *j = parent->child; j; j = j->next)
        if (parent->type == JSON_ARRAY ? index-- == 0 : str_equal(j->key, name))
            return j;
    return NULL;
}

static const struct json *resolve(struct compiler *c, struct str ref)
{
    if (!ref.len || ref.ptr[0] != '#')
        return NULL;
    struct str rest = {ref.ptr + 1, ref.len - 1};
    const struct json *j = c->root;
    if (!rest.len)
        return j;
    if (rest.ptr[0] != '/')
        return NULL;
    rest.ptr++, rest.len--;
    for (bool more = true; j && more;) {
        more = memchr(rest.ptr, '/', rest.len) != NULL;
        struct str name;
        if (!decode_segment(c->arena, str_cut(&rest, '/'), &name))
            return NULL;
        j = child_by_segment(j, name);
    }
    return j;
}

static enum err_code key_ref(struct compiler *c, struct schema *s, const struct json *value)
{
    if (value->type != JSON_STRING)
        return refuse(c, value, "a string");
    const struct json *target = resolve(c, value->text);
    if (!target)
        return err_set(c->err, ERR_CONFIG_INVALID,
                       "$ref \"%.*s\" leads nowhere in this document (only \"#/...\" is supported)",
                       (int)(value->text.len > 120 ? 120 : value->text.len), value->text.ptr);
    return compile(c, target, &s->ref);
}

/* ---- the table ---- */

#define TAKES(name, take, field)                                                                             \
    static enum err_code name(struct compiler *c, struct schema *s, const struct json *value)                \
    {                                                                                                        \
        return take(c, value, &s->field);                                                                    \
    }
TAKES(key_minimum, take_number, minimum)
TAKES(key_maximum, take_number, maximum)
TAKES(key_exclusive_minimum, take_number, above)
TAKES(key_exclusive_maximum, take_number, below)
TAKES(key_min_length, take_count, length_min)
TAKES(key_max_length, take_count, length_max)
TAKES(key_min_items, take_count, items_min)
TAKES(key_max_items, take_count, items_max)
TAKES(key_min_contains, take_count, contains_min)
TAKES(key_max_contains, take_count, contains_max)
TAKES(key_min_properties, take_count, members_min)
TAKES(key_max_properties, take_count, members_max)
TAKES(key_items, compile, items)
TAKES(key_contains, compile, contains)
TAKES(key_additional, compile, additional)
TAKES(key_names, compile, names)
TAKES(key_not, compile, not )
TAKES(key_if, compile, when)
TAKES(key_then, compile, then)
TAKES(key_else, compile, otherwise)
TAKES(key_prefix_items, take_list, prefix_items)
TAKES(key_all_of, take_list, all_of)
TAKES(key_any_of, take_list, any_of)
TAKES(key_one_of, take_list, one_of)
TAKES(key_properties, take_members, properties)
TAKES(key_dependent_schemas, take_members, dependent_schemas)
#undef TAKES

/* Every keyword there is. Without a function it is a note for people and takes any value. */
static const struct {
    const char *name;
    keyword_fn compile;
} keywords[] = {
    {"type", key_type},
    {"properties", key_properties},
    {"required", key_required},
    {"additionalProperties", key_additional},
    {"description", NULL},
    {"$ref", key_ref},
    {"items", key_items},
    {"enum", key_enum},
    {"const", key_const},
    {"minimum", key_minimum},
    {"maximum", key_maximum},
    {"exclusiveMinimum", key_exclusive_minimum},
    {"exclusiveMaximum", key_exclusive_maximum},
    {"multipleOf", key_multiple_of},
    {"minLength", key_min_length},
    {"maxLength", key_max_length},
    {"minItems", key_min_items},
    {"maxItems", key_max_items},
    {"uniqueItems", key_unique_items},
    {"prefixItems", key_prefix_items},
    {"contains", key_contains},
    {"minContains", key_min_contains},
    {"maxContains", key_max_contains},
    {"minProperties", key_min_properties},
    {"maxProperties", key_max_properties},
    {"propertyNames", key_names},
    {"dependentRequired", key_dependent_required},
    {"dependentSchemas", key_dependent_schemas},
    {"allOf", key_all_of},
    {"anyOf", key_any_of},
    {"oneOf", key_one_of},
    {"not", key_not},
    {"if", key_if},
    {"then", key_then},
    {"else", key_else},
    {"$defs", key_defs},
    {"$id", key_id},
    {"title", NULL},
    {"examples", NULL},
    {"default", NULL},
    {"format", NULL},
    {"discriminator", NULL},
    {"deprecated", NULL},
    {"readOnly", NULL},
    {"writeOnly", NULL},
    {"$comment", NULL},
    {"$schema", NULL},
};

static enum err_code compile_keyword(struct compiler *c, struct schema *s, const struct json *value)
{
    for (size_t i = 0; i < LENGTH_OF(keywords); i++)
        if (str_is(value->key, keywords[i].name))
            return keywords[i].compile ? keywords[i].compile(c, s, value) : ERR_OK;
    if (str_starts(value->key, "x-"))
        return ERR_OK;
    return err_set(c->err, ERR_CONFIG_INVALID, "schema keyword \"%.*s\" is not supported",
                   (int)(value->key.len > 60 ? 60 : value->key.len), value->key.ptr);
}

static struct schema *schema_new(struct compiler *c, const struct json *node)
{
    struct schema *s = ARENA_NEW(c->arena, struct schema);
    s->node = node;
    s->length_max = s->items_max = s->contains_max = s->members_max = INT64_MAX;
    s->contains_min = 1;
    s->older = c->compiled;
    c->compiled = s;
    return s;
}

/* Only the type is left to check, also when it is told by a $ref. */
static void leave_values(struct schema *s)
{
    if (s->ref && !s->types)
        s->types = s->ref->types;
    s->ref = NULL;
    s->one_of_values = s->only_value = NULL;
    s->minimum = s->maximum = s->above = s->below = s->multiple_of = NULL;
    s->length_min = s->items_min = 0;
    s->length_max = s->items_max = INT64_MAX;
}

static enum err_code compile(struct compiler *c, const struct json *node, const struct schema **ret_schema)
{
    for (struct schema *s = c->compiled; s; s = s->older)
        if (s->node == node) {
            *ret_schema = s;
            return ERR_OK;
        }
    if (node->type != JSON_OBJECT && node->type != JSON_TRUE && node->type != JSON_FALSE)
        return err_set(c->err, ERR_CONFIG_INVALID, "\"%.*s\" holds no schema (object, true or false)",
                       (int)(node->key.len > 60 ? 60 : node->key.len), node->key.ptr ? node->key.ptr : "");
    if (++c->nesting > NESTING_MAX)
        return err_set(c->err, ERR_CONFIG_INVALID, "schemas are nested deeper than %d", NESTING_MAX);
    struct schema *s = schema_new(c, node);
    s->never = node->type == JSON_FALSE;
    if (node->type == JSON_OBJECT)
        for (const struct json *j = node->child; j; j = j->next) {
            enum err_code code = compile_keyword(c, s, j);
            if (code != ERR_OK)
                return code;
        }
    if (json_get(node, "x-weir-values"))
        leave_values(s);
    s->keeps_nulls = json_get(node, "x-weir-nulls") != NULL;
    c->nesting--;
    *ret_schema = s;
    return ERR_OK;
}

/* ---- circles ---- */

static bool count_chain(const struct schema *s);

static bool longest(const struct schema *part, int *chain)
{
    if (!part)
        return true;
    if (!count_chain(part))
        return false;
    if (part->chain > *chain)
        *chain = part->chain;
    return true;
}

static bool longest_of_list(const struct schema_list *list, int *chain)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!longest(list->at[i], chain))
            return false;
    return true;
}

/* How many schemas look at one value through one another. False in a circle or above the bound. */
static bool count_chain(const struct schema *schema)
{
    struct schema *s = (struct schema *)(uintptr_t)schema; /* still ours: not handed out yet */
    if (s->chain)
        return s->chain > 0;
    s->chain = -1;
    int chain = 0;
    bool ok = longest(s->ref, &chain) && longest(s->not, &chain) && longest(s->when, &chain) &&
              longest(s->then, &chain) && longest(s->otherwise, &chain) &&
              longest_of_list(&s->all_of, &chain) && longest_of_list(&s->any_of, &chain) &&
              longest_of_list(&s->one_of, &chain);
    for (uint32_t i = 0; ok && i < s->dependent_schemas.count; i++)
        ok = longest(s->dependent_schemas.at[i].schema, &chain);
    if (!ok || chain + 1 > SCHEMA_CHAIN_MAX)
        return false;
    s->chain = chain + 1;
    return true;
}

enum err_code schema_compile(struct arena *a, const struct json *root, const struct json *node,
                             const struct schema **ret_schema, struct err *err)
{
    struct compiler c = {.arena = a, .root = root, .err = err};
    const struct schema *schema;
    enum err_code code = compile(&c, node, &schema);
    if (code != ERR_OK)
        return code;
    for (const struct schema *s = c.compiled; s; s = s->older)
        if (!count_chain(s))
            return err_set(err, ERR_CONFIG_INVALID,
                           "schemas refer to one another in a circle, or more than %d deep",
                           SCHEMA_CHAIN_MAX);
    *ret_schema = schema;
    return ERR_OK;
}

enum err_code schema_compile_at(struct arena *a, const struct json *root, const char *pointer,
                                const struct schema **ret_schema, struct err *err)
{
    struct compiler c = {.arena = a, .root = root, .err = err};
    const struct json *node = resolve(&c, str_of(pointer));
    if (!node)
        return err_set(err, ERR_CONFIG_INVALID, "%s leads nowhere in this document", pointer);
    return schema_compile(a, root, node, ret_schema, err);
}
