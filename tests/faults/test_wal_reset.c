/* tests/faults/test_wal_reset.c - the WAL does not start over while the checkpoint thread is inside a
 * checkpoint (sqlite_checkpoint.c).
 *
 * The interleaving of SQLite's WAL-reset bug is forced: the thread is held where it takes its lock, and again
 * where it knows how long the WAL is and not yet how much of it is copied. At both places the writer does
 * what it can: it tends the store and commits. Then the WAL grows beyond its old length and starts over, and
 * every row is read.
 *
 * The controls are the same store with a careless writer, which finishes the WAL while the thread waits for
 * its lock: rows are lost, or the assertion ends the process. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sqlite3.h>

#include "case.h"

#include "faults/sim_disk.h"
#include "base/must.h"
#include "store/store.h"
#include "base/banned.h"

enum {
    ROWS_A_COMMIT = 150,
    PAYLOAD_BYTES = 600,
    ENOUGH_PAGES = 1200, /* for an idle store to ask its thread */
    FIRST_FIXED_SQLITE = 3051003,
};

struct stage {
    struct sim_disk *disk;
    struct store *store;
    pthread_t writer;
    int64_t rows; /* committed */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned holds; /* the thread, at these moments (bits) */
    int held_at;
};

enum { NOWHERE = -1 };

