/* What a request may be, what is in flight, and what of an answer is told, at the bounds. What goes over the
 * wire and hostile receivers: tests/egress. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "egress/scripted_resolver.h"
#include "egress/sender.h"

#include "base/banned.h"

/* A clock that stands until the test turns it: times are what the test made them. */
static int64_t hand_us;

static int64_t hand_mono_us(void *self)
{
    (void)self;
    return hand_us;
}

static int64_t hand_mono_ms(void *self)
{
    (void)self;
    return hand_us / 1000;
}

static const struct clock hand_clock = {hand_mono_us, hand_mono_ms, NULL, hand_mono_us};

struct rig {
    int fd;
    pthread_t thread;
    struct str answer;   /* of the receiver, to everybody; absent: none */
    char received[4096]; /* the beginning of the last request */
    char url[64];
    struct egress *egress;
    struct egress_result last;
    bool guarded; /* no private addresses */
    uint32_t lookups_max;
    char error[EGRESS_ERROR_BYTES];
    char excerpt[EGRESS_EXCERPT_BYTES];
    int done, denied_to_come; /* so many requests to private addresses, each begun when one has ended */
};

static void *serve(void *self)
{
    struct rig *rig = self;
    char request[4096];
    for (int c; (c = accept(rig->fd, NULL, NULL)) >= 0; close(c)) {
        ssize_t n = rig->answer.ptr ? recv(c, request, sizeof request - 1, 0) : 0;
        if (n > 0) {
            memcpy(rig->received, request, (size_t)n);
            rig->received[n] = 0;
            (void)!send(c, rig->answer.ptr, rig->answer.len, MSG_NOSIGNAL);
        }
        shutdown(c, SHUT_WR);
        while (recv(c, request, sizeof request, 0) > 0)
            continue;
    }
    return NULL;
}

static void on_done(void *self, const struct egress_result *result)
{
    struct rig *rig = self;
    rig->last = *result;
    snprintf(rig->error, sizeof rig->error, "%s", result->error);
    memcpy(rig->excerpt, result->excerpt.ptr, result->excerpt.len);
    rig->done++;
    if (rig->denied_to_come) { /* the next may be carried by the transfer that ends here, in this round */
        struct egress_request next = {.timeout_ms = 20000, .connect_timeout_ms = 20000};
        struct err err;
        snprintf(rig->url, sizeof rig->url, "http://10.0.0.%d/", rig->denied_to_come--);
        next.url = str_of(rig->url);
        assert_int_equal(egress_send(rig->egress, &next, &err), ERR_OK);
    }
}

static void rig_start(struct rig *rig, size_t bytes_max, const struct clock *clock)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    rig->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(rig->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(rig->fd, 64), 0);
    assert_int_equal(getsockname(rig->fd, (struct sockaddr *)&address, &len), 0);
    snprintf(rig->url, sizeof rig->url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&rig->thread, NULL, serve, rig), 0);
    struct egress_config config = {.policy = {.allow_private = !rig->guarded},
                                   .in_flight_max = 4,
                                   .connections_max = 4,
                                   .lookups_max = rig->lookups_max ? rig->lookups_max : 4,
                                   .bytes_max = bytes_max,
                                   .clock = clock,
                                   .done = on_done,
                                   .self = rig};
    rig->egress = egress_new(&config);
}

static void rig_stop(struct rig *rig)
{
    assert_null(egress_free(rig->egress));
    shutdown(rig->fd, SHUT_RDWR);
    pthread_join(rig->thread, NULL);
    close(rig->fd);
}

static struct egress_request request_to(const struct rig *rig)
{
    return (struct egress_request){
        .url = str_of(rig->url), .timeout_ms = 20000, .connect_timeout_ms = 20000, .owner = NULL};
}

static enum err_code try(struct rig *rig, const struct egress_request *request)
{
    struct err err;
    enum err_code code = egress_send(rig->egress, request, &err);
    egress_cancel_all(rig->egress);
    return code;
}

