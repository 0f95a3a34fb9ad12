/* The receiver of callbacks: signatures against vectors of another program, behaviours over
 * real sockets. */

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#include "base/clock.h"
#include "base/must.h"
#include "cli/traffic/receiver.h"

#include "base/banned.h"

/* Made with Python's hmac and base64. */
#define SECRET     "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
#define OTHER      "whsec_YW5vdGhlciBzZWNyZXQsIDMyIGJ5dGVzIGxvbmcgb2s="
#define BODY       "{\"type\":\"job.succeeded\",\"timestamp\":\"2026-11-16T00:00:00Z\",\"data\":{\"seq\":5}}"
#define SIGNED     "v1,s1EFCt9GsFOWMOyXG54ia9LsoxN8l+dbAynTddA/lhk="
#define SIGNED_OLD "v1,zLKVJy5CtZV/5vd+SPqhCzMZqb+xI7IJbD/DDLAszHY="
#define SENT_S     INT64_C(1794787200)

static const char *fault_of(const char *id, const char *time, const char *signature, const char *body,
                            const char *secret, int64_t now_s)
{
    struct signed_message m = {str_of(id), str_of(time), str_of(signature), str_of(body)};
    return signature_fault(&m, str_of(secret), now_s);
}

TEST(test_a_genuine_signature_is_known)
{
    assert_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, SECRET, SENT_S));
    assert_null(fault_of("msg_2b", "1794787200", SIGNED_OLD, BODY, OTHER, SENT_S + 300));
    assert_null(fault_of("msg_2b", "1794787200", SIGNED_OLD " " SIGNED, BODY, SECRET, SENT_S - 300));
    assert_null(fault_of("msg_2b", "1794787200", "v1a,abc v1,short " SIGNED, BODY, SECRET, SENT_S));
    assert_null(fault_of("msg_empty", "1794787200", "v1,oob9GspUsb900ATGILgJ0k7NwKSAuGNhHyllFulr7OU=", "",
                         SECRET, SENT_S));
}

TEST(test_everything_else_is_refused)
{
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED_OLD, BODY, SECRET, SENT_S));
    assert_non_null(fault_of("msg_2c", "1794787200", SIGNED, BODY, SECRET, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787201", SIGNED, BODY, SECRET, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY " ", SECRET, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, SECRET, SENT_S + 301));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, SECRET, SENT_S - 301));
    assert_non_null(fault_of("msg_2b", "1794787200x", SIGNED, BODY, SECRET, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED + 3, BODY, SECRET, SENT_S));
    assert_non_null(fault_of(NULL, "1794787200", SIGNED, BODY, SECRET, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, SECRET + 6, SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, "whsec_", SENT_S));
    assert_non_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, "whsec_####", SENT_S));
}

/* --- behaviours ------------------------------------------------------------------------------------- */

struct book {
    int arrived;
    bool later_message;
    char id[32], body[64];
};

static void keep(char *out, size_t size, struct str text)
{
    snprintf(out, size, "%.*s", STR_ARG(text));
}

static struct receiver_history arrived(void *owner, const struct signed_message *m)
{
    struct book *b = owner;
    keep(b->id, sizeof b->id, m->id);
    keep(b->body, sizeof b->body, m->body);
    return (struct receiver_history){.attempts = b->arrived++, .first_message = !b->later_message};
}

