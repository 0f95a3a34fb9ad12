/* lifecycle/attempts.h - the attempts of a delivery, packed in its row: when, how long, what was answered.
 *
 * The last ATTEMPTS_KEPT are kept. */
#ifndef WEIR_LIFECYCLE_ATTEMPTS_H
#define WEIR_LIFECYCLE_ATTEMPTS_H

#include <stdbool.h>

#include "base/arena.h"

enum { ATTEMPTS_KEPT = 20, ATTEMPT_ERROR_MAX = 32 };

struct attempt {
    int64_t at_ms, duration_ms;
    int64_t status;   /* of the answer; 0: none came */
    struct str error; /* wire name of what went wrong; absent: the status tells */
};

/* `attempts` with one more at its end; in the arena. */
struct str attempts_add(struct arena *a, struct str attempts, const struct attempt *one);
/* Takes the first off *rest. False when there is none, or it is damaged. */
bool attempts_take(struct str *rest, struct attempt *ret);

#endif
