/* An attempt as a span: what is told of a receiver and what is not, and the id that the receiver was told. */
#include <stdlib.h>

#include "case.h"

#include "api/delivery_traces.h"
#include "jobs/job_notices.h"

#include "base/banned.h"

#define SAMPLED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define QUIET   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

static const struct span_attribute *find(const struct span *s, const char *key)
{
    for (size_t i = 0; i < s->attribute_count; i++)
        if (str_is(str_of(s->attributes[i].key), key))
            return &s->attributes[i];
    return NULL;
}

static void expect_text(const struct span *s, const char *key, const char *text)
{
    const struct span_attribute *a = find(s, key);
    assert_true(!text == !a);
    if (a) {
        assert_true(a->is_text);
        assert_string_equal(a->text, text);
    }
}

static void expect_number(const struct span *s, const char *key, int64_t number)
{
    const struct span_attribute *a = find(s, key);
    assert_true(a && !a->is_text);
    assert_int_equal(a->number, number);
}

/* The span of this attempt; false when there is none. */
static bool span_of(const struct attempt_notice *n, struct span *ret_span)
{
    struct tracer *t = tracer_new(1);
    struct notice list[] = {{&delivery_end_notices, NULL}, {&attempt_notices, n}};
    struct unit u = {.notices = {.list = list, .count = 2}};
    delivery_traces_committed(t, &u, 2000000);
    size_t count = tracer_take(t, ret_span, 1);
    tracer_free(t);
    return count == 1;
}

static const struct delivery_row delivery = {.id = 7, .low = 8, .event = 3, .job = 1};

TEST(what_is_told_of_a_receiver)
{
    static const struct {
        const char *url, *scheme, *address;
        int64_t port;
    } rows[] = {
        {"https://example.com/path/secret?token=secret", "https", "example.com", 443},
        {"http://example.com", "http", "example.com", 80},
        {"http://example.com?secret=/x@y:9", "http", "example.com", 80},
        {"http://127.0.0.1:9000/a:b@c", "http", "127.0.0.1", 9000},
        {"http://[2001:db8::1]:8080/", "http", "2001:db8::1", 8080},
        {"https://[::1]/", "https", "::1", 443},
        {"http://user:secret@example.com:81/", NULL, NULL, 0}, /* was never taken */
        {"http://example.com:70000/", NULL, NULL, 0},
        {"nonsense", NULL, NULL, 0},
        {"", NULL, NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_row job = {.id = 1, .traceparent = STR(SAMPLED), .callback = str_of(rows[i].url)};
        struct attempt_notice n = {.delivery = &delivery, .job = &job, .status = 200, .attempt = 1};
        struct span s;
        assert_true(span_of(&n, &s));
        expect_text(&s, "url.scheme", rows[i].scheme);
        expect_text(&s, "server.address", rows[i].address);
        if (rows[i].port)
            expect_number(&s, "server.port", rows[i].port);
        for (size_t k = 0; k < s.attribute_count; k++)
            assert_true(!s.attributes[k].is_text || !strstr(s.attributes[k].text, "secret"));
    }
}

TEST(the_span_is_the_one_that_the_lease_named)
{
    struct job_row job = {.id = 1, .traceparent = STR(SAMPLED), .callback = STR("http://a")};
    struct attempt_notice n = {
        .delivery = &delivery, .job = &job, .stream_low = 5, .token = 6, .attempt = 1, .started_ms = 1000};
    struct trace_context told, other, of_job;
    struct span s;
    assert_true(traceparent_parse(job.traceparent, &of_job));
    assert_true(delivery_context(job.traceparent, 5, 6, &told));
    assert_true(span_of(&n, &s));
    assert_memory_equal(s.context.span_id, told.span_id, SPAN_ID_BYTES);
    assert_memory_equal(s.context.trace_id, of_job.trace_id, TRACE_ID_BYTES);
    assert_memory_equal(s.parent, of_job.span_id, SPAN_ID_BYTES);
    assert_true(s.kind == SPAN_CLIENT && s.start_us == 1000000 && s.end_us == 2000000);
    assert_true(delivery_context(job.traceparent, 5, 7, &other)); /* the next lease of the stream */
    assert_memory_not_equal(other.span_id, told.span_id, SPAN_ID_BYTES);
    assert_true(delivery_context(job.traceparent, 4, 6, &other)); /* another stream */
    assert_memory_not_equal(other.span_id, told.span_id, SPAN_ID_BYTES);
    job.traceparent = STR(QUIET);
    assert_false(delivery_context(job.traceparent, 5, 6, &other));
    assert_false(span_of(&n, &s));
    job.traceparent = STR_ABSENT;
    assert_false(span_of(&n, &s));
}

TEST(errors_are_statuses_or_names)
{
    static const struct {
        int64_t status;
        const char *error, *type;
    } rows[] = {{500, "http_status", "500"},
                {0, "timeout", "timeout"},
                {200, "closed", "closed"},
                {0, "sender_lost", "sender_lost"},
                {204, NULL, NULL}};
    struct job_row job = {.id = 1, .traceparent = STR(SAMPLED), .callback = STR("http://a")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attempt_notice n = {.delivery = &delivery,
                                   .job = &job,
                                   .attempt = 3,
                                   .status = rows[i].status,
                                   .error = str_of(rows[i].error)};
        struct span s;
        assert_true(span_of(&n, &s));
        assert_int_equal(s.failed, rows[i].error != NULL);
        expect_text(&s, "error.type", rows[i].type);
        expect_number(&s, "weir.delivery_attempt", 3);
        expect_number(&s, "http.request.resend_count", 2);
        assert_true(!rows[i].status == !find(&s, "http.response.status_code"));
    }
}

TEST(a_webhook_is_named_as_long_as_it_is_there)
{
    struct job_row job = {.id = 1, .traceparent = STR(SAMPLED)};
    struct delivery_row to_hook = {.id = 7, .low = 8, .webhook = 9, .event = 1, .job = 1};
    struct webhook_row hook = {.id = 9, .low = 10, .url = STR("https://hook.example/x")};
    struct attempt_notice n = {.delivery = &to_hook, .job = &job, .webhook = &hook, .attempt = 2};
    struct span s;
    n.status = 500;
    n.error = STR("http_status");
    assert_true(span_of(&n, &s)); /* with everything a span of a delivery can have: none is left out */
    assert_string_equal(s.name, "POST webhook");
    expect_text(&s, "server.address", "hook.example");
    assert_non_null(find(&s, "weir.webhook_id"));
    expect_number(&s, "weir.event_seq", 1);
    assert_int_equal(s.attribute_count, SPAN_ATTRIBUTES_MAX);
    n.webhook = NULL; /* deleted meanwhile */
    assert_true(span_of(&n, &s));
    assert_string_equal(s.name, "POST webhook");
    assert_null(find(&s, "weir.webhook_id"));
    assert_null(find(&s, "server.address"));
}
