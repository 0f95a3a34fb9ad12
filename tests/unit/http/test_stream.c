/* Streams: chunks, ticks, pings, slow readers, and every way they end. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

/* Reads until `text` has arrived. */
static void await_text(struct client *c, const char *text)
{
    for (;;) {
        if (c->in.len && memmem(c->in.ptr, c->in.len, text, strlen(text)))
            return;
        assert_true(client_receive(c));
    }
}

HTTP_TEST(a_stream_begins_with_its_head_and_writes_at_every_tick, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/stream"));
    await_text(&c, "\r\n\r\n6\r\nhello\n\r\n");
    assert_non_null(strstr(c.in.ptr, "Transfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(c.in.ptr, "Content-Type: text/event-stream\r\n"));
    assert_null(strstr(c.in.ptr, "Content-Length"));
    assert_true(harness_await(ticks_at_least, h, 1)); /* the first comes by itself */
    assert_int_equal(http_server_busy(h->server), 0);
    strbuf_clear(&c.in);
    uint32_t seen = h->ticks;
    http_server_tick(h->server);
    assert_true(harness_await(ticks_at_least, h, seen + 1));
    await_text(&c, "6\r\npiece\n\r\n");
    client_close(&c);
    assert_true(harness_await(stream_ends_are, h, 1));
    assert_true(harness_await(connections_are, h, 0));
    assert_true(harness_await(dones_are, h, 1));
}

HTTP_TEST(pings_come_without_a_tick, h)
{
    h->ping_ms = 20;
    struct client c = client_tcp(h);
    client_text(&c, GET("/stream"));
    assert_true(harness_await(ticks_at_least, h, 4));
    client_close(&c);
    assert_true(harness_await(stream_ends_are, h, 1));
}

HTTP_TEST(a_stream_that_ends_itself_leaves_the_connection_usable, h)
{
    h->ping_ms = 5;
    h->stream_pieces_max = 3;
    struct client c = client_tcp(h);
    client_text(&c, GET("/stream") GET("/echo"));
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "hello\npiece\npiece\npiece\n");
    a = client_answer(&c);
    assert_string_equal(a.body, "GET /echo||");
    assert_int_equal(h->stream_ends, 0); /* it ended itself: nothing to be told */
    client_close(&c);
}

static bool ticked_until_stream_ends(struct harness *h, uint32_t n)
{
    http_server_tick(h->server);
    return h->stream_ends == n;
}

TEST(a_reader_who_is_too_slow_loses_the_stream)
{
    struct harness *h = harness_start(1, &(struct http_limits){.write_ms = 10 * PATIENCE_MS});
    char *piece = must_alloc(64 * 1024 + 1);
    memset(piece, 'x', 64 * 1024);
    h->stream_piece = piece;
    struct client c = client_unix(h); /* the kernel holds little for it */
    client_text(&c, GET("/stream"));
    assert_true(harness_await(ticked_until_stream_ends, h, 1));
    assert_in_range(h->ticks, 16, 16 + 16); /* 1 MiB here, and what the kernel took */
    assert_true(harness_await(connections_are, h, 0));
    assert_true(harness_await(dones_are, h, 1));
    client_close(&c);
    harness_stop(h);
    free(piece);
}

static bool ticked_until_unsent(struct harness *h, uint32_t n)
{
    http_server_tick(h->server);
    return http_server_unsent_bytes(h->server) >= n;
}

TEST(a_reader_who_is_slow_gives_way_to_others_where_there_is_no_room)
{
    struct harness *h = harness_start(
        1, &(struct http_limits){.bodies_max_bytes = 1024 * 1024, .write_ms = 10 * PATIENCE_MS});
    char *piece = must_alloc(64 * 1024 + 1);
    memset(piece, 'x', 64 * 1024);
    h->stream_piece = piece;
    struct client slow = client_tcp(h), other = client_tcp(h);
    client_text(&slow, GET("/stream"));
    assert_true(harness_await(ticked_until_unsent, h, 1));
    assert_int_equal(h->stream_ends, 0);
    client_text(&other, GET("/big"));
    assert_true(harness_await(stream_ends_are, h, 1));
    assert_int_equal(client_answer(&other).body_len, BIG_BYTES);
    assert_int_equal(http_server_unsent_bytes(h->server), 0);
    client_close(&slow);
    client_close(&other);
    harness_stop(h);
    free(piece);
}

TEST(a_reader_who_stops_reading_loses_the_stream_in_time)
{
    struct harness *h = harness_start(1, &(struct http_limits){.write_ms = 60});
    char *piece = must_alloc(900 * 1024 + 1); /* more than a Unix socket holds, less than 1 MiB */
    memset(piece, 'x', 900 * 1024);
    h->stream_piece = piece;
    struct client c = client_unix(h);
    client_text(&c, GET("/stream"));
    assert_true(harness_await(stream_ends_are, h, 1));
    assert_int_equal(h->ticks, 1);
    client_close(&c);
    harness_stop(h);
    free(piece);
}

HTTP_TEST(draining_gives_every_stream_its_last_chunk, h)
{
    struct client clients[] = {client_tcp(h), client_unix(h)};
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        client_text(&clients[i], GET("/stream"));
    assert_true(harness_await(ticks_at_least, h, 2));
    http_server_drain(h->server);
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        struct answer a = client_answer(&clients[i]);
        assert_string_equal(a.body, "hello\npiece\n");
        assert_true(client_at_end(&clients[i]));
        client_close(&clients[i]);
    }
    assert_int_equal(h->stream_ends, 2);
}

