/* The arguments of main(), sorted into flags and words. */
#include "case.h"

#include "base/must.h"
#include "cli/flags.h"

#include "base/banned.h"

#define ARGS(...)          ((char *[]){(char[]){"weir"}, __VA_ARGS__})
#define PARSE(f, err, ...) flags_parse((int)LENGTH_OF(ARGS(__VA_ARGS__)), ARGS(__VA_ARGS__), (f), (err))
#define T(text)            ((char[]){text})

static void refused_with(enum err_code code, const struct err *err, const char *part)
{
    assert_int_equal(code, ERR_CONFIG_INVALID);
    if (!strstr(err->detail, part))
        fail_msg("\"%s\" does not say \"%s\"", err->detail, part);
    assert_null(strchr(err->detail, '\n'));
}

TEST(test_flags_and_words_may_be_mixed_in_any_order)
{
    struct flags f;
    struct err err;
    assert_int_equal(PARSE(&f, &err, T("--url"), T("http://a"), T("job"), T("--limit=5"), T("list"), T("-o"),
                           T("json"), T("x")),
                     ERR_OK);
    assert_int_equal(f.word_count, 3);
    assert_string_equal(f.words[0], "job");
    assert_string_equal(f.words[1], "list");
    assert_string_equal(f.words[2], "x");
    assert_string_equal(f.value[FLAG_URL], "http://a");
    assert_string_equal(f.value[FLAG_LIMIT], "5");
    assert_string_equal(f.value[FLAG_OUTPUT], "json");
    assert_null(f.value[FLAG_KEY]);
    assert_true(flags_given(&f) == (FLAG_BIT(URL) | FLAG_BIT(LIMIT) | FLAG_BIT(OUTPUT)));
}

TEST(test_short_forms_take_their_value_attached_or_behind)
{
    struct flags f;
    struct err err;
    assert_int_equal(PARSE(&f, &err, T("-ojson"), T("-q")), ERR_OK);
    assert_string_equal(f.value[FLAG_OUTPUT], "json");
    assert_true(flags_has(&f, FLAG_QUIET));
    assert_int_equal(PARSE(&f, &err, T("-o=table")), ERR_OK);
    assert_string_equal(f.value[FLAG_OUTPUT], "table");
}

TEST(test_a_value_may_be_a_dash_or_empty_but_not_another_flag)
{
    struct flags f;
    struct err err;
    assert_int_equal(PARSE(&f, &err, T("--payload"), T("-")), ERR_OK);
    assert_string_equal(f.value[FLAG_PAYLOAD], "-");
    assert_int_equal(PARSE(&f, &err, T("--key=")), ERR_OK);
    assert_string_equal(f.value[FLAG_KEY], "");
    refused_with(PARSE(&f, &err, T("--key"), T("--url"), T("x")), &err, "--key needs a value");
    refused_with(PARSE(&f, &err, T("job"), T("--state")), &err, "--state needs a value: --state STATE");
}

TEST(test_two_dashes_end_the_flags)
{
    struct flags f;
    struct err err;
    assert_int_equal(PARSE(&f, &err, T("backup"), T("--"), T("--odd-name"), T("-x")), ERR_OK);
    assert_int_equal(f.word_count, 3);
    assert_string_equal(f.words[1], "--odd-name");
    assert_string_equal(f.words[2], "-x");
}

TEST(test_an_unknown_flag_names_the_nearest_one)
{
    struct flags f;
    struct err err;
    refused_with(PARSE(&f, &err, T("--lmit"), T("3")), &err, "unknown flag --lmit; did you mean --limit?");
    refused_with(PARSE(&f, &err, T("--operater-token=secret")), &err, "did you mean --operator-token?");
    assert_null(strstr(err.detail, "secret"));
    refused_with(PARSE(&f, &err, T("--zzzzzzzzzz")), &err, "unknown flag --zzzzzzzzzz");
    assert_null(strstr(err.detail, "mean"));
    refused_with(PARSE(&f, &err, T("-x")), &err, "unknown flag -x");
}

TEST(test_a_switch_refuses_a_value_and_output_an_unknown_form)
{
    struct flags f;
    struct err err;
    refused_with(PARSE(&f, &err, T("--all=yes")), &err, "--all takes no value");
    refused_with(PARSE(&f, &err, T("-o"), T("xml")), &err, "--output must be table or json");
}

TEST(test_set_may_be_repeated_and_needs_an_equals_sign)
{
    struct flags f;
    struct err err;
    assert_int_equal(PARSE(&f, &err, T("--set"), T("a=1"), T("--set=b=2=3")), ERR_OK);
    assert_int_equal(f.set_count, 2);
    assert_string_equal(f.sets[0], "a=1");
    assert_string_equal(f.sets[1], "b=2=3");
    refused_with(PARSE(&f, &err, T("--set"), T("a")), &err, "--set needs KEY=VALUE");
    refused_with(PARSE(&f, &err, T("--set"), T("=a")), &err, "--set needs KEY=VALUE");
}

TEST(test_more_sets_or_words_than_there_is_room_for_are_refused)
{
    static char set[] = "--set=a=1", word[] = "word";
    char *many[FLAG_SETS_MAX + 2] = {0};
    struct flags f;
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(many); i++)
        many[i] = set;
    assert_int_equal(flags_parse(FLAG_SETS_MAX + 1, many, &f, &err), ERR_OK);
    refused_with(flags_parse(FLAG_SETS_MAX + 2, many, &f, &err), &err, "--set may be given");
    for (size_t i = 0; i < LENGTH_OF(many); i++)
        many[i] = word;
    assert_int_equal(flags_parse(FLAG_WORDS_MAX + 1, many, &f, &err), ERR_OK);
    refused_with(flags_parse(FLAG_WORDS_MAX + 2, many, &f, &err), &err, "too many arguments");
}

TEST(test_an_integer_flag_is_checked_against_its_bounds)
{
    struct flags f;
    struct err err;
    int64_t n = 7;
    assert_int_equal(PARSE(&f, &err, T("--limit"), T("200")), ERR_OK);
    assert_int_equal(flags_int(&f, FLAG_LIMIT, 1, 200, &n, &err), ERR_OK);
    assert_int_equal(n, 200);
    assert_int_equal(PARSE(&f, &err, T("--limit"), T("201")), ERR_OK);
    refused_with(flags_int(&f, FLAG_LIMIT, 1, 200, &n, &err), &err,
                 "--limit must be an integer from 1 to 200");
    n = 7;
    assert_int_equal(flags_int(&f, FLAG_PRIORITY, 0, 9, &n, &err), ERR_OK);
    assert_int_equal(n, 7);
}

TEST(test_durations_have_a_unit_or_mean_seconds)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"30", 30000}, {"1500ms", 1500},  {"90s", 90000},     {"5m", 300000},       {"2h", 7200000},
                {"0", 0},      {"5d", 432000000}, {"2h30m", 9000000}, {"1d1s1ms", 86401001}};
    static const char *const bad[] = {
        "",      "s",    "1.5s", "-1",      "5 s", "5w", "367d", "10000h", "99999999999999999999",
        "30m2h", "2h2h", "2h30", "366d1ms", "2hm"};
    int64_t ms;
    for (size_t i = 0; i < LENGTH_OF(good); i++) {
        assert_true(duration_parse(str_of(good[i].text), &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        if (duration_parse(str_of(bad[i]), &ms))
            fail_msg("\"%s\" was taken for a duration", bad[i]);
}
