/* The list of a program's tests, and the main() of a program that has none of its own. */
#include <string.h>

#include "case.h"

#include "base/must.h"

#include "base/banned.h"

enum { TESTS_MAX = 200 };
static struct test_case cases[TESTS_MAX];
static size_t case_count;

void test_add(struct test_case added)
{
    MUST(case_count < TESTS_MAX);
    size_t at = case_count++;
    for (; at && cases[at - 1].line > added.line; at--)
        cases[at] = cases[at - 1];
    cases[at] = added;
}

int test_run(const char *group, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest run[TESTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < case_count; i++)
        if (!cases[i].groups || strstr(cases[i].groups, group))
            run[count++] = cases[i].test;
        else if (cases[i].why)
            print_message("not on %s: %s: %s\n", group, cases[i].test.name, cases[i].why);
    return count ? _cmocka_run_group_tests(group, run, count, setup, teardown) : 0;
}

int test_arena_up(void **state)
{
    *state = arena_new(1 << 16);
    return 0;
}

int test_arena_down(void **state)
{
    arena_free(*state);
    return 0;
}

__attribute__((weak)) int main(void)
{
    MUST(case_count > 0);
    return test_run("tests", NULL, NULL);
}
