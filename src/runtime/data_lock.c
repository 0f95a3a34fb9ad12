#include "runtime/data_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#include "base/banned.h"

enum { ORPHAN_LOOK_MS = 20, KILLED_WAIT_MS = 2000, LOCK_TEXT_MAX = 80 };

static enum err_code make_dir(const char *path, struct err *err)
{
    struct stat info;
    if (mkdir(path, 0700) == 0)
        return ERR_OK;
    if (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return ERR_OK;
    return err_set(err, ERR_CONFIG_INVALID, "data directory %.160s: %s", path,
                   errno == EEXIST ? "exists and is not a directory" : strerror(errno));
}

enum err_code data_dir_create(const char *data_dir, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s", data_dir);
    if (n <= 0 || (size_t)n >= sizeof path)
        return err_set(err, ERR_CONFIG_INVALID, "data directory: the path is empty or too long");
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        struct stat info;
        enum err_code code = stat(path, &info) == 0 ? ERR_OK : make_dir(path, err);
        if (code)
            return code;
        *slash = '/';
    }
    return make_dir(path, err);
}

/* The number in the file; 0 when there is none. */
struct lock_text {
    pid_t root, core;
    int64_t epoch;
};

static int64_t read_number(struct str *rest, char end)
{
    int64_t value;
    return str_to_int(str_cut(rest, end), 0, INT64_MAX, &value) ? value : 0;
}

static pid_t read_pid(struct str *rest)
{
    int64_t pid = read_number(rest, '\n');
    return pid <= INT_MAX ? (pid_t)pid : 0;
}

static struct lock_text read_text(int fd)
{
    char text[LOCK_TEXT_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    struct str rest = {text, n > 0 ? (size_t)n : 0};
    struct lock_text t = {.root = read_pid(&rest)};
    t.epoch = read_number(&rest, ' ');
    t.core = read_pid(&rest);
    return t;
}

/* Asks by descriptor: kill(pid, 0) also finds a killed root that its parent has not waited for yet. */
static bool is_alive(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno != ESRCH;
    struct pollfd end = {.fd = fd, .events = POLLIN};
    bool ended = poll(&end, 1, 0) == 1;
    close(fd);
    return !ended;
}

static enum err_code write_text(int fd, const struct lock_text *t, struct err *err)
{
    char text[LOCK_TEXT_MAX];
    int n = snprintf(text, sizeof text, "%d\n%lld %d\n", (int)t->root, (long long)t->epoch, (int)t->core);
    /* Never empty in between: a process that is killed here leaves the old text or the new one. */
    if (pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0)
        return ERR_OK;
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "cannot write the lock file: %s", strerror(errno));
}

static enum err_code refuse(const char *data_dir, pid_t holder, struct err *err)
{
    if (holder && is_alive(holder))
        return err_set(err, ERR_STORAGE_UNAVAILABLE,
                       "data directory %.120s is in use by process %d; stop that one first or give "
                       "another --data",
                       data_dir, (int)holder);
    return err_set(err, ERR_STORAGE_UNAVAILABLE,
                   "data directory %.120s is still held by a process that process %d started", data_dir,
                   (int)holder);
}

/* A dead root's core is on its way out, but no event tells when flock would succeed: look again. */
static bool lock_before(int fd, int64_t deadline_ms)
{
    for (;;) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        bool held = errno == EWOULDBLOCK || errno == EINTR;
        pid_t holder = read_text(fd).root;
        if (!held || !holder || is_alive(holder) || clock_mono_ms(&clock_system) >= deadline_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = ORPHAN_LOOK_MS * 1000000L}, NULL);
    }
}

/* Its own process may have the number by now: only what calls itself a core is killed. */
static bool kill_orphan(int fd)
{
    struct lock_text t = read_text(fd);
    char path[48], name[32];
    if (!t.core || !t.root || is_alive(t.root))
        return false;
    int process = (int)syscall(SYS_pidfd_open, t.core, 0);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)t.core);
    int comm = process < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = comm < 0 ? -1 : read(comm, name, sizeof name);
    bool is_core = n > 0 && str_starts((struct str){name, (size_t)n}, "weir: core");
    bool killed = is_core && syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0) == 0;
    if (comm >= 0)
        close(comm);
    if (process >= 0)
        close(process);
    return killed;
}

static bool lock_or_kill(int fd, int64_t orphan_wait_ms)
{
    if (lock_before(fd, clock_mono_ms(&clock_system) + orphan_wait_ms))
        return true;
    return kill_orphan(fd) && lock_before(fd, clock_mono_ms(&clock_system) + KILLED_WAIT_MS);
}

enum err_code data_lock_take(const char *data_dir, int64_t orphan_wait_ms, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/weir.lock", data_dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(err, ERR_CONFIG_INVALID, "data directory: the path is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "%.160s: %s", path, strerror(errno));
    enum err_code code;
    if (lock_or_kill(fd, orphan_wait_ms)) {
        struct lock_text t = read_text(fd);
        t.root = getpid();
        t.core = 0;
        code = write_text(fd, &t, err);
    } else {
        code = refuse(data_dir, read_text(fd).root, err);
    }
    if (code) {
        close(fd);
        return code;
    }
    *ret_fd = fd;
    return ERR_OK;
}

enum err_code data_lock_raise_epoch(int fd, int64_t *ret_epoch, struct err *err)
{
    struct lock_text t = read_text(fd);
    t.epoch++;
    t.core = getpid();
    *ret_epoch = t.epoch;
    return write_text(fd, &t, err);
}

void data_lock_release(int fd)
{
    if (fd >= 0)
        close(fd); /* the lock goes with the last descriptor, so core's copy keeps it */
}
