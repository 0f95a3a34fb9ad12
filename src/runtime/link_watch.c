#include "runtime/link_watch.h"

#include <stdio.h>

#include "runtime/failure_modes.h"

#include "base/banned.h"

void link_failed(struct link_watch *w, const char *why, int64_t now_ms)
{
    if (w->attempts++ == 0) {
        w->lost_ms = now_ms;
        snprintf(w->reason, sizeof w->reason, "%s", why);
    }
    failure_listener_disconnected(w->component, w->instance_id, w->attempts, now_ms - w->lost_ms);
}

bool link_works(struct link_watch *w, int64_t now_ms, struct link_return *ret)
{
    if (!w->attempts)
        return false;
    *ret = (struct link_return){.elapsed_ms = now_ms - w->lost_ms, .attempts = w->attempts};
    snprintf(ret->reason, sizeof ret->reason, "%s", w->reason);
    w->attempts = 0;
    return true;
}
