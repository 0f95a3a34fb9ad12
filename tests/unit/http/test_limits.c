/* Slow and idle clients, too many of them, and the end of a server. */
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true, IDLE_CONNECTIONS = 1000 };
#else
enum { SANITIZED = false, IDLE_CONNECTIONS = 10000 };
#endif
enum { IDLE_BYTES_MAX = 600 };

/* Sends one byte whenever 10 ms passed without an answer, as slowloris does. */
static struct answer trickle(struct client *c, const char *text)
{
    for (size_t i = 0;; i = i + 1 < strlen(text) ? i + 1 : i) {
        client_send(c, text + i, 1);
        struct pollfd p = {c->fd, POLLIN, 0};
        if (poll(&p, 1, 10) > 0)
            return client_answer(c);
    }
}

TEST(a_request_that_trickles_in_is_cut_off)
{
    struct harness *h = harness_start(1, &(struct http_limits){.request_read_ms = 150});
    static const char *const slow[] = {
        "GET /echo HTTP/1.1\r\nHost: a\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\naaaaaaaaaaaaaaaaaaaaa",
    };
    for (size_t i = 0; i < LENGTH_OF(slow); i++) {
        struct client c = client_tcp(h);
        size_t at_once = i ? strlen(slow[i]) - 20 : 20;
        int64_t began =
            clock_mono_ms(&clock_system); /* before the first byte: the server's time starts later */
        client_send(&c, slow[i], at_once);
        struct answer a = trickle(&c, slow[i] + at_once); /* which ends with its answer only */
        int64_t took = clock_mono_ms(&clock_system) - began;
        assert_int_equal(a.status, 408);
        assert_true(a.closes);
        assert_true(took >= 140);
        assert_true(client_at_end(&c));
        client_close(&c);
    }
    harness_stop(h);
}

enum { ROUND_OF = 4, LARGE_BYTES = 40 * 1024, STANDS_STILL_MS = 300 };

/* A POST to /echo with a body of that size. */
static void send_body(struct client *c, const char *query, size_t bytes)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "POST /echo%s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", query, bytes);
    for (size_t i = 0; i < bytes; i++)
        strbuf_add_text(&text, "x");
    client_send(c, text.ptr, text.len);
    strbuf_free(&text);
}

static void expect_answers(struct client clients[ROUND_OF])
{
    for (int i = 0; i < ROUND_OF; i++)
        assert_int_equal(client_answer(&clients[i]).status, 200);
}

/* In one round of the loop, while it stands still: first those, with bodies of that size; then the others. */
static const char *order_of(struct harness *h, struct client first[ROUND_OF], size_t bytes,
                            struct client then[ROUND_OF])
{
    struct client holder = client_tcp(h);
    assert_true(harness_await(rounds_open_are, h, 0)); /* the end of an earlier round is not to wait */
    h->ordered = 0;
    h->waits_unsaid = true;
    h->next_round_waits_ms = STANDS_STILL_MS;
    client_text(&holder, GET("/echo"));
    assert_int_equal(client_answer(&holder).status, 200);
    assert_true(harness_await(waits_are, h, 1));
    for (int i = 0; i < ROUND_OF; i++)
        send_body(&first[i], "?first", bytes);
    for (int i = 0; i < ROUND_OF; i++)
        send_body(&then[i], "?then", 1);
    expect_answers(first);
    expect_answers(then);
    client_close(&holder);
    h->order[h->ordered] = 0;
    return h->order;
}

/* Whoever sends large bodies is served behind all who came after him with small ones. The control: as soon as
 * he sends small ones himself he is served in his turn. */
TEST(large_bodies_are_read_behind_small_requests)
{
    struct harness *h = harness_start(1, NULL);
    struct client large[ROUND_OF], small[ROUND_OF];
    for (int i = 0; i < ROUND_OF; i++) {
        large[i] = client_tcp(h);
        small[i] = client_tcp(h);
        send_body(&large[i], "", LARGE_BYTES); /* what one sent last tells what to expect */
        send_body(&small[i], "", 1);
    }
    expect_answers(large);
    expect_answers(small);
    assert_string_equal(order_of(h, large, LARGE_BYTES, small), "ttttffff");
    for (int i = 0; i < ROUND_OF; i++)
        send_body(&large[i], "", 1);
    expect_answers(large);
    assert_string_equal(order_of(h, large, 1, small), "fffftttt");
    for (int i = 0; i < ROUND_OF; i++) {
        client_close(&large[i]);
        client_close(&small[i]);
    }
    harness_stop(h);
}

TEST(an_idle_connection_is_closed_without_a_word)
{
    struct harness *h = harness_start(1, &(struct http_limits){.idle_ms = 60});
    struct client fresh = client_tcp(h), used = client_tcp(h);
    client_text(&used, GET("/echo"));
    assert_int_equal(client_answer(&used).status, 200);
    assert_true(client_at_end(&used));
    assert_true(client_at_end(&fresh));
    client_close(&used);
    client_close(&fresh);
    harness_stop(h);
}

