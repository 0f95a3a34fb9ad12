#include "runtime/data_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#include "base/banned.h"

enum { ORPHAN_LOOK_MS = 20 };

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

/* 0 when the file does not say. */
static pid_t read_pid(int fd)
{
    char text[24];
    ssize_t n = pread(fd, text, sizeof text, 0);
    int64_t pid;
    struct str rest = {text, n > 0 ? (size_t)n : 0};
    return str_to_int(str_cut(&rest, '\n'), 1, INT_MAX, &pid) ? (pid_t)pid : 0;
}

/* Asks by descriptor: kill(pid, 0) also finds a killed root that nobody has waited for yet. */
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

static enum err_code write_pid(int fd, struct err *err)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n)
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
        pid_t holder = read_pid(fd);
        if (!held || !holder || is_alive(holder) || clock_mono_ms(&clock_system) >= deadline_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = ORPHAN_LOOK_MS * 1000000L}, NULL);
    }
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
    if (lock_before(fd, clock_mono_ms(&clock_system) + orphan_wait_ms))
        code = write_pid(fd, err);
    else
        code = refuse(data_dir, read_pid(fd), err);
    if (code) {
        close(fd);
        return code;
    }
    *ret_fd = fd;
    return ERR_OK;
}

void data_lock_release(int fd)
{
    if (fd >= 0)
        close(fd); /* the lock goes with the last descriptor, so core's copy keeps it */
}
