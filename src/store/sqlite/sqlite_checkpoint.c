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
 * measurements).
 *
 * Why two connections are safe. SQLite before 3.51.3 has the WAL-reset bug: a checkpoint reads the length N
 * of the WAL, then asks how many frames have been copied. When all N have been, and a commit of another
 * connection starts the WAL over between the two, the answer is 0, and at its end the checkpoint notes that
 * the first N frames of the *new* WAL are copied. They never are: the next checkpoint passes over them, and
 * they are lost when the WAL starts over again. So the WAL must not start over while a checkpoint of another
 * connection is under way. Three things see to that:
 *
 *   1. One checkpoint at a time. The writer makes none from the moment it asks the thread until the thread's
 *      result is there (copy_here). Other connections are read-only and never make one, of other processes
 *      too (sqlite_connection.c).
 * 2. The thread is asked only while frames are left to copy (ask_for_checkpoint). By 1 no other thread copies
 *      them before the thread does, so the WAL is not complete when the thread begins. 3. The thread holds a
 *      snapshot while it is inside (`pin`). A snapshot of a WAL that is not complete holds the lock of a read
 *      mark, and SQLite starts the WAL over only with the locks of all read marks in hand. A snapshot of a
 *      complete one holds the lock of the database alone, without which no checkpoint copies or notes
 *      anything.
 *
 * checkpoint_saw_commit() and MUST() hold it: a WAL that starts over while the thread is inside ends the
 * process before anything is lost. tests/faults/test_wal_reset.c forces the interleaving. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* clang-format off */
enum {
    IDLE_PAGES = 1000,   /* not copied yet: worth a checkpoint while no command waits */
    BUSY_PAGES = 8000,   /* and under load: a larger WAL holds more versions of a page, of which one is copied */
    ALONE_PAGES = 2000,  /* under load without a thread: the writer stands still meanwhile */
    FINISH_PAGES = 4000, /* a WAL so long is finished by the writer, or a trickle would let it grow for ever */
    INSIST_PAGES = 16000, /* and here the writer waits for readers that keep it from starting over */
    INSIST_MS = 20,
};
/* clang-format on */

struct checkpointer {
    struct sqlite_connection connection; /* the thread's: it copies */
    struct sqlite_connection pin;        /* the thread's: its snapshot lasts as long as the checkpoint */
    enum checkpoint_control control;
    pthread_t thread;
    pthread_mutex_t lock; /* guards wanted, stopping */
    pthread_cond_t wake;
    bool wanted, stopping;
    bool running;        /* the writer's: asked for and not taken back yet */
    _Atomic bool inside; /* asked for, and its snapshot has not ended */
    _Atomic bool done;   /* result is there for the writer */
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

/* While the snapshot lasts the WAL cannot start over. */
static enum err_code copy_pinned(struct checkpointer *c)
{
    bool pins = c->control == CHECKPOINT_SAFE;
    struct err ignored; /* ending a read cannot lose anything */
    c->copied = 0;
    if (pins && sqlite_run(c->pin.db, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", &c->err) != ERR_OK) {
        atomic_store(&c->inside, false);
        return c->err.code;
    }
    enum err_code code = copy_pages(c->connection.db, SQLITE_CHECKPOINT_PASSIVE, &c->copied, &c->err);
    atomic_store(&c->inside, false); /* before the snapshot ends: from there on the WAL may start over */
    if (pins)
        (void)!sqlite_run(c->pin.db, "COMMIT", &ignored);
    return code;
}

static void *checkpoint_thread(void *arg)
{
    struct checkpointer *c = arg;
    while (wait_until_wanted(c)) {
        c->code = copy_pinned(c);
        atomic_store(&c->done, true);
    }
    return NULL;
}

static void connections_close(struct checkpointer *c)
{
    connection_close(&c->pin);
    connection_close(&c->connection);
}

enum err_code checkpointer_start(struct sqlite_store *s, const char *sync_pragma, struct err *err)
{
    struct checkpointer *c = must_alloc(sizeof *c);
    c->control = s->control;
    if (connection_open(&c->connection, s->path, s->vfs, true, s->timeout_ms, err) != ERR_OK ||
        sqlite_run(c->connection.db, sync_pragma, err) != ERR_OK ||
        connection_open(&c->pin, s->path, s->vfs, false, s->timeout_ms, err) != ERR_OK) {
        connections_close(c);
        free(c);
        return err->code;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (pthread_create(&c->thread, NULL, checkpoint_thread, c) != 0) {
        connections_close(c);
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
    connections_close(c);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
    s->checkpointer = NULL;
}

void checkpoint_saw_commit(struct sqlite_store *s, int pages)
{
    const struct checkpointer *c = s->checkpointer;
    bool started_over = pages < s->base.wal_pages;
    MUST(!started_over || !c || !atomic_load(&c->inside) || s->control == CHECKPOINT_UNCHECKED);
    s->base.wal_pages = pages;
}

static void ask_for_checkpoint(struct checkpointer *c)
{
    MUST(!c->running);
    c->running = true;
    atomic_store(&c->inside, true);
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

/* After a failure it is unknown how much was copied: all of it at most. The thread is not asked before there
 * are frames behind that. */
static void note_failure(struct sqlite_store *s)
{
    s->pages_copied = s->base.wal_pages;
}

static enum err_code copy_here(struct sqlite_store *s, struct err *err)
{
    int copied;
    MUST(!s->checkpointer || !s->checkpointer->running || s->control != CHECKPOINT_SAFE);
    bool insist = s->base.wal_pages >= INSIST_PAGES;
    if (insist)
        sqlite3_busy_timeout(s->writer.db, INSIST_MS);
    enum err_code code = copy_pages(
        s->writer.db, insist ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, &copied, err);
    if (insist)
        sqlite3_busy_timeout(s->writer.db, (int)s->timeout_ms);
    if (copied)
        s->pages_copied = copied;
    if (code != ERR_OK)
        note_failure(s);
    return code;
}

/* The thread is done: takes its result, and does the rest if that is the writer's part. */
static enum err_code take_back(struct sqlite_store *s, bool idle, struct err *err)
{
    struct checkpointer *c = s->checkpointer;
    c->running = false;
    atomic_store(&c->done, false);
    if (c->code != ERR_OK) {
        note_failure(s);
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
    if (known_index_tend(s, err) != ERR_OK)
        return err->code;
    if (c && c->running && atomic_load(&c->done))
        return take_back(s, idle, err);
    if (c && c->running)
        return s->control == CHECKPOINT_SAFE ? ERR_OK : copy_here(s, err);
    int64_t pages = pages_to_copy(s);
    bool soon = idle || base->wal_pages >= INSIST_PAGES; /* too long already: look for a moment more often */
    if (pages < (soon ? IDLE_PAGES : c ? BUSY_PAGES : ALONE_PAGES))
        return ERR_OK;
    if (!c)
        return copy_here(s, err);
    ask_for_checkpoint(c);
    return ERR_OK;
}
