#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

TEST(equality_looks_at_length_and_bytes)
{
    assert_true(str_equal(STR("abc"), STR("abc")));
    assert_false(str_equal(STR("abc"), STR("ab")));
    assert_false(str_equal(STR("abc"), STR("abd")));
    assert_true(str_equal(STR(""), STR_ABSENT));
    assert_false(str_equal((struct str){"a\0b", 3}, (struct str){"a\0c", 3}));
    assert_true(str_is(STR("x"), "x"));
    assert_true(str_equal_nocase(STR("Content-TYPE"), STR("content-type")));
    assert_false(str_equal_nocase(STR("a"), STR("b")));
    assert_false(str_equal_nocase(STR("["), STR("{"))); /* differ by the same bit as letters do */
    assert_true(str_starts(STR("prefix-x"), "prefix-"));
    assert_true(str_starts(STR("x"), ""));
    assert_false(str_starts(STR("pre"), "prefix"));
}

TEST(trim_takes_spaces_and_tabs_from_both_ends)
{
    assert_true(str_is(str_trim(STR(" \t a b \t ")), "a b"));
    assert_true(str_is(str_trim(STR(" \t ")), ""));
    assert_true(str_is(str_trim(STR("")), ""));
    assert_true(str_is(str_trim(STR("\na")), "\na"));
}

TEST(cut_splits_at_the_first_mark)
{
    struct str rest = STR("a,b,,c");
    assert_true(str_is(str_cut(&rest, ','), "a"));
    assert_true(str_is(str_cut(&rest, ','), "b"));
    assert_true(str_is(str_cut(&rest, ','), ""));
    assert_true(str_is(rest, "c"));
    assert_true(str_is(str_cut(&rest, ','), "c"));
    assert_int_equal(rest.len, 0);
    assert_true(str_is(str_cut(&rest, ','), ""));
}

TEST(integers_are_whole_decimal_and_in_range)
{
    static const struct {
        const char *text;
        int64_t min, max;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", 0, 10, true, 0},
        {"10", 0, 10, true, 10},
        {"11", 0, 10, false, 0},
        {"-1", 0, 10, false, 0},
        {"-1", -1, 10, true, -1},
        {"007", 0, 10, true, 7},
        {"", 0, 10, false, 0},
        {"-", INT64_MIN, INT64_MAX, false, 0},
        {"+1", 0, 10, false, 0},
        {" 1", 0, 10, false, 0},
        {"1 ", 0, 10, false, 0},
        {"1x", 0, 10, false, 0},
        {"0x1", 0, 10, false, 0},
        {"1.0", 0, 10, false, 0},
        {"9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN},
        {"9223372036854775808", INT64_MIN, INT64_MAX, false, 0},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, false, 0},
        {"99999999999999999999", INT64_MIN, INT64_MAX, false, 0},
        {"000000000000000000000001", INT64_MIN, INT64_MAX, false, 0}, /* longer than any number is */
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        int64_t value = 77;
        if (str_to_int(str_of(cases[i].text), cases[i].min, cases[i].max, &value) != cases[i].ok)
            fail_msg("\"%s\"", cases[i].text);
        assert_true(value == (cases[i].ok ? cases[i].value : 77));
    }
}

TEST(utf8_is_strict)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        {"", true},
        {"plain", true},
        {"\xC2\x80", true},
        {"\xDF\xBF", true},
        {"\xE0\xA0\x80", true},
        {"\xED\x9F\xBF", true},
        {"\xEE\x80\x80", true},
        {"\xEF\xBF\xBF", true},
        {"\xF0\x90\x80\x80", true},
        {"\xF4\x8F\xBF\xBF", true},
        {"\x80", false},
        {"\xC0\x80", false},
        {"\xC1\xBF", false},
        {"\xC2", false},
        {"\xC2 ", false},
        {"\xE0\x9F\xBF", false},
        {"\xE2\x82", false},
        {"\xED\xA0\x80", false},
        {"\xED\xBF\xBF", false},
        {"\xF0\x8F\xBF\xBF", false},
        {"\xF4\x90\x80\x80", false},
        {"\xF5\x80\x80\x80", false},
        {"\xFF", false},
        {"ok\xF0\x9F\x98", false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        if (str_is_utf8(str_of(cases[i].text)) != cases[i].ok)
            fail_msg("case %zu", i);
    assert_true(str_is_utf8((struct str){"a\0b", 3}));
    assert_int_equal(str_utf8_sequence(STR("\xE2\x82\xAC.")), 3);
    assert_int_equal(str_utf8_sequence(STR("a")), 1);
    assert_int_equal(str_utf8_sequence(STR("")), 0);
}

/* All code points, and nothing but code points: counted over every sequence of up to three bytes.
 */
/* Each byte at each place, before, in and behind the first eight. */
TEST(plain_bytes_of_json_end_before_the_first_special_one)
{
    for (int c = 0; c < 256; c++) {
        bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
        for (size_t at = 0; at < 20; at++) {
            char text[20];
            memset(text, '~', sizeof text);
            text[at] = (char)c;
            assert_int_equal(str_json_plain((struct str){text, sizeof text}), plain ? sizeof text : at);
            assert_int_equal(str_json_plain((struct str){text, at}), at);
        }
    }
    assert_int_equal(str_json_plain(STR("1234567\"\x01\x80\\")), 7);
    assert_int_equal(str_json_plain((struct str){"!\x1f\"\\!\x80  ", 8}), 1);
    assert_int_equal(str_json_plain(STR_ABSENT), 0);
}

TEST(utf8_accepts_exactly_the_code_points_of_up_to_three_bytes)
{
    unsigned one = 0, two = 0, three = 0;
    for (unsigned a = 0; a < 256; a++) {
        one += str_utf8_sequence((struct str){(char[]){(char)a}, 1}) == 1;
        for (unsigned b = 0; b < 256; b++) {
            two += str_utf8_sequence((struct str){(char[]){(char)a, (char)b}, 2}) == 2;
            for (unsigned c = 0; c < 256; c++)
                three += str_utf8_sequence((struct str){(char[]){(char)a, (char)b, (char)c}, 3}) == 3;
        }
    }
    assert_int_equal(one, 0x80);
    assert_int_equal(two, 0x800 - 0x80);
    assert_int_equal(three, 0x10000 - 0x800 - 0x800); /* less the surrogates */
}

TEST(buffers_grow_and_stay_terminated)
{
    struct strbuf b = {0};
    for (int i = 0; i < 1000; i++) {
        strbuf_addf(&b, "%d,", i);
        assert_int_equal(strlen(b.ptr), b.len);
    }
    assert_true(str_starts(strbuf_str(&b), "0,1,2,3,"));
    size_t cap = b.cap;
    strbuf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.cap, cap);
    strbuf_add(&b, NULL, 0);
    assert_string_equal(b.ptr, "");
    strbuf_add_text(&b, "x");
    strbuf_add_char(&b, 'y');
    strbuf_add_str(&b, STR("z"));
    strbuf_add(&b, "a\0b", 3);
    assert_int_equal(b.len, 6);
    assert_memory_equal(b.ptr, "xyza\0b", 7);
    strbuf_free(&b);
    assert_null(b.ptr);
    strbuf_free(&b);
}

TEST(integers_are_written_in_full)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {{0, "0"},
                 {7, "7"},
                 {-7, "-7"},
                 {INT64_MAX, "9223372036854775807"},
                 {INT64_MIN, "-9223372036854775808"}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct strbuf b = {0};
        strbuf_add_int(&b, cases[i].value);
        assert_string_equal(b.ptr, cases[i].text);
        strbuf_free(&b);
    }
}
