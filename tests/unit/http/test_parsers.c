/* The pure parsers: head, chunked bodies, paths and queries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "http/chunked.h"
#include "http/head.h"
#include "http/target.h"

#include "base/banned.h"

static struct http_header room[8];
static struct head head;
static struct err err;

static int parse(const char *text)
{
    struct head_scan scan = {0};
    struct str bytes = str_of(text);
    assert_int_equal(head_scan(&scan, bytes), HEAD_COMPLETE);
    assert_int_equal(scan.at, bytes.len);
    return head_parse(bytes, room, LENGTH_OF(room), &head, &err);
}

static void assert_str(struct str got, const char *want)
{
    if (!str_is(got, want))
        fail_msg("got '%.*s', want '%s'", STR_ARG(got), want);
}

TEST(a_plain_head_is_taken_apart)
{
    assert_int_equal(parse("POST /v1/jobs?a=b&c HTTP/1.1\r\nHost: example:80\r\nContent-Length: 12\r\n"
                           "X-Odd:  two  words \t\r\n\r\n"),
                     0);
    assert_int_equal(head.method, HTTP_POST);
    assert_str(head.method_text, "POST");
    assert_str(head.path, "/v1/jobs");
    assert_str(head.query, "a=b&c");
    assert_int_equal(head.header_count, 3);
    assert_str(room[2].name, "X-Odd");
    assert_str(room[2].value, "two  words");
    assert_int_equal(head.body, HEAD_BODY_LENGTH);
    assert_int_equal(head.content_length, 12);
    assert_true(head.keep_alive);
    assert_false(head.http_1_0);
}

TEST(a_missing_query_is_absent_and_an_empty_one_is_empty)
{
    assert_int_equal(parse("GET /a HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_null(head.query.ptr);
    assert_int_equal(parse("GET /a? HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_non_null(head.query.ptr);
    assert_int_equal(head.query.len, 0);
}

TEST(an_absolute_target_gives_the_same_path_and_query)
{
    assert_int_equal(parse("GET http://a:1/x?y=/z HTTP/1.1\r\nHost: a:1\r\n\r\n"), 0);
    assert_str(head.path, "/x");
    assert_str(head.query, "y=/z");
    assert_int_equal(parse("GET http://a?y HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_str(head.path, "/");
    assert_str(head.query, "y");
}

TEST(keep_alive_follows_version_and_connection)
{
    static const struct {
        const char *head;
        bool keep;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive , Close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        assert_int_equal(parse(rows[i].head), 0);
        assert_int_equal(head.keep_alive, rows[i].keep);
    }
}

TEST(every_method_of_the_list_is_known_and_others_are_other)
{
    for (int m = 0; m < HTTP_OTHER; m++) {
        char text[128];
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: a\r\n\r\n",
                 http_method_text((enum http_method)m));
        assert_int_equal(parse(text), 0);
        assert_int_equal(head.method, m);
    }
    assert_int_equal(parse("OTHER / HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_int_equal(head.method, HTTP_OTHER);
    assert_str(head.method_text, "OTHER");
}

TEST(the_field_room_is_a_hard_limit)
{
    struct str text = STR("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n");
    assert_int_equal(head_parse(text, room, 3, &head, &err), 0);
    assert_int_equal(head_parse(text, room, 2, &head, &err), 431);
}

TEST(a_scan_finds_the_same_end_in_any_pieces)
{
    struct str text = STR("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nPOST");
    for (size_t split = 0; split <= text.len; split++) {
        struct head_scan scan = {0};
        enum head_end end = head_scan(&scan, (struct str){text.ptr, split});
        if (end == HEAD_INCOMPLETE)
            end = head_scan(&scan, text);
        assert_int_equal(end, HEAD_COMPLETE);
        assert_int_equal(scan.at, text.len - 4);
        assert_int_equal(scan.lines, 2);
    }
}

TEST(a_scan_refuses_as_soon_as_it_can)
{
    static const char *const broken[] = {"\n", "\x16\x03", "GET / HTTP/1.1\n", "\r\n\r\n", "\r\n\n", " "};
    for (size_t i = 0; i < LENGTH_OF(broken); i++) {
        struct head_scan scan = {0};
        assert_int_equal(head_scan(&scan, str_of(broken[i])), HEAD_BROKEN);
    }
}

/* ---- chunked ---- */

/* Feeds `text` in pieces of `step` bytes; gives the result and what was left over. */
static enum chunked_result decode(const char *text, size_t step, struct strbuf *body, size_t *ret_left)
{
    struct chunked c = {0};
    struct str all = str_of(text);
    enum chunked_result r = CHUNKED_MORE;
    while (all.len && r == CHUNKED_MORE) {
        struct str piece = {all.ptr, step < all.len ? step : all.len};
        size_t offered = piece.len;
        r = chunked_feed(&c, &piece, 32, body, &err);
        all.ptr += offered - piece.len;
        all.len -= offered - piece.len;
    }
    *ret_left = all.len;
    return r;
}

