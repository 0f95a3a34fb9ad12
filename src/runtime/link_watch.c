#include "runtime/link_watch.h"

#include <stdio.h>

#include "base/json_members.h"
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

void link_write_return(struct json_writer *w, const char *instance_id, const struct link_return *back)
{
    jw_key(w, "reconnects");
    jw_array(w);
    if (back->attempts) {
        jw_object(w);
        encode_text(w, "instance_id", instance_id);
        encode_int(w, "elapsed_ms", back->elapsed_ms);
        encode_int(w, "attempts", back->attempts);
        encode_text(w, "reason", back->reason);
        jw_object_end(w);
    }
    jw_array_end(w);
}
