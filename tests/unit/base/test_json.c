#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "case.h"

#include "base/json.h"
#include "base/must.h"

#include "base/banned.h"

static struct arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = arena_new(1024);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena = arena_free(arena);
    return 0;
}

static const struct json *parse(const char *text)
{
    const struct json *root = NULL;
    struct err err;
    if (json_parse(arena, str_of(text), &root, &err) != ERR_OK)
        fail_msg("%s: %s", text, err.detail);
    return root;
}

static void refused(struct str text, const char *detail)
{
    const struct json *root = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(arena, text, &root, &err), ERR_REQUEST_MALFORMED);
    assert_null(root);
    if (detail)
        assert_string_equal(err.detail, detail);
}

#define JSON_TEST(name) TEST_BETWEEN(name, open_arena, close_arena)

JSON_TEST(values_know_type_count_key_text_and_source)
{
    const struct json *root = parse(" {\"a\": [1, -2.50e3 , \"x\\ty\"],\n\"b\" :{ \"c\":null } } ");
    assert_int_equal(root->type, JSON_OBJECT);
    assert_int_equal(root->count, 2);
    assert_true(str_is(root->source, "{\"a\": [1, -2.50e3 , \"x\\ty\"],\n\"b\" :{ \"c\":null } }"));
    assert_null(root->key.ptr);
    const struct json *list = json_get(root, "a");
    assert_int_equal(list->type, JSON_ARRAY);
    assert_int_equal(list->count, 3);
    assert_true(str_is(list->source, "[1, -2.50e3 , \"x\\ty\"]"));
    assert_true(str_is(list->child->next->text, "-2.50e3"));
    assert_true(str_is(list->child->next->source, "-2.50e3"));
    assert_true(str_is(list->child->next->next->text, "x\ty"));
    assert_true(str_is(list->child->next->next->source, "\"x\\ty\""));
    assert_null(list->child->next->next->next);
    const struct json *c = json_get(json_get(root, "b"), "c");
    assert_int_equal(c->type, JSON_NULL);
    assert_true(str_is(c->key, "c"));
    assert_true(str_is(c->source, "null"));
}

JSON_TEST(get_finds_members_only)
{
    assert_null(json_get(parse("{\"a\":1}"), "b"));
    assert_null(json_get(parse("[1]"), "0"));
    assert_null(json_get(NULL, "a"));
    assert_null(json_get(parse("{\"a\\u0000\":1}"), "a"));
    assert_non_null(json_get(parse("{\"\":1}"), ""));
}

JSON_TEST(plain_strings_are_borrowed_from_the_input)
{
    const char *text = "[\"plain\",\"esc\\u0061ped\"]";
    const struct json *root = parse(text);
    assert_ptr_equal(root->child->text.ptr, text + 2);
    assert_true(str_is(root->child->next->text, "escaped"));
    assert_true(root->child->next->text.ptr < text || root->child->next->text.ptr > text + strlen(text));
}

