/* Connections by source address: at a limit the longest idle one closes for the new one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"
#include "http/http_internal.h"

#include "base/banned.h"

enum { LIMIT = 4 };

static void expect_served(struct client *c)
{
    client_text(c, GET("/canary"));
    assert_int_equal(client_answer(c).status, 200);
}

static void let_a_moment_pass(void)
{
    usleep(3000); /* idleness is measured in milliseconds */
}

/* LIMIT connections; the second is the one that has been idle longest. */
static void fill(struct harness *h, struct client clients[LIMIT])
{
    static const int order[LIMIT] = {1, 3, 0, 2};
    for (int i = 0; i < LIMIT; i++)
        clients[i] = client_tcp(h);
    for (int i = 0; i < LIMIT; i++)
        expect_served(&clients[i]);
    for (int i = 0; i < LIMIT; i++) {
        let_a_moment_pass();
        expect_served(&clients[order[i]]);
    }
    let_a_moment_pass();
}

static void the_longest_idle_closes_for_a_new_one(uint32_t threads, const struct http_limits *limits)
{
    struct harness *h = harness_start(threads, limits);
    struct client clients[LIMIT], fifth, sixth;
    fill(h, clients);
    fifth = client_tcp(h);
    expect_served(&fifth);
    assert_true(client_at_end(&clients[1]));
    sixth = client_tcp(h);
    expect_served(&sixth);
    assert_true(client_at_end(&clients[3]));
    expect_served(&clients[0]);
    expect_served(&clients[2]);
    expect_served(&fifth);
    assert_int_equal(h->bad_requests, 0);
    for (int i = 0; i < LIMIT; i++)
        client_close(&clients[i]);
    client_close(&fifth);
    client_close(&sixth);
    harness_stop(h);
}

TEST(at_the_limit_of_an_address_its_longest_idle_connection_closes)
{
    the_longest_idle_closes_for_a_new_one(1, &(struct http_limits){.connections_per_address = LIMIT});
}

TEST(also_when_it_belongs_to_another_loop)
{
    for (int i = 0; i < 5; i++) /* the kernel spreads them by chance */
        the_longest_idle_closes_for_a_new_one(3, &(struct http_limits){.connections_per_address = LIMIT});
}

TEST(at_the_limit_of_the_server_the_longest_idle_connection_of_all_closes)
{
    the_longest_idle_closes_for_a_new_one(2, &(struct http_limits){.connections_max = LIMIT});
}

/* Half a head each, but for the one that was served last: the new one takes the place of the first. */
TEST(a_connection_that_has_sent_half_a_head_is_idle_as_before)
{
    struct harness *h = harness_start(1, &(struct http_limits){.connections_per_address = LIMIT});
    struct client clients[LIMIT], fifth;
    fill(h, clients);
    for (int i = 0; i < LIMIT - 1; i++) {
        uint32_t before = (uint32_t)http_server_held_bytes(h->server);
        client_text(&clients[i], "GET /canary HTTP/1.1\r\nHo");
        assert_true(harness_await(holds_at_least, h, before + 1));
    }
    expect_served(&clients[LIMIT - 1]);
    fifth = client_tcp(h);
    expect_served(&fifth);
    assert_true(client_at_end(&clients[1]));
    client_text(&clients[0], "st: a\r\n\r\n"); /* the others may still go on */
    assert_int_equal(client_answer(&clients[0]).status, 200);
    for (int i = 0; i < LIMIT; i++)
        client_close(&clients[i]);
    client_close(&fifth);
    harness_stop(h);
}

