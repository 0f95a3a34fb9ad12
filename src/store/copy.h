/* store/copy.h - everything of one store into another, of any backend, through the verbs of store.h alone.
 *
 * Nobody else may write to either meanwhile; the caller sees to it (cli/store_copy.c). The source is read in
 * one snapshot: first its rows are counted and summed, part by part (a part is a table, the log, the
 * listings, the idempotency keys), then they go over in commits of some thousand rows.
 *
 * Resuming:  each commit also sets store numbers of the target: what is copied (a digest of the whole
 *            source), which part is under way, how many of its rows are there. A copy that broke off goes on
 *            behind them; a target that holds anything else is refused, and so is a source that has changed
 *            since. While these numbers are there no server starts on the target (store/store_open.h).
 * The end:   the target is summed and compared with the source. store_copy_finish takes these numbers away,
 *            once the caller is content (it also runs store_verify on both).
 * Log:       chunk numbers stay. Only where a log with gaps, as several lanes leave it, moves to a store
 *            with one writer they are counted through again, and the references of jobs with them.
 * Memory:    8 bytes a log chunk, and one commit. */
#ifndef WEIR_STORE_COPY_H
#define WEIR_STORE_COPY_H

#include "store/store.h"

/* The parts: one for each table, then three. */
#define COPY_TABLES     ((int)table_count)
#define COPY_LOG        COPY_TABLES
#define COPY_LIST       (COPY_TABLES + 1)
#define COPY_IDEM       (COPY_TABLES + 2)
#define COPY_PART_COUNT (COPY_TABLES + 3)
enum { COPY_PARTS_MAX = TABLES_MAX + 3 };

/* What a part holds: how much, and the sum of a hash of each row, in whatever order they come. */
struct part_sum {
    uint64_t rows, digest;
};

const char *copy_part_name(int part);

enum copy_step { COPY_COUNTS_SOURCE, COPY_MOVES, COPY_COUNTS_TARGET };

struct copy_watch {
    /* Now and then: `done` of `total` rows of all parts (total 0: not known yet). */
    void (*progress)(void *self, enum copy_step step, int part, uint64_t done, uint64_t total);
    void *self;
};

struct copy_result {
    struct part_sum source[COPY_PARTS_MAX], target[COPY_PARTS_MAX];
    uint64_t copied;  /* rows written by this call */
    uint64_t resumed; /* rows that an earlier one had written */
    bool equal;
};

/* ERR_OK: all was copied and summed; look at `equal`. JOB_CONFLICT: the target holds something else. */
MUST_CHECK enum err_code store_copy(struct reader *from, struct store *to, const struct copy_watch *watch,
                                    struct copy_result *ret_result, struct err *err);
MUST_CHECK enum err_code store_copy_finish(struct store *to, struct err *err);
MUST_CHECK enum err_code store_copy_is_unfinished(struct reader *r, bool *ret_unfinished, struct err *err);

#endif
