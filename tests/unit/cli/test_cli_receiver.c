/* The simulator's receiver of callbacks: signatures against vectors of another program, behaviours over
 * real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/simulate/receiver.h"

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

static void test_a_genuine_signature_is_known(void **state)
{
    (void)state;
    assert_null(fault_of("msg_2b", "1794787200", SIGNED, BODY, SECRET, SENT_S));
    assert_null(fault_of("msg_2b", "1794787200", SIGNED_OLD, BODY, OTHER, SENT_S + 300));
    assert_null(fault_of("msg_2b", "1794787200", SIGNED_OLD " " SIGNED, BODY, SECRET, SENT_S - 300));
    assert_null(fault_of("msg_2b", "1794787200", "v1a,abc v1,short " SIGNED, BODY, SECRET, SENT_S));
    assert_null(fault_of("msg_empty", "1794787200", "v1,oob9GspUsb900ATGILgJ0k7NwKSAuGNhHyllFulr7OU=", "",
                         SECRET, SENT_S));
}

static void test_everything_else_is_refused(void **state)
{
    (void)state;
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
    char path[32], id[32], body[64];
};

static void keep(char *out, size_t size, struct str text)
{
    snprintf(out, size, "%.*s", STR_ARG(text));
}

static int arrived(void *self, const struct receiver_message *m)
{
    struct book *b = self;
    keep(b->path, sizeof b->path, m->path);
    keep(b->id, sizeof b->id, m->signed_message.id);
    keep(b->body, sizeof b->body, m->signed_message.body);
    return b->arrived++;
}

static int connect_to(struct receiver *r, enum receiver_behaviour b)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)receiver_port(r, b)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Sends, turns the receiver for up to wait_ms, and gives the status of the answer; 0: none; -1: closed. */
static int exchange(struct receiver *r, int fd, const char *request, int wait_ms)
{
    char answer[256] = "";
    int64_t until_ms = clock_mono_ms(&clock_system) + wait_ms;
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    do {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        receiver_work(r, clock_mono_ms(&clock_system));
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

static void test_each_behaviour_does_what_it_is_named_after(void **state)
{
    (void)state;
    struct book b = {0};
    struct receiver *r = receiver_new(arrived, &b);
    int ok = connect_to(r, RECEIVER_OK), once = connect_to(r, RECEIVER_FAILS_ONCE);
    int fails = connect_to(r, RECEIVER_FAILS), slow = connect_to(r, RECEIVER_SLOW);
    int hangs = connect_to(r, RECEIVER_HANGS);
    assert_int_equal(exchange(r, ok, request, 2000), 200);
    assert_string_equal(b.path, "/17");
    assert_string_equal(b.id, "msg_1");
    assert_string_equal(b.body, "{}");
    assert_int_equal(exchange(r, ok, request, 2000), 200); /* kept alive */
    b.arrived = 0;
    assert_int_equal(exchange(r, once, request, 2000), 500);
    assert_int_equal(exchange(r, once, request, 2000), 200);
    assert_int_equal(exchange(r, fails, request, 2000), 500);
    assert_int_equal(exchange(r, fails, request, 2000), 500);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    assert_int_equal(exchange(r, slow, request, 5000), 200);
    assert_true(clock_mono_ms(&clock_system) - begun_ms >= RECEIVER_SLOW_MS);
    b.arrived = 0;
    assert_int_equal(exchange(r, hangs, request, 300), 0);
    close(hangs);
    hangs = connect_to(r, RECEIVER_HANGS);
    assert_int_equal(exchange(r, hangs, request, 2000), 200); /* the second attempt */
    close(ok), close(once), close(fails), close(slow), close(hangs);
    receiver_free(r);
}

static void test_what_is_no_callback_is_answered_400_and_closed(void **state)
{
    static const char *const bad[] = {"GET / HTTP/1.1\r\n\r\n",
                                      "POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
                                      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\r\n\r\n"};
    struct book b = {0};
    struct receiver *r = receiver_new(arrived, &b);
    (void)state;
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        int fd = connect_to(r, RECEIVER_OK);
        assert_int_equal(exchange(r, fd, bad[i], 2000), 400);
        close(fd);
    }
    assert_int_equal(b.arrived, 0);
    int fd = connect_to(r, RECEIVER_OK); /* in pieces: only the last one makes it whole */
    assert_int_equal(exchange(r, fd, "POST /1 HTTP/1.1\r\nContent-Le", 30), 0);
    assert_int_equal(exchange(r, fd, "ngth: 3\r\n\r\nab", 30), 0);
    assert_int_equal(exchange(r, fd, "c", 2000), 200);
    assert_string_equal(b.body, "abc");
    close(fd);
    receiver_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_genuine_signature_is_known),
        cmocka_unit_test(test_everything_else_is_refused),
        cmocka_unit_test(test_each_behaviour_does_what_it_is_named_after),
        cmocka_unit_test(test_what_is_no_callback_is_answered_400_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
