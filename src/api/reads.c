#include "api/reads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum { READERS_MAX = 512 };

struct reads {
    struct store *store;
    pthread_mutex_t lock; /* guards the list; a reader is its thread's own */
    struct reader *readers[READERS_MAX];
    size_t reader_count;
    _Atomic bool log_is_long;
};

/* This thread's reader, made when first needed, and its snapshot. */
static _Thread_local struct {
    struct reader *reader;
    bool in_snapshot;
    uint64_t commits; /* of the store when the snapshot began */
} mine;

struct reads *reads_new(struct store *s)
{
    struct reads *r = must_alloc(sizeof *r);
    r->store = s;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

struct reads *reads_free(struct reads *r)
{
    if (!r)
        return NULL;
    reads_end(r);
    mine.reader = NULL; /* tests read on the thread that frees */
    for (size_t i = 0; i < r->reader_count; i++)
        r->readers[i]->ops->reader_close(r->readers[i]);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

/* Under the lock, so that an open that fails uses up no place: the next request tries again. */
static struct reader *open_reader(struct reads *r, struct err *err)
{
    struct reader *opened = NULL;
    pthread_mutex_lock(&r->lock);
    if (r->reader_count == READERS_MAX)
        err_set(err, ERR_STORAGE_UNAVAILABLE, "too many threads read the store");
    else if (r->store->ops->reader_open(r->store, &opened, err) == ERR_OK)
        r->readers[r->reader_count++] = opened;
    else
        opened = NULL;
    pthread_mutex_unlock(&r->lock);
    return opened;
}

struct reader *reads_begin(struct reads *r, struct err *err)
{
    /* Looked at before the snapshot begins: it may be newer than this number says, never older. */
    uint64_t commits = atomic_load(&r->store->commits);
    if (mine.in_snapshot && mine.commits == commits)
        return mine.reader;
    reads_end(r);
    if (!mine.reader && !(mine.reader = open_reader(r, err)))
        return NULL;
    if (mine.reader->ops->reader_begin(mine.reader, err) != ERR_OK)
        return NULL;
    mine.in_snapshot = true;
    mine.commits = commits;
    return mine.reader;
}

void reads_log_pages(struct reads *r, int64_t pages)
{
    atomic_store_explicit(&r->log_is_long, pages > READS_LOG_PAGES_MAX, memory_order_relaxed);
}

void reads_request_end(struct reads *r)
{
    /* Writes of other nodes to a shared store are not counted in `commits`. */
    if (r->store->shared || atomic_load_explicit(&r->log_is_long, memory_order_relaxed))
        reads_end(r);
}

void reads_end(struct reads *r)
{
    (void)r; /* one `struct reads` per process; each thread's part is thread-local */
    if (mine.in_snapshot)
        mine.reader->ops->reader_end(mine.reader);
    mine.in_snapshot = false;
}
