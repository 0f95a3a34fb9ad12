/* cli/traffic/latency.h - times counted in steps of about three percent: any number of them in
 * memory that does not grow. Pure. */
#ifndef WEIR_TRAFFIC_LATENCY_H
#define WEIR_TRAFFIC_LATENCY_H

#include <stdint.h>

enum { LATENCY_STEPS = 32, LATENCY_DOUBLINGS = 44, LATENCY_SLOTS = LATENCY_STEPS * LATENCY_DOUBLINGS };

struct latency {
    uint64_t count;
    uint32_t slots[LATENCY_SLOTS];
};

void latency_add(struct latency *l, int64_t us); /* below 0 counts as 0 */
/* The time that `share` (0 to 1) of them do not exceed, within a step; 0 when there are none. */
int64_t latency_at(const struct latency *l, double share);

#endif
