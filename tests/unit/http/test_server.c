/* Requests and answers over real sockets. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

HTTP_TEST(a_request_is_answered_over_tcp_and_over_the_unix_socket, h)
{
    struct client clients[] = {client_tcp(h), client_unix(h)};
    for (size_t i = 0; i < LENGTH_OF(clients); i++) {
        client_text(&clients[i], "POST /echo?a=%20 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_answer(&clients[i], 200, "POST /echo|a=%20|hello");
        client_close(&clients[i]);
    }
}

HTTP_TEST(one_connection_serves_many_requests, h)
{
    struct client c = client_tcp(h);
    for (int i = 0; i < 200; i++) {
        client_text(&c, GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
    }
    assert_true(harness_await(connections_are, h, 1));
    client_close(&c);
    assert_true(harness_await(connections_are, h, 0));
}

static void pipeline(struct harness *h, const char *path)
{
    struct client c = client_tcp(h);
    struct strbuf all = {0};
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&all, "GET %s?%d HTTP/1.1\r\nHost: a\r\n\r\n", path, i);
    client_send(&c, all.ptr, all.len);
    for (int i = 0; i < 1000; i++) {
        char want[64];
        snprintf(want, sizeof want, "GET %s|%d|", path, i);
        assert_answer(&c, 200, want);
    }
    strbuf_free(&all);
    client_close(&c);
}

HTTP_TEST(a_thousand_pipelined_requests_are_answered_in_order, h)
{
    pipeline(h, "/echo");
    pipeline(h, "/park");
    pipeline(h, "/park-self");
}

HTTP_TEST(a_pipelined_request_waits_until_the_one_before_is_answered, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/hold") GET("/canary"));
    struct http_exchange *x = harness_held(h);
    assert_int_equal(h->canaries, 0);
    harness_release(h, x);
    assert_answer(&c, 200, "GET /hold||");
    assert_answer(&c, 200, "canary");
    client_close(&c);
}

/* A parked exchange holds nothing of its round: its answer comes in another one, which ends too. */
TEST(a_round_ends_before_its_loop_sleeps)
{
    struct harness *h = harness_start(1, NULL);
    struct client c = client_tcp(h);
    for (int i = 0; i < 20; i++) {
        client_text(&c, GET("/echo") GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
        assert_answer(&c, 200, "GET /echo||");
        assert_true(harness_await(rounds_open_are, h, 0));
    }
    client_text(&c, GET("/hold"));
    struct http_exchange *x = harness_held(h);
    assert_true(harness_await(rounds_open_are, h, 0));
    h->rounds_open = 1;
    harness_release(h, x);
    assert_answer(&c, 200, "GET /hold||");
    assert_true(harness_await(rounds_open_are, h, 0));
    client_close(&c);
    harness_stop(h);
}

HTTP_TEST(head_gets_the_head_of_get_and_no_body, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n" GET("/echo"));
    struct answer a = client_answer_to_head(&c);
    char value[256];
    assert_int_equal(a.status, 200);
    assert_string_equal(answer_header(&a, "Content-Length", value), "12");
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}

HTTP_TEST(every_answer_carries_the_promised_headers, h)
{
    struct client c = client_tcp(h);
    char value[256];
    client_text(&c, GET("/echo"));
    struct answer a = client_answer(&c);
    assert_int_equal(strlen(answer_header(&a, "X-Request-Id", value)), 36);
    assert_int_equal(strlen(answer_header(&a, "Date", value)), 29);
    assert_string_equal(answer_header(&a, "Cache-Control", value), "no-store");
    assert_string_equal(answer_header(&a, "Content-Type", value), "text/plain");
    assert_null(answer_header(&a, "Connection", value));

    client_text(&c, GET("/headers"));
    a = client_answer(&c);
    assert_int_equal(a.status, 201);
    assert_string_equal(answer_header(&a, "Location", value), "/somewhere");
    assert_string_equal(answer_header(&a, "X-Evil", value), "a  Set-Cookie: b");
    assert_null(answer_header(&a, "Set-Cookie", value));
    assert_string_equal(answer_header(&a, "Cache-Control", value), "max-age=60");
    assert_null(answer_header(&a, "Content-Type", value));

    client_text(&c, GET("/no-content"));
    a = client_answer(&c);
    assert_int_equal(a.status, 204);
    assert_null(answer_header(&a, "Content-Length", value));
    client_close(&c);
}

/* [JOB-231] */
HTTP_TEST(the_instance_of_a_problem_is_the_request_id, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/nowhere"));
    struct answer a = client_answer(&c);
    char id[256], member[300];
    assert_int_equal(a.status, 404);
    snprintf(member, sizeof member, "\"instance\":\"%s\"", answer_header(&a, "X-Request-Id", id));
    assert_non_null(strstr(a.body, member));
    client_close(&c);
}

HTTP_TEST(a_method_the_path_does_not_know_is_told_what_is_allowed, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "DELETE /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    struct answer a = client_answer(&c);
    char value[256];
    assert_int_equal(a.status, 405);
    assert_string_equal(answer_header(&a, "Allow", value), "GET, HEAD, POST, OPTIONS");
    client_close(&c);
}

HTTP_TEST(a_client_that_expects_100_gets_it_before_it_sends_the_body, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(client_answer_to_head(&c).status, 100);
    client_text(&c, "ok");
    assert_answer(&c, 200, "POST /echo||ok");
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(client_answer_to_head(&c).status, 100);
    client_text(&c, "2\r\nok\r\n0\r\n\r\n");
    assert_answer(&c, 200, "POST /echo||ok");
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                    "Content-Length: 99999999\r\n\r\n");
    assert_int_equal(client_answer(&c).status, 413); /* and not 100 */
    client_close(&c);
}

