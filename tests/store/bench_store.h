/* store/bench_store.h - a store on a bench: one of the backends, rows made up by number.
 *
 * The conformance suite is one set of tests; each group of them runs for every backend. */
#ifndef WEIR_TESTS_BENCH_STORE_H
#define WEIR_TESTS_BENCH_STORE_H

#include "base/hash.h"
#include "base/must.h"
#include "store/bench_schema.h"
#include "store/store.h"

enum {
    BENCH_INDEX_GROUP = 700, /* so few marks of runs are merged together: every test of some length sees it */
    BENCH_EVENT_GROUP = 30000, /* and bytes of their events */
};

struct bench {
    bool on_disk; /* closing it loses nothing */
    /* One of several handles: it counts in differences, takes its chunk numbers in blocks, and what it has in
     * memory is the batch's. */
    bool shared;
    char path[64];
    struct bench_schema schema;
    int64_t first_chunk; /* the number its first chunk will have */
    struct store *store;
    struct reader *reader;
    struct arena *arena;
    uint64_t random;
};

int bench_group_memory(void **state);
int bench_group_disk(void **state);
int bench_group_postgres(void **state);
int bench_up(void **state);
int bench_down(void **state);
void bench_reopen(struct bench *b); /* not in memory */
/* The SQLite file or the schema, by one more handle. */
struct store *bench_open_again(struct bench *b, enum err_code *ret_code, struct err *err);

/* A SQLite file past the store: what a statement gives, or does. Closed and opened, it can be damaged
 * between. */
int64_t bench_file_number(struct bench *b, const char *sql);
void bench_file_run(struct bench *b, const char *sql);
void bench_close(struct bench *b);
void bench_open(struct bench *b);

uint64_t bench_draw(struct bench *b, uint64_t below);
/* Are its rows read back as they were written? Not the counters: what is read is a row with all that was
 * written beside it since (test_listing.c). */
bool bench_keeps_rows(const struct bench *b, const struct table *t);

/* Row number `n` of a table, the same every time; `version` changes what an UPDATE writes. In the arena. */
void *bench_row(struct bench *b, const struct table *t, uint64_t n, uint64_t version);
void bench_expect_equal(const struct table *t, const void *a, const void *b);

/* One commit. */
enum err_code bench_commit(struct bench *b, const struct change_set *c);
enum err_code bench_change(struct bench *b, const struct table *t, enum row_op op, const void *row);
/* By the writer and by a reader: both must agree. NULL when there is none. */
void *bench_fetch(struct bench *b, const struct table *t, const void *key);

void bench_begin(struct bench *b);
void bench_end(struct bench *b);

#define BENCH_TEST_ON(stores, name, parameter)                                                               \
    TEST_OF_GROUPS(name, struct bench *parameter, bench_up, bench_down, stores, NULL)
#define BENCH_TEST(name, parameter) BENCH_TEST_ON(NULL, name, parameter)
int bench_run_all(void); /* the tests of the program on each store */

#endif
