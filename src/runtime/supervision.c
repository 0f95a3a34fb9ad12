#include "runtime/supervision.h"

#include "base/backoff.h"
#include "base/must.h"

#include "base/banned.h"

void supervision_init(struct supervision *s, enum domain_id domain, struct domain_limits limits)
{
    s->domain = domain;
    s->restarts = s->endings = 0;
    restart_window_init(&s->window, limits.max_restarts, limits.window_seconds);
}

static struct supervision_answer restart(struct supervision *s, uint32_t child, int64_t now_ms)
{
    int64_t delay_ms;
    if (!restart_window_add(&s->window, now_ms, &delay_ms)) {
        s->endings++;
        return (struct supervision_answer){SUPERVISION_END, 0};
    }
    s->restarts++;
    double spread = backoff_spread((int64_t)s->domain << 32 | child, (int64_t)s->restarts);
    delay_ms += (int64_t)((double)delay_ms / 2 * spread);
    return (struct supervision_answer){SUPERVISION_RESTART, delay_ms};
}

struct supervision_answer supervision_child_failed(struct supervision *s, enum failure_mode mode,
                                                   uint32_t child, int64_t now_ms)
{
    switch (failure_modes[mode].action) {
    case FAILURE_ACTION_STOP:
        return (struct supervision_answer){SUPERVISION_STOP, 0};
    case FAILURE_ACTION_RESTART:
    case FAILURE_ACTION_END: /* the end of the domain below is one failed child here */
        return restart(s, child, now_ms);
    case FAILURE_ACTION_NONE:
        return (struct supervision_answer){SUPERVISION_KEEP, 0};
    case FAILURE_ACTION_COUNT:
        break;
    }
    MUST(mode < FAILURE_MODE_COUNT);
    return (struct supervision_answer){SUPERVISION_STOP, 0};
}

void supervision_renew(struct supervision *s)
{
    restart_window_clear(&s->window);
}

bool cascade_watch_failure(struct cascade_watch *w, enum domain_id domain, int64_t now_ms)
{
    if (w->ends_ms && now_ms < w->ends_ms) {
        if (domain == w->domain)
            return false;
        w->at_ms[w->cascades++ % CASCADE_TIMES_MAX] = now_ms;
        return true;
    }
    w->domain = domain;
    w->ends_ms = now_ms + SUPERVISION_INCIDENT_MS;
    w->incidents++;
    return false;
}
