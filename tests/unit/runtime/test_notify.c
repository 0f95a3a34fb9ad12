/* What root tells the service manager, heard on a real datagram socket. */
#include "case.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "runtime/notify.h"

#include "base/banned.h"

static int manager = -1;
static char path[64];

static void listen_on(const char *name, socklen_t name_len)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, name, name_len);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(manager >= 0);
    socklen_t len = (socklen_t)offsetof(struct sockaddr_un, sun_path) + name_len;
    assert_int_equal(bind(manager, (struct sockaddr *)&address, len), 0);
}

static int open_manager(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/weir-notify-%d", (int)getpid());
    unlink(path);
    listen_on(path, (socklen_t)strlen(path) + 1);
    setenv("NOTIFY_SOCKET", path, 1);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return 0;
}

static int close_manager(void **state)
{
    (void)state;
    close(manager);
    unlink(path);
    return 0;
}

/* The next message, or "" when there is none. */
static const char *heard(void)
{
    static char text[512];
    ssize_t n = recv(manager, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    return text;
}

#define MANAGER_TEST(name) TEST_BETWEEN(name, open_manager, close_manager)

MANAGER_TEST(a_service_gets_ready_once_and_stops)
{
    struct notify n;
    notify_open(&n, 0);
    assert_string_equal(heard(), "");
    notify_ready(&n, 0);
    notify_ready(&n, 1);
    assert_string_equal(heard(), "READY=1");
    assert_string_equal(heard(), "");
    notify_stopping(&n, 17000, 2);
    notify_stopping(&n, 1000, 3);
    assert_string_equal(heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=17000000");
    assert_string_equal(heard(), "");
    notify_ready(&n, 4); /* too late: it stays stopping */
    assert_string_equal(heard(), "");
    notify_close(&n);
}

MANAGER_TEST(the_variables_are_not_left_to_children)
{
    struct notify n;
    setenv("WATCHDOG_USEC", "1000000", 1);
    notify_open(&n, 0);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_true(fcntl(n.fd, F_GETFD) & FD_CLOEXEC);
    notify_close(&n);
}

MANAGER_TEST(an_abstract_socket_is_reached)
{
    struct notify n;
    char name[64];
    int len = snprintf(name, sizeof name, "@weir-notify-%d", (int)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    close(manager);
    name[0] = 0;
    listen_on(name, (socklen_t)len);
    notify_open(&n, 0);
    notify_ready(&n, 0);
    assert_string_equal(heard(), "READY=1");
    notify_close(&n);
}

MANAGER_TEST(a_status_is_sent_when_it_changes)
{
    struct notify n;
    notify_open(&n, 0);
    notify_status(&n, "%d of %d", 1, 3);
    notify_status(&n, "%d of %d", 1, 3);
    notify_status(&n, "%d of %d", 2, 3);
    assert_string_equal(heard(), "STATUS=1 of 3");
    assert_string_equal(heard(), "STATUS=2 of 3");
    assert_string_equal(heard(), "");
    notify_close(&n);
}

MANAGER_TEST(signs_of_life_come_at_half_the_interval_and_only_while_the_loops_beat)
{
    struct notify n;
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_USEC", "4000000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    notify_open(&n, 1000);
    assert_int_equal(notify_next_ms(&n), 1000);
    notify_watchdog(&n, true, 1000);
    assert_string_equal(heard(), "WATCHDOG=1");
    assert_int_equal(notify_next_ms(&n), 3000);
    notify_watchdog(&n, true, 2999);
    assert_string_equal(heard(), "");
    notify_watchdog(&n, true, 3000);
    assert_string_equal(heard(), "WATCHDOG=1");
    for (int64_t at = 5000; at <= 20000; at += 2000)
        notify_watchdog(&n, false, at);
    assert_string_equal(heard(), "");
    notify_watchdog(&n, true, 22000);
    assert_string_equal(heard(), "WATCHDOG=1");
    notify_close(&n);
}

MANAGER_TEST(a_watchdog_of_another_process_is_not_fed)
{
    struct notify n;
    setenv("WATCHDOG_USEC", "4000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&n, 0);
    assert_int_equal(notify_next_ms(&n), INT64_MAX);
    notify_watchdog(&n, true, 100000);
    assert_string_equal(heard(), "");
    notify_close(&n);
}

MANAGER_TEST(without_a_manager_nothing_happens)
{
    static const char *const names[] = {NULL, "", "/", "@", "relative", "/nonexistent-directory/socket"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct notify n;
        if (names[i])
            setenv("NOTIFY_SOCKET", names[i], 1);
        else
            unsetenv("NOTIFY_SOCKET");
        notify_open(&n, 0);
        assert_int_equal(n.fd, -1);
        notify_ready(&n, 0);
        notify_status(&n, "x");
        notify_watchdog(&n, true, 1);
        notify_stopping(&n, 1, 2);
        assert_int_equal(notify_next_ms(&n), INT64_MAX);
        notify_close(&n);
    }
    assert_string_equal(heard(), "");
}

MANAGER_TEST(what_a_full_queue_refuses_is_owed_and_nobody_waits)
{
    struct notify n;
    int filled = 0;
    notify_open(&n, 0);
    while (filled < 100000 && send(n.fd, "X=1", 3, MSG_DONTWAIT) == 3)
        filled++;
    assert_true(filled > 0 && filled < 100000); /* the control: the queue is full now */
    notify_ready(&n, 1000);
    assert_int_equal(notify_next_ms(&n), 1000 + NOTIFY_AGAIN_MS);
    notify_watchdog(&n, true, notify_next_ms(&n)); /* still full */
    assert_int_equal(notify_next_ms(&n), 1000 + 2 * NOTIFY_AGAIN_MS);
    for (int i = 0; i < filled; i++)
        assert_string_equal(heard(), "X=1");
    notify_watchdog(&n, true, notify_next_ms(&n));
    assert_string_equal(heard(), "READY=1");
    assert_int_equal(notify_next_ms(&n), INT64_MAX);
    notify_close(&n);
}
