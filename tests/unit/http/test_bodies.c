/* Bodies: refused with their head, and how many bytes of them are in memory. */
#include <stdio.h>
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

enum { BODIES_MAX = 1024 * 1024, BODY_BYTES = 400 * 1024, SENT_BYTES = 300 * 1024, SMALL_BYTES = 20 * 1024 };

/* A head that promises `promised` bytes, and the first `sent` of them. */
static void send_part(struct client *c, const char *field, size_t promised, size_t sent)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "POST /echo HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n", field, promised);
    for (size_t i = 0; i < sent; i++)
        strbuf_add_char(&text, 'x');
    client_send(c, text.ptr, text.len);
    strbuf_free(&text);
}

static void expect_served(struct client *c)
{
    client_text(c, GET("/canary"));
    assert_int_equal(client_answer(c).status, 200);
}

TEST(a_refused_body_that_came_with_its_head_is_skipped)
{
    struct harness *h = harness_start(1, NULL);
    struct client c = client_tcp(h);
    /* Were the body not skipped it would be taken for a request. */
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nX-Refuse: 1\r\nContent-Length: 33\r\n\r\n" GET(
                        "/canary") GET("/canary"));
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 401);
    assert_false(a.closes);
    assert_int_equal(client_answer(&c).status, 200);
    expect_served(&c);
    client_text(&c, GET("/close"));
    assert_int_equal(client_answer(&c).status, 200);
    assert_true(client_at_end(&c));
    assert_int_equal(h->canaries, 2);
    client_close(&c);
    harness_stop(h);
}

TEST(a_refused_body_that_is_still_on_its_way_is_not_waited_for_nor_kept)
{
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nHost: a\r\nX-Refuse: 1\r\nContent-Length: 100000\r\n\r\npart of it",
        "POST /echo HTTP/1.1\r\nHost: a\r\nX-Refuse: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    };
    struct harness *h = harness_start(1, NULL);
    for (size_t i = 0; i < LENGTH_OF(heads); i++) {
        struct client c = client_tcp(h);
        client_text(&c, heads[i]);
        struct answer a = client_answer(&c);
        assert_int_equal(a.status, 401);
        assert_true(a.closes);
        assert_true(held_bytes_are(h, 0));
        client_close(&c);
    }
    assert_int_equal(h->requests, 0);
    assert_true(harness_await(dones_are, h, LENGTH_OF(heads)));
    harness_stop(h);
}

TEST(a_client_that_expects_100_gets_it_only_for_a_head_that_passes)
{
    struct harness *h = harness_start(1, NULL);
    struct client c = client_tcp(h);
    send_part(&c, "Expect: 100-continue\r\n", 5, 0);
    assert_int_equal(client_answer_to_head(&c).status, 100);
    client_text(&c, "hello");
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "POST /echo||hello");
    send_part(&c, "Expect: 100-continue\r\nX-Refuse: 1\r\n", 5, 0);
    a = client_answer(&c);
    assert_int_equal(a.status, 401);
    assert_true(a.closes);
    client_close(&c);
    harness_stop(h);
}

/* Two parts of 300 KB fit into seven eighths of a megabyte, a third does not; a small one still does, and so
 * does a large one over the Unix socket. */
TEST(large_bodies_together_have_a_limit_below_which_small_ones_still_fit)
{
    struct harness *h = harness_start(1, &(struct http_limits){.bodies_max_bytes = BODIES_MAX});
    struct client first = client_tcp(h), second = client_tcp(h), third = client_tcp(h), small = client_tcp(h),
                  own = client_unix(h);
    char wait[256];
    send_part(&first, "", BODY_BYTES, SENT_BYTES);
    assert_true(harness_await(holds_at_least, h, SENT_BYTES));
    send_part(&second, "", BODY_BYTES, SENT_BYTES);
    assert_true(harness_await(holds_at_least, h, 2 * SENT_BYTES));
    send_part(&third, "", BODY_BYTES, BODY_BYTES);
    struct answer a = client_answer(&third);
    assert_int_equal(a.status, 503);
    assert_true(a.closes);
    assert_string_equal(answer_header(&a, "Retry-After", wait), "1");
    assert_non_null(strstr(a.body, "RFA_EXEC_QUEUE_FULL"));
    send_part(&small, "", SMALL_BYTES, SMALL_BYTES);
    assert_int_equal(client_answer(&small).status, 200);
    send_part(&own, "", BODY_BYTES, BODY_BYTES);
    assert_int_equal(client_answer(&own).status, 200);
    client_close(&first);
    client_close(&second);
    assert_true(harness_await(held_bytes_are, h, 0));
    expect_served(&small);
    client_close(&third);
    client_close(&small);
    client_close(&own);
    harness_stop(h);
}

TEST(a_chunked_body_counts_while_it_arrives)
{
    struct harness *h = harness_start(1, &(struct http_limits){.bodies_max_bytes = 200 * 1024});
    struct client c = client_tcp(h);
    client_text(&c,
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n64000\r\n"); /* 400 KB */
    struct strbuf piece = {0};
    for (int i = 0; i < BODY_BYTES; i++)
        strbuf_add_char(&piece, 'x');
    client_send(&c, piece.ptr, piece.len);
    assert_int_equal(client_answer(&c).status, 503);
    assert_true(harness_await(held_bytes_are, h, 0));
    strbuf_free(&piece);
    client_close(&c);
    harness_stop(h);
}

/* A head in pieces is memory too, and nobody has looked at it yet. */
TEST(heads_in_pieces_count_as_well)
{
    enum { HEADS = 40, PIECE = 15 * 1024 };
    struct harness *h = harness_start(1, &(struct http_limits){.bodies_max_bytes = 20 * PIECE});
    struct client clients[HEADS];
    struct strbuf piece = {0};
    strbuf_add_text(&piece, "GET /echo HTTP/1.1\r\nHost: a\r\nX-Long: ");
    while (piece.len < PIECE)
        strbuf_add_char(&piece, 'x');
    for (int i = 0; i < HEADS; i++) {
        clients[i] = client_tcp(h);
        client_send(&clients[i], piece.ptr, piece.len);
    }
    strbuf_free(&piece);
    assert_int_equal(client_answer(&clients[HEADS - 1]).status, 503);
    for (int i = 0; i < HEADS; i++)
        client_close(&clients[i]);
    assert_true(harness_await(held_bytes_are, h, 0));
    harness_stop(h);
}
