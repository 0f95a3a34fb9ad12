/* Checks of the machine: directory, disk, open files, clock. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/doctor.h"

#include "base/banned.h"

enum {
    SYNCS = 20,
    SYNC_BYTES = 4096,
    SYNC_SLOW_US = 20000,
    SYNC_SUSPECT_US = 15, /* no disk is that fast: the sync goes nowhere */
    DISK_FAIL_MIB = 64,
    DISK_WARN_MIB = 1024,
    FILES_SPARE = 64,
};

struct finding doctor_data_dir(const struct doctor *d)
{
    const char *dir = d->settings.data_dir;
    struct stat info;
    if (stat(dir, &info) != 0)
        return errno == ENOENT
                   ? finding(FINDING_WARN, "`weir serve` makes it; --data DIR names another",
                             "%.200s does not exist yet", dir)
                   : finding(FINDING_FAIL, "let this user reach it", "%.200s: %s", dir, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return finding(FINDING_FAIL, "give another --data DIR", "%.200s is no directory", dir);
    if (access(dir, W_OK | X_OK) != 0)
        return finding(FINDING_FAIL, "let this user write there", "%.200s is not writable: %s", dir,
                       strerror(errno));
    if (info.st_mode & 0007)
        return finding(FINDING_WARN, "chmod o-rwx: the database holds payloads and secrets",
                       "%.200s is open to every user of this machine", dir);
    return finding(FINDING_OK, "", "%.200s exists and is writable", dir);
}

struct finding doctor_disk_space(const struct doctor *d)
{
    struct statvfs fs;
    const char *dir = d->settings.data_dir;
    if (statvfs(dir, &fs) != 0 && statvfs(".", &fs) != 0)
        return finding(FINDING_WARN, "", "cannot tell: %s", strerror(errno));
    uint64_t free_mib = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
    uint64_t all_mib = (uint64_t)fs.f_blocks * fs.f_frsize >> 20;
    enum finding_level level = free_mib < DISK_FAIL_MIB   ? FINDING_FAIL
                               : free_mib < DISK_WARN_MIB ? FINDING_WARN
                                                          : FINDING_OK;
    return finding(level, "make room: with a full disk nothing is accepted",
                   "%" PRIu64 " MiB of %" PRIu64 " MiB free", free_mib, all_mib);
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Microseconds of each sync, sorted; false with errno. */
static bool measure_syncs(int fd, int64_t us[SYNCS])
{
    char bytes[SYNC_BYTES] = {1};
    for (int i = 0; i < SYNCS; i++) {
        int64_t start = nanoseconds();
        if (pwrite(fd, bytes, sizeof bytes, (off_t)i * SYNC_BYTES) != SYNC_BYTES || fdatasync(fd) != 0)
            return false;
        us[i] = (nanoseconds() - start) / 1000;
    }
    qsort(us, SYNCS, sizeof *us, by_size);
    return true;
}

struct finding doctor_disk_sync(const struct doctor *d)
{
    char path[PATH_MAX];
    int64_t us[SYNCS];
    snprintf(path, sizeof path, "%s/doctor-XXXXXX", d->settings.data_dir);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return finding(errno == ENOENT ? FINDING_WARN : FINDING_FAIL, "see the data directory above",
                       "not measured: %s", strerror(errno));
    unlink(path);
    bool measured = measure_syncs(fd, us);
    int number = errno;
    close(fd);
    if (!measured)
        return finding(FINDING_FAIL, "Weir cannot promise anything on this disk", "sync failed: %s",
                       strerror(number));
    int64_t median = us[SYNCS / 2];
    const char *advice = "";
    if (median > SYNC_SLOW_US)
        advice = "a slow disk makes every commit slow; use a local SSD";
    else if (median < SYNC_SUSPECT_US)
        advice = "is it a RAM disk, or one that ignores sync? What is accepted there is lost with the power";
    return finding(
        *advice ? FINDING_WARN : FINDING_OK, advice,
        "median %" PRId64 ".%03" PRId64 " ms, slowest %" PRId64 ".%03" PRId64 " ms of %d syncs of %d bytes",
        median / 1000, median % 1000, us[SYNCS - 1] / 1000, us[SYNCS - 1] % 1000, SYNCS, SYNC_BYTES);
}

struct finding doctor_open_files(const struct doctor *d)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)d->settings.connections_max + FILES_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return finding(FINDING_WARN, "", "cannot tell: %s", strerror(errno));
    if (limit.rlim_cur >= wanted)
        return finding(FINDING_OK, "", "%" PRIu64, (uint64_t)limit.rlim_cur);
    return finding(FINDING_WARN, "raise it with `ulimit -n`, or lower server.connections_max",
                   "%" PRIu64 " (at most %" PRIu64 "); server.connections_max is %" PRId64,
                   (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max, d->settings.connections_max);
}

struct finding doctor_clock(const struct doctor *d)
{
    const int64_t year_2024_s = 1704067200, year_2100_s = 4102444800, slack_s = 60;
    int64_t now_ms = clock_wall_ms(&clock_system);
    int64_t now_s = now_ms / 1000;
    struct stat info;
    char text[TIME_TEXT_MAX];
    struct str now = time_text_ms(now_ms, text);
    if (now_s < year_2024_s || now_s > year_2100_s)
        return finding(FINDING_FAIL, "set the clock; schedules and expiry depend on it",
                       "%.*s cannot be right", STR_ARG(now));
    if (*d->store_path && stat(d->store_path, &info) == 0 && info.st_mtime > now_s + slack_s)
        return finding(FINDING_WARN, "set the clock, or wait: scheduled jobs would run late",
                       "%.*s, but the database was written %" PRId64 " s later than that", STR_ARG(now),
                       (int64_t)info.st_mtime - now_s);
    return finding(FINDING_OK, "", "%.*s", STR_ARG(now));
}
