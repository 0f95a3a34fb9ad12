/* store/verify.h - replays the whole log and compares it with every stored row.
 *
 * Checks, in one snapshot:
 * - the backend's own file check; every chunk is sound and, where there is one writer, none is missing;
 * - each job's events are 1..n, legal moves only (lifecycle table), strictly rising in time;
 * - the folded state equals the live or final row; a job is either live or ended, never both or neither;
 * - every ended job has exactly one outcome and report, and one archived report per earlier attempt;
 * - refs point at the job's own events; events whose chunk was purged are in `kept`;
 * - counters equal a recount; listings hold every job exactly once; idempotency keys are those of the jobs;
 * - each run's events are 1..n, and reduced again they give its row, its steps, its alerts (verify_runs.c);
 * - decisions about signals are found by both their ids and in their lists, alerts in theirs, runs by name
 *   (verify_records.c);
 * - keys, secrets and webhooks belong to a client that exists.
 *
 * Memory: one small struct per job and per client. Files: verify.c (the passes), verify_rules.h (what a
 * contract adds); of jobs verify_jobs.c (the comparison), verify_rows.c, verify_log.c (the fold),
 * verify_clients.c, verify_beside.c, verify_deliveries.c; of runs verify_runs.c, verify_records.c. The rules
 * of single rows are in row_rules.h. */
#ifndef WEIR_STORE_VERIFY_H
#define WEIR_STORE_VERIFY_H

#include "store/store.h"

struct verify_result {
    uint64_t jobs, live, ended, events, chunks, clients, runs, run_events;
    uint64_t problems;
};

/* `problem` is called for each difference with one clear line (job id first where there is one). `progress`
 * (may be NULL) is called now and then with rows seen. ERR_OK means the check ran; look at problems. */
MUST_CHECK enum err_code store_verify(struct reader *r, void (*problem)(void *arg, const char *line),
                                      void (*progress)(void *arg, uint64_t rows), void *arg,
                                      struct verify_result *ret_result, struct err *err);

#endif
