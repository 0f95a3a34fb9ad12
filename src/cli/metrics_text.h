/* cli/metrics_text.h - what /metrics says, as numbers: Prometheus text read into samples.
 *
 * Names and labels are borrowed from the text. Lines that are no samples (comments, anything malformed) are
 * left out: a look at a server must not fail because it says more than we know. */
#ifndef WEIR_CLI_METRICS_TEXT_H
#define WEIR_CLI_METRICS_TEXT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

enum { METRICS_SAMPLES_MAX = 20000, METRICS_BUCKETS_MAX = 64 };

struct metric_sample {
    struct str name, labels; /* labels without the braces; empty: none */
    double value;
};

struct metrics_text {
    const struct metric_sample *samples;
    size_t count;
};

void metrics_text_read(struct arena *a, struct str text, struct metrics_text *ret);

/* All samples of this name whose labels hold `label` (`operation="submitJob"`; NULL: any), added up. */
double metrics_sum(const struct metrics_text *m, const char *name, const char *label);

/* The quantile (0 to 1) of what a histogram took between two looks, by the upper bound of its bucket, linear
 * within it. False: nothing came between. `before` may be empty: since the start. */
bool metrics_quantile(const struct metrics_text *before, const struct metrics_text *now, const char *name,
                      const char *label, double quantile, double *ret_value);

#endif
