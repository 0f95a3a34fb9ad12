/* weir_process_*: figures of the operating system about core, with the names of Prometheus clients behind our
 * prefix. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "api/metrics/metrics_internal.h"

#include "base/banned.h"

enum { STAT_BYTES_MAX = 1024, STAT_START_FIELD = 22 };

static bool read_proc(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(out, 1, size - 1, f);
    fclose(f);
    out[n] = 0;
    return n > 0;
}

/* Boot time plus the start of this process in clock ticks: field 22, counted from behind the name, which may
 * hold anything. 0 when /proc does not tell. */
static double start_seconds(void)
{
    char stat[STAT_BYTES_MAX];
    struct timespec now, up;
    char *at = read_proc("/proc/self/stat", stat, sizeof stat) ? strrchr(stat, ')') : NULL;
    if (!at || clock_gettime(CLOCK_REALTIME, &now) != 0 || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return 0;
    for (int field = 2; field < STAT_START_FIELD && at; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    double ticks = (double)strtoull(at + 1, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 + ticks;
}

static uint64_t open_descriptors(void)
{
    _Alignas(struct dirent64) char entries[4096];
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t n = 0;
    if (fd < 0)
        return 0;
    for (ssize_t len; (len = getdents64(fd, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *e = (const void *)(entries + at);
            n += e->d_name[0] != '.';
            at += e->d_reclen;
        }
    close(fd);
    return n ? n - 1 : 0; /* without the one that was looking */
}

static void whole(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, "gauge", help);
    strbuf_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void metrics_write_process(struct strbuf *out)
{
    struct rusage used = {0};
    struct rlimit files = {0};
    char statm[128];
    unsigned long long size = 0, resident = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_NOFILE, &files);
    if (read_proc("/proc/self/statm", statm, sizeof statm)) {
        char *rest;
        size = strtoull(statm, &rest, 10);
        resident = strtoull(rest, NULL, 10);
    }
    metrics_head(out, "weir_process_cpu_seconds_total", "counter", "CPU time of core, user and system");
    strbuf_addf(out, "weir_process_cpu_seconds_total %.6f\n",
                seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
    metrics_head(out, "weir_process_start_time_seconds", "gauge", "When core started, since 1970");
    strbuf_addf(out, "weir_process_start_time_seconds %.3f\n", start_seconds());
    whole(out, "weir_process_resident_memory_bytes", "Memory of core that is in RAM", resident * page);
    whole(out, "weir_process_virtual_memory_bytes", "Address space of core", size * page);
    whole(out, "weir_process_open_fds", "Open file descriptors of core", open_descriptors());
    whole(out, "weir_process_max_fds", "The most it may open", files.rlim_cur);
}
