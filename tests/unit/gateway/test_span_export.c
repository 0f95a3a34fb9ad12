/* What of core's answer goes to the collector. */
#include "case.h"

#include "base/must.h"
#include "domains/gateway/span_export.h"

#include "base/banned.h"

static int64_t read(struct arena *a, const char *text, struct str *ret_otlp)
{
    const struct json *root = NULL;
    struct err err;
    assert_int_equal(json_parse(a, str_of(text), &root, &err), ERR_OK);
    return span_export_read(root, ret_otlp);
}

ARENA_TEST(the_spans_are_sent_on_as_they_came, a)
{
    struct str otlp;
    assert_int_equal(read(a, "{\"count\":2,\"otlp\": {\"resourceSpans\":[1, 2]} }", &otlp), 2);
    assert_true(str_is(otlp, "{\"resourceSpans\":[1, 2]}"));
}

ARENA_TEST(an_answer_without_spans_brings_none, a)
{
    static const char *const none[] = {"{}",
                                       "[]",
                                       "{\"count\":1}",
                                       "{\"otlp\":{}}",
                                       "{\"count\":-1,\"otlp\":{}}",
                                       "{\"count\":1,\"otlp\":\"{}\"}"};
    struct str otlp;
    for (size_t i = 0; i < LENGTH_OF(none); i++)
        assert_int_equal(read(a, none[i], &otlp), 0);
    assert_int_equal(span_export_read(NULL, &otlp), 0);
}
