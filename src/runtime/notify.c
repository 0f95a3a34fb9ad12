#include "runtime/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

#include "base/banned.h"

enum { MESSAGE_MAX = NOTIFY_STATUS_MAX + 64 };

static int connected_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = 0; /* an abstract name has no end but its length */
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* 0: the manager does not watch, or watches another process. */
static int64_t watchdog_ms(void)
{
    const char *interval = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    int64_t us, pid;
    if (!interval || !str_to_int(str_of(interval), 1, INT64_MAX, &us))
        return 0;
    if (process && (!str_to_int(str_of(process), 1, INT32_MAX, &pid) || pid != getpid()))
        return 0;
    return us / 1000;
}

void notify_open(struct notify *n, int64_t now_ms)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *n = (struct notify){
        .fd = name ? connected_socket(name) : -1, .beat_at_ms = INT64_MAX, .again_at_ms = INT64_MAX};
    if (n->fd >= 0)
        n->interval_ms = (watchdog_ms() + 1) / 2;
    if (n->interval_ms)
        n->beat_at_ms = now_ms;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    *n = (struct notify){.fd = -1, .beat_at_ms = INT64_MAX, .again_at_ms = INT64_MAX};
}

/* False: it should be tried again. A manager that is gone is none. */
static bool tell(const struct notify *n, const char *text)
{
    return n->fd < 0 || send(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

static void tell_phase(struct notify *n, int64_t now_ms)
{
    static const char *const texts[] = {
#define X(id, text) [NOTIFY_##id] = text,
        NOTIFY_PHASES(X)
#undef X
    };
    char message[MESSAGE_MAX];
    int used = snprintf(message, sizeof message, "%s", texts[n->phase]);
    if (n->phase == NOTIFY_STOPPING)
        snprintf(message + used, sizeof message - (size_t)used, "\nEXTEND_TIMEOUT_USEC=%lld",
                 (long long)n->stop_ms * 1000);
    n->again_at_ms = tell(n, message) ? INT64_MAX : now_ms + NOTIFY_AGAIN_MS;
}

void notify_ready(struct notify *n, int64_t now_ms)
{
    if (n->fd < 0 || n->phase != NOTIFY_STARTING)
        return;
    n->phase = NOTIFY_READY;
    tell_phase(n, now_ms);
}

void notify_stopping(struct notify *n, int64_t stop_ms, int64_t now_ms)
{
    if (n->fd < 0 || n->phase == NOTIFY_STOPPING)
        return;
    n->phase = NOTIFY_STOPPING;
    n->stop_ms = stop_ms;
    tell_phase(n, now_ms);
}

void notify_status(struct notify *n, const char *fmt, ...)
{
    char status[NOTIFY_STATUS_MAX], message[MESSAGE_MAX];
    va_list ap;
    if (n->fd < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(status, sizeof status, fmt, ap);
    va_end(ap);
    if (strcmp(status, n->status) == 0)
        return;
    snprintf(message, sizeof message, "STATUS=%s", status);
    if (tell(n, message))
        memcpy(n->status, status, sizeof status);
}

void notify_watchdog(struct notify *n, bool all_loops_beat, int64_t now_ms)
{
    if (now_ms >= n->again_at_ms)
        tell_phase(n, now_ms);
    if (now_ms < n->beat_at_ms)
        return;
    n->beat_at_ms = now_ms + n->interval_ms;
    if (all_loops_beat)
        (void)tell(n, "WATCHDOG=1");
}

int64_t notify_next_ms(const struct notify *n)
{
    return n->again_at_ms < n->beat_at_ms ? n->again_at_ms : n->beat_at_ms;
}