static int connect_to(const struct receiver_port *p)
{
    char host[32];
    int64_t port;
    struct str rest = str_of(receiver_url(p) + strlen("http://"));
    struct str name = str_cut(&rest, ':');
    assert_true(str_to_int(str_cut(&rest, '/'), 1, 65535, &port));
    keep(host, sizeof host, name);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    assert_int_equal(inet_pton(AF_INET, host, &a.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int open_and_connect(struct receiver *r, enum receiver_behaviour b, struct book *book)
{
    struct receiver_port *p = receiver_open(r, (uint64_t)b, b, book);
    assert_non_null(p);
    return connect_to(p);
}

/* Sends, turns the receiver for up to wait_ms, and gives the status of the answer; 0: none; -1: closed. */
static int exchange(struct receiver *r, int fd, const char *request, int wait_ms)
{
    char answer[256] = "";
    int64_t until_ms = clock_mono_ms(&clock_system) + wait_ms;
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    do {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        receiver_work(r);
        if (poll(&p, 1, 5) > 0) {
            ssize_t n = recv(fd, answer, sizeof answer - 1, 0);
            int64_t status = -1;
            if (n > 0)
                assert_true(str_to_int((struct str){answer + 9, 3}, 100, 599, &status));
            return (int)status;
        }
    } while (clock_mono_ms(&clock_system) < until_ms);
    return 0;
}

static const char request[] =
    "POST /17 HTTP/1.1\r\nHost: x\r\nWebhook-Id: msg_1\r\nContent-Length: 2\r\n\r\n{}";

TEST(test_each_behaviour_does_what_it_is_named_after)
{
    struct book b = {0};
    struct receiver *r = receiver_new(arrived);
    int ok = open_and_connect(r, RECEIVER_OK, &b), once = open_and_connect(r, RECEIVER_FAILS_ONCE, &b);
    int fails = open_and_connect(r, RECEIVER_FAILS, &b), slow = open_and_connect(r, RECEIVER_SLOW, &b);
    struct receiver_port *hanging = receiver_open(r, 77, RECEIVER_HANGS, &b);
    int hangs = connect_to(hanging);
    assert_int_equal(exchange(r, ok, request, 2000), 200);
    assert_string_equal(b.id, "msg_1");
    assert_string_equal(b.body, "{}");
    assert_int_equal(exchange(r, ok, request, 2000), 200); /* kept alive */
    b.arrived = 0;
    assert_int_equal(exchange(r, once, request, 2000), 500);
    assert_int_equal(exchange(r, once, request, 2000), 200);
    assert_int_equal(exchange(r, fails, request, 2000), 500);
    assert_int_equal(exchange(r, fails, request, 2000), 500);
    b.later_message = true; /* the first one was given up */
    assert_int_equal(exchange(r, fails, request, 2000), 200);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    assert_int_equal(exchange(r, slow, request, 5000), 200);
    assert_true(clock_mono_ms(&clock_system) - begun_ms >= RECEIVER_SLOW_MS);
    b.arrived = 0;
    assert_int_equal(exchange(r, hangs, request, 300), 0);
    close(hangs);
    hangs = connect_to(hanging);
    assert_int_equal(exchange(r, hangs, request, 2000), 200); /* the second attempt */
    close(ok), close(once), close(fails), close(slow), close(hangs);
    receiver_free(r);
}

TEST(test_addresses_differ_and_a_closed_one_is_gone)
{
    struct book books[2] = {0};
    struct receiver *r = receiver_new(arrived);
    struct receiver_port *one = receiver_open(r, 254, RECEIVER_OK, &books[0]);
    struct receiver_port *two = receiver_open(r, 255, RECEIVER_OK, &books[1]);
    struct receiver_port *wrapped = receiver_open(r, UINT64_MAX, RECEIVER_OK, NULL);
    assert_non_null(wrapped);
    assert_true(str_starts(str_of(receiver_url(one)), "http://127.1.2.1:"));
    assert_true(str_starts(str_of(receiver_url(two)), "http://127.1.2.2:"));
    int to_one = connect_to(one), to_two = connect_to(two);
    assert_int_equal(exchange(r, to_one, request, 2000), 200);
    assert_int_equal(exchange(r, to_two, request, 2000), 200);
    assert_int_equal(exchange(r, to_two, request, 2000), 200);
    assert_int_equal(books[0].arrived, 1);
    assert_int_equal(books[1].arrived, 2);
    assert_null(receiver_close(two)); /* with its connection, and no other */
    assert_int_equal(recv(to_two, (char[8]){0}, 8, 0), 0);
    assert_int_equal(exchange(r, to_one, request, 2000), 200);
    close(to_one), close(to_two);
    receiver_free(r);
}

TEST(test_what_is_no_callback_is_answered_400_and_closed)
{
    static const char *const bad[] = {"GET / HTTP/1.1\r\n\r\n",
                                      "POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
                                      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\r\n\r\n"};
    struct book b = {0};
    struct receiver *r = receiver_new(arrived);
    struct receiver_port *p = receiver_open(r, 0, RECEIVER_OK, &b);
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        int fd = connect_to(p);
        assert_int_equal(exchange(r, fd, bad[i], 2000), 400);
        close(fd);
    }
    assert_int_equal(b.arrived, 0);
    int fd = connect_to(p); /* in pieces: only the last one makes it whole */
    assert_int_equal(exchange(r, fd, "POST /1 HTTP/1.1\r\nContent-Le", 30), 0);
    assert_int_equal(exchange(r, fd, "ngth: 3\r\n\r\nab", 30), 0);
    assert_int_equal(exchange(r, fd, "c", 2000), 200);
    assert_string_equal(b.body, "abc");
    close(fd);
    receiver_free(r);
}
