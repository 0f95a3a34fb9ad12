/* Routing and problem documents. */
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "http/problem.h"
#include "http/router.h"

#include "base/banned.h"

static const struct route table[] = {
    {HTTP_GET, "/", "root", NULL},
    {HTTP_GET, "/v1/jobs", "jobList", NULL},
    {HTTP_POST, "/v1/jobs", "jobSubmit", NULL},
    {HTTP_POST, "/v1/jobs:batch", "jobBatch", NULL},
    {HTTP_GET, "/v1/jobs/{job_id}", "jobGet", NULL},
    {HTTP_DELETE, "/v1/jobs/{job_id}", "jobCancel", NULL},
    {HTTP_GET, "/v1/jobs/{job_id}/report", "jobReport", NULL},
    {HTTP_GET, "/v1/jobs/stats", "jobStats", NULL},
    {HTTP_POST, "/v1/webhooks/{webhook_id}:test", "webhookTest", NULL},
    {HTTP_GET, "/v1/webhooks/{id}", "webhookGet", NULL},
    {HTTP_GET, "/v1/clients/{client_id}/keys/{key_id}", "keyGet", NULL},
    {HTTP_GET, "/ui/", "ui", NULL},
};

static int setup(void **state)
{
    *state = router_new(table, LENGTH_OF(table));
    return 0;
}

static int teardown(void **state)
{
    *state = router_free(*state);
    return 0;
}

static struct route_match find(const struct router *r, enum http_method method, const char *path)
{
    struct route_match m;
    router_find(r, method, str_of(path), &m);
    return m;
}

static void assert_route(const struct router *r, enum http_method method, const char *path, const char *want)
{
    struct route_match m = find(r, method, path);
    if (!m.route || strcmp(m.route->operation_id, want) != 0)
        fail_msg("%s gives %s, want %s", path, m.route ? m.route->operation_id : "nothing", want);
}

#define ROUTER_TEST(name, parameter) TEST_WITH(name, struct router *parameter, setup, teardown)

ROUTER_TEST(every_route_of_the_table_is_found, routes)
{
    assert_route(routes, HTTP_GET, "/", "root");
    assert_route(routes, HTTP_GET, "/v1/jobs", "jobList");
    assert_route(routes, HTTP_POST, "/v1/jobs", "jobSubmit");
    assert_route(routes, HTTP_POST, "/v1/jobs:batch", "jobBatch");
    assert_route(routes, HTTP_GET, "/v1/jobs/abc", "jobGet");
    assert_route(routes, HTTP_DELETE, "/v1/jobs/abc", "jobCancel");
    assert_route(routes, HTTP_GET, "/v1/jobs/abc/report", "jobReport");
    assert_route(routes, HTTP_POST, "/v1/webhooks/abc:test", "webhookTest");
    assert_route(routes, HTTP_GET, "/ui/", "ui");
}

ROUTER_TEST(a_literal_beats_a_name_and_a_name_catches_what_the_literal_leaves, routes)
{
    assert_route(routes, HTTP_GET, "/v1/jobs/stats", "jobStats");
    assert_route(routes, HTTP_GET, "/v1/jobs/stats/report", "jobReport");
    struct route_match m = find(routes, HTTP_GET, "/v1/jobs/stats/report");
    assert_true(str_is(route_param(&m, "job_id"), "stats"));
}

ROUTER_TEST(parameters_carry_the_names_of_their_route, routes)
{
    struct route_match m = find(routes, HTTP_GET, "/v1/clients/c 1/keys/k:2");
    assert_true(str_is(route_param(&m, "client_id"), "c 1"));
    assert_true(str_is(route_param(&m, "key_id"), "k:2"));
    assert_null(route_param(&m, "job_id").ptr);
    m = find(routes, HTTP_POST, "/v1/webhooks/abc:test");
    assert_true(str_is(route_param(&m, "webhook_id"), "abc"));
    m = find(routes, HTTP_GET, "/v1/webhooks/abc");
    assert_true(str_is(route_param(&m, "id"), "abc"));
}

ROUTER_TEST(unknown_paths_are_unknown, routes)
{
    static const char *const paths[] = {"",
                                        "*",
                                        "/v1",
                                        "/v1/",
                                        "/v1/jobs/",
                                        "//v1/jobs",
                                        "/v1//jobs",
                                        "/V1/jobs",
                                        "/v1/jobs/a/",
                                        "/v1/jobs/.",
                                        "/v1/jobs/..",
                                        "/v1/jobs/../report",
                                        "/ui",
                                        "/ui/x",
                                        "/v1/webhooks/",
                                        "/v1/clients/c/keys",
                                        "/v1/jobs/a/report/b",
                                        "v1/jobs"};
    for (size_t i = 0; i < LENGTH_OF(paths); i++) {
        struct route_match m = find(routes, HTTP_GET, paths[i]);
        if (m.path_known || m.route)
            fail_msg("%s is known", paths[i]);
    }
}

TEST(a_way_that_led_nowhere_leaves_no_parameters_behind)
{
    static const struct route routes[] = {
        {HTTP_GET, "/p/literal/{y}/r", "far", NULL},
        {HTTP_GET, "/p/{x}/q", "near", NULL},
        {HTTP_GET, "/p/{x}:go", "go", NULL},
    };
    struct router *r = router_new(routes, LENGTH_OF(routes));
    static const char *const paths[] = {"/p/literal/q", "/p/a:go/q"};
    for (size_t i = 0; i < LENGTH_OF(paths); i++) {
        struct route_match m;
        router_find(r, HTTP_GET, str_of(paths[i]), &m);
        assert_non_null(m.route);
        assert_string_equal(m.route->operation_id, "near");
        assert_true(str_is(route_param(&m, "x"), i ? "a:go" : "literal"));
        assert_null(route_param(&m, "y").ptr);
    }
    router_free(r);
}

