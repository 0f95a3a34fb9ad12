/* tests/faults/store_book.h - what a database held after each commit, and whether a disk found
 * later holds exactly one of these states.
 *
 * The book notes the whole database after each acknowledged batch. A disk that comes back from a
 * power cut must, once the real store has opened it, hold the state after some batch in [acked,
 * begun]: anything less is a lost acknowledgement, anything else half a batch. No knowledge of jobs
 * is needed, so nothing is overlooked.
 *
 * States are compared by the bytes of the checkpointed database file, which a commit fully
 * determines, and where these differ (a database made anew after an early cut) by every row of
 * every table. */
#ifndef WEIR_TESTS_STORE_BOOK_H
#define WEIR_TESTS_STORE_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "faults/sim_disk.h"
#include "store/store.h"

#define STORE_BOOK_DB "weir.db"
enum { STORE_BOOK_MAX = 1024 };

struct store_page {
    uint64_t bytes, rows;         /* digests */
    int64_t tasks, idem, last_id; /* the facts that the store must have read back into memory */
    int64_t next_chunk, first_chunk;
    int64_t merged; /* entries in the listing table: more than 0 once a merge has happened */
    int64_t merged_entries, merged_events; /* of runs, the same way */
};

struct store_book {
    struct store_page pages[STORE_BOOK_MAX]; /* [n]: after batch n; [0]: the empty schema */
    uint64_t count;
};

/* Batch n is now the last one in the database on `d`, which stays mounted. It may have
 * changed nothing. */
void store_book_note(struct store_book *b, struct sim_disk *d, uint64_t n);

/* Opens the mounted disk with the real store, compares its memory with the book, closes it, and
 * compares the database with the book. */
enum sim_verdict store_book_judge(const struct store_book *b, struct sim_disk *d, const struct sim_cut *cut,
                                  char why[256]);

/* Is batch n the last one on `d`? `d` stays mounted. */
bool store_book_is(const struct store_book *b, struct sim_disk *d, uint64_t n);

/* The real store on the mounted disk. `synchronous` NULL: as in production. */
enum err_code store_book_open(const char *synchronous, struct store **ret_store, struct err *err);
/* A checkpoint now, however small the WAL is. */
enum err_code store_book_checkpoint(struct store *s, struct err *err);

#endif
