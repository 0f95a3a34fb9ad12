#include "runtime/restart_window.h"

#include <string.h>

#include "base/backoff.h"
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

/* Half of what N + 1 restarts may take each: the rest is for the spread and for the starts themselves. */
static int64_t pause_max_ms(const struct restart_window *w)
{
    int64_t ms = w->window_ms / (2 * ((int64_t)w->max_restarts + 1));
    return ms < RESTART_BACKOFF_MS       ? RESTART_BACKOFF_MS
           : ms < RESTART_BACKOFF_MAX_MS ? ms
                                         : RESTART_BACKOFF_MAX_MS;
}

/* The nth restart of a window, counted from 1. */
static int64_t pause_ms(const struct restart_window *w, uint32_t nth)
{
    return nth <= RESTART_IMMEDIATE
               ? 0
               : backoff_ms(RESTART_BACKOFF_MS, nth - RESTART_IMMEDIATE - 1, pause_max_ms(w));
}

bool restart_window_add(struct restart_window *w, int64_t now_ms, int64_t *ret_delay_ms)
{
    restart_window_slide(w, now_ms);
    if (w->count >= w->max_restarts)
        return false;
    w->at_ms[w->count++] = now_ms;
    *ret_delay_ms = pause_ms(w, w->count);
    return true;
}
