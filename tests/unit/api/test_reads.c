/* Snapshots that last a round: what they show, and when they end. On SQLite; a snapshot of the memory store
 * is a lock, which a commit of the same thread would wait for. */
#include "unit/kernel/rig.h"

#include <stdatomic.h>

#include "api/reads.h"

#include "base/banned.h"

enum { LARGE_BYTES = 200000 };

static bool sees(struct rig *r, struct reader *reader, int64_t id)
{
    struct job_view v;
    struct err err;
    bool found = false;
    assert_non_null(reader);
    assert_int_equal(job_view_read(reader, r->arena, id, &v, &found, &err), ERR_OK);
    return found;
}

/* The promise: client A was answered, client B's request on this thread comes in the same round. */
RIG_TEST(a_commit_between_two_reads_of_a_round_is_seen_by_the_second, r)
{
    struct reads *reads = reads_new(r->store);
    struct err err;
    int64_t client = rig_new_client(r, NULL);
    struct submit_item first = rig_submit_default(r, client);
    assert_true(sees(r, reads_begin(reads, &err), first.id));
    struct submit_item second = rig_submit_default(r, client);
    assert_true(sees(r, reads_begin(reads, &err), second.id));
    reads_free(reads);
}

/* The control of the test above: with a number that stands still the second job stays unseen. */
RIG_TEST(a_snapshot_is_kept_while_the_number_of_commits_stands, r)
{
    struct reads *reads = reads_new(r->store);
    struct err err;
    int64_t client = rig_new_client(r, NULL);
    uint64_t commits = atomic_load(&r->store->commits);
    assert_false(sees(r, reads_begin(reads, &err), 1));
    struct submit_item job = rig_submit_default(r, client);
    assert_int_equal(atomic_exchange(&r->store->commits, commits), commits + 1);
    assert_false(sees(r, reads_begin(reads, &err), job.id));
    reads_end(reads);
    assert_true(sees(r, reads_begin(reads, &err), job.id)); /* the next round */
    reads_free(reads);
}

RIG_TEST(only_a_durable_write_counts_as_a_commit, r)
{
    int64_t client = rig_new_client(r, NULL);
    uint64_t commits = atomic_load(&r->store->commits);
    rig_step(r); /* nothing to write */
    r->failures = 1;
    struct submit_item item = rig_item();
    struct submit_command *refused = rig_post_submit(r, client, &item, 1);
    rig_step(r);
    assert_int_equal(refused->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(atomic_load(&r->store->commits), commits);
    rig_submit_default(r, client);
    assert_int_equal(atomic_load(&r->store->commits), commits + 1);
}

struct noted {
    struct create_client_command c;
    struct store *store;
    uint64_t commits_when_done;
};

static void note_commits(struct command *c)
{
    struct noted *n = CONTAINER_OF(c, struct noted, c.base);
    n->commits_when_done = atomic_load(&n->store->commits);
}

RIG_TEST(the_number_is_raised_before_the_answer, r)
{
    uint64_t commits = atomic_load(&r->store->commits);
    struct noted n = {.store = r->store};
    n.c.client_id = uuid_v4();
    n.c.base.type = &create_client_command_type;
    n.c.base.done = note_commits;
    assert_true(kernel_post(r->kernel, &n.c.base));
    rig_step(r);
    assert_int_equal(n.c.base.result, ERR_OK);
    assert_int_equal(n.commits_when_done, commits + 1);
}

/* Writes a megabyte or so per call, tends the store and gives the length of the write-ahead log. */
static int64_t write_and_tend(struct rig *r, int64_t *job)
{
    struct err err;
    char *bytes = arena_alloc(r->arena, LARGE_BYTES);
    for (int i = 0; i < 5; i++) {
        struct kept_row row = {.job = ++*job, .seq = 1, .event = {bytes, LARGE_BYTES}};
        struct row_change change = {&table_kept_row, ROW_INSERT, &row};
        struct change_set set = {.rows = &change, .row_count = 1};
        assert_int_equal(r->real->commit(r->store, &set, &err), ERR_OK);
        assert_int_equal(r->real->tend(r->store, false, &err), ERR_OK);
    }
    return r->store->wal_pages;
}

static void drop_kept_rows(struct rig *r, int64_t last_job)
{
    struct err err;
    for (int64_t job = 1; job <= last_job; job++) { /* the rig's check would miss their jobs */
        struct kept_row row = {.job = job, .seq = 1};
        struct row_change change = {&table_kept_row, ROW_DELETE, &row};
        struct change_set set = {.rows = &change, .row_count = 1};
        assert_int_equal(r->real->commit(r->store, &set, &err), ERR_OK);
    }
}

RIG_TEST(the_log_starts_over_only_when_the_round_has_ended, r)
{
    struct reads *reads = reads_new(r->store);
    struct err err;
    int64_t job = 0, longest = 0, pages;
    bool started_over = false;
    assert_false(sees(r, reads_begin(reads, &err), 1));
    for (int i = 0; i < 20; i++) { /* 5000 pages: it would have started over twice */
        pages = write_and_tend(r, &job);
        assert_true(pages > longest);
        longest = pages;
    }
    reads_end(reads);
    for (int i = 0; i < 20 && !started_over; i++) {
        pages = write_and_tend(r, &job);
        started_over = pages < longest;
    }
    assert_true(started_over);
    drop_kept_rows(r, job);
    reads_free(reads);
}

RIG_TEST(a_long_log_ends_the_snapshot_with_the_request, r)
{
    struct reads *reads = reads_new(r->store);
    struct err err;
    int64_t client = rig_new_client(r, NULL);
    for (int64_t pages = READS_LOG_PAGES_MAX; pages <= READS_LOG_PAGES_MAX + 1; pages++) {
        reads_end(reads);
        reads_log_pages(reads, pages);
        uint64_t commits = atomic_load(&r->store->commits);
        assert_false(sees(r, reads_begin(reads, &err), 1));
        reads_request_end(reads);
        struct submit_item job = rig_submit_default(r, client);
        atomic_store(&r->store->commits, commits); /* only a new snapshot shows the job now */
        assert_int_equal(sees(r, reads_begin(reads, &err), job.id), pages > READS_LOG_PAGES_MAX);
    }
    reads_free(reads);
}

static enum err_code no_reader(struct store *s, struct reader **ret_reader, struct err *err)
{
    (void)s;
    *ret_reader = NULL;
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "told to fail");
}

RIG_TEST(a_reader_that_cannot_be_opened_is_asked_for_again, r)
{
    struct reads *reads = reads_new(r->store);
    struct err err;
    struct submit_item job = rig_submit_default(r, rig_new_client(r, NULL));
    r->ops.reader_open = no_reader;
    assert_null(reads_begin(reads, &err));
    assert_int_equal(err.code, ERR_STORAGE_UNAVAILABLE);
    r->ops.reader_open = r->real->reader_open;
    assert_true(sees(r, reads_begin(reads, &err), job.id));
    reads_end(reads);
    reads_end(reads); /* nothing to end is fine */
    reads_free(reads);
}

int main(void)
{
    return test_run("tests", rig_group_disk, NULL);
}