static void moment(enum sim_moment m, void *arg)
{
    struct stage *g = arg;
    if (pthread_equal(pthread_self(), g->writer))
        return;
    pthread_mutex_lock(&g->lock);
    if (g->holds & 1u << m) {
        g->held_at = (int)m;
        pthread_cond_broadcast(&g->moved);
        while (g->holds & 1u << m)
            pthread_cond_wait(&g->moved, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}

static void await_thread_at(struct stage *g, enum sim_moment m)
{
    pthread_mutex_lock(&g->lock);
    while (g->held_at != (int)m)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void let_thread_go(struct stage *g, enum sim_moment m)
{
    pthread_mutex_lock(&g->lock);
    g->holds &= ~(1u << m);
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static struct job_row row_of(int64_t id, char payload[PAYLOAD_BYTES])
{
    snprintf(payload, PAYLOAD_BYTES, "\"%0*lld\"", PAYLOAD_BYTES - 10, (long long)id);
    return (struct job_row){
        .id = id, .low = id * 3, .client = 1, .queue = STR("q"), .payload = {payload, strlen(payload)}};
}

static void commit(struct stage *g)
{
    static struct job_row rows[ROWS_A_COMMIT];
    static char payloads[ROWS_A_COMMIT][PAYLOAD_BYTES];
    struct row_change changes[ROWS_A_COMMIT];
    for (int i = 0; i < ROWS_A_COMMIT; i++) {
        rows[i] = row_of(g->rows + 1 + i, payloads[i]);
        changes[i] = (struct row_change){&table_job_row, ROW_INSERT, &rows[i]};
    }
    struct change_set c = {.rows = changes, .row_count = ROWS_A_COMMIT, .first_chunk = g->store->next_chunk};
    struct err err = {.code = ERR_OK};
    assert_int_equal(g->store->ops->commit(g->store, &c, &err), ERR_OK);
    g->rows += ROWS_A_COMMIT;
}

static void tend(struct stage *g)
{
    struct err err = {.code = ERR_OK};
    assert_int_equal(g->store->ops->tend(g->store, true, &err), ERR_OK);
}

static void open_stage(struct stage *g, enum checkpoint_control control)
{
    struct sqlite_options o = {.path = "weir.db",
                               .vfs = SIM_VFS_NAME,
                               .timeout_ms = 1000,
                               .checkpoint_thread = true,
                               .control = control};
    struct err err = {.code = ERR_OK};
    *g = (struct stage){.disk = sim_disk_new(), .writer = pthread_self(), .held_at = NOWHERE};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->moved, NULL);
    sim_disk_mount(g->disk);
    assert_int_equal(store_open_sqlite(&o, &g->store, &err), ERR_OK);
    sim_disk_watch(g->disk, moment, g);
}

static void close_stage(struct stage *g)
{
    store_close(g->store);
    sim_disk_mount(NULL);
    sim_disk_free(g->disk);
    pthread_cond_destroy(&g->moved);
    pthread_mutex_destroy(&g->lock);
}

static void grow_to(struct stage *g, int64_t pages)
{
    while (g->store->wal_pages < pages)
        commit(g);
}

/* What the writer can do at each of the two moments; gives the length of the WAL that the thread has read. */
static int64_t interleave(struct stage *g)
{
    grow_to(g, ENOUGH_PAGES);
    g->holds = 1u << SIM_CHECKPOINT_LOCK | 1u << SIM_HEADER_READ;
    tend(g); /* asks the thread */
    await_thread_at(g, SIM_CHECKPOINT_LOCK);
    tend(g); /* the careless writer finishes the WAL here */
    int64_t length = g->store->wal_pages;
    let_thread_go(g, SIM_CHECKPOINT_LOCK);
    await_thread_at(g, SIM_HEADER_READ);
    commit(g); /* and starts it over here */
    let_thread_go(g, SIM_HEADER_READ);
    return length;
}

static void start_over(struct stage *g)
{
    int64_t before;
    do {
        before = g->store->wal_pages;
        tend(g);
        commit(g);
    } while (g->store->wal_pages >= before);
}

static uint64_t rows_missing(struct stage *g)
{
    struct reader *r = NULL;
    struct err err = {.code = ERR_OK};
    struct arena *a = arena_new(4096);
    uint64_t missing = 0;
    char payload[PAYLOAD_BYTES];
    assert_int_equal(g->store->ops->reader_open(g->store, &r, &err), ERR_OK);
    for (int64_t id = 1; id <= g->rows; id++) {
        struct job_row row = {.id = id}, wanted = row_of(id, payload);
        bool found = false;
        bool read = r->ops->reader_row(r, &table_job_row, &row, a, &found, &err) == ERR_OK;
        missing += !read || !found || !str_equal(row.payload, wanted.payload);
        arena_reset(a);
    }
    r->ops->reader_close(r);
    arena_free(a);
    return missing;
}

/* The WAL gets longer than it was, starts over twice, and is written over from its beginning. */
static uint64_t lost_rows(enum checkpoint_control control)
{
    struct stage g;
    open_stage(&g, control);
    int64_t length = interleave(&g);
    grow_to(&g, length + 100);
    start_over(&g);
    start_over(&g);
    grow_to(&g, length + 100);
    uint64_t lost = rows_missing(&g);
    close_stage(&g);
    return lost;
}

TEST(test_nothing_is_lost_whatever_the_writer_does_while_the_thread_is_held)
{
    assert_int_equal(lost_rows(CHECKPOINT_SAFE), 0);
}

/* The WAL has not started over while the thread was held, although all of it was copied but for a commit. */
TEST(test_the_wal_does_not_start_over_while_the_thread_is_inside)
{
    struct stage g;
    open_stage(&g, CHECKPOINT_SAFE);
    int64_t length = interleave(&g);
    assert_true(g.store->wal_pages > length);
    start_over(&g);
    assert_int_equal(rows_missing(&g), 0);
    close_stage(&g);
}

/* All is copied, so that a commit could start the WAL over, but the thread is not out yet. */
TEST(test_a_commit_waits_with_starting_over_until_the_thread_is_out)
{
    struct stage g;
    open_stage(&g, CHECKPOINT_SAFE);
    grow_to(&g, ENOUGH_PAGES);
    int64_t length = g.store->wal_pages;
    g.holds = 1u << SIM_CHECKPOINT_OVER;
    tend(&g);
    await_thread_at(&g, SIM_CHECKPOINT_OVER);
    commit(&g);
    assert_true(g.store->wal_pages > length);
    let_thread_go(&g, SIM_CHECKPOINT_OVER);
    start_over(&g);
    assert_int_equal(rows_missing(&g), 0);
    close_stage(&g);
}

TEST(test_control_a_careless_writer_loses_rows)
{
    if (sqlite3_libversion_number() >= FIRST_FIXED_SQLITE)
        skip(); /* it is mended there */
    assert_true(lost_rows(CHECKPOINT_UNCHECKED) > 0);
}

TEST(test_control_the_assertion_ends_a_process_with_a_careless_writer)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        lost_rows(CHECKPOINT_CARELESS);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
