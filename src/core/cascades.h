/* core/cascades.h - how many restarts have left their domain, as root says in DATA/topology.json.
 *
 * Looks at the file's time and size first: it is read when it has changed, in no case more than
 * TOPOLOGY_BYTES_MAX of it. One thread. */
#ifndef WEIR_CORE_CASCADES_H
#define WEIR_CORE_CASCADES_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { TOPOLOGY_BYTES_MAX = 1 << 20 };

struct cascades {
    const char *path;
    struct timespec changed;
    off_t size;
    int64_t count;
};

/* "cascades" of the file; the last number read while it cannot be. */
int64_t cascades_look(struct cascades *c);

#endif