HTTP_TEST(a_large_answer_arrives_whole_at_a_reader_who_takes_his_time, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/big") GET("/echo"));
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, BIG_BYTES);
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}

HTTP_TEST(a_large_body_arrives_whole, h)
{
    enum { BYTES = 1024 * 1024 };
    struct client c = client_tcp(h);
    char *body = must_alloc(BYTES);
    memset(body, 'x', BYTES);
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
    client_send(&c, body, BYTES);
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_len, BYTES + 12);
    free(body);
    client_close(&c);
}

HTTP_TEST(a_body_over_the_limit_is_refused_and_the_answer_survives, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    char *body = must_alloc(3000000);
    client_send(&c, body, 3000000); /* an eager client: sends all before it reads */
    free(body);
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 413);
    assert_true(a.closes);
    assert_true(client_at_end(&c));
    client_close(&c);
}

/* ---- parking ---- */

struct load {
    struct harness *h;
    uint32_t failures;
};

enum { LOAD_THREADS = 4, CONNS_PER_THREAD = 16, ROUNDS = 50 };

static void *load_main(void *arg)
{
    struct load *load = arg;
    struct client clients[CONNS_PER_THREAD];
    for (int i = 0; i < CONNS_PER_THREAD; i++)
        clients[i] = i % 4 ? client_tcp(load->h) : client_unix(load->h);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CONNS_PER_THREAD; i++) {
            char text[128];
            snprintf(text, sizeof text, "POST /park?%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
                     round * CONNS_PER_THREAD + i);
            client_text(&clients[i], text);
        }
        for (int i = 0; i < CONNS_PER_THREAD; i++) {
            char want[64];
            snprintf(want, sizeof want, "POST /park|%d|abc", round * CONNS_PER_THREAD + i);
            struct answer a = client_answer(&clients[i]);
            load->failures += a.status != 200 || strcmp(a.body, want) != 0;
        }
    }
    for (int i = 0; i < CONNS_PER_THREAD; i++)
        client_close(&clients[i]);
    return NULL;
}

