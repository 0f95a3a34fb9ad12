/* runtime/restart_window.h - how often something may be restarted, and how soon.
 *
 * One sliding window per domain, by OTP's rule (AT-02): the restart that would be the (N+1)th within the
 * window is refused, and with it the domain ends. The first two restarts in a window are immediate; each
 * later one waits twice as long as the one before, 100 ms up to 5 s, but never so long that N restarts would
 * not fit into the window: a child that fails again and again does end its domain.
 *
 * Pure: time is passed in (milliseconds that only go forward). */
#ifndef WEIR_RUNTIME_RESTART_WINDOW_H
#define WEIR_RUNTIME_RESTART_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RESTART_COUNT_MAX = 1000, /* the largest max_restarts a setting allows */
    RESTART_IMMEDIATE = 2,
    RESTART_BACKOFF_MS = 100,
    RESTART_BACKOFF_MAX_MS = 5000,
};

struct restart_window {
    int64_t window_ms;
    uint32_t max_restarts;
    uint32_t count; /* restarts remembered, oldest first */
    int64_t at_ms[RESTART_COUNT_MAX];
};

void restart_window_init(struct restart_window *w, int64_t max_restarts, int64_t window_seconds);
void restart_window_clear(struct restart_window *w);
/* Counts one restart and says how long to wait before it. False: one too many, nothing counted. */
bool restart_window_add(struct restart_window *w, int64_t now_ms, int64_t *ret_delay_ms);
/* Forgets what left the window; true when something did. */
bool restart_window_slide(struct restart_window *w, int64_t now_ms);
/* When the next restart leaves the window; INT64_MAX when it is empty. */
int64_t restart_window_next_slide(const struct restart_window *w);

#endif