TEST(chunks_join_to_the_same_body_in_any_pieces)
{
    const char *text = "5;x=y\r\nhello\r\n00B\r\n chunked wo\r\n2\r\n\r\n\r\n0\r\nA: b\r\n\r\nGET /";
    for (size_t step = 1; step <= strlen(text); step++) {
        struct strbuf body = {0};
        size_t left;
        assert_int_equal(decode(text, step, &body, &left), CHUNKED_DONE);
        assert_int_equal(left, 5);
        assert_str(strbuf_str(&body), "hello chunked wo\r\n");
        strbuf_free(&body);
    }
}

TEST(a_body_may_be_as_large_as_the_limit_and_no_larger)
{
    struct strbuf body = {0};
    size_t left;
    assert_int_equal(decode("20\r\n01234567890123456789012345678901\r\n0\r\n\r\n", 7, &body, &left),
                     CHUNKED_DONE);
    assert_int_equal(body.len, 32);
    strbuf_clear(&body);
    assert_int_equal(decode("21\r\n0", 7, &body, &left), CHUNKED_TOO_LARGE);
    assert_int_equal(err.code, ERR_REQUEST_PAYLOAD_TOO_LARGE);
    strbuf_clear(&body);
    assert_int_equal(decode("1f\r\n0123456789012345678901234567890\r\n2\r\nxx", 7, &body, &left),
                     CHUNKED_TOO_LARGE);
    assert_int_equal(body.len, 31);
    strbuf_clear(&body);
    assert_int_equal(decode("fffffffffffffff\r\n", 7, &body, &left), CHUNKED_TOO_LARGE);
    strbuf_free(&body);
}

TEST(bytes_behind_the_end_are_not_taken)
{
    struct chunked c = {0};
    struct strbuf body = {0};
    struct str in = STR("0\r\n\r\n");
    assert_int_equal(chunked_feed(&c, &in, 32, &body, &err), CHUNKED_DONE);
    in = STR("0");
    assert_int_equal(chunked_feed(&c, &in, 32, &body, &err), CHUNKED_BAD);
    strbuf_free(&body);
}

/* ---- paths and queries ---- */

ARENA_TEST(paths_are_decoded_or_refused, a)
{
    static const struct {
        const char *raw, *path; /* path NULL: refused */
    } rows[] = {
        {"/", "/"},
        {"/a%20b", "/a b"},
        {"/a+b", "/a+b"},
        {"/%C3%A9", "/\xC3\xA9"},
        {"/a//b/./../c", "/a//b/./../c"},
        {"/%2e%2E/x", "/../x"},
        {"/%252f", "/%2f"},
        {"/%3F%23", "/?#"},
        {"/%2f", NULL},
        {"/%2F", NULL},
        {"/%00", NULL},
        {"/%", NULL},
        {"/%1", NULL},
        {"/%g1", NULL},
        {"/%1g", NULL},
        {"/%ff", NULL},
        {"/%c0%80", NULL},
        {"/%ed%a0%80", NULL},
        {"/%f4%90%80%80", NULL},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct str path;
        enum err_code code = target_decode_path(a, str_of(rows[i].raw), &path, &err);
        assert_int_equal(code, rows[i].path ? ERR_OK : ERR_REQUEST_MALFORMED);
        if (rows[i].path)
            assert_str(path, rows[i].path);
    }
}

ARENA_TEST(query_parameters_are_found_and_decoded, a)
{
    static const struct {
        const char *query, *value; /* value NULL: absent */
    } rows[] = {
        {"q=a", "a"},
        {"x=1&q=a+b%2Bc", "a b+c"},
        {"q=", ""},
        {"q", ""},
        {"q=a=b", "a=b"},
        {"q=first&q=second", "first"},
        {"%71=named", "named"},
        {"Q=other", NULL},
        {"qq=1", NULL},
        {"", NULL},
        {"&&&", NULL},
        {"%=broken&q=fine", "fine"},
        {"x=%&q=fine", "fine"},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct str value;
        assert_int_equal(target_query(a, str_of(rows[i].query), STR("q"), &value, &err), ERR_OK);
        if (rows[i].value)
            assert_str(value, rows[i].value);
        else
            assert_null(value.ptr);
    }
    struct str value;
    assert_int_equal(target_query(a, STR_ABSENT, STR("q"), &value, &err), ERR_OK);
    assert_null(value.ptr);
    static const char *const broken[] = {"q=%", "q=%2", "q=%zz", "q=%00", "q=%ff", "a&q=x%"};
    for (size_t i = 0; i < LENGTH_OF(broken); i++)
        assert_int_equal(target_query(a, str_of(broken[i]), STR("q"), &value, &err), ERR_REQUEST_MALFORMED);
}