HTTP_TEST(sixty_four_connections_are_parked_and_resumed_by_another_thread, h)
{
    struct load loads[LOAD_THREADS];
    pthread_t threads[LOAD_THREADS];
    for (int i = 0; i < LOAD_THREADS; i++) {
        loads[i] = (struct load){h, 0};
        MUST(pthread_create(&threads[i], NULL, load_main, &loads[i]) == 0);
    }
    for (int i = 0; i < LOAD_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(loads[i].failures, 0);
    }
    assert_int_equal(h->requests, LOAD_THREADS * CONNS_PER_THREAD * ROUNDS);
    assert_true(harness_await(dones_are, h, LOAD_THREADS * CONNS_PER_THREAD * ROUNDS));
    assert_true(harness_await(busy_is, h, 0));
}

HTTP_TEST(an_exchange_may_be_resumed_before_its_handler_returns, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/park-self"));
    assert_answer(&c, 200, "GET /park-self||");
    client_close(&c);
}

static struct http_exchange *watched;
static bool is_gone(struct harness *h, uint32_t n)
{
    (void)h;
    (void)n;
    return watched->gone;
}

HTTP_TEST(a_client_that_closes_while_parked_is_noticed, h)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct client c = i ? client_tcp(h) : client_unix(h);
        client_text(&c, GET("/hold"));
        watched = harness_held(h);
        assert_false(watched->gone);
        client_close(&c);
        assert_true(harness_await(is_gone, h, 0));
        assert_int_equal(http_server_busy(h->server), 1);
        harness_release(h, watched);
        assert_true(harness_await(busy_is, h, 0));
        assert_true(harness_await(connections_are, h, 0));
        assert_int_equal(h->dones, i + 1);
    }
}

