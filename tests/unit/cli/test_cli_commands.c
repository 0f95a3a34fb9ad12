/* The table of commands: every entry can be found, explained and told from the others. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "cli/cli.h"
#include "cli/command.h"

#include "base/banned.h"

static size_t split(const char *name, char *copy, const char **words)
{
    size_t n = 0;
    snprintf(copy, 64, "%s", name);
    for (char *at = copy; at;) {
        words[n++] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = 0;
    }
    return n;
}

TEST(test_every_command_is_found_by_its_words_and_has_help)
{
    EACH_COMMAND (c) {
        char copy[64], *text = NULL;
        const char *words[FLAG_WORDS_MAX];
        size_t used, len = 0, n = split(c->name, copy, words);
        words[n] = "argument";
        assert_ptr_equal(command_find(words, n + 1, &used), c);
        assert_int_equal(used, n);
        FILE *out = open_memstream(&text, &len);
        assert_true(help_print(out, words, n));
        fclose(out);
        assert_non_null(strstr(text, c->help));
        free(text);
        assert_true(c->args_min <= c->args_max);
    }
}

TEST(test_a_noun_alone_is_no_command_but_lists_its_verbs)
{
    static const char *const job[] = {"job"}, *const nothing[] = {"jobs"};
    char *text = NULL;
    size_t used, len = 0;
    assert_null(command_find(job, 1, &used));
    FILE *out = open_memstream(&text, &len);
    assert_true(help_print(out, job, 1));
    assert_false(help_print(out, nothing, 1));
    fclose(out);
    assert_non_null(strstr(text, "weir job submit"));
    assert_non_null(strstr(text, "weir job explain JOB_ID"));
    assert_null(strstr(text, "weir client"));
    free(text);
}

TEST(test_the_head_of_a_name_is_its_first_words)
{
    assert_true(str_is(command_head("client key create", 1), "client"));
    assert_true(str_is(command_head("client key create", 2), "client key"));
    assert_true(str_is(command_head("client key create", 9), "client key create"));
}

#define RUN(...) cli_main((int)LENGTH_OF(((char *[]){__VA_ARGS__})), (char *[]){__VA_ARGS__})
#define T(text)  ((char[]){text})

/* What they say goes to stderr; here only the exit code counts. */
TEST(test_a_mistake_on_the_command_line_gives_exit_code_2)
{
    assert_int_equal(RUN(T("weir"), T("jbo")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("lsit")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("get")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("get"), T("a"), T("b")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("list"), T("--force")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("list"), T("--limit"), T("0")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("submit"), T("--payload"), T("{")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("submit"), T("--payload"), T("[]")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("submit"), T("--priority"), T("high")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("submit"), T("--timeout"), T("5s")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("watch"), T("x"), T("--timeout"), T("soon")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("config"), T("show"), T("--set"), T("no.such=1")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("help"), T("nothing")), CLI_USAGE);
    assert_int_equal(RUN(T("weir"), T("job"), T("get"), T("x"), T("--url"), T("ftp://a")), CLI_USAGE);
}
