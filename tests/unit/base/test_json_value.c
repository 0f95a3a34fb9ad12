#include <stdlib.h>

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

#define JSON_TEST(name) TEST_BETWEEN(name, open_arena, close_arena)

JSON_TEST(integers_are_told_by_value)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-0.0e5", true, 0},
        {"42", true, 42},
        {"1.0", true, 1},
        {"1e2", true, 100},
        {"-1.20e1", true, -12},
        {"12.50E+1", true, 125},
        {"1000e-3", true, 1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775807.000", true, INT64_MAX},
        {"922337203685477580.7e1", true, INT64_MAX},
        {"-9.223372036854775808e18", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"1e19", false, 0},
        {"1e18", true, 1000000000000000000},
        {"1.5", false, 0},
        {"1e-1", false, 0},
        {"1e999999999999999999999", false, 0},
        {"1e-999999999999999999999", false, 0},
        {"0e999999999999999999999", true, 0},
        {"0.000000000000000000000000000001e30", true, 1},
        {"100000000000000000000000000000e-29", true, 1},
        {"9007199254740993", true, 9007199254740993},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        int64_t value = -77;
        if (json_to_int(parse(cases[i].text), &value) != cases[i].fits)
            fail_msg("%s", cases[i].text);
        if (cases[i].fits)
            assert_true(value == cases[i].value);
    }
    int64_t value;
    assert_false(json_to_int(parse("\"1\""), &value));
    assert_false(json_to_int(NULL, &value));
}

JSON_TEST(integral_numbers_of_any_size_are_integers)
{
    assert_true(json_is_integer(parse("123456789012345678901234567890")));
    assert_true(json_is_integer(parse("1e400")));
    assert_true(json_is_integer(parse("1.50e1")));
    assert_false(json_is_integer(parse("1.50e0")));
    assert_false(json_is_integer(parse("1e-400")));
    assert_false(json_is_integer(parse("true")));
}

JSON_TEST(doubles_are_nearest_or_refused)
{
    double value = 0;
    assert_true(json_to_double(parse("0.1"), &value) && value == 0.1);
    assert_true(json_to_double(parse("-1.7976931348623157e308"), &value));
    assert_true(json_to_double(parse("1e-999"), &value) && value == 0.0);
    assert_false(json_to_double(parse("1e999"), &value));
    assert_false(json_to_double(parse("\"1\""), &value));
    struct strbuf text = {0}; /* longer than any buffer on the stack */
    strbuf_add_text(&text, "0.");
    for (int i = 0; i < 500; i++)
        strbuf_add_char(&text, '3');
    assert_true(json_to_double(parse(text.ptr), &value) && value == 1.0 / 3.0);
    strbuf_free(&text);
}

JSON_TEST(numbers_compare_exactly)
{
    static const char *const rising[] = {
        "-1e400",
        "-9007199254740993",
        "-9007199254740992",
        "-1.5",
        "-1",
        "-1e-400",
        "0",
        "1e-400",
        "0.1",
        "0.10000000000000000001",
        "1",
        "1.5",
        "10",
        "9007199254740992",
        "9007199254740993",
        "1e400",
    };
    for (size_t i = 0; i < LENGTH_OF(rising); i++)
        for (size_t j = 0; j < LENGTH_OF(rising); j++) {
            int order = json_number_compare(parse(rising[i]), parse(rising[j]));
            if ((i < j && order >= 0) || (i > j && order <= 0) || (i == j && order != 0))
                fail_msg("%s and %s: %d", rising[i], rising[j], order);
        }
    assert_int_equal(json_number_compare(parse("1.0"), parse("10e-1")), 0);
    assert_int_equal(json_number_compare(parse("-0"), parse("0.00")), 0);
}

