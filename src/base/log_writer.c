#include "base/log_writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"

#include "base/banned.h"

struct page {
    char *bytes;
    size_t len;
};

/* One process, one stderr. */
static struct {
    _Atomic bool runs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards filling, stopping, sleeping, told */
    pthread_cond_t wake;
    struct page filling, writing;
    bool stopping, sleeping;
    uint64_t told;                /* dropped lines the log has been told of */
    _Atomic uint64_t added, done; /* lines; equal when nothing waits */
    _Atomic uint64_t dropped;
    _Atomic bool stuck; /* a caller waited in vain: callers do not wait again before a line leaves */
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* --- writing --------------------------------------------------------------------------------------- */

/* Whole lines, as many as one atomic write to a pipe takes; a longer line alone. */
static size_t chunk_length(const char *bytes, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *end = memrchr(bytes, '\n', PIPE_BUF);
    if (!end)
        end = memchr(bytes, '\n', len);
    return (size_t)(end - bytes) + 1;
}

static uint64_t count_lines(const char *bytes, size_t len)
{
    uint64_t n = 0;
    for (const char *at = bytes, *end = bytes + len; at < end && (at = memchr(at, '\n', (size_t)(end - at)));
         at++)
        n++;
    return n;
}

static bool write_chunk(const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(STDERR_FILENO, bytes, len);
        if (n < 0 && errno == EAGAIN) { /* another process made it non-blocking */
            struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
            poll(&out, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return false;
        } else if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void write_page(struct page *p)
{
    for (size_t at = 0; at < p->len;) {
        size_t len = chunk_length(p->bytes + at, p->len - at);
        uint64_t lines = count_lines(p->bytes + at, len);
        if (!write_chunk(p->bytes + at, len))
            atomic_fetch_add(&writer.dropped, lines);
        atomic_store(&writer.stuck, false);
        atomic_fetch_add(&writer.done, lines);
        at += len;
    }
    p->len = 0;
}

/* Into the page that is being filled; the lock is held. */
static void append(struct str line)
{
    memcpy(writer.filling.bytes + writer.filling.len, line.ptr, line.len);
    writer.filling.len += line.len;
    atomic_fetch_add(&writer.added, 1);
}

/* The page is empty and ours to fill: say first what is missing before it. The lock is held. */
static void tell_dropped(void)
{
    uint64_t dropped = atomic_load(&writer.dropped);
    if (dropped == writer.told)
        return;
    struct strbuf line = log_dropped_line(dropped - writer.told);
    writer.told = dropped;
    append(strbuf_str(&line));
    strbuf_free(&line);
}

/* Swaps the pages once there is something to write; false: nothing is left and the writer shall end. */
static bool take_page(void)
{
    pthread_mutex_lock(&writer.lock);
    if (!writer.filling.len)
        tell_dropped();
    while (!writer.filling.len && !writer.stopping) {
        writer.sleeping = true;
        pthread_cond_wait(&writer.wake, &writer.lock);
        writer.sleeping = false;
    }
    struct page full = writer.filling;
    writer.filling = writer.writing;
    writer.writing = full;
    pthread_mutex_unlock(&writer.lock);
    return full.len > 0;
}

static void *writer_main(void *arg)
{
    pthread_setname_np(pthread_self(), "weir-log");
    while (take_page())
        write_page(&writer.writing);
    return arg;
}

/* --- adding and waiting ---------------------------------------------------------------------------- */

bool log_writer_runs(void)
{
    return atomic_load_explicit(&writer.runs, memory_order_acquire);
}

/* Sleeps in small steps and touches nothing but atomics: also right in a signal handler. */
static bool wait_done(uint64_t line, int64_t wait_ms)
{
    for (int64_t waited_us = 0, step_us = 20; atomic_load(&writer.done) < line;) {
        if (waited_us >= wait_ms * 1000)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = step_us * 1000}, NULL);
        waited_us += step_us;
        step_us = step_us < 1000 ? step_us * 2 : step_us;
    }
    return true;
}

void log_writer_add(struct str line, bool wait)
{
    bool wake = false, room;
    pthread_mutex_lock(&writer.lock);
    room = writer.filling.len + line.len <= LOG_PAGE_BYTES;
    if (room) {
        append(line);
        wake = writer.sleeping;
    }
    uint64_t number = atomic_load(&writer.added);
    pthread_mutex_unlock(&writer.lock);
    if (!room) {
        atomic_fetch_add(&writer.dropped, 1);
        return;
    }
    if (wake)
        pthread_cond_signal(&writer.wake);
    if (wait && !atomic_load(&writer.stuck) && !wait_done(number, LOG_ERROR_WAIT_MS))
        atomic_store(&writer.stuck, true);
}

bool log_writer_flush(int64_t wait_ms)
{
    return wait_done(atomic_load(&writer.added), wait_ms);
}

uint64_t log_writer_dropped(void)
{
    return atomic_load(&writer.dropped);
}

/* --- beginning and end ----------------------------------------------------------------------------- */

/* Does stderr take a line now? Then a thread that has not written yet is late, on a busy machine, and not
 * stuck. */
static bool stderr_takes(void)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

/* A stuck stderr keeps the thread: the process ends without it. */
static void end_at_exit(void)
{
    pthread_mutex_lock(&writer.lock);
    writer.stopping = true;
    pthread_mutex_unlock(&writer.lock);
    pthread_cond_signal(&writer.wake);
    bool is_stuck = atomic_load(&writer.stuck) && !stderr_takes();
    if (!log_writer_flush(is_stuck ? LOG_ERROR_WAIT_MS : LOG_EXIT_WAIT_MS))
        return;
    atomic_store(&writer.runs, false); /* later lines are written by their callers */
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOG_EXIT_WAIT_MS / 1000;
    pthread_timedjoin_np(writer.thread, NULL, &until); /* the pages stay: a late thread may hold one */
}

/* A broken promise: the lines before it must be out. The default action, reset before this runs, follows. */
static void flush_on_abort(int number)
{
    wait_done(atomic_load(&writer.added), LOG_ERROR_WAIT_MS);
    raise(number);
}

static void catch_abort(void)
{
    struct sigaction now, flush = {.sa_handler = flush_on_abort, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&flush.sa_mask);
    if (sigaction(SIGABRT, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(SIGABRT, &flush, NULL);
}

void log_writer_start(void)
{
    sigset_t all, before;
    if (log_writer_runs())
        return;
    writer.filling.bytes = must_alloc(LOG_PAGE_BYTES);
    writer.writing.bytes = must_alloc(LOG_PAGE_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&writer.thread, NULL, writer_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        free(writer.filling.bytes);
        free(writer.writing.bytes);
        return;
    }
    catch_abort();
    MUST(atexit(end_at_exit) == 0);
    atomic_store_explicit(&writer.runs, true, memory_order_release);
}
