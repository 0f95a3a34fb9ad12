/* What a policy decision point may answer, and what counts as no answer. */
#include "domains/gateway/policy_answer.h"

#include <stdio.h>

#include "case.h"

static bool read_text(const char *body, struct policy_answer *ret, char reason[POLICY_ANSWER_REASON_MAX + 1])
{
    struct arena *a = arena_new(1024);
    bool read = policy_answer_read(a, str_of(body), ret);
    if (read)
        snprintf(reason, POLICY_ANSWER_REASON_MAX + 1, "%.*s", STR_ARG(ret->reason));
    arena_free(a);
    return read;
}

TEST(decisions_are_read)
{
    static const struct {
        const char *body;
        bool allowed, approval;
        const char *reason; /* NULL: none */
    } cases[] = {
        {"{\"result\":true}", true, false, NULL},
        {"{\"result\":false}", false, false, NULL},
        {" {\"decision_id\":\"x\",\"result\":true} ", true, false, NULL},
        {"{\"result\":{\"allowed\":true}}", true, false, NULL},
        {"{\"result\":{\"allowed\":false,\"reason\":\"no\"}}", false, false, "no"},
        {"{\"result\":{\"allowed\":true,\"requiresApproval\":true}}", true, true, NULL},
        {"{\"result\":{\"requiresApproval\":null,\"reason\":null,\"allowed\":true,\"x\":[{}]}}", true, false,
         NULL},
        {"{\"result\":{\"allowed\":true,\"reason\":\"\"}}", true, false, NULL},
        {"{\"result\":{\"allowed\":true,\"reason\":\"\\u00e4\"}}", true, false, "ä"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy_answer answer;
        char reason[POLICY_ANSWER_REASON_MAX + 1];
        assert_true(read_text(cases[i].body, &answer, reason));
        assert_int_equal(answer.allowed, cases[i].allowed);
        assert_int_equal(answer.requires_approval, cases[i].approval);
        assert_int_equal(answer.reason.ptr != NULL, cases[i].reason != NULL);
        assert_string_equal(reason, cases[i].reason ? cases[i].reason : "");
    }
}

TEST(anything_else_is_no_answer)
{
    static const char *const bodies[] = {
        "",
        "true",
        "null",
        "[]",
        "{}",
        "{\"result\":null}",
        "{\"result\":1}",
        "{\"result\":\"true\"}",
        "{\"result\":[true]}",
        "{\"result\":{}}",
        "{\"result\":{\"allowed\":null}}",
        "{\"result\":{\"allowed\":1}}",
        "{\"result\":{\"allow\":true}}",
        "{\"result\":{\"allowed\":true,\"requiresApproval\":0}}",
        "{\"result\":{\"allowed\":true,\"reason\":{}}}",
        "{\"Result\":true}",
        "{\"result\":true",
        "{\"result\":true}x",
        "{\"result\":true,\"result\":false}",
        "{\"result\":{\"allowed\":true,\"allowed\":false}}",
        "{\"result\":{\"allowed\":true,\"reason\":\"\xff\"}}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct policy_answer answer;
        char reason[POLICY_ANSWER_REASON_MAX + 1];
        assert_false(read_text(bodies[i], &answer, reason));
    }
}

/* 149 bytes and one character of two: the character goes as a whole. */
TEST(a_long_reason_is_cut_between_characters)
{
    char body[512], reason[POLICY_ANSWER_REASON_MAX + 1], wanted[POLICY_ANSWER_REASON_MAX + 1];
    struct policy_answer answer;
    snprintf(wanted, sizeof wanted, "%0*d", POLICY_ANSWER_REASON_MAX - 1, 7);
    snprintf(body, sizeof body, "{\"result\":{\"allowed\":false,\"reason\":\"%sä and more\"}}", wanted);
    assert_true(read_text(body, &answer, reason));
    assert_string_equal(reason, wanted);
    snprintf(wanted, sizeof wanted, "%0*dä", POLICY_ANSWER_REASON_MAX - 2, 7);
    snprintf(body, sizeof body, "{\"result\":{\"allowed\":false,\"reason\":\"%s\"}}", wanted);
    assert_true(read_text(body, &answer, reason));
    assert_string_equal(reason, wanted);
}
