/* kernel/wall_guard.h - the wall clock of a machine, checked against its steady one. Pure: both come from the
 * caller.
 *
 * A clock is set by hand, a time server is wrong for a moment, a battery is empty: the wall clock jumps, and
 * retention would delete what it should keep for weeks, schedules would fire years too early. The steady
 * clock never jumps, so the two must agree on how much time has passed. A difference of more than
 * WALL_JUMP_US is a jump, however it came about:
 *
 *   ahead     Batches go on in the time as it would have been. Nothing is deleted, no schedule is early.
 *   back      Batches have the time of the wall clock. A schedule waits, and is early by neither clock. When
 *             the clock is put right again, that is no jump.
 *   too early The clock is before the year 2020. As ahead, however long it lasts.
 *
 * The new time counts once the clock has gone on steadily in it for WALL_SETTLE_US, or when an operator says
 * so. A difference that is no jump is followed at once; WALL_JUMP_US is also the most of it in an hour.
 *
 * A start has no steady time to compare with. Schedules go by the wall clock, and deletion waits for
 * WALL_SETTLE_US when it is more than WALL_DOWN_US ahead of the last time that the store knows of: the server
 * was down for so long, or the clock is wrong. */
#ifndef WEIR_KERNEL_WALL_GUARD_H
#define WEIR_KERNEL_WALL_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#define WALL_JUMP_US   (300 * INT64_C(1000000))
#define WALL_SETTLE_US (3600 * INT64_C(1000000))
#define WALL_DOWN_US   (86400 * INT64_C(1000000))
#define WALL_SANE_US   (1577836800 * INT64_C(1000000)) /* 2020-01-01 */

/* X(name, text in logs, what an operator does about it) */
#define WALL_STATES(X)                                                                                       \
    X(RIGHT, "right", NULL)                                                                                  \
    X(AHEAD, "ahead", "set the clock right, or `weir clock accept` if it is")                                \
    X(BACK, "back", "set the clock right, or `weir clock accept` if it is")                                  \
    X(TOO_EARLY, "too_early", "set the clock right")
#define X(name, text, advice) WALL_##name,
enum wall_state { WALL_STATES(X) WALL_STATE_COUNT };
#undef X
const char *wall_state_text(enum wall_state s);
const char *wall_advice(enum wall_state s); /* NULL: nothing to do */

struct wall_guard {
    enum wall_state state;
    int64_t offset_us, since_us;    /* wall minus steady clock that counts; steady: from when on */
    int64_t seen_us, seen_since_us; /* the same of a clock that has jumped and is waited for */
    int64_t delete_from_us;         /* steady: nothing is deleted before */
    bool is_guessed;                /* no clock that can be right has been seen yet */
};

/* `known_us`: the last wall time that the store knows of; 0: it knows none. */
void wall_guard_start(struct wall_guard *g, int64_t wall_us, int64_t steady_us, int64_t known_us);
/* With each batch: gives its time. */
int64_t wall_guard_look(struct wall_guard *g, int64_t wall_us, int64_t steady_us);
/* The time of a batch that began now. */
int64_t wall_guard_now(const struct wall_guard *g, int64_t wall_us, int64_t steady_us);
bool wall_guard_may_delete(const struct wall_guard *g, int64_t steady_us);
/* An operator says that the clock is right. One that is too early cannot be. */
void wall_guard_accept(struct wall_guard *g, int64_t wall_us, int64_t steady_us);

#endif
