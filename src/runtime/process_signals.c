#include "runtime/process_signals.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

#include "base/banned.h"

enum { ORPHAN_GRACE_SECONDS = 2 };

/* One process, one stop: a signal handler can only reach statics. */
static atomic_bool stop_requested, reload_requested;
static int stop_fd = -1;
static pid_t root_pid;
static unsigned orphan_seconds;

bool process_orphaned(void)
{
    return getppid() != root_pid;
}

static void on_stop_signal(int number)
{
    (void)number;
    int saved_errno = errno;
    uint64_t one = 1;
    atomic_store(&stop_requested, true);
    ssize_t ignored = write(stop_fd, &one, sizeof one); /* full only after 2^64 signals */
    (void)ignored;
    if (process_orphaned())
        alarm(orphan_seconds); /* default action of SIGALRM: the end */
    errno = saved_errno;
}

static void on_reload_signal(int number)
{
    (void)number;
    atomic_store(&reload_requested, true); /* readers look several times a second */
}

void process_signals_install(const struct process_start *start)
{
    root_pid = start->root_pid;
    orphan_seconds = (unsigned)(start->settings->runtime_drain_ms / 1000) + ORPHAN_GRACE_SECONDS;
    atomic_store(&stop_requested, false);
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    MUST(stop_fd >= 0);
    struct sigaction stop = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction reload = {.sa_handler = start->kind->owns_store ? on_reload_signal : SIG_IGN,
                               .sa_flags = SA_RESTART};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&reload.sa_mask);
    MUST(sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGINT, &stop, NULL) == 0);
    MUST(sigaction(SIGPIPE, &ignore, NULL) == 0 && sigaction(SIGHUP, &reload, NULL) == 0);
}

void process_ready(const struct process_start *start)
{
    while (write(start->ready_fd, "r", 1) < 0 && errno == EINTR)
        ;
}

bool process_stop_requested(void)
{
    return atomic_load(&stop_requested);
}
bool process_reload_requested(void)
{
    return atomic_load_explicit(&reload_requested, memory_order_relaxed) &&
           atomic_exchange(&reload_requested, false);
}
int process_stop_fd(void)
{
    return stop_fd;
}

bool process_wait_stop(int64_t wait_ms)
{
    int64_t deadline_ms = wait_ms < 0 ? INT64_MAX : clock_mono_ms(&clock_system) + wait_ms;
    struct pollfd fd = {.fd = stop_fd, .events = POLLIN};
    while (!process_stop_requested()) {
        int64_t left = wait_ms < 0 ? -1 : deadline_ms - clock_mono_ms(&clock_system);
        if (wait_ms >= 0 && left <= 0)
            return false;
        poll(&fd, 1, left > INT_MAX ? INT_MAX : (int)left);
    }
    return true;
}
