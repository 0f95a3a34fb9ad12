/* pace.h - time as a quiet machine has it, for tests that judge by a clock. Of Python: tests/harness/pace.py,
 * which says why. Upper bounds are judged by pace_quiet_ms(), lower ones by the plain clock. */
#ifndef WEIR_TESTS_PACE_H
#define WEIR_TESTS_PACE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

struct pace {
    int64_t began_ms, stalled_ms;
};

/* How long processes waited for a processor or a disk, or the host had the processors: ms since the machine
 * started. */
static inline int64_t pace_stalled_ms(void)
{
    static const char *const files[] = {"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
    char line[256];
    int64_t stalled_ms = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        FILE *file = fopen(files[i], "re");
        if (file && fgets(line, sizeof line, file) && strstr(line, "total="))
            stalled_ms += strtoll(strstr(line, "total=") + 6, NULL, 10) / 1000;
        if (file)
            (void)fclose(file);
    }
    FILE *file = fopen("/proc/stat", "re");
    if (file && fgets(line, sizeof line, file)) {
        char *at = line + 3; /* cpu user nice system idle iowait irq softirq steal */
        int64_t stolen = 0;
        for (int i = 0; i < 8; i++)
            stolen = strtoll(at, &at, 10);
        stalled_ms += stolen * 1000 / sysconf(_SC_CLK_TCK);
    }
    if (file)
        (void)fclose(file);
    return stalled_ms;
}

static inline struct pace pace_start(void)
{
    return (struct pace){clock_mono_ms(&clock_system), pace_stalled_ms()};
}

/* The time that a quiet machine would have taken since then, at most. A machine without such counts is taken
 * for busy. */
static inline int64_t pace_quiet_ms(const struct pace *p)
{
    enum { UNKNOWN_MS = 60000 };
    int64_t stalled_ms =
        access("/proc/pressure/cpu", R_OK) == 0 ? pace_stalled_ms() - p->stalled_ms : UNKNOWN_MS;
    int64_t quiet_ms = clock_mono_ms(&clock_system) - p->began_ms - stalled_ms;
    return quiet_ms > 0 ? quiet_ms : 0;
}

#endif
