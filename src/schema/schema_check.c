/* A value against a compiled schema. The first violation ends the walk. */
#include "schema/schema_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

/* Where we are: a chain of frames on the C stack, so that a valid value costs nothing for it. */
struct place {
    const struct place *up; /* NULL: the whole value */
    struct str key;         /* absent: an array's element */
    uint32_t index;
};

/* Also carries where to tell a violation; told NULL inside anyOf and its like, where none counts.
 */
struct check {
    struct schema_violation *told;
};

static bool check(const struct check *c, const struct schema *s, const struct json *value,
                  const struct place *at);

/* ---- telling ---- */

struct text {
    char *at;
    size_t size, len;
};

/* Cuts between characters when the room ends, so what is told stays UTF-8; a NUL would end it early
 * and is shown as U+FFFD. */
static void text_add(struct text *t, struct str s)
{
    while (s.len) {
        size_t n = str_utf8_sequence(s);
        struct str shown = n && *s.ptr ? (struct str){s.ptr, n} : STR("\xEF\xBF\xBD");
        if (t->len + shown.len >= t->size)
            return;
        memcpy(t->at + t->len, shown.ptr, shown.len);
        t->len += shown.len;
        t->at[t->len] = 0;
        s.ptr += n ? n : 1;
        s.len -= n ? n : 1;
    }
}

static void text_pointer(struct text *t, const struct place *at)
{
    if (!at->up)
        return;
    text_pointer(t, at->up);
    text_add(t, STR("/"));
    if (!at->key.ptr) {
        char digits[16];
        snprintf(digits, sizeof digits, "%u", at->index);
        text_add(t, str_of(digits));
        return;
    }
    struct str key = at->key;
    while (key.len) { /* JSON Pointer writes ~ as ~0 and / as ~1 */
        size_t plain = 0;
        while (plain < key.len && key.ptr[plain] != '~' && key.ptr[plain] != '/')
            plain++;
        text_add(t, (struct str){key.ptr, plain});
        if (plain < key.len)
            text_add(t, key.ptr[plain] == '~' ? STR("~0") : STR("~1"));
        plain += plain < key.len;
        key.ptr += plain;
        key.len -= plain;
    }
}

/* How people call the place: "priority" at the top, "/jobs/3/priority" further down. */
static void text_name(struct text *t, const struct place *at)
{
    if (!at->up)
        text_add(t, STR("the value"));
    else if (!at->up->up && at->key.ptr)
        text_add(t, at->key);
    else
        text_pointer(t, at);
}