ROUTER_TEST(a_suffix_needs_a_name_before_it, routes)
{
    struct route_match m = find(routes, HTTP_POST, "/v1/webhooks/:test");
    assert_null(m.route);
    assert_string_equal(m.allow, "GET, HEAD"); /* it is a plain name then */
}

ROUTER_TEST(a_known_path_with_another_method_lists_what_is_allowed, routes)
{
    struct route_match m = find(routes, HTTP_PUT, "/v1/jobs/abc");
    assert_null(m.route);
    assert_true(m.path_known);
    assert_string_equal(m.allow, "GET, HEAD, DELETE");
    m = find(routes, HTTP_OTHER, "/v1/jobs");
    assert_string_equal(m.allow, "GET, HEAD, POST");
    m = find(routes, HTTP_GET, "/v1/webhooks/abc:test");
    assert_string_equal(m.allow, "POST");
}

ROUTER_TEST(head_is_served_by_get, routes)
{
    assert_route(routes, HTTP_HEAD, "/v1/jobs", "jobList");
    assert_null(find(routes, HTTP_HEAD, "/v1/jobs:batch").route);
}

TEST(all_methods_fit_into_the_allow_list)
{
    struct route all[HTTP_OTHER];
    for (int m = 0; m < HTTP_OTHER; m++)
        all[m] = (struct route){(enum http_method)m, "/a", "a", NULL};
    struct router *r = router_new(all, LENGTH_OF(all));
    struct route_match match;
    router_find(r, HTTP_OTHER, STR("/a"), &match);
    assert_string_equal(match.allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    router_free(r);
}

/* ---- problem documents ---- */

static struct http_exchange exchange_with(struct arena *a)
{
    struct http_exchange x = {.arena = a};
    for (int i = 0; i < 16; i++)
        x.request_id.bytes[i] = (uint8_t)(i * 17);
    return x;
}

static void forget(struct http_exchange *x)
{
    strbuf_free(&x->reply_body);
    strbuf_free(&x->reply_headers);
    arena_free(x->arena);
}

/* [JOB-226] [JOB-227] [JOB-228] [JOB-229] [JOB-230] [JOB-232] */
TEST(a_problem_has_all_members_of_its_code)
{
    struct http_exchange x = exchange_with(arena_new(4096));
    struct err why = {0};
    (void)err_set(&why, ERR_JOB_NOT_FOUND, "job \"x\" is unknown");
    strbuf_add_text(&x.reply_body, "half an answer");
    problem_reply(&x, &why);
    assert_int_equal(x.status, 404);
    assert_string_equal(x.content_type, "application/problem+json");
    const struct json *root;
    struct err err;
    assert_int_equal(json_parse(x.arena, strbuf_str(&x.reply_body), &root, &err), ERR_OK);
    assert_true(str_is(json_get(root, "type")->text, "urn:weir:problem:RFA_JOB_NOT_FOUND"));
    assert_true(str_is(json_get(root, "title")->text, "No such job"));
    assert_true(str_is(json_get(root, "status")->text, "404"));
    assert_true(str_is(json_get(root, "detail")->text, "job \"x\" is unknown"));
    assert_true(str_is(json_get(root, "instance")->text, "00112233-4455-6677-8899-aabbccddeeff"));
    assert_true(str_is(json_get(root, "code")->text, "RFA_JOB_NOT_FOUND"));
    assert_true(str_is(json_get(root, "advice")->text, "check the job_id"));
    assert_int_equal(x.reply_headers.len, 0);
    forget(&x);
}

TEST(every_code_of_the_list_makes_a_sound_problem)
{
    for (int code = 1; code < ERR_CODE_COUNT; code++) {
        struct http_exchange x = exchange_with(arena_new(4096));
        struct err why = {.code = (enum err_code)code}, err;
        problem_reply(&x, &why);
        const struct json *root;
        int64_t status;
        assert_int_equal(json_parse(x.arena, strbuf_str(&x.reply_body), &root, &err), ERR_OK);
        assert_true(json_to_int(json_get(root, "status"), &status));
        assert_int_equal(status, x.status);
        assert_int_equal(x.status, err_http_status((enum err_code)code));
        assert_true(json_get(root, "detail")->text.len > 0);
        forget(&x);
    }
}

TEST(headers_that_belong_to_a_status_are_added)
{
    static const struct {
        enum err_code code;
        int retry_after_s;
        const char *headers;
    } rows[] = {
        {ERR_AUTH_INVALID_CREDENTIALS, 0, "WWW-Authenticate: Bearer\r\n"},
        {ERR_REQUEST_RATE_LIMITED, 17, "Retry-After: 17\r\n"},
        {ERR_REQUEST_RATE_LIMITED, 0, "Retry-After: 1\r\n"},
        {ERR_EXEC_QUEUE_FULL, 0, "Retry-After: 1\r\n"},
        {ERR_EXEC_TIMEOUT, 0, ""},
        {ERR_REQUEST_MALFORMED, 0, ""},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct http_exchange x = exchange_with(arena_new(4096));
        struct err why = {.code = rows[i].code, .retry_after_s = rows[i].retry_after_s};
        problem_reply(&x, &why);
        assert_true(str_is(strbuf_str(&x.reply_headers), rows[i].headers));
        forget(&x);
    }
}
