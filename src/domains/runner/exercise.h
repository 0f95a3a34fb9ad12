/* domains/runner/exercise.h - real but bounded use of the machine, for the kinds named after it.
 *
 * One thread beside the event loop works on all of them in small slices, at low priority. The loop
 * never waits for it: a job ends when its time is over, and what its exercise has not done by then
 * is dropped. The thread starts with the first exercise.
 *
 * BEHAVE_BURN_CPU     at most EXERCISE_CPU_MS_MAX of CPU, 1 ms at a time
 * BEHAVE_TOUCH_MEMORY a block of EXERCISE_BLOCK_BYTES, every page touched, held until the job ends;
 * the blocks beyond EXERCISE_BLOCKS_HELD_MAX are given back at once BEHAVE_WRITE_FILE   writes the
 * nameless file it was given, reads it back, compares and empties it */
#ifndef WEIR_RUNNER_EXERCISE_H
#define WEIR_RUNNER_EXERCISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifecycle/work_kinds.h"

enum {
    EXERCISE_CPU_MS_MAX = 50,
    EXERCISE_BLOCK_BYTES = 8 * 1024 * 1024,
    EXERCISE_BLOCKS_HELD_MAX = 4,
    EXERCISE_FILE_BYTES_MAX = 1024 * 1024,
};

struct exerciser;
struct exercise;

/* `scratch_fd` is a file of its own to write and read, borrowed; -1: there is none, and files fail. */
struct exerciser *exerciser_new(int scratch_fd);
struct exerciser *exerciser_free(struct exerciser *x); /* every exercise has ended; returns NULL */

/* NULL for behaviours that use nothing. `cpu_us` and `file_bytes` are cut to the bounds above. */
struct exercise *exercise_begin(struct exerciser *x, enum work_behaviour what, int64_t cpu_us,
                                size_t file_bytes);
/* Ends it, finished or not, and gives everything back. NULL is fine. False when it failed: a file
 * could not be written or came back different. */
bool exercise_end(struct exerciser *x, struct exercise *e);

struct exercise_count {
    uint64_t cpu_us, blocks, files; /* done since the start */
};
struct exercise_count exerciser_count(struct exerciser *x);

#endif