TEST(a_request_at_a_bound_is_taken_and_one_beyond_it_refused)
{
    static char body[EGRESS_BODY_BYTES_MAX + 1];
    struct str headers[EGRESS_HEADERS_MAX + 1];
    struct rig rig = {0};
    for (size_t i = 0; i < LENGTH_OF(headers); i++)
        headers[i] = STR("a: b");
    static const struct {
        size_t headers, body;
        int64_t timeout_ms, connect_timeout_ms;
        bool taken;
    } rows[] = {
        {0, 0, 1, 1, true},
        {0, 0, 0, 1, false},
        {0, 0, 1, 0, false},
        {0, 0, EGRESS_TIMEOUT_MS_MAX, EGRESS_TIMEOUT_MS_MAX, true},
        {0, 0, EGRESS_TIMEOUT_MS_MAX + 1, 1, false},
        {0, 0, 1, EGRESS_TIMEOUT_MS_MAX + 1, false},
        {EGRESS_HEADERS_MAX, EGRESS_BODY_BYTES_MAX, 1000, 1000, true},
        {EGRESS_HEADERS_MAX + 1, 0, 1000, 1000, false},
        {0, EGRESS_BODY_BYTES_MAX + 1, 1000, 1000, false},
    };
    rig_start(&rig, 64 << 20, &clock_system);
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct egress_request request = request_to(&rig);
        request.headers = headers;
        request.header_count = rows[i].headers;
        request.body = (struct str){body, rows[i].body};
        request.timeout_ms = rows[i].timeout_ms;
        request.connect_timeout_ms = rows[i].connect_timeout_ms;
        assert_int_equal(try(&rig, &request), rows[i].taken ? ERR_OK : ERR_REQUEST_MALFORMED);
    }
    struct err err;
    char largest[64];
    struct egress_request request = request_to(&rig);
    request.body = (struct str){body, sizeof body};
    assert_int_equal(egress_send(rig.egress, &request, &err), ERR_REQUEST_MALFORMED);
    snprintf(largest, sizeof largest, "the body is larger than %d MiB", EGRESS_BODY_BYTES_MAX / 1024 / 1024);
    assert_string_equal(err.detail, largest);
    headers[EGRESS_HEADERS_MAX - 1] = STR("host: b"); /* the last is looked at too */
    request = request_to(&rig);
    request.headers = headers;
    request.header_count = EGRESS_HEADERS_MAX;
    assert_int_equal(try(&rig, &request), ERR_REQUEST_MALFORMED);
    rig_stop(&rig);
}

/* Of URL, headers and body. What ends gives them back. */
TEST(bytes_in_flight_are_bounded_together)
{
    enum { MAX = 1000 };
    static char body[MAX];
    const struct str headers[] = {STR("a: b"), STR("c: de")};
    struct rig rig = {0};
    struct err err;
    rig_start(&rig, MAX, &clock_system);
    struct egress_request request = request_to(&rig);
    request.headers = headers;
    request.header_count = LENGTH_OF(headers);
    size_t rest = MAX - request.url.len - headers[0].len - headers[1].len;
    for (int round = 0; round < 2; round++) {
        request.body = (struct str){body, rest + 1};
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_EXEC_QUEUE_FULL);
        request.body.len = rest;
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        struct egress_request small = {.url = STR("http://h/"), .timeout_ms = 1, .connect_timeout_ms = 1};
        assert_int_equal(egress_send(rig.egress, &small, &err), ERR_EXEC_QUEUE_FULL);
        egress_cancel_all(rig.egress);
    }
    rig_stop(&rig);
}

TEST(headers_are_names_and_values_that_frame_nothing)
{
    static const struct {
        const char *line;
        bool good;
    } rows[] = {
        {"a: b", true},
        {"a:b", true},
        {"azAZ09-_: b", true},
        {"a: b\tc", true},
        {"a: \x20~\x80", true},
        {"a: b:c", true},
        {"hosts: b", true},
        {"x-te: b", true},
        {"", false},
        {"a", false},
        {":", false},
        {": b", false},
        {"a:", false},
        {"a: ", false},
        {"a: \t", false},
        {"a;", false},
        {"a b: c", false},
        {"a\x7f: c", false},
        {"`: c", false},
        {"{: c", false},
        {"@: c", false},
        {"[: c", false},
        {"/: c", false},
        {"a.b: c", false},
        {"a: b\nc: d", false},
        {"a: b\r", false},
        {"a: \x1f", false},
        {"a: b\x7f", false},
        {"a: \x01z", false},
        {"a:\x01z", false},
        {"Host: b", false},
        {"TE: b", false},
        {"content-length: 1", false},
        {"Expect: b", false},
        {"Connection: b", false},
        {"Upgrade: b", false},
        {"Trailer: b", false},
        {"Transfer-Encoding: b", false},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct err err;
        enum err_code wanted = rows[i].good ? ERR_OK : ERR_REQUEST_MALFORMED;
        if (egress_header_check(str_of(rows[i].line), &err) != wanted)
            fail_msg("\"%s\"", rows[i].line);
    }
    /* It is named, and of a long one the beginning; its value is a secret. */
    struct err err;
    char line[80];
    assert_int_equal(egress_header_check(STR("host: secret"), &err), ERR_REQUEST_MALFORMED);
    assert_string_equal(err.detail, "\"host\" is no header that may be sent");
    snprintf(line, sizeof line, "%61s: secret", "");
    memset(line, '.', 61);
    assert_int_equal(egress_header_check(str_of(line), &err), ERR_REQUEST_MALFORMED);
    assert_null(strstr(err.detail, "secret"));
    assert_int_equal(strspn(err.detail + 1, "."), 60);
}

