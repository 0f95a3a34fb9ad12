#include <math.h>
#include <stdlib.h>

#include "case.h"

#include "base/json.h"
#include "base/must.h"

#include "base/banned.h"

TEST(commas_and_quotes_are_the_writers_business)
{
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    jw_object(&w);
    jw_key(&w, "empty");
    jw_array(&w);
    jw_array_end(&w);
    jw_key(&w, "list");
    jw_array(&w);
    jw_int(&w, INT64_MIN);
    jw_object(&w);
    jw_object_end(&w);
    jw_array(&w);
    jw_null(&w);
    jw_array_end(&w);
    jw_bool(&w, true);
    jw_raw(&w, STR("{\"raw\":1}"));
    jw_array_end(&w);
    jw_key_str(&w, STR("a\"b"));
    jw_bool(&w, false);
    jw_key(&w, "absent");
    jw_str(&w, STR_ABSENT);
    jw_key(&w, "none");
    jw_text(&w, NULL);
    jw_key(&w, "text");
    jw_text(&w, "");
    jw_object_end(&w);
    assert_string_equal(out.ptr, "{\"empty\":[],\"list\":[-9223372036854775808,{},[null],true,{\"raw\":1}],"
                                 "\"a\\\"b\":false,\"absent\":null,\"none\":null,\"text\":\"\"}");
    strbuf_free(&out);
}

/* Streams and lists of records count on it. */
TEST(json_of_several_lines_comes_out_on_one)
{
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    jw_array(&w);
    jw_raw(&w, STR("{\r\n\t\"a\": [\n1\r],\n\"b\\n\": \"\\r\"}\n"));
    jw_raw(&w, STR("\n"));
    jw_raw(&w, STR("2"));
    jw_array_end(&w);
    assert_string_equal(out.ptr, "[{  \t\"a\": [ 1 ], \"b\\n\": \"\\r\"} , ,2]");
    strbuf_free(&out);
}

static void written_text(struct str in, const char *wanted)
{
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    jw_str(&w, in);
    assert_string_equal(out.ptr, wanted);
    strbuf_free(&out);
}

TEST(strings_are_escaped_where_json_asks)
{
    written_text(STR("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    written_text(STR("\b\t\n\f\r\x01\x1f\x7f"), "\"\\b\\t\\n\\f\\r\\u0001\\u001f\x7f\"");
    written_text((struct str){"a\0b", 3}, "\"a\\u0000b\"");
    written_text(STR("\xC3\xA4\xF0\x9F\x98\x80"), "\"\xC3\xA4\xF0\x9F\x98\x80\"");
}

/* Details of errors may carry what came in; the answer must still be JSON. */
TEST(bytes_that_are_not_utf8_are_replaced)
{
    written_text(STR("a\xFF z\xC3"), "\"a\xEF\xBF\xBD z\xEF\xBF\xBD\"");
    written_text(STR("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

ARENA_TEST(every_byte_survives_writing_and_reading, a)
{
    for (unsigned c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 257) {
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        char text[8];
        struct strbuf escaped = {0}, out = {0};
        const struct json *first, *second;
        struct err err;
        if (c < 0x10000)
            strbuf_addf(&escaped, "\"\\u%04x\"", c);
        else
            strbuf_addf(&escaped, "\"\\u%04x\\u%04x\"", 0xD800 + ((c - 0x10000) >> 10),
                        0xDC00 + ((c - 0x10000) & 0x3FF));
        assert_int_equal(json_parse(a, strbuf_str(&escaped), &first, &err), ERR_OK);
        assert_true(first->text.len <= sizeof text && str_is_utf8(first->text));
        struct json_writer w;
        jw_start(&w, &out);
        jw_str(&w, first->text);
        assert_int_equal(json_parse(a, strbuf_str(&out), &second, &err), ERR_OK);
        assert_true(str_equal(first->text, second->text));
        strbuf_free(&escaped);
        strbuf_free(&out);
        arena_reset(a);
    }
}

static void written_double(double value, const char *wanted)
{
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    jw_double(&w, value);
    assert_string_equal(out.ptr, wanted);
    strbuf_free(&out);
}

TEST(doubles_are_short_and_read_back_the_same)
{
    written_double(0.1, "0.1");
    written_double(1.0, "1");
    written_double(-2.5, "-2.5");
    written_double(1.0 / 3.0, "0.3333333333333333");
    written_double(5e-324, "4.94065645841247e-324");
    written_double(1.7976931348623157e308, "1.7976931348623157e+308");
    written_double((double)NAN, "null");
    written_double((double)INFINITY, "null");
    static const double values[] = {0.1, 2.0 / 3.0, 1e22, 123456.789e-30, 9007199254740993.0};
    for (size_t i = 0; i < LENGTH_OF(values); i++) {
        struct strbuf out = {0};
        struct json_writer w;
        jw_start(&w, &out);
        jw_double(&w, values[i]);
        assert_true(strtod(out.ptr, NULL) == values[i]);
        strbuf_free(&out);
    }
}
