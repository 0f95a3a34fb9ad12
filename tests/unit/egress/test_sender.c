/* The sender's loop from inside: wakeups, a loop of the caller's own, sending from `done`, cancelling. What
 * goes over the wire and hostile receivers: tests/egress. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "egress/sender.h"
#include "pace.h"

#include "base/banned.h"

/* Curl closes a socket that is still connecting before it tells us to forget it (7.88, cf_socket_close).
 * By then the receiver's thread may have got its number from accept(): the kernel refuses, nothing else. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:watch_socket\n";
}

enum { SECONDS_MAX = 20 };

/* Answers 200 to whatever comes, one connection after the other; never answers when `silent`. */
struct receiver {
    int fd;
    bool silent;
    pthread_t thread;
    char url[64];
};

static void *serve(void *self)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    struct receiver *r = self;
    char request[4096];
    for (int c; (c = accept(r->fd, NULL, NULL)) >= 0; close(c))
        if (recv(c, request, sizeof request, 0) > 0 && !r->silent)
            (void)!send(c, ok, sizeof ok - 1, MSG_NOSIGNAL);
        else
            (void)!recv(c, request, sizeof request, 0); /* until the sender gives up */
    return NULL;
}

static void receiver_start(struct receiver *r, bool silent)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    r->silent = silent;
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(r->fd, 64), 0);
    assert_int_equal(getsockname(r->fd, (struct sockaddr *)&address, &len), 0);
    snprintf(r->url, sizeof r->url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, serve, r), 0);
}

static void receiver_stop(struct receiver *r)
{
    shutdown(r->fd, SHUT_RDWR);
    pthread_join(r->thread, NULL);
    close(r->fd);
}

struct rig {
    struct receiver receiver;
    struct egress *egress;
    int done, again; /* results so far; how many more to send from inside `done` */
    enum egress_failure last_failure;
    int last_status;
    enum err_code last_refusal;
};

static enum err_code send_one(struct rig *rig)
{
    struct err err;
    struct egress_request request = {.url = str_of(rig->receiver.url),
                                     .body = STR("{}"),
                                     .timeout_ms = SECONDS_MAX * 1000,
                                     .connect_timeout_ms = 5000,
                                     .owner = rig};
    return egress_send(rig->egress, &request, &err);
}

static void on_done(void *self, const struct egress_result *result)
{
    struct rig *rig = self;
    assert_ptr_equal(result->owner, rig);
    rig->done++;
    rig->last_failure = result->failure;
    rig->last_status = result->status;
    if (rig->again) {
        rig->again--;
        rig->last_refusal = send_one(rig);
    }
}

static void rig_start(struct rig *rig, bool silent, uint32_t in_flight_max)
{
    receiver_start(&rig->receiver, silent);
    struct egress_config config = {.policy = {.allow_private = true},
                                   .in_flight_max = in_flight_max,
                                   .connections_max = 64,
                                   .lookups_max = 4,
                                   .bytes_max = 1 << 20,
                                   .clock = &clock_system,
                                   .done = on_done,
                                   .self = rig};
    rig->egress = egress_new(&config);
}

static void rig_stop(struct rig *rig)
{
    assert_null(egress_free(rig->egress));
    receiver_stop(&rig->receiver);
}

/* With room for one request only, so its place must be free again when `done` is called. */
TEST(done_may_send_the_next_request)
{
    struct rig rig = {.again = 9};
    rig_start(&rig, false, 1);
    assert_int_equal(send_one(&rig), ERR_OK);
    assert_int_equal(send_one(&rig), ERR_EXEC_QUEUE_FULL);
    while (egress_in_flight(rig.egress))
        egress_poll(rig.egress, -1);
    assert_int_equal(rig.done, 10);
    assert_int_equal(rig.last_refusal, ERR_OK);
    assert_int_equal(rig.last_status, 200);
    rig_stop(&rig);
}

