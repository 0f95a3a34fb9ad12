/* traceparent, as W3C Trace Context (2021-11-23) has it. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "telemetry/trace_context.h"

#include "base/banned.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

TEST(a_context_is_read_and_written_as_it_came)
{
    static const char *const texts[] = {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-00",
                                        "00-00000000000000000000000000000001-0000000000000001-01"};
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct trace_context c;
        char out[TRACEPARENT_LEN + 1];
        assert_true(traceparent_parse(str_of(texts[i]), &c));
        assert_int_equal(c.sampled, texts[i][54] == '1');
        assert_string_equal(traceparent_text(&c, out).ptr, texts[i]);
    }
}

TEST(ids_are_read_in_their_order)
{
    struct trace_context c;
    assert_true(traceparent_parse(STR("00-" TRACE "-" SPAN "-01"), &c));
    assert_int_equal(c.trace_id[0], 0x4b);
    assert_int_equal(c.trace_id[15], 0x36);
    assert_int_equal(c.span_id[1], 0xf0);
    assert_int_equal(c.span_id[7], 0xb7);
}

TEST(later_versions_are_read_as_far_as_they_are_known)
{
    static const char *const texts[] = {"01-" TRACE "-" SPAN "-01", "cc-" TRACE "-" SPAN "-01-what-comes",
                                        "fe-" TRACE "-" SPAN "-ff-"};
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct trace_context c;
        char out[TRACEPARENT_LEN + 1];
        assert_true(traceparent_parse(str_of(texts[i]), &c));
        assert_string_equal(traceparent_text(&c, out).ptr, "00-" TRACE "-" SPAN "-01");
    }
}

TEST(unknown_flags_are_not_passed_on)
{
    struct trace_context c;
    char out[TRACEPARENT_LEN + 1];
    assert_true(traceparent_parse(STR("00-" TRACE "-" SPAN "-fe"), &c));
    assert_false(c.sampled);
    assert_string_equal(traceparent_text(&c, out).ptr, "00-" TRACE "-" SPAN "-00");
}

TEST(anything_else_is_no_context_and_writes_nothing)
{
    static const char *const texts[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-01-x",
        "cc-" TRACE "-" SPAN "-01x",
        "cc-" TRACE "-" SPAN "-01.what",
        "ff-" TRACE "-" SPAN "-01",
        "0g-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-0G",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00_" TRACE "_" SPAN "_01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-001",
        "00-" TRACE "-00f067aa0ba902b-701",
        "00-4bf92f3577b34da6a3ce929d0e0e473\xc3\xa9" SPAN "-01",
    };
    const struct trace_context before = {.trace_id = {7}, .span_id = {7}};
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct trace_context c = before;
        assert_false(traceparent_parse(str_of(texts[i]), &c));
        assert_memory_equal(&c, &before, sizeof c);
    }
    struct trace_context c;
    assert_false(traceparent_parse(STR_ABSENT, &c));
}

TEST(new_contexts_differ_and_derived_ids_do_not)
{
    struct trace_context a = trace_context_new(true), b = trace_context_new(false);
    assert_memory_not_equal(a.trace_id, b.trace_id, TRACE_ID_BYTES);
    assert_true(a.sampled && !b.sampled && span_id_is_set(a.span_id));
    uint8_t one[SPAN_ID_BYTES], same[SPAN_ID_BYTES], other[SPAN_ID_BYTES];
    span_id_derived(1, 2, 3, one);
    span_id_derived(1, 2, 3, same);
    assert_memory_equal(one, same, SPAN_ID_BYTES);
    span_id_derived(1, 2, 4, other);
    assert_memory_not_equal(one, other, SPAN_ID_BYTES);
    span_id_derived(1, 3, 3, other);
    assert_memory_not_equal(one, other, SPAN_ID_BYTES);
    span_id_derived(0, 0, 0, other);
    assert_true(span_id_is_set(other));
}