TEST(where_none_is_idle_the_new_one_is_refused)
{
    struct harness *h = harness_start(1, &(struct http_limits){.connections_per_address = 2});
    struct client parked = client_tcp(h), half = client_tcp(h), third, own = client_unix(h);
    client_text(&parked, GET("/hold"));
    struct http_exchange *held = harness_held(h);
    client_text(&half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody");
    assert_true(harness_await(holds_at_least, h, 1));
    expect_served(&own);
    third = client_tcp(h);
    struct answer a = client_answer(&third);
    assert_int_equal(a.status, 503);
    assert_true(a.closes);
    assert_non_null(strstr(a.body, "your address has 2 connections"));
    harness_release(h, held);
    assert_int_equal(client_answer(&parked).status, 200);
    int status =
        503; /* the one that was parked is idle now; it is looked for again after a few milliseconds */
    for (int tries = 0; status == 503 && tries < 1000; tries++) {
        let_a_moment_pass();
        client_close(&third);
        third = client_tcp(h);
        client_text(&third, GET("/canary"));
        status = client_answer(&third).status;
    }
    assert_int_equal(status, 200);
    assert_true(client_at_end(&parked));
    client_close(&parked);
    client_close(&half);
    client_close(&third);
    client_close(&own);
    harness_stop(h);
}

/* Between a loop's question and its connection another loop may ask: the limit holds all the same. */
TEST(loops_that_ask_at_the_same_time_never_take_one_place_twice)
{
    static const struct http_address here = {{[15] = 1}}, there = {{[0] = 0x20, [15] = 1}};
    struct http_server *server = must_alloc(sizeof *server);
    struct http_loop *a = must_alloc(sizeof *a), *b = must_alloc(sizeof *b);
    a->server = b->server = server;
    server->peers = peers_new(3, 2);
    assert_int_equal(peers_ask(a, &here), PEERS_ADMITTED);
    assert_int_equal(peers_ask(b, &here), PEERS_ADMITTED);
    assert_int_equal(peers_ask(a, &here), PEERS_ADDRESS_FULL);
    assert_int_equal(peers_ask(a, &there), PEERS_ADMITTED);
    assert_int_equal(peers_ask(b, &there), PEERS_ALL_FULL);
    peers_give_back(a, &here); /* its connection could not be opened */
    assert_int_equal(peers_ask(b, &here), PEERS_ADMITTED);
    peers_give_back(a, &here);
    peers_give_back(a, &here);
    peers_give_back(a, &there);
    server->peers = peers_free(server->peers); /* which insists that no place is left taken */
    free(a);
    free(b);
    free(server);
}

static int64_t five_seconds(void *self)
{
    (void)self;
    return 5000;
}
static const struct clock at_five_seconds = {.mono_ms = five_seconds};

/* The one that asks has begun its round before the others became idle, and one of them is in use. */
TEST(a_loop_whose_round_has_lasted_long_sees_who_became_idle_meanwhile)
{
    static const struct http_address here = {{[15] = 1}};
    struct http_server *server = must_alloc(sizeof *server);
    struct http_loop *late = must_alloc(sizeof *late), *other = must_alloc(sizeof *other);
    struct http_conn conns[3] = {0};
    late->server = other->server = server;
    late->now_ms = 1000;
    other->wake_fd = eventfd(0, EFD_CLOEXEC);
    server->config.clock = &at_five_seconds;
    server->peers = peers_new(16, 3);
    for (int i = 0; i < 3; i++) {
        conns[i] = (struct http_conn){.loop = other, .peer = here, .idle_since_ms = 2000 + i};
        assert_int_equal(peers_ask(other, &here), PEERS_ADMITTED);
        peers_add(&conns[i]);
    }
    conn_idle(&conns[0], PEERS_NOT_IDLE);
    assert_int_equal(peers_ask(late, &here), PEERS_ADMITTED);
    assert_ptr_equal(other->evicted, &conns[1]);
    peers_give_back(late, &here);
    for (int i = 0; i < 3; i++)
        peers_remove(&conns[i]);
    server->peers = peers_free(server->peers);
    close(other->wake_fd);
    free(late);
    free(other);
    free(server);
}

TEST(networks_are_ipv4_addresses_and_halves_of_ipv6_addresses)
{
    static const struct http_address v4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7}};
    static const struct http_address v6 = {{0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
    char text[HTTP_ADDRESS_TEXT_MAX];
    struct http_address network = http_address_network(&v4);
    assert_true(str_is(http_address_text(&network, text), "192.0.2.7"));
    network = http_address_network(&v6);
    assert_true(str_is(http_address_text(&network, text), "2001:db8:1:2::"));
    assert_true(str_is(http_address_text(&v6, text), "2001:db8:1:2:304:506:708:90a"));
}
