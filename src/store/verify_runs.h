/* store/verify_runs.h - the rules of runs, steps, plans, decisions and alerts: what their files share. Not
 * for others. */
#ifndef WEIR_STORE_VERIFY_RUNS_H
#define WEIR_STORE_VERIFY_RUNS_H

#include "base/map.h"
#include "store/verify_internal.h"

/* A live task of a run, until the runs are known. */
struct step_task {
    int64_t run;
    struct step_task *next;
};

enum { VERIFY_RECORD_LISTS = 4 }; /* from LIST_ALERTS on */

/* The actual and the expected content of the lists of one kind: how many entries, and a sum of a hash of
 * each. */
struct record_sum {
    uint64_t rows, rows_digest, listed, listed_digest;
};

struct run_check {
    struct map runs;
    struct step_task *tasks_of_runs;
    struct record_sum records[VERIFY_RECORD_LISTS];
    uint64_t decisions, plans, plan_steps, plan_index_entries;
    struct err err; /* of a read inside a scan */
};

static inline struct run_check *run_check(const struct verify *v)
{
    return verify_self(v, &verify_runs);
}

bool verify_has_run(const struct verify *v, int64_t num);
enum err_code verify_records(struct verify *v, struct err *err); /* decisions, plans, names of runs */
void verify_expect_record(struct verify *v, uint8_t bucket, int64_t owner, int64_t id);
void verify_listed_record(struct verify *v, const struct list_entry *e);
void verify_record_places(struct verify *v);

#endif
