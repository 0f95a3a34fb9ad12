/* api/metrics.h - counters and their Prometheus text. Job counters are written by the commit thread only,
 * request counters by each HTTP thread with relaxed atomics; a scrape reads them as they are. */
#ifndef WEIR_API_METRICS_H
#define WEIR_API_METRICS_H

#include "http/router.h"
#include "kernel/kernel.h"

struct metrics;
struct metrics *metrics_new(const struct route *const *routes, size_t route_count);
struct metrics *metrics_free(struct metrics *m);
void metrics_committed(struct metrics *m, const struct unit *u);
void metrics_request(struct metrics *m, size_t route_number, int status);
/* Of an answer that was sent at once or after its commit; streams have no latency. */
void metrics_latency(struct metrics *m, size_t route_number, int64_t us);
void metrics_idempotent_replay(struct metrics *m);
void metrics_write(struct metrics *m, const struct kernel_stats *k, uint32_t connections, struct strbuf *out);

#endif