JSON_TEST(escapes_become_utf8)
{
    const struct json *root =
        parse("[\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"a\\u0000b\"]");
    assert_true(str_is(root->child->text, "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"\\/\b\f\n\r\t"));
    assert_int_equal(root->child->next->text.len, 3);
    assert_memory_equal(root->child->next->text.ptr, "a\0b", 3);
}

JSON_TEST(errors_tell_line_column_and_what_was_expected)
{
    refused(STR(""), "line 1, column 1: expected a value, found the end of the input");
    refused(STR("{\"a\":}"), "line 1, column 6: expected a value, found '}'");
    refused(STR("{\n  \"a\": 1,\n  b: 2\n}"), "line 3, column 3: expected a key in double quotes, found 'b'");
    refused(STR("{\"a\" 1}"), "line 1, column 6: expected ':' after a key, found '1'");
    refused(STR("{\"a\":1 \"b\"}"), "line 1, column 8: expected ',' or '}', found '\"'");
    refused(STR("[1\n,2\n3]"), "line 3, column 1: expected ',' or ']', found '3'");
    refused(STR("[1] x"), "line 1, column 5: expected the end of the input, found 'x'");
    refused(STR("[\"abc"),
            "line 1, column 6: expected the closing '\"' of a string, found the end of the input");
    refused(STR("[tru]"), "line 1, column 2: expected a value; the only words are true, false and null");
    refused(STR("[\"\xC3\xA4\xE2\x82\xAC\x01\"]"),
            "line 1, column 5: control characters in a string must be escaped");
    refused(STR("[\"a\\q\"]"), "line 1, column 4: unknown escape in a string");
    refused(STR("[\"\\ud800\"]"), "line 1, column 3: surrogate without its other half");
    refused(STR("[\"\\u12x4\"]"), "line 1, column 3: \\u needs four hexadecimal digits");
    refused(STR("[\"a\xFF\"]"), "line 1, column 4: not UTF-8");
    refused(STR("[01]"), "line 1, column 2: a number may not start with a zero");
    refused(STR("[1.]"), "line 1, column 4: expected a digit, found ']'");
    refused(STR("[-]"), "line 1, column 3: expected a digit, found ']'");
    refused(STR("[\0]"), "line 1, column 2: expected a value, found byte 0x00");
    refused(STR("{\"k\":1,\n \"k\":2}"), "line 2, column 2: duplicate key \"k\"");
    refused((struct str){NULL, 0}, "line 1, column 1: expected a value, found the end of the input");
}

JSON_TEST(long_duplicate_keys_are_cut_between_characters)
{
    struct strbuf text = {0};
    for (int copy = 0; copy < 2; copy++) {
        strbuf_add_text(&text, copy ? ",\"x" : "{\"x");
        for (int i = 0; i < 100; i++)
            strbuf_add_text(&text, "\xE2\x82\xAC");
        strbuf_add_text(&text, "\":1");
    }
    strbuf_add_text(&text, "}");
    const struct json *root;
    struct err err;
    assert_int_equal(json_parse(arena, strbuf_str(&text), &root, &err), ERR_REQUEST_MALFORMED);
    assert_true(str_is_utf8(str_of(err.detail)));
    strbuf_free(&text);
}

/* Each prefix of a document that needs its last byte is refused, and read no further than it goes.
 */
JSON_TEST(truncation_at_each_byte_is_refused)
{
    static const char *const documents[] = {
        "{\"a\":[1,-2.5e+10,true,false,null,\"x\\u00e4\\ud83d\\ude00\xF0\x9F\x98\x80\\n\"],\"b\":{"
        "\"c\":{}}}",
        "[[[{\"k\":\"v\"}]], \"\xE2\x82\xAC\" ]",
        "\"\\ud83d\\ude00\"",
        "true",
    };
    for (size_t d = 0; d < LENGTH_OF(documents); d++) {
        parse(documents[d]);
        size_t whole = strlen(documents[d]);
        for (size_t len = 0; len < whole; len++) {
            char *bytes = malloc(len ? len : 1);
            memcpy(bytes, documents[d], len);
            refused((struct str){bytes, len}, NULL);
            free(bytes);
        }
    }
}

JSON_TEST(depth_is_64_and_a_hundred_thousand_is_refused_quickly)
{
    static const int depths[] = {1, 2, 63, 64, 65, 66, 100, 1000, 10000, 100000};
    for (size_t i = 0; i < LENGTH_OF(depths); i++) {
        for (int object = 0; object < 2; object++) {
            struct strbuf text = {0};
            for (int d = 0; d < depths[i]; d++)
                strbuf_add_text(&text, object ? "{\"a\":" : "[");
            strbuf_add_text(&text, object ? "1" : "");
            for (int d = 0; d < depths[i]; d++)
                strbuf_add_char(&text, object ? '}' : ']');
            const struct json *root;
            struct err err;
            enum err_code code = json_parse(arena, strbuf_str(&text), &root, &err);
            assert_int_equal(code, depths[i] <= JSON_DEPTH_MAX ? ERR_OK : ERR_REQUEST_MALFORMED);
            if (code != ERR_OK)
                assert_non_null(strstr(err.detail, "nested too deep"));
            strbuf_free(&text);
        }
    }
}

JSON_TEST(a_string_of_ten_megabytes_is_read)
{
    struct strbuf text = {0};
    strbuf_reserve(&text, 10u << 20);
    strbuf_add_char(&text, '"');
    for (int i = 0; i < 10 << 20; i += 16)
        strbuf_add(&text, "0123456789abc\\n.", 16);
    strbuf_add_char(&text, '"');
    const struct json *root;
    struct err err;
    assert_int_equal(json_parse(arena, strbuf_str(&text), &root, &err), ERR_OK);
    assert_int_equal(root->text.len, (10 << 20) / 16 * 15);
    strbuf_free(&text);
}

static void members_of(struct strbuf *text, int count, int duplicate_of)
{
    strbuf_add_char(text, '{');
    for (int i = 0; i < count; i++)
        strbuf_addf(text, "%s\"key-%d\":%d", i ? "," : "",
                    i == count - 1 && duplicate_of >= 0 ? duplicate_of : i, i);
    strbuf_add_char(text, '}');
}

/* Quadratic would be 5 * 10^9 comparisons; the bound is loose for slow machines and sanitizers. */
JSON_TEST(duplicates_among_a_hundred_thousand_members_are_found_in_linear_time)
{
    struct timespec start, end;
    struct strbuf unique = {0}, twice = {0};
    members_of(&unique, 100000, -1);
    members_of(&twice, 100000, 50000);
    const struct json *root;
    struct err err;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    assert_int_equal(json_parse(arena, strbuf_str(&unique), &root, &err), ERR_OK);
    assert_int_equal(root->count, 100000);
    assert_int_equal(json_parse(arena, strbuf_str(&twice), &root, &err), ERR_REQUEST_MALFORMED);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_non_null(strstr(err.detail, "duplicate key \"key-50000\""));
    assert_true(end.tv_sec - start.tv_sec < 5);
    strbuf_free(&unique);
    strbuf_free(&twice);
}

JSON_TEST(a_duplicate_is_found_at_every_size)
{
    for (int count = 2; count < 140; count++)
        for (int of = 0; of < count - 1; of += 1 + count / 8) {
            struct strbuf text = {0};
            members_of(&text, count, of);
            refused(strbuf_str(&text), NULL);
            strbuf_clear(&text);
            members_of(&text, count, -1);
            assert_int_equal(parse(text.ptr)->count, count);
            strbuf_free(&text);
            arena_reset(arena);
        }
}
