/* cli/traffic/mix.h - which kind comes next. Pure: the same seed gives the same sequence. */
#ifndef WEIR_TRAFFIC_MIX_H
#define WEIR_TRAFFIC_MIX_H

#include "cli/traffic/expectation.h"

enum { TRAFFIC_WEIGHT_MAX = 1000000 };

struct traffic_mix {
    int64_t weights[WORK_KIND_COUNT];
    int64_t weight_sum;
    uint64_t state; /* of the random sequence */
    size_t opening; /* the next kind that must come once before chance decides */
};

/* "all", "KIND[:WEIGHT],...", or both: "all,SUCCESS_SLOW:0". CONFIG_INVALID names the bad word. */
MUST_CHECK enum err_code traffic_mix_parse(const char *text, struct traffic_mix *ret, struct err *err);
void traffic_mix_start(struct traffic_mix *m, uint64_t seed);
void traffic_mix_leave_out(struct traffic_mix *m, enum work_kind kind);
/* Every kind of the mix once, in the order of the catalog, then by weight. The mix is not empty. */
enum work_kind traffic_mix_next(struct traffic_mix *m);
uint64_t traffic_mix_random(struct traffic_mix *m, uint64_t below);

#endif