/* Sends one request to a receiver with this answer and waits for what becomes of it. */
static void ask(struct rig *rig, struct str answer, struct strbuf *all)
{
    struct err err;
    rig->answer = answer;
    rig_start(rig, 1 << 20, &hand_clock);
    struct egress_request request = request_to(rig);
    request.answer = all;
    assert_int_equal(egress_send(rig->egress, &request, &err), ERR_OK);
    hand_us += 7003999;
    while (!rig->done)
        egress_poll(rig->egress, -1);
    rig_stop(rig);
}

static void ask_for_body(struct rig *rig, size_t len, struct strbuf *all)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    strbuf_addf(&text,
                "HTTP/1.1 503 No\r\nretry-after: 9\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", len);
    for (size_t i = 0; i < len; i++)
        strbuf_add_char(&text, (char)('a' + i % 23));
    ask(rig, strbuf_str(&text), all);
}

TEST(an_answer_is_told_with_its_beginning_and_whole_to_who_has_room)
{
    static const size_t lens[] = {0,
                                  1,
                                  EGRESS_EXCERPT_BYTES,
                                  EGRESS_EXCERPT_BYTES + 1,
                                  EGRESS_ANSWER_BYTES_MAX,
                                  EGRESS_ANSWER_BYTES_MAX + 1};
    for (size_t i = 0; i < LENGTH_OF(lens); i++) {
        struct rig rig = {0};
        struct strbuf all CLEANUP(strbuf_free) = {0};
        strbuf_add_text(&all, "of an earlier answer");
        ask_for_body(&rig, lens[i], &all);
        size_t excerpt = lens[i] < EGRESS_EXCERPT_BYTES ? lens[i] : EGRESS_EXCERPT_BYTES;
        assert_int_equal(rig.last.failure, EGRESS_NONE);
        assert_int_equal(rig.last.status, 503);
        assert_int_equal(rig.last.retry_after_ms, 9000);
        assert_int_equal(rig.last.duration_ms, 7003);
        assert_int_equal(rig.last.excerpt.len, excerpt);
        assert_true(!excerpt || rig.excerpt[excerpt - 1] == (char)('a' + (excerpt - 1) % 23));
        assert_int_equal(rig.last.cut, lens[i] > EGRESS_ANSWER_BYTES_MAX);
        assert_true(rig.last.cut ? all.len < lens[i] : all.len == lens[i]);
        for (size_t at = 0; at < all.len; at++)
            assert_int_equal(all.ptr[at], 'a' + at % 23);
    }
}

