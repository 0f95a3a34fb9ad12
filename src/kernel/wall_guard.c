#include "kernel/wall_guard.h"

#include <stdlib.h>

#include "base/banned.h"

const char *wall_state_text(enum wall_state s)
{
#define X(name, text, advice) [WALL_##name] = text,
    static const char *const texts[] = {WALL_STATES(X)};
#undef X
    return texts[s];
}

const char *wall_advice(enum wall_state s)
{
#define X(name, text, advice) [WALL_##name] = advice,
    static const char *const texts[] = {WALL_STATES(X)};
#undef X
    return texts[s];
}

static void take(struct wall_guard *g, int64_t wall_us, int64_t steady_us)
{
    g->state = WALL_RIGHT;
    g->offset_us = wall_us - steady_us;
    g->since_us = steady_us;
    g->is_guessed = false;
}

static bool is_sane(int64_t wall_us)
{
    return wall_us >= WALL_SANE_US;
}

void wall_guard_start(struct wall_guard *g, int64_t wall_us, int64_t steady_us, int64_t known_us)
{
    *g = (struct wall_guard){.delete_from_us = steady_us};
    take(g, wall_us, steady_us);
    if (known_us && wall_us - known_us > WALL_DOWN_US)
        g->delete_from_us = steady_us + WALL_SETTLE_US;
    if (is_sane(wall_us))
        return;
    g->state = WALL_TOO_EARLY;
    g->is_guessed = true;
    g->offset_us = (known_us > WALL_SANE_US ? known_us : WALL_SANE_US) - steady_us;
}

int64_t wall_guard_now(const struct wall_guard *g, int64_t wall_us, int64_t steady_us)
{
    bool is_ahead = wall_us - steady_us > g->offset_us + WALL_JUMP_US && !g->is_guessed;
    return is_sane(wall_us) && !is_ahead ? wall_us : steady_us + g->offset_us;
}

/* The first time that can be right, after a start with one that could not. */
static void take_first(struct wall_guard *g, int64_t wall_us, int64_t steady_us)
{
    take(g, wall_us, steady_us);
    g->delete_from_us = steady_us + WALL_SETTLE_US;
}

static void wait_for(struct wall_guard *g, enum wall_state state, int64_t wall_us, int64_t steady_us)
{
    int64_t offset = wall_us - steady_us;
    if (g->state != state || llabs(offset - g->seen_us) > WALL_JUMP_US) {
        g->state = state;
        g->seen_us = offset;
        g->seen_since_us = steady_us;
    }
    if (steady_us - g->seen_since_us >= WALL_SETTLE_US)
        take(g, wall_us, steady_us);
}

int64_t wall_guard_look(struct wall_guard *g, int64_t wall_us, int64_t steady_us)
{
    int64_t difference = wall_us - steady_us - g->offset_us;
    if (!is_sane(wall_us))
        g->state = WALL_TOO_EARLY;
    else if (g->is_guessed)
        take_first(g, wall_us, steady_us);
    else if (llabs(difference) > WALL_JUMP_US)
        wait_for(g, difference > 0 ? WALL_AHEAD : WALL_BACK, wall_us, steady_us);
    else if (steady_us - g->since_us >= WALL_SETTLE_US)
        take(g, wall_us, steady_us);
    else
        g->state = WALL_RIGHT;
    return wall_guard_now(g, wall_us, steady_us);
}

bool wall_guard_may_delete(const struct wall_guard *g, int64_t steady_us)
{
    return (g->state == WALL_RIGHT || g->state == WALL_BACK) && steady_us >= g->delete_from_us;
}

void wall_guard_accept(struct wall_guard *g, int64_t wall_us, int64_t steady_us)
{
    if (!is_sane(wall_us))
        return;
    take(g, wall_us, steady_us);
    g->delete_from_us = steady_us;
}
