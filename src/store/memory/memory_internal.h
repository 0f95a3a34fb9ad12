/* store/memory/memory_internal.h - what the files of the memory backend share. Not for others. */
#ifndef WEIR_STORE_MEMORY_INTERNAL_H
#define WEIR_STORE_MEMORY_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "store/store.h"

struct memory_row {
    struct map_node node;
    const struct table *table;
    void *row; /* texts owned */
};

struct memory_chunk {
    int64_t number;
    struct str data;
};

struct memory_listed {
    struct map_node node;
    struct list_entry entry;
};

struct memory_idem {
    struct map_node node;
    struct idem_entry entry;
};

struct memory_store {
    struct store base;
    pthread_mutex_t lock;
    struct map rows[TABLES_MAX];
    struct memory_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    struct map list, idem;
    struct memory_number *numbers;
    size_t number_count;
};

struct memory_number {
    char name[32];
    int64_t value;
};

/* Order of two rows by their keys. */
int memory_key_compare(const struct table *t, const void *a, const void *b);
/* The lock is held. */
void memory_fetch_locked(struct memory_store *s, const struct table *t, void *row, struct arena *a,
                         bool *ret_found);

extern const struct store_ops store_memory_ops;

/* Readers (memory_reader.c): begin takes the lock, end gives it back. */
enum err_code memory_reader_open(struct store *base, struct reader **ret_reader, struct err *err);
void memory_reader_close(struct reader *r);
enum err_code memory_reader_begin(struct reader *r, struct err *err);
void memory_reader_end(struct reader *r);
enum err_code memory_reader_row(struct reader *r, const struct table *t, void *row, struct arena *a,
                                bool *ret_found, struct err *err);
enum err_code memory_reader_chunk(struct reader *r, int64_t number, struct arena *a, struct str *ret_chunk,
                                  struct err *err);
enum err_code memory_reader_list(struct reader *r, const struct list_query *q, int64_t *ret_ids,
                                 size_t *ret_count, struct err *err);
enum err_code memory_reader_live(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err);
enum err_code memory_reader_jobs(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err);
enum err_code memory_reader_scan(struct reader *r, const struct table *t, store_row_fn *fn, void *arg,
                                 struct err *err);
enum err_code memory_reader_of_client(struct reader *r, const struct table *t, int64_t client,
                                      store_row_fn *fn, void *arg, struct err *err);
enum err_code memory_reader_range(struct reader *r, const struct table *t, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err);
enum err_code memory_range(struct store *base, const struct table *t, const void *from, size_t max,
                           store_row_fn *fn, void *arg, struct err *err);
enum err_code memory_reader_scan_log(struct reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                     struct err *err);
enum err_code memory_reader_scan_list(struct reader *r, store_list_fn *fn, void *arg, struct err *err);
enum err_code memory_reader_number(struct reader *r, const char *name, int64_t *ret_value, struct err *err);
enum err_code memory_reader_scan_idem(struct reader *r, store_idem_fn *fn, void *arg, struct err *err);

#endif
