#include "base/clock.h"

#include <stddef.h>
#include <time.h>

#include "base/banned.h"

static int64_t system_wall_us(void *self)
{
    (void)self;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t system_mono_us(void *self)
{
    (void)self;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t system_mono_ms(void *self)
{
    return system_mono_us(self) / 1000;
}

const struct clock clock_system = {system_wall_us, system_mono_ms, NULL, system_mono_us};
