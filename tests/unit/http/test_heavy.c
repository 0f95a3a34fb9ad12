/* Large bodies: few under way at a time, in turn by sender, and nobody with a small one waits for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

enum { LARGE = 40 * 1024, UNDER_WAY = 2, QUIET_MS = 100 };

static int start(void **state)
{
    *state = harness_start(1, NULL);
    return 0;
}

static void send_large(struct client *c, const char *target, const char *sender)
{
    char *body = must_alloc(LARGE);
    char head[200];
    memset(body, 'x', LARGE);
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", target,
             sender, LARGE);
    client_text(c, head);
    client_send(c, body, LARGE);
    free(body);
}

/* A connection that is known to send large bodies. */
static struct client heavy_client(struct harness *h, const char *sender)
{
    struct client c = client_tcp(h);
    send_large(&c, "/echo", sender);
    assert_int_equal(client_answer(&c).status, 200);
    return c;
}

static void pass_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* So many of them hold their exchanges. */
static void hold_all(struct harness *h, struct client *c, struct http_exchange **held, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        c[i] = heavy_client(h, "x");
        send_large(&c[i], "/hold", "x");
        held[i] = harness_held(h);
    }
}

static void release_all(struct harness *h, struct client *c, struct http_exchange **held, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        harness_release(h, held[i]);
        assert_int_equal(client_answer(&c[i]).status, 200);
        client_close(&c[i]);
    }
}

#define LIVE_TEST(name, parameter) TEST_WITH(name, struct harness *parameter, start, harness_down)

LIVE_TEST(one_more_waits_for_the_end_of_another_and_small_ones_do_not, h)
{
    struct client c[UNDER_WAY + 1], small = client_tcp(h);
    struct http_exchange *held[UNDER_WAY + 1];
    hold_all(h, c, held, UNDER_WAY);
    c[UNDER_WAY] =
        heavy_client(h, "x"); /* the first of a connection is not known to be large before it is there */
    uint32_t requests = h->requests;
    send_large(&c[UNDER_WAY], "/hold", "x");
    client_text(&small, "GET /canary HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(client_answer(&small).status, 200);
    pass_ms(QUIET_MS);
    assert_int_equal(h->requests, requests + 1); /* the small one */
    harness_release(h, held[0]);
    held[UNDER_WAY] = harness_held(h);
    assert_int_equal(client_answer(&c[0]).status, 200);
    client_close(&c[0]);
    client_close(&small);
    release_all(h, c + 1, held + 1, UNDER_WAY);
}

LIVE_TEST(what_is_stuck_holds_up_the_next_for_a_second_at_most, h)
{
    struct client c[UNDER_WAY + 1];
    struct http_exchange *held[UNDER_WAY + 1];
    hold_all(h, c, held, UNDER_WAY);
    int64_t before = clock_mono_ms(&clock_system);
    hold_all(h, c + UNDER_WAY, held + UNDER_WAY, 1);
    int64_t took = clock_mono_ms(&clock_system) - before;
    assert_in_range(took, 900, PATIENCE_MS);
    release_all(h, c, held, UNDER_WAY + 1);
}

LIVE_TEST(turns_go_from_sender_to_sender, h)
{
    static const char *const senders[] = {"a", "a", "a", "b"};
    static const char *const targets[] = {"/echo?1", "/echo?2", "/echo?3", "/echo?4"};
    struct client c[UNDER_WAY], next[LENGTH_OF(senders)];
    struct http_exchange *held[UNDER_WAY];
    for (size_t i = 0; i < LENGTH_OF(senders); i++)
        next[i] = heavy_client(h, senders[i]);
    hold_all(h, c, held, UNDER_WAY);
    h->ordered = 0;
    for (size_t i = 0; i < LENGTH_OF(senders); i++) {
        send_large(&next[i], targets[i], senders[i]);
        pass_ms(QUIET_MS / 5); /* queued in this order */
    }
    assert_int_equal(h->ordered, 0);
    release_all(h, c, held, UNDER_WAY);
    for (size_t i = 0; i < LENGTH_OF(senders); i++) {
        assert_int_equal(client_answer(&next[i]).status, 200);
        client_close(&next[i]);
    }
    h->order[h->ordered] = 0;
    assert_string_equal(h->order, "1423");
}

/* A connection that ends while it waits is let go at once, not when its turn would come. */
LIVE_TEST(who_leaves_while_waiting_is_forgotten, h)
{
    struct client c[UNDER_WAY], gone = heavy_client(h, "y");
    struct http_exchange *held[UNDER_WAY];
    hold_all(h, c, held, UNDER_WAY);
    client_text(&gone, "POST /echo HTTP/1.1\r\n");
    pass_ms(QUIET_MS / 5);
    client_close(&gone);
    assert_true(harness_await(connections_are, h, UNDER_WAY));
    release_all(h, c, held, UNDER_WAY);
}