static bool violated(const struct check *c, const struct place *at, const char *keyword, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static bool violated(const struct check *c, const struct place *at, const char *keyword, const char *fmt, ...)
{
    struct schema_violation *v = c->told;
    if (!v)
        return false;
    char wanted[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(wanted, sizeof wanted, fmt, ap);
    va_end(ap);
    *v = (struct schema_violation){.keyword = keyword};
    struct text pointer = {v->pointer, sizeof v->pointer, 0}, text = {v->text, sizeof v->text, 0};
    text_pointer(&pointer, at);
    text_name(&text, at);
    text_add(&text, STR(" "));
    text_add(&text, str_of(wanted));
    return false;
}

/* A missing member has no place of its own; the place it would have is named. */
static bool member_missing(const struct check *c, const struct place *at, const char *keyword,
                           struct str name)
{
    if (!c->told)
        return false;
    struct place member = {at, name, 0};
    violated(c, &member, keyword, "is required");
    struct text pointer = {c->told->pointer, sizeof c->told->pointer, 0};
    c->told->pointer[0] = 0;
    text_pointer(&pointer, at);
    return false;
}

/* ---- any type ---- */

static bool type_matches(uint32_t types, const struct json *value)
{
    if (!types || types & 1u << value->type)
        return true;
    return types & TYPE_INTEGER && json_is_integer(value);
}

static bool type_wrong(const struct check *c, const struct schema *s, const struct place *at)
{
    static const struct {
        uint32_t bits;
        const char *name;
    } names[] = {{1 << JSON_STRING, "a string"},  {TYPE_INTEGER, "an integer"},
                 {1 << JSON_NUMBER, "a number"},  {TYPE_BOOLEAN, "true or false"},
                 {1 << JSON_OBJECT, "an object"}, {1 << JSON_ARRAY, "an array"},
                 {1 << JSON_NULL, "null"}};
    char wanted[96];
    struct text t = {wanted, sizeof wanted, 0};
    for (size_t i = 0; i < LENGTH_OF(names); i++)
        if (s->types & names[i].bits) {
            text_add(&t, t.len ? STR(" or ") : STR(""));
            text_add(&t, str_of(names[i].name));
        }
    return violated(c, at, "type", "must be %s", wanted);
}

static bool enum_wrong(const struct check *c, const struct schema *s, const struct place *at)
{
    if (!c->told)
        return false;
    struct strbuf list = {0};
    for (const struct json *j = s->one_of_values->child; j; j = j->next) {
        if (list.len)
            strbuf_add_text(&list, ", ");
        if (j->type == JSON_STRING)
            strbuf_add_str(&list, j->text);
        else
            json_canonical(j, NULL, &list);
    }
    strbuf_add_text(&list, ""); /* an empty enum allows nothing, but is a text */
    violated(c, at, "enum", "must be one of %.90s%s", list.ptr, list.len > 90 ? "..." : "");
    strbuf_free(&list);
    return false;
}

static bool check_any(const struct check *c, const struct schema *s, const struct json *value,
                      const struct place *at)
{
    if (s->never)
        return violated(c, at, "false", "is not allowed");
    if (!type_matches(s->types, value))
        return type_wrong(c, s, at);
    if (s->only_value && !json_equal(s->only_value, value))
        return violated(c, at, "const", "must be exactly what the contract says");
    if (s->one_of_values) {
        const struct json *j = s->one_of_values->child;
        while (j && !json_equal(j, value))
            j = j->next;
        if (!j)
            return enum_wrong(c, s, at);
    }
    return true;
}

/* ---- numbers and strings ---- */

static bool check_number(const struct check *c, const struct schema *s, const struct json *value,
                         const struct place *at)
{
    if (s->minimum && json_number_compare(value, s->minimum) < 0)
        return violated(c, at, "minimum", "must be at least %.*s", STR_ARG(s->minimum->text));
    if (s->maximum && json_number_compare(value, s->maximum) > 0)
        return violated(c, at, "maximum", "must be at most %.*s", STR_ARG(s->maximum->text));
    if (s->above && json_number_compare(value, s->above) <= 0)
        return violated(c, at, "exclusiveMinimum", "must be above %.*s", STR_ARG(s->above->text));
    if (s->below && json_number_compare(value, s->below) >= 0)
        return violated(c, at, "exclusiveMaximum", "must be below %.*s", STR_ARG(s->below->text));
    if (s->multiple_of && !json_is_multiple(value, s->multiple_of))
        return violated(c, at, "multipleOf", "must be a multiple of %.*s", STR_ARG(s->multiple_of->text));
    return true;
}

/* "must have at least 1 character", "must have at most 3 items" */
static bool count_wrong(const struct check *c, const struct place *at, const char *keyword, const char *side,
                        int64_t count, const char *unit)
{
    return violated(c, at, keyword, "must have at %s %lld %s%s", side, (long long)count, unit,
                    count == 1 ? "" : "s");
}

static int64_t code_points(struct str s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

static bool check_string(const struct check *c, const struct schema *s, struct str text,
                         const struct place *at)
{
    if (!s->length_min && s->length_max == INT64_MAX)
        return true;
    int64_t length = code_points(text);
    if (length < s->length_min)
        return count_wrong(c, at, "minLength", "least", s->length_min, "character");
    if (length > s->length_max)
        return count_wrong(c, at, "maxLength", "most", s->length_max, "character");
    return true;
}

/* ---- arrays ---- */

static int by_text(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->len ? memcmp(x->ptr, y->ptr, x->len) : 0;
}

/* Equal values have equal canonical bytes; sorted, they are neighbours. Not quadratic on purpose.
 */
static bool all_different(const struct json *array)
{
    struct strbuf bytes = {0};
    struct str *texts = must_alloc(sizeof *texts * (array->count + (size_t)1));
    size_t n = 0;
    for (const struct json *j = array->child; j; j = j->next, n++) {
        texts[n].len = bytes.len; /* the start for now: the buffer still moves */
        json_canonical(j, NULL, &bytes);
    }
    for (size_t i = 0, start = 0; i < n; i++, start = texts[i].len) {
        size_t end = i + 1 < n ? texts[i + 1].len : bytes.len;
        texts[i] = (struct str){bytes.ptr + start, end - start};
    }
    qsort(texts, n, sizeof *texts, by_text);
    bool different = true;
    for (size_t i = 1; i < n && different; i++)
        different = !str_equal(texts[i - 1], texts[i]);
    free(texts);
    strbuf_free(&bytes);
    return different;
}

static bool check_contains(const struct check *c, const struct schema *s, const struct json *value,
                           const struct place *at)
{
    static const struct check silent = {NULL};
    int64_t matches = 0;
    for (const struct json *j = value->child; j; j = j->next)
        matches += check(&silent, s->contains, j, at);
    if (matches < s->contains_min)
        return violated(c, at, "contains", "must hold at least %lld of what the contract names",
                        (long long)s->contains_min);
    if (matches > s->contains_max)
        return violated(c, at, "maxContains", "must hold at most %lld of what the contract names",
                        (long long)s->contains_max);
    return true;
}

static bool check_array(const struct check *c, const struct schema *s, const struct json *value,
                        const struct place *at)
{
    if (value->count < s->items_min)
        return count_wrong(c, at, "minItems", "least", s->items_min, "item");
    if (value->count > s->items_max)
        return count_wrong(c, at, "maxItems", "most", s->items_max, "item");
    struct place element = {at, STR_ABSENT, 0};
    for (const struct json *j = value->child; j; j = j->next, element.index++) {
        const struct schema *of =
            element.index < s->prefix_items.count ? s->prefix_items.at[element.index] : s->items;
        if (of && !check(c, of, j, &element))
            return false;
    }
    if (s->unique_items && !all_different(value))
        return violated(c, at, "uniqueItems", "must not hold a value twice");
    return !s->contains || check_contains(c, s, value, at);
}

/* ---- objects ---- */

static bool has_member(const struct json *object, struct str name)
{
    for (const struct json *j = object->child; j; j = j->next)
        if (str_equal(j->key, name))
            return true;
    return false;
}

static bool check_required(const struct check *c, const struct json *value, const struct place *at,
                           const char *keyword, const struct str *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!has_member(value, names[i]))
            return member_missing(c, at, keyword, names[i]);
    return true;
}

static bool check_member(const struct check *c, const struct schema *s, const struct json *member,
                         const struct place *at)
{
    struct place place = {at, member->key, 0};
    if (s->names) {
        struct json name = {.type = JSON_STRING, .text = member->key};
        static const struct check silent = {NULL};
        if (!check(&silent, s->names, &name, &place))
            return violated(c, &place, "propertyNames", "has a name that is not allowed");
    }
    for (uint32_t i = 0; i < s->properties.count; i++)
        if (str_equal(s->properties.at[i].name, member->key))
            return check(c, s->properties.at[i].schema, member, &place);
    if (!s->additional)
        return true;
    if (s->additional->never)
        return violated(c, &place, "additionalProperties", "is not a known field");
    return check(c, s->additional, member, &place);
}

static bool check_dependents(const struct check *c, const struct schema *s, const struct json *value,
                             const struct place *at)
{
    for (uint32_t i = 0; i < s->dependent_required.count; i++) {
        const struct schema_named *d = &s->dependent_required.at[i];
        if (has_member(value, d->name) &&
            !check_required(c, value, at, "dependentRequired", d->required, d->required_count))
            return false;
    }
    for (uint32_t i = 0; i < s->dependent_schemas.count; i++) {
        const struct schema_named *d = &s->dependent_schemas.at[i];
        if (has_member(value, d->name) && !check(c, d->schema, value, at))
            return false;
    }
    return true;
}

static bool check_object(const struct check *c, const struct schema *s, const struct json *value,
                         const struct place *at)
{
    if (value->count < s->members_min)
        return count_wrong(c, at, "minProperties", "least", s->members_min, "member");
    if (value->count > s->members_max)
        return count_wrong(c, at, "maxProperties", "most", s->members_max, "member");
    if (s->properties.count || s->additional || s->names)
        for (const struct json *j = value->child; j; j = j->next)
            if (!check_member(c, s, j, at))
                return false;
    return check_required(c, value, at, "required", s->required, s->required_count) &&
           check_dependents(c, s, value, at);
}

/* ---- schemas on the same value ---- */

static bool check_combined(const struct check *c, const struct schema *s, const struct json *value,
                           const struct place *at)
{
    static const struct check silent = {NULL};
    if (s->ref && !check(c, s->ref, value, at))
        return false;
    for (uint32_t i = 0; i < s->all_of.count; i++)
        if (!check(c, s->all_of.at[i], value, at))
            return false;
    uint32_t any = 0, one = 0;
    for (uint32_t i = 0; i < s->any_of.count && !any; i++)
        any += check(&silent, s->any_of.at[i], value, at);
    if (s->any_of.count && !any)
        return violated(c, at, "anyOf", "has none of the forms allowed");
    for (uint32_t i = 0; i < s->one_of.count && one < 2; i++)
        one += check(&silent, s->one_of.at[i], value, at);
    if (s->one_of.count && one != 1)
        return violated(c, at, "oneOf", "must have exactly one of the forms allowed");
    if (s->not &&check(&silent, s->not, value, at))
        return violated(c, at, "not", "has a form that is not allowed");
    if (!s->when)
        return true;
    const struct schema *branch = check(&silent, s->when, value, at) ? s->then : s->otherwise;
    return !branch || check(c, branch, value, at);
}

static bool check_by_type(const struct check *c, const struct schema *s, const struct json *value,
                          const struct place *at)
{
    switch (value->type) {
    case JSON_NUMBER:
        return check_number(c, s, value, at);
    case JSON_STRING:
        return check_string(c, s, value->text, at);
    case JSON_ARRAY:
        return check_array(c, s, value, at);
    case JSON_OBJECT:
        return check_object(c, s, value, at);
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        return true;
    }
    return true;
}

static bool check(const struct check *c, const struct schema *s, const struct json *value,
                  const struct place *at)
{
    return check_any(c, s, value, at) && check_by_type(c, s, value, at) && check_combined(c, s, value, at);
}

bool schema_check(const struct schema *s, const struct json *value, struct schema_violation *ret_violation)
{
    static const struct place whole = {0};
    struct check c = {ret_violation};
    return check(&c, s, value, &whole);
}