JSON_TEST(multiples_are_exact)
{
    static const struct {
        const char *number, *divisor;
        bool multiple;
    } cases[] = {
        {"0.3", "0.1", true},   {"0.35", "0.1", false}, {"1e300", "0.001", true},
        {"7", "2", false},      {"-8", "2", true},      {"0", "5", true},
        {"1e20", "64", true},   {"1e1", "64", false},   {"1e100", "3", false},
        {"4500", "1500", true}, {"500", "1500", false}, {"123456789012345678901234567890", "10", true},
        {"1e-5", "1", false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        if (json_is_multiple(parse(cases[i].number), parse(cases[i].divisor)) != cases[i].multiple)
            fail_msg("%s by %s", cases[i].number, cases[i].divisor);
    assert_true(json_is_multiple(parse("1e59"), parse("576460752303423488"))); /* 2^59 divides 10^59 */
    assert_false(json_is_multiple(parse("1e58"), parse("576460752303423488")));
    assert_true(json_is_multiple(parse("1e999999"), parse("576460752303423488")));
}

JSON_TEST(equality_is_by_value)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", true},
        {"100", "1e2", true},
        {"-0", "0", true},
        {"0.1", "1e-1", true},
        {"1", "\"1\"", false},
        {"1", "true", false},
        {"0", "false", false},
        {"null", "false", false},
        {"9007199254740993", "9007199254740992", false},
        {"\"a\"", "\"\\u0061\"", true},
        {"\"\\u00e9\"", "\"e\\u0301\"", false},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"[]", "{}", false},
        {"{\"a\":1,\"b\":[{\"c\":2}]}", "{\"b\":[{\"c\":2.0}],\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":2}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\\u0000\":1}", "{\"a\":1}", false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        if (json_equal(parse(cases[i].a), parse(cases[i].b)) != cases[i].equal ||
            json_equal(parse(cases[i].b), parse(cases[i].a)) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
}

JSON_TEST(large_objects_are_equal_in_any_order)
{
    struct strbuf up = {0}, down = {0};
    for (int i = 0; i < 20000; i++) {
        strbuf_addf(&up, "%s\"%d\":%d", i ? "," : "{", i, i);
        strbuf_addf(&down, "%s\"%d\":%d", i ? "," : "{", 19999 - i, 19999 - i);
    }
    strbuf_add_char(&up, '}');
    strbuf_add_char(&down, '}');
    assert_true(json_equal(parse(up.ptr), parse(down.ptr)));
    strbuf_free(&up);
    strbuf_free(&down);
}

static void canonical(const char *text, const char *skip_key, const char *wanted)
{
    struct strbuf out = {0};
    json_canonical(parse(text), skip_key, &out);
    assert_string_equal(out.ptr, wanted);
    strbuf_free(&out);
}

JSON_TEST(canonical_text_is_one_for_equal_values)
{
    canonical(" { \"b\" : [ 1.0 , 1e2 ] , \"a\" : null } ", NULL, "{\"a\":null,\"b\":[1,100]}");
    canonical("[-0,0.0,0e9]", NULL, "[0,0,0]");
    canonical("[0.10,1e-1,10e-2]", NULL, "[0.1,0.1,0.1]");
    canonical("[12.50,-0.05,123.456e1]", NULL, "[12.5,-0.05,1234.56]");
    canonical("[123456789012345678901234567890]", NULL, "[123456789012345678901234567890]");
    canonical("[1e39,1e40,1.5e999]", NULL, "[1000000000000000000000000000000000000000,1e40,15e998]");
    canonical("[1e-40,1e-41]", NULL, "[0.0000000000000000000000000000000000000001,1e-41]");
    canonical("[\"\\u0061\\/\\u001f\\u00e4\\\"\"]", NULL, "[\"a/\\u001f\xC3\xA4\\\"\"]");
    canonical("{\"aa\":1,\"a\":2,\"\":3,\"B\":4}", NULL, "{\"\":3,\"B\":4,\"a\":2,\"aa\":1}");
    canonical("{\"k\":1,\"z\":{\"k\":2},\"a\":3}", "k", "{\"a\":3,\"z\":{\"k\":2}}");
    canonical("[true,false,\"\",[],{}]", "k", "[true,false,\"\",[],{}]");
}

JSON_TEST(canonical_text_of_a_huge_exponent_stays_short)
{
    struct strbuf out = {0};
    json_canonical(parse("[1e999999999999,1e-999999999999999999999]"), NULL, &out);
    assert_string_equal(out.ptr, "[1e999999999999,1e-1000000000000000]");
    strbuf_clear(&out); /* digits before and behind the point move the exponent further */
    json_canonical(parse("[0.001e-1000000000000000,1000e1000000000000000]"), NULL, &out);
    assert_string_equal(out.ptr, "[1e-1000000000000000,1e1000000000000000]");
    assert_true(json_equal(parse(out.ptr), parse("[0.001e-1000000000000000,1000e1000000000000000]")));
    strbuf_free(&out);
}

JSON_TEST(members_are_sorted_at_every_size)
{
    for (int count = 1; count < 50; count++) {
        struct strbuf text = {0}, wanted = {0}, out = {0};
        for (int i = 0; i < count; i++) {
            strbuf_addf(&text, "%s\"%02d\":0", i ? "," : "{", (i * 37) % 53);
        }
        strbuf_add_char(&text, '}');
        for (int key = 0; key < 53; key++)
            for (int i = 0; i < count; i++)
                if ((i * 37) % 53 == key)
                    strbuf_addf(&wanted, "%s\"%02d\":0", wanted.len ? "," : "{", key);
        strbuf_add_char(&wanted, '}');
        json_canonical(parse(text.ptr), NULL, &out);
        assert_string_equal(out.ptr, wanted.ptr);
        strbuf_free(&text);
        strbuf_free(&wanted);
        strbuf_free(&out);
    }
}
