#include "runtime/restart_window.h"

#include <string.h>

#include "base/must.h"

#include "base/banned.h"

void restart_window_init(struct restart_window *w, int64_t max_restarts, int64_t window_seconds)
{
    MUST(max_restarts >= 0 && max_restarts <= RESTART_COUNT_MAX && window_seconds > 0);
    w->window_ms = window_seconds * 1000;
    w->max_restarts = (uint32_t)max_restarts;
    w->count = 0;
}

void restart_window_clear(struct restart_window *w)
{
    w->count = 0;
}

bool restart_window_slide(struct restart_window *w, int64_t now_ms)
{
    uint32_t gone = 0;
    while (gone < w->count && now_ms - w->at_ms[gone] > w->window_ms)
        gone++;
    memmove(w->at_ms, w->at_ms + gone, (w->count - gone) * sizeof w->at_ms[0]);
    w->count -= gone;
    return gone > 0;
}

int64_t restart_window_next_slide(const struct restart_window *w)
{
    return w->count ? w->at_ms[0] + w->window_ms + 1 : INT64_MAX;
}

/* The nth restart of a window, counted from 1. */
static int64_t backoff_ms(uint32_t nth)
{
    if (nth <= RESTART_IMMEDIATE)
        return 0;
    int64_t delay = RESTART_BACKOFF_MS;
    for (uint32_t i = RESTART_IMMEDIATE + 1; i < nth && delay < RESTART_BACKOFF_MAX_MS; i++)
        delay *= 2;
    return delay < RESTART_BACKOFF_MAX_MS ? delay : RESTART_BACKOFF_MAX_MS;
}

bool restart_window_add(struct restart_window *w, int64_t now_ms, int64_t *ret_delay_ms)
{
    restart_window_slide(w, now_ms);
    if (w->count >= w->max_restarts)
        return false;
    w->at_ms[w->count++] = now_ms;
    *ret_delay_ms = backoff_ms(w->count);
    return true;
}