TEST(an_answer_nobody_takes_is_given_up)
{
    struct harness *h = harness_start(1, &(struct http_limits){.write_ms = 100});
    struct client c = client_tcp(h);
    client_text(&c, GET("/big"));
    assert_true(harness_await(dones_are, h, 1));
    assert_true(harness_await(connections_are, h, 0));
    assert_int_equal(client_answer(&c).status, 0); /* never whole */
    client_close(&c);
    harness_stop(h);
}

static bool unsent_at_least(struct harness *h, uint32_t n)
{
    return http_server_unsent_bytes(h->server) >= n;
}

static void expect_big(struct client *c)
{
    struct answer a = client_answer(c);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, BIG_BYTES);
}

/* Two who do not read where there is no room for both; the second has asked for more behind it. */
TEST(of_answers_that_nobody_reads_the_oldest_gives_way)
{
    struct harness *h = harness_start(
        1, &(struct http_limits){.bodies_max_bytes = 1024 * 1024, .write_ms = 10 * PATIENCE_MS});
    struct client first = client_tcp(h), second = client_tcp(h), own = client_unix(h);
    client_text(&own, GET("/big"));
    client_text(&first, GET("/big"));
    assert_true(harness_await(unsent_at_least, h, BIG_BYTES));
    client_text(&second, GET("/big") GET("/canary"));
    assert_true(harness_await(dones_are, h, 1));
    assert_int_equal(client_answer(&first).status, 0);
    assert_in_range(http_server_unsent_bytes(h->server), BIG_BYTES, 2 * BIG_BYTES + 65536);
    assert_int_equal(h->canaries, 0); /* not begun while something is unsent */
    expect_big(&second);
    assert_int_equal(client_answer(&second).status, 200);
    assert_int_equal(http_server_unsent_bytes(h->server), 0);
    expect_big(&own); /* our own processes never give way */
    client_close(&first);
    client_close(&second);
    client_close(&own);
    harness_stop(h);
}

TEST(answers_that_fit_wait_for_their_readers_together)
{
    struct harness *h = harness_start(1, &(struct http_limits){.bodies_max_bytes = 1LL << 30});
    struct client first = client_tcp(h), second = client_tcp(h);
    client_text(&first, GET("/big"));
    client_text(&second, GET("/big"));
    assert_true(harness_await(unsent_at_least, h, 2 * BIG_BYTES));
    expect_big(&first);
    expect_big(&second);
    client_close(&first);
    client_close(&second);
    harness_stop(h);
}

/* A part of a body: what has sent one is not idle. */
static void send_half(struct harness *h, struct client *c)
{
    uint32_t before = (uint32_t)http_server_held_bytes(h->server);
    client_text(c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody");
    assert_true(harness_await(holds_at_least, h, before + 1));
}

TEST(beyond_the_limit_a_connection_is_told_503_where_none_is_idle)
{
    struct harness *h = harness_start(1, &(struct http_limits){.connections_max = 2});
    struct client a = client_tcp(h), b = client_tcp(h);
    assert_true(harness_await(connections_are, h, 2));
    send_half(h, &a);
    send_half(h, &b);
    struct client c = client_tcp(h);
    struct answer refused = client_answer(&c);
    char value[256];
    assert_int_equal(refused.status, 503);
    assert_true(refused.closes);
    assert_string_equal(answer_header(&refused, "Retry-After", value), "1");
    assert_true(client_at_end(&c));
    client_close(&c);
    client_close(&a);
    assert_true(harness_await(connections_are, h, 1));
    struct client d = client_tcp(h);
    client_text(&d, GET("/echo"));
    assert_int_equal(client_answer(&d).status, 200);
    client_close(&d);
    client_close(&b);
    harness_stop(h);
}

TEST(a_full_house_has_room_for_the_unix_socket_which_has_a_limit_of_its_own)
{
    struct harness *h = harness_start(1, &(struct http_limits){.connections_max = 1, .unix_max = 1});
    struct client outside = client_tcp(h);
    assert_true(harness_await(connections_are, h, 1));
    send_half(h, &outside);
    struct client own = client_unix(h);
    client_text(&own, GET("/echo"));
    assert_int_equal(client_answer(&own).status, 200);
    struct client refused[] = {client_tcp(h), client_unix(h)};
    for (size_t i = 0; i < LENGTH_OF(refused); i++) {
        assert_int_equal(client_answer(&refused[i]).status, 503);
        client_close(&refused[i]);
    }
    client_close(&own);
    client_close(&outside);
    harness_stop(h);
}

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static uint32_t raise_fd_limit(uint32_t wanted)
{
    struct rlimit l;
    getrlimit(RLIMIT_NOFILE, &l);
    l.rlim_cur = l.rlim_max < wanted ? l.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &l);
    getrlimit(RLIMIT_NOFILE, &l);
    return (uint32_t)l.rlim_cur;
}

