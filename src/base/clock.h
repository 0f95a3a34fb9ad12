/* base/clock.h - the only source of time. Deciders get `now` passed in; tests turn the hands.
 *
 * wall_us:  microseconds UTC since 1970; may jump when the machine's clock is set.
 * mono_ms:  milliseconds that only go forward; for timeouts and waiting, never stored. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*wall_us)(void *self);
    int64_t (*mono_ms)(void *self);
    void *self;
    int64_t (*mono_us)(void *self); /* finer mono_ms; NULL: it has whole milliseconds only */
};

extern const struct clock clock_system;

static inline int64_t clock_wall_us(const struct clock *c)
{
    return c->wall_us(c->self);
}
static inline int64_t clock_wall_ms(const struct clock *c)
{
    return c->wall_us(c->self) / 1000;
}
static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c->self);
}
static inline int64_t clock_mono_us(const struct clock *c)
{
    return c->mono_us ? c->mono_us(c->self) : c->mono_ms(c->self) * 1000;
}

#endif
