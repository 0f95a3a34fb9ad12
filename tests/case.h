/* case.h - a C test says its name once.
 *
 *     TEST(a_name_that_states_a_fact)
 *     {
 *         assert_int_equal(1 + 1, 2);
 *     }
 *
 * is a whole test: it joins the list of its program, and the main() of case.c runs the list in the order of
 * the file. A test that needs something made for it takes it as its parameter, by a macro of its own:
 *
 *     #define SERVER_TEST(name, parameter) TEST_WITH(name, struct server *parameter, start, stop)
 *     SERVER_TEST(a_server_answers, s)
 *     {
 *         assert_true(server_answers(s));
 *     }
 *
 * `start` and `stop` are a setup and a teardown of cmocka (start sets *state), NULL for none. A program that
 * prepares something for all of its tests, or runs them once per store, has a main() of its own that calls
 * test_run(). */
#ifndef WEIR_TESTS_CASE_H
#define WEIR_TESTS_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

/* A test of one group only, or of some: `groups` has their names, NULL means every group. `why` is told where
 * the test is left out. */
struct test_case {
    struct CMUnitTest test;
    int line; /* tests run in the order of these */
    const char *groups, *why;
};

void test_add(struct test_case added);
/* Runs the tests of this group: how many failed. Tests without a setup of their own get the *state of
 * `setup`. */
int test_run(const char *group, CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_ENTRY(name, setup, teardown, groups, why)                                                       \
    __attribute__((constructor)) static void name##_is_listed(void)                                          \
    {                                                                                                        \
        test_add((struct test_case){{#name, name##_case, setup, teardown, NULL}, __LINE__, groups, why});    \
    }

#define TEST_BETWEEN(name, setup, teardown)                                                                  \
    static void name(void);                                                                                  \
    static void name##_case(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        name();                                                                                              \
    }                                                                                                        \
    TEST_ENTRY(name, setup, teardown, NULL, NULL)                                                            \
    static void name(void)

#define TEST_OF_GROUPS(name, parameter, setup, teardown, groups, why)                                        \
    static void name(parameter);                                                                             \
    static void name##_case(void **state)                                                                    \
    {                                                                                                        \
        name(*state);                                                                                        \
    }                                                                                                        \
    TEST_ENTRY(name, setup, teardown, groups, why)                                                           \
    static void name(parameter __attribute__((unused)))

#define TEST(name) TEST_BETWEEN(name, NULL, NULL)
/* With an arena of its own. */
#define ARENA_TEST(name, parameter) TEST_WITH(name, struct arena *parameter, test_arena_up, test_arena_down)
int test_arena_up(void **state);
int test_arena_down(void **state);
#define TEST_WITH(name, parameter, setup, teardown)                                                          \
    TEST_OF_GROUPS(name, parameter, setup, teardown, NULL, NULL)

#endif