HTTP_TEST(a_reset_while_parked_frees_the_connection_at_once, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/hold"));
    watched = harness_held(h);
    struct linger reset = {1, 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    assert_true(harness_await(connections_are, h, 0));
    assert_true(watched->gone);
    assert_int_equal(http_server_busy(h->server), 1);
    harness_release(h, watched);
    assert_true(harness_await(busy_is, h, 0));
}

HTTP_TEST(a_client_that_only_shuts_its_sending_side_is_still_answered, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/hold") GET("/echo"));
    shutdown(c.fd, SHUT_WR);
    watched = harness_held(h);
    assert_true(harness_await(is_gone, h, 0)); /* it might be gone: nobody can tell yet */
    harness_release(h, watched);
    assert_answer(&c, 200, "GET /hold||");
    assert_answer(&c, 200, "GET /echo||");
    assert_true(client_at_end(&c));
    client_close(&c);
}

HTTP_TEST(half_a_request_and_an_end_of_input_is_refused, h)
{
    struct client c = client_tcp(h);
    client_text(&c, "GET /echo HT");
    shutdown(c.fd, SHUT_WR);
    assert_int_equal(client_answer(&c).status, 400);
    assert_true(client_at_end(&c));
    client_close(&c);
}

HTTP_TEST(a_timeout_answers_and_the_late_resume_only_frees, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/timeout"));
    assert_int_equal(client_answer(&c).status, 504);
    client_text(&c, GET("/echo")); /* the connection is free for the next request */
    assert_answer(&c, 200, "GET /echo||");
    assert_true(harness_await(busy_is, h, 1));
    harness_release(h, harness_held(h));
    assert_true(harness_await(busy_is, h, 0));
    assert_int_equal(h->dones, 2);
    client_close(&c);
}

HTTP_TEST(a_timeout_fires_even_when_the_client_is_gone, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/timeout"));
    struct http_exchange *x = harness_held(h);
    struct linger reset = {1, 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    client_close(&c);
    assert_true(harness_await(dones_are, h, 1));
    assert_int_equal(http_server_busy(h->server), 1);
    harness_release(h, x);
    assert_true(harness_await(busy_is, h, 0));
}

HTTP_TEST(a_resume_in_time_beats_the_timeout, h)
{
    struct client c = client_tcp(h);
    for (int i = 0; i < 20; i++) {
        client_text(&c, GET("/timeout"));
        harness_release(h, harness_held(h));
        struct answer a = client_answer(&c);
        assert_true(a.status == 200 || a.status == 504); /* a slow machine may be late, never wrong */
    }
    assert_true(harness_await(dones_are, h, 20));
    assert_true(harness_await(busy_is, h, 0));
    client_close(&c);
}

HTTP_TEST(the_handler_may_ask_for_the_end_of_the_connection, h)
{
    struct client c = client_tcp(h);
    client_text(&c, GET("/close") GET("/canary"));
    struct answer a = client_answer(&c);
    assert_int_equal(a.status, 200);
    assert_true(a.closes);
    assert_true(client_at_end(&c));
    assert_int_equal(((struct harness *)h)->canaries, 0);
    client_close(&c);
}

HTTP_TEST(a_client_that_writes_on_after_the_last_answer_is_not_reset, h)
{
    struct client c = client_unix(h);
    client_text(&c, GET("/close"));
    assert_answer(&c, 200, "GET /close||");
    assert_true(client_at_end(&c));
    assert_true(client_send_and_wait(&c, GET("/canary"), strlen(GET("/canary")))); /* read away */
    assert_int_equal(h->canaries, 0);
    client_close(&c);
    assert_true(harness_await(connections_are, h, 0)); /* the client's close ends the wait */
}

/* ---- listening ---- */

HTTP_TEST(a_taken_port_is_refused, h)
{
    struct http_config config = {.listen_host = "127.0.0.1",
                                 .listen_port = h->port,
                                 .threads = 1,
                                 .clock = &clock_system,
                                 .on_request = http_answer};
    struct http_server *second = NULL;
    struct err err;
    assert_int_equal(http_server_start(&config, &second, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "in use"));
    assert_null(second);
}

HTTP_TEST(the_unix_socket_is_private_and_never_stolen_while_alive, h)
{
    struct stat file;
    assert_int_equal(stat(h->unix_path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    struct http_config config = {
        .unix_path = h->unix_path, .threads = 1, .clock = &clock_system, .on_request = http_answer};
    struct http_server *second = NULL;
    struct err err;
    assert_int_equal(http_server_start(&config, &second, &err), ERR_CONFIG_INVALID);
    struct client c = client_unix(h);
    client_text(&c, GET("/echo"));
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}

TEST(a_stale_unix_socket_is_replaced_and_removed_at_the_end)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/weir-http-stale-%d.sock", getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd); /* what a killed server leaves behind */
    struct http_config config = {
        .unix_path = address.sun_path, .threads = 2, .clock = &clock_system, .on_request = http_answer};
    struct http_server *server = NULL;
    struct err err;
    assert_int_equal(http_server_start(&config, &server, &err), ERR_OK);
    http_server_stop(server);
    assert_int_equal(access(address.sun_path, F_OK), -1);
}

TEST(a_name_that_does_not_resolve_is_one_clear_line)
{
    struct http_config config = {
        .listen_host = "no such host", .threads = 1, .clock = &clock_system, .on_request = http_answer};
    struct http_server *server = NULL;
    struct err err;
    assert_int_equal(http_server_start(&config, &server, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "no such host"));
}

static int64_t cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

HTTP_TEST(without_file_descriptors_a_connection_is_refused_at_once, h)
{
    struct rlimit before, tight;
    getrlimit(RLIMIT_NOFILE, &before);
    struct client c = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    tight = before;
    tight.rlim_cur = (rlim_t)c.fd + 1; /* the client has its socket; accept() gets none */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(h->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&to, sizeof to), 0);
    client_text(&c, GET("/echo"));
    int64_t spent = cpu_ms();
    struct pollfd p = {c.fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 30000), 1); /* nobody waits for an answer that never comes */
    assert_int_equal(poll(&p, 1, 200), 1);
    spent = cpu_ms() - spent;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_in_range(spent, 0, 150);
    client_close(&c);
    c = client_tcp(h);
    client_text(&c, GET("/echo"));
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}
