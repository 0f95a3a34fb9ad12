#include "store/postgres/postgres_clock.h"

#include <stdbool.h>

#include "base/clock.h"

#include "base/banned.h"

int64_t pg_mono_ms(void)
{
    return clock_mono_ms(&clock_system);
}

int64_t pg_mono_us(void)
{
    return clock_mono_us(&clock_system);
}

void pg_clock_learn(struct pg_clock *c, int64_t server_us, int64_t asked_us, int64_t answered_us)
{
    enum { DRIFT_SHARE = 2000 }; /* 500 ppm: as fast as a clock is slewed */
    int64_t low = server_us - answered_us, high = server_us - asked_us;
    int64_t drift = (answered_us - c->learnt_us) / DRIFT_SHARE + 1;
    bool agrees = c->learnt_us && low <= c->high_us + drift && high >= c->low_us - drift;
    if (agrees && low < c->low_us - drift)
        low = c->low_us - drift;
    if (agrees && high > c->high_us + drift)
        high = c->high_us + drift;
    int64_t told = agrees ? c->told_us : low + (high - low) / 2;
    told = told < low ? low : told > high ? high : told;
    *c = (struct pg_clock){low, high, told, answered_us};
}

int64_t pg_clock_minus_mono_us(const struct pg_clock *c)
{
    return c->told_us;
}
