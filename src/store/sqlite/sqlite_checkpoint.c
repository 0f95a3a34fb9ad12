/* Checkpoints: pages go from the WAL into the database, so that the WAL can start over.
 *
 * Most of the copying and its fsync happen on a thread of their own, beside the commits. SQLite lets the WAL
 * start over only when all of it is copied, and under load new pages come while the thread copies; so when
 * the thread is done the writer copies the rest itself, a small part of the whole. On an idle server nothing
 * comes meanwhile, and the writer has nothing to do.
 *
 * Without the thread (tests that must be repeatable) the writer does it all, PASSIVE, between batches.
 *
 * The WAL is never truncated in operation: one written over is faster than one that grows (write-path
 * measurements). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* clang-format off */
enum {
    IDLE_PAGES = 1000,   /* not copied yet: worth a checkpoint while nobody waits */
    BUSY_PAGES = 8000,   /* and under load: a larger WAL holds more versions of a page, of which one is copied */
    ALONE_PAGES = 2000,  /* under load without a thread: the writer stands still meanwhile */
    FINISH_PAGES = 4000, /* a WAL so long is finished by the writer, or a trickle would let it grow for ever */
    INSIST_PAGES = 16000, /* and here the writer waits for readers that keep it from starting over */
    INSIST_MS = 20,
};
/* clang-format on */

struct checkpointer {
    struct sqlite_connection connection; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* guards wanted, stopping */
    pthread_cond_t wake;
    bool wanted, stopping;
    bool running;      /* the writer's: asked for and not taken back yet */
    _Atomic bool done; /* result is there for the writer */
    enum err_code code;
    struct err err;
    int copied;
};

/* 0 copied: it could not be told, or there was nothing. */
static enum err_code copy_pages(sqlite3 *db, int mode, int *ret_copied, struct err *err)
{
    int in_log = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(db, NULL, mode, &in_log, &copied);
    *ret_copied = copied > 0 ? copied : 0;
    if (rc == SQLITE_OK || rc == SQLITE_BUSY) /* busy: someone holds an old snapshot, the rest is for later */
        return ERR_OK;
    return sqlite_err(db, rc, "checkpoint", err);
}

static bool wait_until_wanted(struct checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->wanted && !c->stopping)
        pthread_cond_wait(&c->wake, &c->lock);
    bool go = !c->stopping;
    c->wanted = false;
    pthread_mutex_unlock(&c->lock);
    return go;
}

static void *checkpoint_thread(void *arg)
{
    struct checkpointer *c = arg;
    while (wait_until_wanted(c)) {
        c->code = copy_pages(c->connection.db, SQLITE_CHECKPOINT_PASSIVE, &c->copied, &c->err);
        atomic_store(&c->done, true);
    }
    return NULL;
}

enum err_code checkpointer_start(struct sqlite_store *s, const char *sync_pragma, struct err *err)
{
    struct checkpointer *c = must_alloc(sizeof *c);
    if (connection_open(&c->connection, s->path, s->vfs, true, s->timeout_ms, err) != ERR_OK ||
        sqlite_run(c->connection.db, sync_pragma, err) != ERR_OK) {
        connection_close(&c->connection);
        free(c);
        return err->code;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (pthread_create(&c->thread, NULL, checkpoint_thread, c) != 0) {
        connection_close(&c->connection);
        free(c);
        return err_set(err, ERR_INTERNAL, "cannot start the checkpoint thread");
    }
    (void)pthread_setname_np(c->thread, "checkpoint");
    s->checkpointer = c;
    return ERR_OK;
}

void checkpointer_stop(struct sqlite_store *s)
{
    struct checkpointer *c = s->checkpointer;
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->wake);
    pthread_join(c->thread, NULL);
    connection_close(&c->connection);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
    s->checkpointer = NULL;
}

static void ask_for_checkpoint(struct checkpointer *c)
{
    c->running = true;
    pthread_mutex_lock(&c->lock);
    c->wanted = true;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->wake);
}

/* A reader may keep the WAL from starting over; then it goes on growing behind what was copied, and only the
 * growth counts, or every batch would pay for a checkpoint. */
static int64_t pages_to_copy(struct sqlite_store *s)
{
    if (s->base.wal_pages < s->pages_copied)
        s->pages_copied = 0; /* it started over */
    return s->base.wal_pages - s->pages_copied;
}

static enum err_code copy_here(struct sqlite_store *s, struct err *err)
{
    int copied;
    bool insist = s->base.wal_pages >= INSIST_PAGES;
    if (insist)
        sqlite3_busy_timeout(s->writer.db, INSIST_MS);
    enum err_code code = copy_pages(
        s->writer.db, insist ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, &copied, err);
    if (insist)
        sqlite3_busy_timeout(s->writer.db, (int)s->timeout_ms);
    if (copied)
        s->pages_copied = copied;
    return code;
}

/* The thread is done: what it found, and the rest if it is the writer's. */
static enum err_code take_back(struct sqlite_store *s, bool idle, struct err *err)
{
    struct checkpointer *c = s->checkpointer;
    c->running = false;
    atomic_store(&c->done, false);
    if (c->code != ERR_OK) {
        *err = c->err;
        return c->code;
    }
    if (c->copied)
        s->pages_copied = c->copied;
    int64_t left = pages_to_copy(s);
    if (!left || (idle && s->base.wal_pages < FINISH_PAGES))
        return ERR_OK;
    return copy_here(s, err);
}

enum err_code sqlite_tend(struct store *base, bool idle, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    struct checkpointer *c = s->checkpointer;
    if (marks_tend(s, err) != ERR_OK)
        return err->code;
    if (c && c->running)
        return atomic_load(&c->done) ? take_back(s, idle, err) : ERR_OK;
    int64_t pages = pages_to_copy(s);
    bool soon = idle || base->wal_pages >= INSIST_PAGES; /* too long already: look for a moment more often */
    if (pages < (soon ? IDLE_PAGES : c ? BUSY_PAGES : ALONE_PAGES))
        return ERR_OK;
    if (!c)
        return copy_here(s, err);
    ask_for_checkpoint(c);
    return ERR_OK;
}
