/* runtime/link_watch.h - reports the loss of a connection that is made again by itself.
 *
 * The holder of the connection reports each failed try, and each time the connection is there. The first
 * failed try after it was there is the disconnect. Each failed try is told by the crash policy
 * (listener_disconnected, recoverable: component, instance_id, attempt, elapsed_ms). The holder decides how
 * long to wait between tries; the wait has to be bounded, and spread.
 *
 * Thread:  one, the holder's. Time is passed in. */
#ifndef WEIR_RUNTIME_LINK_WATCH_H
#define WEIR_RUNTIME_LINK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

enum { LINK_REASON_MAX = 64 };

struct link_watch {
    const char *component, *instance_id; /* the owner's, as long as it lives */
    int64_t lost_ms;                     /* when the loss was found; attempts 0: the connection is there */
    int64_t attempts;
    char reason[LINK_REASON_MAX]; /* of the first failure */
};

/* The fields of `instance.connected`. */
struct link_return {
    int64_t elapsed_ms, attempts;
    char reason[LINK_REASON_MAX];
};

void link_failed(struct link_watch *w, const char *why, int64_t now_ms);
/* True: it had been lost. */
bool link_works(struct link_watch *w, int64_t now_ms, struct link_return *ret);

/* The member "reconnects" of what a process tells core (api/overload.h): the one return, or with attempts 0
 * none. */
#define LINK_REPORT_PATH "/internal/v1/pressure"
void link_write_return(struct json_writer *w, const char *instance_id, const struct link_return *back);

#endif