/* Another epoll, the descriptor and the deadline are enough to drive it. */
TEST(a_loop_of_the_callers_own_drives_it)
{
    struct rig rig = {.again = 4};
    rig_start(&rig, false, 8);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, egress_fd(rig.egress), &event), 0);
    assert_true(egress_deadline_ms(rig.egress) == INT64_MAX);
    assert_int_equal(send_one(&rig), ERR_OK);
    for (int rounds = 0; egress_in_flight(rig.egress); rounds++) {
        int64_t left_ms = egress_deadline_ms(rig.egress) - clock_mono_ms(&clock_system);
        assert_true(egress_deadline_ms(rig.egress) != INT64_MAX && left_ms <= SECONDS_MAX * 1000 + 1);
        epoll_wait(epoll_fd, &event, 1, left_ms < 0 ? 0 : (int)left_ms);
        egress_poll(rig.egress, 0);
        assert_true(rounds < 1000); /* it waits, it does not spin */
    }
    assert_int_equal(rig.done, 5);
    close(epoll_fd);
    rig_stop(&rig);
}

/* A request that gets no answer has a timer of 20 seconds; who does not want to wait is not kept until it. */
TEST(a_poll_of_no_time_waits_for_no_timer)
{
    struct rig rig = {0};
    rig_start(&rig, true, 8);
    assert_int_equal(send_one(&rig), ERR_OK);
    for (int i = 0; i < 20; i++)
        egress_poll(rig.egress, 0);
    assert_int_equal(rig.done, 0);
    rig_stop(&rig);
}

static void *wake_later(void *egress)
{
    usleep(50 * 1000);
    egress_wakeup(egress);
    return NULL;
}

TEST(a_wakeup_from_another_thread_ends_the_wait)
{
    struct rig rig = {0};
    rig_start(&rig, false, 8);
    pthread_t thread;
    int64_t start_ms = clock_mono_ms(&clock_system);
    struct pace pace = pace_start();
    assert_int_equal(pthread_create(&thread, NULL, wake_later, rig.egress), 0);
    egress_poll(rig.egress, SECONDS_MAX * 1000);
    int64_t took_ms = clock_mono_ms(&clock_system) - start_ms;
    assert_true(took_ms >= 50 && pace_quiet_ms(&pace) < 5000);
    pthread_join(thread, NULL);
    /* Two before a poll count as one, and it is used up. */
    egress_wakeup(rig.egress);
    egress_wakeup(rig.egress);
    egress_poll(rig.egress, SECONDS_MAX * 1000);
    start_ms = clock_mono_ms(&clock_system);
    egress_poll(rig.egress, 30);
    assert_true(clock_mono_ms(&clock_system) - start_ms >= 30);
    rig_stop(&rig);
}

TEST(cancelling_ends_every_request_and_takes_none_meanwhile)
{
    struct rig rig = {.again = 1};
    rig_start(&rig, true, 8);
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_one(&rig), ERR_OK);
    egress_poll(rig.egress, 50);
    egress_cancel_all(rig.egress);
    assert_int_equal(rig.done, 5);
    assert_int_equal(rig.last_failure, EGRESS_CANCELLED);
    assert_int_equal(rig.last_refusal, ERR_EXEC_QUEUE_FULL);
    assert_int_equal(egress_in_flight(rig.egress), 0);
    assert_int_equal(send_one(&rig), ERR_OK); /* and takes them again */
    rig_stop(&rig);                           /* in flight: dropped without a result */
    assert_int_equal(rig.done, 5);
}

static bool every_other(void *self, void *owner)
{
    (void)owner;
    return ++*(int *)self % 2 == 0;
}

/* What is not wanted goes on as if nothing had happened. [TOP-043] */
TEST(cancelling_some_leaves_the_others)
{
    struct rig rig = {.again = 0};
    int asked = 0;
    rig_start(&rig, true, 8);
    for (int i = 0; i < 6; i++)
        assert_int_equal(send_one(&rig), ERR_OK);
    egress_poll(rig.egress, 50);
    egress_cancel(rig.egress, every_other, &asked);
    assert_int_equal(asked, 6);
    assert_int_equal(rig.done, 3);
    assert_int_equal(egress_in_flight(rig.egress), 3);
    egress_cancel_all(rig.egress);
    assert_int_equal(rig.done, 6);
    rig_stop(&rig);
}

TEST(every_failure_has_a_wire_name_of_its_own)
{
    for (int a = 0; a < EGRESS_FAILURE_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(egress_failure_wire((enum egress_failure)a),
                                    egress_failure_wire((enum egress_failure)b));
}
