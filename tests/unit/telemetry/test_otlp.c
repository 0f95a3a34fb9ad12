/* The JSON of a batch of spans, and where it goes. */
#include <stdlib.h>

#include "case.h"

#include "telemetry/otlp.h"

#include "base/banned.h"

static struct strbuf encode(const struct span *spans, size_t count)
{
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    otlp_write(&w, spans, count);
    return out;
}

#define FRAME_BEGIN                                                                                          \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"                \
    "{\"stringValue\":\"weir\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"weir\"},\"spans\":["
#define FRAME_END "]}]}]}"

TEST(a_span_with_everything)
{
    struct span s = {
        .kind = SPAN_SERVER, .failed = true, .start_us = 1700000000000001, .end_us = 1700000000000003};
    s.context.trace_id[0] = 0xab;
    s.context.span_id[7] = 1;
    s.parent[0] = 0xff;
    s.link.trace_id[15] = 2;
    s.link.span_id[0] = 3;
    span_name(&s, "%s %s", "POST", "/v1/jobs");
    span_text(&s, "text", STR("a\"b"));
    span_number(&s, "number", -5);
    span_text(&s, "absent", STR_ABSENT);
    struct strbuf out = encode(&s, 1);
    assert_string_equal(
        out.ptr, FRAME_BEGIN
        "{\"traceId\":\"ab000000000000000000000000000000\",\"spanId\":\"0000000000000001\","
        "\"parentSpanId\":\"ff00000000000000\",\"name\":\"POST /v1/jobs\",\"kind\":2,"
        "\"startTimeUnixNano\":\"1700000000000001000\",\"endTimeUnixNano\":\"1700000000000003000\","
        "\"attributes\":[{\"key\":\"text\",\"value\":{\"stringValue\":\"a\\\"b\"}},"
        "{\"key\":\"number\",\"value\":{\"intValue\":\"-5\"}}],"
        "\"links\":[{\"traceId\":\"00000000000000000000000000000002\",\"spanId\":\"0300000000000000\"}],"
        "\"status\":{\"code\":2}}" FRAME_END);
    strbuf_free(&out);
}

TEST(a_span_without_anything)
{
    struct span s = {.kind = SPAN_INTERNAL, .start_us = 5, .end_us = 4}; /* the clock was set back */
    struct strbuf out = encode(&s, 1);
    assert_string_equal(
        out.ptr,
        FRAME_BEGIN "{\"traceId\":\"00000000000000000000000000000000\",\"spanId\":\"0000000000000000\","
                    "\"name\":\"\",\"kind\":1,\"startTimeUnixNano\":\"5000\",\"endTimeUnixNano\":\"5000\","
                    "\"attributes\":[],\"status\":{}}" FRAME_END);
    strbuf_free(&out);
    out = encode(NULL, 0);
    assert_string_equal(out.ptr, FRAME_BEGIN FRAME_END);
    strbuf_free(&out);
}

TEST(texts_and_attributes_are_bounded)
{
    struct span s = {0};
    char text[200];
    memset(text, 'x', sizeof text);
    memcpy(text + SPAN_TEXT_MAX - 1, "\xc3\xa9", 2); /* a character across the cut goes whole */
    span_text(&s, "long", (struct str){text, sizeof text});
    assert_int_equal(strlen(s.attributes[0].text), SPAN_TEXT_MAX - 1);
    for (int i = 0; i < 3 * SPAN_ATTRIBUTES_MAX; i++) {
        span_number(&s, "n", i);
        span_text(&s, "t", STR("t"));
    }
    assert_int_equal(s.attribute_count, SPAN_ATTRIBUTES_MAX);
    span_name(&s, "%0*d", 500, 0);
    assert_int_equal(strlen(s.name), SPAN_NAME_MAX);
}

TEST(the_endpoint_comes_from_the_environment)
{
    char url[64];
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    assert_null(otlp_endpoint());
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "", 1);
    assert_null(otlp_endpoint());
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318//", 1);
    assert_true(otlp_traces_url(otlp_endpoint(), url, sizeof url));
    assert_string_equal(url, "http://c:4318/v1/traces");
    assert_true(otlp_traces_url("https://c/base", url, sizeof url));
    assert_string_equal(url, "https://c/base/v1/traces");
    assert_false(
        otlp_traces_url("http://a-name-that-is-far-too-long-for-the-room-there-is.example", url, 32));
}

static void expect_headers(const char *text, const char *const *lines)
{
    struct arena *a = arena_new(1024);
    struct str found[OTLP_HEADERS_MAX];
    size_t count = 99;
    struct err err;
    assert_int_equal(otlp_headers_parse(a, str_of(text), found, &count, &err), ERR_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(lines[i] && str_is(found[i], lines[i]));
    assert_null(lines[count]);
    arena_free(a);
}

TEST(headers_are_decoded)
{
    expect_headers("", (const char *const[]){NULL});
    expect_headers(" , ,", (const char *const[]){NULL});
    expect_headers("api-key=abc", (const char *const[]){"api-key: abc", NULL});
    expect_headers("a=1,b=2", (const char *const[]){"a: 1", "b: 2", NULL});
    expect_headers(" a\t= 1 ,, b =x=y==", (const char *const[]){"a: 1", "b: x=y==", NULL});
    expect_headers("a=Bearer%20x%2Cy%3d%25,B_9.!=+",
                   (const char *const[]){"a: Bearer x,y=%", "B_9.!: +", NULL});
    expect_headers("a=%c3%A9", (const char *const[]){"a: \xc3\xa9", NULL});
}

TEST(headers_that_are_none_are_told_by_number)
{
    static const char *const bad[] = {"a",          "=secret",    "a=",       "a= ",   "a=%",
                                      "a=%2",       "a=%zz",      "a=%2g",    "a b=1", "a:b=secret",
                                      "a=1,secret", "\xc3\xa9=1", "a(=secret"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new(1024);
        struct str found[OTLP_HEADERS_MAX];
        size_t count = 99;
        struct err err;
        assert_int_equal(otlp_headers_parse(a, str_of(bad[i]), found, &count, &err), ERR_CONFIG_INVALID);
        assert_int_equal(count, 99);
        assert_null(strstr(err.detail, "secret"));
        assert_non_null(strstr(err.detail, strchr(bad[i], ',') ? "item 2" : "item 1"));
        arena_free(a);
    }
}

ARENA_TEST(there_are_only_so_many_headers, a)
{
    struct str found[OTLP_HEADERS_MAX];
    size_t count;
    struct err err;
    struct strbuf text = {0};
    for (int i = 0; i < OTLP_HEADERS_MAX; i++)
        strbuf_addf(&text, "a%d=1,", i);
    assert_int_equal(otlp_headers_parse(a, strbuf_str(&text), found, &count, &err), ERR_OK);
    assert_int_equal(count, OTLP_HEADERS_MAX);
    strbuf_add_text(&text, "z=1");
    assert_int_equal(otlp_headers_parse(a, strbuf_str(&text), found, &count, &err), ERR_CONFIG_INVALID);
    strbuf_free(&text);
}
