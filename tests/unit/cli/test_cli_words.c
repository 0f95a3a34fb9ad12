/* Suggestions and exit codes. */
#include "case.h"

#include "base/must.h"
#include "cli/exit_code.h"
#include "cli/suggest.h"

#include "base/banned.h"

static const char *const verbs[] = {"submit", "get", "list", "cancel", "retry", "report", "watch", "explain"};

static const char *near(const char *word)
{
    return suggest_nearest(str_of(word), verbs, LENGTH_OF(verbs));
}

TEST(test_the_nearest_word_is_suggested)
{
    assert_string_equal(near("lsit"), "list");
    assert_string_equal(near("cancle"), "cancel");
    assert_string_equal(near("sumbit"), "submit");
    assert_string_equal(near("retri"), "retry");
    assert_string_equal(near("reprot"), "report");
    assert_string_equal(near("expl"), "explain");
}

TEST(test_nothing_is_suggested_for_a_word_far_from_all)
{
    char longer[SUGGEST_WORD_MAX + 2] = "";
    assert_null(near("zzzzzz"));
    assert_null(near(""));
    assert_null(near("q"));
    memset(longer, 'l', sizeof longer - 1);
    assert_null(near(longer));
}

TEST(test_a_status_becomes_the_exit_code_that_scripts_rely_on)
{
    static const struct {
        long status;
        int code;
    } rows[] = {{200, 0}, {201, 0}, {202, 0}, {400, 1}, {401, 4}, {403, 4}, {404, 3}, {408, 6},
                {409, 5}, {429, 1}, {500, 1}, {503, 1}, {504, 6}, {302, 1}, {0, 1}};
    for (size_t i = 0; i < LENGTH_OF(rows); i++)
        assert_int_equal(exit_code_of_status(rows[i].status), rows[i].code);
}

TEST(test_a_bad_setting_is_a_usage_fault_and_a_slow_server_a_timeout)
{
    assert_int_equal(exit_code_of_err(ERR_CONFIG_INVALID), 2);
    assert_int_equal(exit_code_of_err(ERR_DEPENDENCY_TIMEOUT), 6);
    assert_int_equal(exit_code_of_err(ERR_STORAGE_UNAVAILABLE), 1);
    assert_int_equal(exit_code_of_err(ERR_JOB_NOT_FOUND), 3);
}