TEST(idle_connections_cost_little_memory)
{
    uint32_t fds = raise_fd_limit(2 * IDLE_CONNECTIONS + 100);
    uint32_t count = (fds - 100) / 2 < IDLE_CONNECTIONS ? (fds - 100) / 2 : IDLE_CONNECTIONS;
    struct harness *h = harness_start(1, &(struct http_limits){.unix_max = count});
    struct client *clients = must_alloc(count * sizeof *clients);
    struct client warm = client_tcp(h);
    client_text(&warm, GET("/echo"));
    assert_int_equal(client_answer(&warm).status, 200);
    client_close(&warm);
    assert_true(harness_await(connections_are, h, 0));
    size_t before = heap_bytes();
    for (uint32_t i = 0; i < count; i++)
        clients[i] = client_unix(h);
    assert_true(harness_await(connections_are, h, count));
    size_t fresh = heap_bytes() - before;
    static const char begin[] = "GET /echo HTTP/1.1\r\nHost: a\r\nX: ";
    char piece[2048];
    memset(piece, 'x', sizeof piece);
    memcpy(piece, begin, sizeof begin - 1);
    for (uint32_t i = 0; i < count; i++) { /* each has a request that needs a buffer for a while */
        assert_true(client_send_and_wait(&clients[i], piece, sizeof piece));
        client_text(&clients[i], "\r\n\r\n");
        assert_int_equal(client_answer(&clients[i]).status, 200);
        strbuf_free(&clients[i].in);
    }
    size_t used = heap_bytes() - before;
    print_message("%u idle connections: %zu bytes each when fresh, %zu after a request\n", count,
                  fresh / count, used / count);
    if (!SANITIZED) {
        assert_true(count >= 9000);
        assert_in_range(fresh / count, 1, IDLE_BYTES_MAX);
        assert_in_range(used / count, 1, IDLE_BYTES_MAX);
    }
    for (uint32_t i = 0; i < count; i++)
        client_close(&clients[i]);
    free(clients);
    assert_true(harness_await(connections_are, h, 0));
    harness_stop(h);
}

/* ---- the end ---- */

TEST(a_draining_server_finishes_what_it_has_and_takes_nothing_new)
{
    struct harness *h = harness_start(2, NULL);
    struct client idle = client_tcp(h), busy = client_tcp(h);
    client_text(&idle, GET("/echo"));
    assert_int_equal(client_answer(&idle).status, 200);
    client_text(&busy, GET("/hold"));
    struct http_exchange *x = harness_held(h);
    http_server_drain(h->server);
    assert_true(client_at_end(&idle));
    assert_true(harness_await(connections_are, h, 1));
    assert_int_equal(http_server_busy(h->server), 1);
    harness_release(h, x);
    struct answer a = client_answer(&busy);
    assert_int_equal(a.status, 200);
    assert_true(a.closes);
    assert_true(client_at_end(&busy));
    client_close(&idle);
    client_close(&busy);
    harness_stop(h);
}

TEST(a_request_half_read_when_draining_begins_is_still_answered)
{
    struct harness *h = harness_start(1, NULL);
    struct client c = client_unix(h);
    assert_true(client_send_and_wait(&c, "GET /echo HTT", 13));
    http_server_drain(h->server);
    client_text(&c, "P/1.1\r\nHost: a\r\n\r\n");
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_true(a.closes);
    client_close(&c);
    harness_stop(h);
}

TEST(a_server_may_stop_with_exchanges_parked)
{
    struct harness *h = harness_start(2, NULL);
    struct client clients[8];
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        clients[i] = i % 2 ? client_tcp(h) : client_unix(h);
        client_text(&clients[i], i < 4 ? GET("/hold") : "GET /echo HTTP/1.1\r\n");
        if (i < 4)
            (void)harness_held(h);
    }
    assert_int_equal(http_server_busy(h->server), 4);
    harness_stop_at_once(h);
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        assert_int_equal(client_answer(&clients[i]).status, 0);
        client_close(&clients[i]);
    }
}

TEST(an_exchange_still_owed_a_resume_is_freed_with_the_server)
{
    struct harness *h = harness_start(1, NULL);
    struct client c = client_tcp(h);
    client_text(&c, GET("/timeout"));
    assert_int_equal(client_answer(&c).status, 504);
    assert_int_equal(http_server_busy(h->server), 1);
    harness_stop_at_once(h); /* the leak checker of the sanitizer build is the judge */
    client_close(&c);
}

int main(void)
{
    mallopt(M_ARENA_MAX, 1); /* mallinfo2() sees only the first */
    return test_run("tests", NULL, NULL);
}
