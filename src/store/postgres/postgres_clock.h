/* store/postgres/postgres_clock.h - our monotonic clock, and how far the server's is ahead of it. */
#ifndef WEIR_STORE_POSTGRES_CLOCK_H
#define WEIR_STORE_POSTGRES_CLOCK_H

#include <stdint.h>

int64_t pg_mono_ms(void);
int64_t pg_mono_us(void);

/* The server's clock minus our monotonic one lies between the two bounds. The clock was read at some moment
 * between the question and the answer, and a process may have stood still for seconds in between: each
 * reading narrows what the readings before it allow, and none widens it. Otherwise a lease that one node
 * grants would have ended already by another node's clock. The reported offset is moved only as far as a
 * reading proves it wrong: a slow reading proves little and moves nothing. Otherwise the clock would wander
 * on a busy machine, and recorded durations would be too short or too long. */
struct pg_clock {
    int64_t low_us, high_us;
    int64_t told_us;   /* between the two */
    int64_t learnt_us; /* monotonic; 0: nothing is known */
};

void pg_clock_learn(struct pg_clock *c, int64_t server_us, int64_t asked_us, int64_t answered_us);
int64_t pg_clock_minus_mono_us(const struct pg_clock *c);

#endif
