/* Plans as they are read: bounds of each member, and what is told of one that cannot be run. */
#include "case.h"

#include "base/must.h"
#include "runs/plan.h"

#include "base/banned.h"

#define PLAN(steps) "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[" steps "]}"

/* What is told of a plan; "" when it is good. */
static const char *told(struct arena *a, const char *text, struct plan *ret_plan)
{
    const struct json *j;
    struct err err;
    assert_int_equal(json_parse(a, str_of(text), &j, &err), ERR_OK);
    if (plan_decode(j, a, ret_plan, &err) == ERR_OK)
        return "";
    assert_int_equal(err.code, ERR_PLAN_INVALID);
    return arena_str(a, str_of(err.detail)).ptr;
}

TEST(test_a_cycle_is_told_with_its_path)
{
    static const struct {
        const char *plan, *path;
    } cases[] = {
        {PLAN("{\"stepId\":\"a\",\"dependsOn\":[\"b\"]},{\"stepId\":\"b\",\"dependsOn\":[\"a\"]}"),
         "a -> b -> a"},
        {PLAN("{\"stepId\":\"a\",\"dependsOn\":[\"a\"]}"), "a -> a"},
        /* steps before the cycle, behind it and beside it are no part of it */
        {PLAN("{\"stepId\":\"before\"},{\"stepId\":\"behind\",\"dependsOn\":[\"z\"]},"
              "{\"stepId\":\"x\",\"dependsOn\":[\"before\",\"y\"]},{\"stepId\":\"y\",\"dependsOn\":[\"z\"]},"
              "{\"stepId\":\"z\",\"dependsOn\":[\"before\",\"x\"]},{\"stepId\":\"beside\"}"),
         "x -> y -> z -> x"},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct arena *a = arena_new(4096);
        struct plan plan;
        const char *said = told(a, cases[i].plan, &plan), *path = strstr(said, ": ");
        assert_non_null(path);
        assert_string_equal(path + 2, cases[i].path);
        arena_free(a);
    }
}

ARENA_TEST(test_a_long_cycle_is_cut_in_the_middle, a)
{
    enum { STEPS = 500 };
    struct strbuf b = {0};
    struct plan plan;
    strbuf_add_text(&b, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[");
    for (int i = 0; i < STEPS; i++)
        strbuf_addf(&b, "%s{\"stepId\":\"step%d\",\"dependsOn\":[\"step%d\"]}", i ? "," : "", i,
                    (i + 1) % STEPS);
    strbuf_add_text(&b, "]}");
    const char *said = told(a, b.ptr, &plan);
    assert_non_null(strstr(said, ": step0 -> step1 -> step2 -> "));
    const char *end = " -> ... -> step0";
    assert_string_equal(said + strlen(said) - strlen(end), end);
    strbuf_free(&b);
}

ARENA_TEST(test_a_dependency_that_is_no_step_is_named_with_its_place, a)
{
    struct plan plan;
    assert_string_equal(
        told(a, PLAN("{\"stepId\":\"clean\"},{\"stepId\":\"rank\",\"dependsOn\":[\"clean\",\"cleen\"]}"),
             &plan),
        "step rank depends on cleen, which is no step of the plan (/steps/1/dependsOn/1)");
    assert_string_equal(told(a, PLAN("{\"stepId\":\"a\",\"dependsOn\":[7]}"), &plan),
                        "step a: /steps/0/dependsOn/0 has to be a stepId");
}

/* [RUN-073] [RUN-074] A name is one step's, and the delimiter of keys is in none. */
TEST(test_names_that_could_be_mistaken_are_refused)
{
    static const char *const plans[] = {
        PLAN("{\"stepId\":\"a\"},{\"stepId\":\"a\"}"),
        PLAN("{\"stepId\":\"a|b\"}"),
        PLAN("{\"stepId\":\"a\",\"queue\":\"Not A Queue\"}"),
        PLAN("{\"stepId\":\"a\"},{\"stepId\":\"b\",\"dependsOn\":[\"a\",\"a\"]}"),
        "{\"planId\":\"x|y\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\"}]}",
        "{\"planId\":\"x\",\"planVersion\":\"1|2\",\"steps\":[{\"stepId\":\"a\"}]}",
    };
    for (size_t i = 0; i < LENGTH_OF(plans); i++) {
        struct arena *a = arena_new(4096);
        struct plan plan;
        assert_string_not_equal(told(a, plans[i], &plan), "");
        arena_free(a);
    }
}

ARENA_TEST(test_timeouts_and_delays_are_read_within_their_bounds, a)
{
    static const char *const bad[] = {"\"timeoutMs\":0",     "\"timeoutMs\":86400001",  "\"timeoutMs\":\"1\"",
                                      "\"delayMs\":-1",      "\"delayMs\":31536000001", "\"delayMs\":1.5",
                                      "\"maxAttempts\":101", "\"maxAttempts\":0"};
    struct plan plan;
    assert_string_equal(told(a,
                             PLAN("{\"stepId\":\"a\",\"timeoutMs\":86400000,\"delayMs\":31536000000},"
                                  "{\"stepId\":\"b\"}"),
                             &plan),
                        "");
    assert_int_equal(plan.steps[0].timeout_ms, PLAN_TIMEOUT_MS_MAX);
    assert_int_equal(plan.steps[0].delay_ms, PLAN_DELAY_MS_MAX);
    assert_int_equal(plan.steps[1].timeout_ms, 0);
    assert_int_equal(plan.steps[1].delay_ms, 0);
    assert_int_equal(plan.steps[1].max_attempts, 1);
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        const char *text = arena_printf(a, PLAN("{\"stepId\":\"a\",%s}"), bad[i]).ptr;
        const char *said = told(a, text, &plan);
        assert_true(str_starts(str_of(said), "step a: "));
        assert_non_null(strstr(said, "has to be "));
    }
}