TEST(a_head_is_bounded_in_lines_and_bytes)
{
    static const struct {
        int lines;
        size_t bytes; /* of one more line */
        enum egress_failure failure;
    } rows[] = {
        {EGRESS_HEAD_LINES_MAX - 3, 0, EGRESS_NONE}, /* beside the status, the length and the empty line */
        {EGRESS_HEAD_LINES_MAX - 2, 0, EGRESS_TOO_LARGE},
        {0, EGRESS_HEAD_BYTES_MAX, EGRESS_NONE},
        {0, EGRESS_HEAD_BYTES_MAX + 1, EGRESS_TOO_LARGE},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct rig rig = {0};
        struct strbuf text CLEANUP(strbuf_free) = {0};
        strbuf_add_text(&text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
        for (int line = 0; line < rows[i].lines; line++)
            strbuf_add_text(&text, "a: b\r\n");
        while (text.len + strlen("x: \r\n\r\n") < rows[i].bytes) { /* in lines that curl takes */
            size_t left = rows[i].bytes - text.len - strlen("x: \r\n\r\n");
            strbuf_add_text(&text, "x: ");
            for (size_t n = left < 9000 ? left : 8000; n > 0; n--)
                strbuf_add_char(&text, 'y');
            strbuf_add_text(&text, "\r\n");
        }
        strbuf_add_text(&text, "\r\n");
        ask(&rig, strbuf_str(&text), NULL);
        assert_int_equal(rig.last.failure, rows[i].failure);
        assert_int_equal(rig.last.status, rows[i].failure == EGRESS_NONE ? 200 : 0);
    }
}

TEST(what_an_answer_was_does_not_show_in_the_next)
{
    struct rig rig = {0};
    struct err err;
    struct strbuf large CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&large, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
    for (int line = 0; line < EGRESS_HEAD_LINES_MAX; line++)
        strbuf_add_text(&large, "a: b\r\n");
    strbuf_add_text(&large, "\r\n");
    const struct {
        struct str answer;
        enum egress_failure failure;
        int status;
    } rows[] = {{strbuf_str(&large), EGRESS_TOO_LARGE, 0},
                {STR("HTTP/1.1 503 No\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"), EGRESS_NONE, 503},
                {STR(""), EGRESS_CLOSED, 0}};
    rig_start(&rig, 1 << 20, &hand_clock);
    for (int i = 0; i < (int)LENGTH_OF(rows); i++) {
        struct egress_request request = request_to(&rig);
        rig.answer = rows[i].answer;
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        while (rig.done <= i)
            egress_poll(rig.egress, -1);
        assert_int_equal(rig.last.failure, rows[i].failure);
        assert_int_equal(rig.last.status, rows[i].status);
    }
    rig_stop(&rig);
}

TEST(a_1xx_answer_and_a_trailer_are_not_the_answer)
{
    struct rig rig = {0};
    ask(&rig,
        STR("HTTP/1.1 103 Early\r\nRetry-After: 9\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
            "chunked\r\n\r\n"
            "1\r\nx\r\n0\r\nRetry-After: 9\r\n\r\n"),
        NULL);
    assert_int_equal(rig.last.failure, EGRESS_NONE);
    assert_int_equal(rig.last.status, 200);
    assert_int_equal(rig.last.retry_after_ms, -1);
}

/* An answer of the class 2xx or not: its status is told. Without a whole one there is none. */
TEST(what_became_of_a_request_is_told)
{
    static const struct {
        const char *answer;
        enum egress_failure failure;
        int status;
        const char *error;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", EGRESS_NONE, 200, ""},
        {"HTTP/1.1 200 OK\r\nContent-Le", EGRESS_CLOSED, 0, "the connection ended before"},
        {"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nabc", EGRESS_CLOSED, 404,
         "the connection ended before"},
        {"", EGRESS_CLOSED, 0, "the connection ended before"},
        {"SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n\r\n", EGRESS_PROTOCOL, 0, "HTTP/0.9"},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct rig rig = {0};
        ask(&rig, str_of(rows[i].answer), NULL);
        assert_int_equal(rig.last.failure, rows[i].failure);
        assert_int_equal(rig.last.status, rows[i].status);
        assert_int_equal(
            strncmp(rig.error, rows[i].error, strlen(rows[i].error)) && !strstr(rig.error, rows[i].error), 0);
        assert_int_equal(*rig.error == 0, rows[i].failure == EGRESS_NONE);
    }
}

/* Whatever the body is: curl would call it a form. */
TEST(a_request_has_the_type_that_its_caller_names_or_none)
{
    const struct str type = STR("content-Type: application/json");
    for (size_t named = 0; named < 2; named++) {
        struct rig rig = {.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")};
        struct err err;
        rig_start(&rig, 1 << 20, &hand_clock);
        struct egress_request request = request_to(&rig);
        request.body = STR("{}");
        request.headers = &type;
        request.header_count = named;
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        while (!rig.done)
            egress_poll(rig.egress, -1);
        rig_stop(&rig);
        const char *found = strcasestr(rig.received, "content-type:");
        assert_int_equal(found != NULL, named);
        assert_true(!found || (strncmp(found, type.ptr, type.len) == 0 && found[type.len] == '\r' &&
                               !strcasestr(found + 1, "content-type:")));
    }
}

/* The bound is of names that are being looked up. A host that is an address needs no lookup. */
TEST(while_too_many_names_are_looked_up_addresses_are_reached)
{
    struct rig rig = {.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .lookups_max = 1};
    struct err err;
    assert_true(scripted_resolver_add("slow.test=3000:127.0.0.1") && scripted_resolver_add("b.test=nx"));
    unsigned before = scripted_resolver_lookups();
    rig_start(&rig, 1 << 20, &clock_system);
    struct egress_request slow = request_to(&rig), other = slow, address = slow;
    slow.url = STR("http://slow.test/");
    other.url = STR("http://b.test/");
    assert_int_equal(egress_send(rig.egress, &slow, &err), ERR_OK);
    while (scripted_resolver_lookups() == before)
        egress_poll(rig.egress, 0);
    assert_int_equal(egress_send(rig.egress, &address, &err), ERR_OK);
    while (!rig.done)
        egress_poll(rig.egress, -1);
    assert_int_equal(rig.last.status, 200);
    assert_int_equal(egress_send(rig.egress, &other, &err), ERR_OK);
    while (rig.done < 2)
        egress_poll(rig.egress, -1);
    assert_string_equal(rig.error, "too many names are being looked up");
    rig_stop(&rig);
}

/* A lookup that is over, and a request that has ended, give their place back once. */
TEST(names_are_looked_up_one_after_the_other_without_end)
{
    struct rig rig = {.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
                      .lookups_max = 1};
    struct err err;
    rig_start(&rig, 1 << 20, &clock_system);
    static const char *const scripts[] = {"n0.test=127.0.0.1", "n1.test=127.0.0.1", "n2.test=127.0.0.1"};
    for (int i = 0; i < (int)LENGTH_OF(scripts); i++) {
        char url[64];
        snprintf(url, sizeof url, "http://n%d.test%s", i, strrchr(rig.url, ':'));
        assert_true(scripted_resolver_add(scripts[i]));
        struct egress_request request = request_to(&rig);
        request.url = str_of(url);
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        while (rig.done <= i)
            egress_poll(rig.egress, -1);
        assert_int_equal(rig.last.status, 200);
    }
    rig_stop(&rig);
}

/* No byte goes there, and the reason is told without the address. */
TEST(a_denied_address_is_told_by_its_kind)
{
    struct rig rig = {.guarded = true};
    ask(&rig, STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), NULL);
    assert_int_equal(rig.last.failure, EGRESS_POLICY);
    assert_int_equal(rig.last.status, 0);
    assert_string_equal(rig.error, "the host's address is not allowed: loopback");
}

/* The round that denies one address of a host ends the request, without curl's pauses before the others: the
 * clock stands. What ended so may carry another request that is denied. */
TEST(a_host_of_many_addresses_is_denied_at_once_and_again)
{
    struct rig rig = {.guarded = true};
    struct err err;
    assert_true(scripted_resolver_add("many.test=10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6"));
    rig_start(&rig, 1 << 20, &hand_clock);
    struct egress_request request = request_to(&rig);
    request.url = STR("http://many.test/");
    for (int round = 1; round < 4; round++) {
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        while (rig.done < round)
            egress_poll(rig.egress, -1);
        assert_int_equal(rig.last.failure, EGRESS_POLICY);
    }
    rig_stop(&rig);
}

TEST(a_denied_request_may_follow_another_in_its_round)
{
    enum { DENIED = 60 }; /* in every lane, before and behind the last */
    struct rig rig = {.guarded = true, .denied_to_come = DENIED};
    struct err err;
    rig_start(&rig, 1 << 20, &hand_clock);
    struct egress_request request = request_to(&rig);
    assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
    while (rig.done <= DENIED) {
        egress_poll(rig.egress, -1);
        assert_int_equal(rig.last.failure, EGRESS_POLICY);
    }
    rig_stop(&rig);
}

/* A moment within a millisecond is over when that is. */
TEST(the_deadline_is_not_before_the_timer)
{
    struct rig rig = {0};
    struct err err;
    rig_start(&rig, 1 << 20, &hand_clock);
    for (int us = 0; us < 3; us++) {
        hand_us = 5000000 + us;
        struct egress_request request = request_to(&rig);
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        assert_int_equal(egress_deadline_ms(rig.egress), us ? 5001 : 5000);
        egress_cancel_all(rig.egress);
        egress_poll(rig.egress, 0);
    }
    for (int port = 1; port < 100; port++) { /* each has a timer somewhere, none is overlooked */
        char url[32];
        struct egress_request request = request_to(&rig);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
        request.url = str_of(url);
        assert_int_equal(egress_send(rig.egress, &request, &err), ERR_OK);
        assert_int_equal(egress_deadline_ms(rig.egress), 5001);
        egress_cancel_all(rig.egress);
        egress_poll(rig.egress, 0);
    }
    rig_stop(&rig);
}