TEST(stopping_tells_every_stream)
{
    struct harness *h = harness_start(2, NULL);
    struct client clients[6];
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        clients[i] = client_tcp(h);
        client_text(&clients[i], GET("/stream"));
    }
    assert_true(harness_await(ticks_at_least, h, LENGTH_OF(clients)));
    /* The server is stopped first here, so that its last words can still be counted. */
    h->server = http_server_stop(h->server);
    assert_int_equal(h->stream_ends, LENGTH_OF(clients));
    assert_int_equal(h->dones, LENGTH_OF(clients));
    harness_stop_at_once(h);
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        client_close(&clients[i]);
}

HTTP_TEST(an_http_1_0_client_gets_the_bare_bytes_and_the_end, h)
{
    h->ping_ms = 5;
    h->stream_pieces_max = 2;
    struct client c = client_tcp(h);
    client_text(&c, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    await_text(&c, "\r\n\r\nhello\npiece\npiece\n");
    assert_null(strstr(c.in.ptr, "chunked"));
    assert_non_null(strstr(c.in.ptr, "Connection: close\r\n"));
    strbuf_clear(&c.in);
    assert_true(client_at_end(&c));
    client_close(&c);
}

HTTP_TEST(head_of_a_stream_is_only_its_head, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n" GET("/echo"));
    assert_int_equal(client_answer_to_head(&c).status, 200);
    struct answer a = client_answer(&c);
    assert_string_equal(a.body, "GET /echo||");
    assert_int_equal(h->stream_ends, 1);
    client_close(&c);
}

static void *tick_often(void *server)
{
    for (int i = 0; i < 2000; i++)
        http_server_tick(server);
    return NULL;
}

HTTP_TEST(ticks_from_many_threads_are_safe, h)
{
    struct client clients[8];
    pthread_t threads[3];
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        clients[i] = client_tcp(h);
        client_text(&clients[i], GET("/stream"));
    }
    for (size_t i = 0; i < LENGTH_OF(threads); i++)
        MUST(pthread_create(&threads[i], NULL, tick_often, h->server) == 0);
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        await_text(&clients[i], "piece\n");
    for (size_t i = 0; i < LENGTH_OF(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        client_close(&clients[i]);
    assert_true(harness_await(stream_ends_are, h, LENGTH_OF(clients)));
}

/* --- held: a long poll that ticks as a stream does ------------------------------------------------- */

HTTP_TEST(a_held_exchange_says_nothing_until_a_tick_answers_it, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/poll") GET("/echo"));
    assert_true(harness_await(ticks_at_least, h, 1));
    assert_int_equal(http_server_busy(h->server), 1); /* unlike a stream it is owed an answer */
    uint32_t seen = h->ticks;
    http_server_tick(h->server);
    assert_true(harness_await(ticks_at_least, h, seen + 1));
    assert_int_equal(c.in.len, 0);
    h->lets_go = true;
    http_server_tick(h->server);
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "let go");
    a = client_answer(&c); /* what was pipelined behind it */
    assert_string_equal(a.body, "GET /echo||");
    assert_int_equal(h->stream_ends, 0);
    assert_true(harness_await(dones_are, h, 2));
    client_close(&c);
}

HTTP_TEST(a_held_exchange_whose_client_sends_no_more_is_answered, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/poll"));
    assert_true(harness_await(ticks_at_least, h, 1));
    shutdown(c.fd, SHUT_WR);
    struct answer a = client_answer(&c);
    assert_string_equal(a.body, "over");
    client_close(&c);
    assert_true(harness_await(connections_are, h, 0));
    assert_int_equal(h->stream_ends, 0);
    assert_int_equal(http_server_busy(h->server), 0);
}

HTTP_TEST(draining_and_a_head_alone_answer_a_held_exchange, h)
{
    struct client c = client_tcp(h), other = client_tcp(h);
    client_text(&other, "HEAD /poll HTTP/1.1\r\nHost: a\r\n\r\n");
    await_text(&other, "Content-Length: 4\r\n");
    client_text(&c, GET("/poll"));
    assert_true(harness_await(ticks_at_least, h, 2));
    http_server_drain(h->server);
    struct answer a = client_answer(&c);
    assert_string_equal(a.body, "over");
    assert_true(client_at_end(&c));
    client_close(&c);
    client_close(&other);
}
