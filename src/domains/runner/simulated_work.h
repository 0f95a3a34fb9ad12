/* domains/runner/simulated_work.h - what a simulated job is told and what it produces. Pure. */
#ifndef WEIR_RUNNER_SIMULATED_WORK_H
#define WEIR_RUNNER_SIMULATED_WORK_H

#include "base/json.h"
#include "lifecycle/work_kinds.h"

enum { SIMULATED_DURATION_MS_MAX = 86401000 }; /* the longest runtime limit, outlasted */

/* Reads the stored definition; the table in lifecycle/ is not asked for numbers, so a job keeps the
 * ones it was accepted with. False when a field is missing, unknown or out of bounds. */
bool simulated_work_read(const struct json *definition, struct work_definition *ret);

/* The same for a step of a run: `work_kind` in its override, else in its config, gives the catalog's
 * definition; without one the step does nothing and succeeds at once. False: that is no work kind. */
bool simulated_work_read_step(const struct json *definition, int64_t max_runtime_ms,
                              struct work_definition *ret);

/* Simulated milliseconds to real ones; never rounds a wait down. */
int64_t simulated_work_scaled_ms(int64_t ms, double time_scale);

/* The result of a job that succeeded:
 *   {"scenario":"..","payload_bytes":n,"checksum":"fnv1a:.."}       n bytes were fabricated
 *   MANY_SMALL_OUTPUTS adds "outputs":[{"output":1,"bytes":256},..]
 *   LARGE_OUTPUT adds "data":"..": the bytes themselves; the whole result fits payload_size. */
void simulated_work_write_result(const struct work_definition *d, struct strbuf *out);
size_t simulated_work_result_bytes_max(const struct work_definition *d); /* of what that writes */

#endif
