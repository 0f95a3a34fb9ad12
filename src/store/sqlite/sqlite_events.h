/* store/sqlite/sqlite_events.h - events of runs on their way into `run_events`.
 *
 * The events of a run lie together, so the next event of each of a thousand runs belongs on a page of its
 * own, and a page that is written for one event goes to the WAL and from there to the file as a whole. So
 * where a commit has few bytes for each run its events go, packed, into one row at the end of `event_blocks`,
 * and are kept in memory. When a group has gathered it is merged into `run_events` run by run, a slice with
 * each commit of events that follows; then its blocks are dropped, a few with each commit, while the next
 * group gathers. Where a commit has much for a run (a batch, a large payload) it is written to its place.
 *
 * After a crash all blocks that are left are one group: events never change, so those that had been merged
 * are merged again and make no difference.
 *
 * Threads:  the writer changes the sets; readers of the same store copy what they need out of them, under
 *           the lock. Which blocks a reader may see its snapshot says. A snapshot older than what is in
 *           memory, and a reader without a store (weir verify), read the blocks themselves. */
#ifndef WEIR_STORE_SQLITE_EVENTS_H
#define WEIR_STORE_SQLITE_EVENTS_H

#include <pthread.h>

#include "store/sqlite/sqlite_event_block.h"
#include "store/sqlite/sqlite_waiting_events.h"
#include "store/store.h"

struct sqlite_store;
struct sqlite_reader;

struct event_place {
    size_t run, event; /* index of the run in its order; of its event */
};

struct sqlite_events {
    size_t group;                     /* so many bytes are merged together */
    struct waiting_events young, old; /* that gather; that are being merged */
    int64_t held_from;                /* what came in this block and later is in memory */
    pthread_mutex_t lock;             /* guards the three above; only the writer changes them */
    const struct run_waiting **order; /* the runs of the old ones */
    struct event_place merged;        /* of the old ones, so far */
    int64_t first_block, next_block;  /* blocks in [first_block, next_block) are there */
    int64_t old_below;                /* those under it are of the old ones */
    /* The commit under way: its block, how far it merges, which blocks it drops. */
    bool rides, all_at_once;
    struct strbuf block;
    struct event_place until;
    int64_t drop_below;
    struct run_event_row *rows; /* room for a slice */
    size_t row_capacity;
    sqlite3_stmt *blocks, *put, *drop, *merge;
};

void events_init(struct sqlite_events *e, size_t group); /* 0: as many bytes as is good */
enum err_code events_prepare(struct sqlite_store *s, struct err *err);
void events_close(struct sqlite_store *s);
enum err_code events_load(struct sqlite_store *s, struct err *err); /* at open */

/* In a commit, before its rows; those that ride are then no rows to be written. */
enum err_code events_write(struct sqlite_store *s, const struct change_set *c, struct err *err);
bool events_ride(const struct sqlite_store *s, const struct row_change *r);
/* Exactly one of them follows. */
void events_committed(struct sqlite_store *s);
void events_failed(struct sqlite_store *s, const struct change_set *c);

/* The writer's. */
enum err_code events_of_writer(struct sqlite_store *s, struct run_event_row *row, struct arena *a,
                               bool *ret_found, struct err *err);
enum err_code events_range_of_writer(struct sqlite_store *s, const struct run_event_row *from, size_t max,
                                     store_row_fn *fn, void *arg, struct err *err);
/* A reader's, of what its snapshot has. */
enum err_code events_fetch(struct sqlite_reader *r, struct run_event_row *row, struct arena *a,
                           bool *ret_found, struct err *err);
enum err_code events_range(struct sqlite_reader *r, const struct run_event_row *from, size_t max,
                           store_row_fn *fn, void *arg, struct err *err);
enum err_code events_scan(struct sqlite_reader *r, store_row_fn *fn, void *arg, struct err *err);

/* The blocks that a connection sees: the first and the last, 0 and 0 when there are none. */
#define EVENT_SPAN_SQL                                                                                       \
    "SELECT coalesce((SELECT min(n) FROM event_packs),0),coalesce((SELECT max(n) FROM event_packs),0)"

#endif
