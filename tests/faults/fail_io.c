/* fail_io.c - LD_PRELOAD: makes the disk fail, stall or the wall clock jump while a real server runs.
 *
 * FAIL_IO_CONTROL names a file of CONTROL_WORDS 64-bit numbers that the test and every process of the
 * server map; fail_io.py is the other side. Only files whose path holds "weir.db" are touched. With all
 * numbers zero each call goes straight to the kernel: the negative control of every test that uses it.
 * Calls the kernel itself: no dlsym, so it also works behind a sanitizer's own interceptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum control_word {
    SYNC_ERRNO, /* fsync and fdatasync fail with this; 0: they work */
    SYNC_DELAY_MS,
    WRITE_ERRNO,
    READ_ERRNO,
    CLOCK_SHIFT_MS, /* added to CLOCK_REALTIME */
    SYNCS_SEEN,     /* counted here: that the server's syncs pass this way at all */
    FAILURES,
    CONTROL_WORDS
};

static _Atomic int64_t *control;

int fsync(int fd);
int fdatasync(int fd);
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at);
ssize_t pread64(int fd, void *data, size_t len, off64_t at);
int clock_gettime(clockid_t id, struct timespec *ret);

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAIL_IO_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *words = mmap(NULL, CONTROL_WORDS * sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (words != MAP_FAILED)
        control = words;
}

static int64_t word(enum control_word w)
{
    return control ? atomic_load(&control[w]) : 0;
}

static int is_database(int fd)
{
    char link[32] = "/proc/self/fd/", path[4096], digits[12];
    size_t n = 0, len = strlen(link);
    for (int rest = fd; rest || !n; rest /= 10)
        digits[n++] = (char)('0' + rest % 10);
    while (n)
        link[len++] = digits[--n];
    link[len] = 0;
    ssize_t got = readlink(link, path, sizeof path - 1);
    if (got <= 0)
        return 0;
    path[got] = 0;
    return strstr(path, "weir.db") != NULL;
}

/* 0, or -1 with errno when this call is to fail. */
static int fails(int fd, enum control_word w)
{
    int64_t error = word(w);
    if (!error || !is_database(fd))
        return 0;
    atomic_fetch_add(&control[FAILURES], 1);
    errno = (int)error;
    return -1;
}

static int sync_by(long call, int fd)
{
    int64_t delay_ms = word(SYNC_DELAY_MS);
    if (control && is_database(fd)) {
        atomic_fetch_add(&control[SYNCS_SEEN], 1);
        if (delay_ms)
            nanosleep(&(struct timespec){delay_ms / 1000, delay_ms % 1000 * 1000000}, NULL);
    }
    return fails(fd, SYNC_ERRNO) ? -1 : (int)syscall(call, fd);
}

int fsync(int fd)
{
    return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_by(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    return fails(fd, WRITE_ERRNO) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, len, at);
}

ssize_t pread64(int fd, void *data, size_t len, off64_t at)
{
    return fails(fd, READ_ERRNO) ? -1 : (ssize_t)syscall(SYS_pread64, fd, data, len, at);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int result = (int)syscall(SYS_clock_gettime, id, ret);
    int64_t shift_ms = id == CLOCK_REALTIME ? word(CLOCK_SHIFT_MS) : 0;
    ret->tv_sec += shift_ms / 1000;
    return result;
}
