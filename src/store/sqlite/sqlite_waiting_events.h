/* store/sqlite/sqlite_waiting_events.h - run events in memory that are not in `run_events` yet, by run and in
 * the order of their numbers. A set lives and dies as one (an arena); its owner sees to threads. */
#ifndef WEIR_STORE_SQLITE_WAITING_EVENTS_H
#define WEIR_STORE_SQLITE_WAITING_EVENTS_H

#include "base/arena.h"
#include "base/map.h"
#include "store/rows.h"

struct waiting_event {
    int64_t seq, block; /* block: the row of `event_blocks` it came in */
    size_t bytes;
    char packed[]; /* the columns behind the key (store/row_bytes.h) */
};

struct run_waiting {
    struct map_node node;
    int64_t run;
    struct waiting_event **events;
    size_t count, capacity;
};

struct waiting_events {
    struct map by_run;
    struct arena *arena;
    size_t count, bytes;
};

/* False: the run has an event here with this number or a larger one. */
bool waiting_put(struct waiting_events *w, int64_t run, int64_t seq, int64_t block, struct str packed);
/* The last events of a run go again if they came in this block. */
void waiting_take_back(struct waiting_events *w, int64_t run, int64_t block);
const struct run_waiting *waiting_of_run(const struct waiting_events *w, int64_t run); /* NULL: none */
/* Where those begin that have at least this number. */
size_t run_waiting_from(const struct run_waiting *r, int64_t seq);
void waiting_free(struct waiting_events *w); /* empty afterwards, and good to use */

/* The runs by their number; the caller frees the array. */
const struct run_waiting **waiting_in_order(const struct waiting_events *w);

/* The row in packed bytes, texts borrowed from them. False: damaged. */
bool waiting_row(int64_t run, int64_t seq, struct str packed, struct run_event_row *ret_row);

#endif
