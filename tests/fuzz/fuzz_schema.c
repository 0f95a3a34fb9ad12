/* A schema and a value, with a NUL between them (JSON has none). Oracles: telling a violation
 * changes no verdict; {"not": S} is the opposite of S and {"allOf": [S, S]} the same; what is told
 * is UTF-8 and its pointer leads to a value. */
#include "base/must.h"
#include "schema/schema.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Follows the pointer of a violation, unless it may have been cut, or shows something in place of
 * NUL. */
static void check_pointer(const struct json *value, const char *pointer)
{
    if (strlen(pointer) > 100 || strpbrk(pointer, "~\xEF"))
        return;
    struct str rest = str_of(pointer);
    MUST(!rest.len || rest.ptr[0] == '/');
    while (rest.len) {
        rest.ptr++, rest.len--;
        const char *end = memchr(rest.ptr, '/', rest.len);
        struct str name = {rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len};
        int64_t index = -1;
        bool array = value->type == JSON_ARRAY;
        MUST(!array || str_to_int(name, 0, UINT32_MAX, &index));
        const struct json *j = value->child;
        while (j && (array ? index-- > 0 : !str_equal(j->key, name)))
            j = j->next;
        MUST(j);
        value = j;
        rest.ptr += name.len;
        rest.len -= name.len;
    }
}

/* Compiles {keyword: ...copies of root...}; the copies keep root's references. */
static const struct schema *wrapped(struct arena *a, const struct json *root, const char *keyword, bool list)
{
    struct json *outer = ARENA_NEW(a, struct json), *value = ARENA_NEW(a, struct json);
    *value = *root;
    outer->type = JSON_OBJECT;
    outer->count = 1;
    outer->child = value;
    value->next = NULL;
    if (list) {
        struct json *copies = ARENA_ARRAY(a, struct json, 2);
        copies[0] = copies[1] = *root;
        copies[0].next = &copies[1];
        copies[1].next = NULL;
        *value = (struct json){.type = JSON_ARRAY, .count = 2, .child = copies};
    }
    value->key = str_of(keyword);
    const struct schema *s = NULL;
    struct err err;
    return schema_compile(a, root, outer, &s, &err) == ERR_OK ? s : NULL; /* $id, or one too deep */
}

static void check_value(struct arena *a, const struct json *root, const struct schema *s,
                        const struct json *value)
{
    struct schema_violation v = {.keyword = NULL};
    bool valid = schema_check(s, value, &v);
    MUST(schema_check(s, value, NULL) == valid);
    if (!valid) {
        MUST(v.keyword && v.text[0]);
        MUST(str_is_utf8(str_of(v.text)) && str_is_utf8(str_of(v.pointer)));
        check_pointer(value, v.pointer);
    }
    const struct schema *not = wrapped(a, root, "not", false), *both = wrapped(a, root, "allOf", true);
    MUST(!not || schema_check(not, value, NULL) == !valid);
    MUST(!both || schema_check(both, value, NULL) == valid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct str schema_text = str_cut(&rest, 0);
    struct arena *a = arena_new(4096);
    const struct json *root, *value;
    const struct schema *s;
    struct err err = {0};
    if (json_parse(a, schema_text, &root, &err) == ERR_OK) {
        enum err_code code = schema_compile(a, root, root, &s, &err);
        MUST(code == ERR_OK || (code == ERR_CONFIG_INVALID && err.detail[0]));
        if (code == ERR_OK && json_parse(a, rest, &value, &err) == ERR_OK)
            check_value(a, root, s, value);
    }
    arena_free(a);
    return 0;
}
