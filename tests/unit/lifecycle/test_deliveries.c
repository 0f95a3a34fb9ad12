/* Deliveries against their moves, written out a second time; the attempts of a delivery as
 * they are packed. */
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "lifecycle/attempts.h"
#include "lifecycle/delivery_lifecycle.h"

#include "base/banned.h"

enum { NO = -1, DELIVERY_TRIGGERS = DELIVERY_ON_REDELIVER + 1 };

static const int delivery_moves[DELIVERY_STATE_COUNT][DELIVERY_TRIGGERS] = {
    /* success, give up, redeliver */
    [DELIVERY_PENDING] = {DELIVERY_DELIVERED, DELIVERY_EXHAUSTED, NO},
    [DELIVERY_DELIVERED] = {NO, NO, DELIVERY_PENDING},
    [DELIVERY_EXHAUSTED] = {NO, NO, DELIVERY_PENDING},
};

TEST(test_every_trigger_in_every_state)
{
    for (int from = 0; from < DELIVERY_STATE_COUNT; from++)
        for (int on = 0; on < DELIVERY_TRIGGERS; on++) {
            enum delivery_state to;
            bool moves = delivery_move((enum delivery_state)from, (enum delivery_trigger)on, &to);
            assert_int_equal(moves ? (int)to : NO, delivery_moves[from][on]);
        }
}

TEST(test_names)
{
    static const char *const states[] = {"pending", "delivered", "exhausted"};
    assert_int_equal(DELIVERY_STATE_COUNT, LENGTH_OF(states));
    for (int i = 0; i < DELIVERY_STATE_COUNT; i++)
        assert_string_equal(delivery_state_text((enum delivery_state)i), states[i]);
    assert_string_equal(webhook_fault_text(WEBHOOK_GONE), "gone");
    assert_string_equal(webhook_fault_text(WEBHOOK_FAILING), "failing");
    assert_string_equal(webhook_event_text(WEBHOOK_EVENT_TEST), "webhook.test");
    assert_string_equal(webhook_event_text(WEBHOOK_EVENT_DISABLED), "webhook.disabled");
}

/* --- attempts ------------------------------------------------------------------------------------------ */

/* What does not fit is told as nearly as it can be. */
ARENA_TEST(test_an_attempt_comes_back_within_its_bounds, a)
{
    char words[ATTEMPT_ERROR_MAX + 2];
    const struct {
        int64_t duration_ms, kept_ms, status, kept;
        size_t error_len;
    } cases[] = {
        {0, 0, 0, 0, 0},
        {-1, 0, -1, 0, 1},
        {1, 1, 1, 1, 2},
        {7, 7, 200, 200, ATTEMPT_ERROR_MAX - 1},
        {UINT32_MAX - INT64_C(1), UINT32_MAX - INT64_C(1), 998, 998, ATTEMPT_ERROR_MAX},
        {UINT32_MAX, UINT32_MAX, 999, 999, ATTEMPT_ERROR_MAX + 1},
        {UINT32_MAX + INT64_C(1), UINT32_MAX, 1000, 0, ATTEMPT_ERROR_MAX + 2},
        {INT64_MAX, UINT32_MAX, 65536 + 200, 0, 3},
    };
    memset(words, 'e', sizeof words);
    struct str all = STR_ABSENT;
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        all =
            attempts_add(a, all,
                         &(struct attempt){.at_ms = INT64_MAX - (int64_t)i,
                                           .duration_ms = cases[i].duration_ms,
                                           .status = cases[i].status,
                                           .error = {cases[i].error_len ? words : NULL, cases[i].error_len}});
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct attempt one;
        size_t len = cases[i].error_len < ATTEMPT_ERROR_MAX ? cases[i].error_len : ATTEMPT_ERROR_MAX;
        assert_true(attempts_take(&all, &one));
        assert_int_equal(one.at_ms, INT64_MAX - (int64_t)i);
        assert_int_equal(one.duration_ms, cases[i].kept_ms);
        assert_int_equal(one.status, cases[i].kept);
        assert_int_equal(one.error.len, len);
        assert_int_equal(one.error.ptr != NULL, len != 0);
        assert_memory_equal(one.error.ptr ? one.error.ptr : words, words, len);
    }
    assert_int_equal(all.len, 0);
}

ARENA_TEST(test_the_last_twenty_attempts_are_kept, a)
{
    struct str all = STR_ABSENT;
    for (int64_t n = 1; n <= 2 * ATTEMPTS_KEPT + 1; n++) {
        all = attempts_add(a, all, &(struct attempt){.at_ms = n, .error = STR("x")});
        struct str rest = all;
        struct attempt one;
        int64_t first = n > ATTEMPTS_KEPT ? n - ATTEMPTS_KEPT + 1 : 1;
        for (int64_t expected = first; expected <= n; expected++) {
            assert_true(attempts_take(&rest, &one));
            assert_int_equal(one.at_ms, expected);
        }
        assert_false(attempts_take(&rest, &one));
    }
}

/* However it is cut off, there are fewer of them and nothing is read behind the end. */
ARENA_TEST(test_damaged_attempts_end_the_list, a)
{
    struct str two = attempts_add(a, STR_ABSENT, &(struct attempt){.at_ms = 1, .error = STR("abc")});
    size_t first = two.len;
    two = attempts_add(a, two, &(struct attempt){.at_ms = 2, .status = 200});
    for (size_t len = 0; len <= two.len; len++) {
        char *part = len ? arena_copy(a, two.ptr, len) : NULL;
        struct str rest = {part, len};
        struct attempt one;
        size_t count = 0;
        while (attempts_take(&rest, &one))
            count++;
        assert_int_equal(count, len < first ? 0 : len < two.len ? 1 : 2);
    }
}
