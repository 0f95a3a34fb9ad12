/* The high-water mark: every commit is counted, whatever it writes, and a store that has fewer than its mark
 * says is refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_store.h"
#include "store/high_water.h"

#include "base/banned.h"

struct yard {
    char folder[40], path[64];
    struct store *store;
};

static enum err_code try_open(struct yard *y, enum high_water_mode mode, struct err *err)
{
    struct sqlite_options o = {.path = y->path, .timeout_ms = 5000, .high_water = mode};
    y->store = NULL;
    return store_open_sqlite(&o, &y->store, err);
}

static void yard_open(struct yard *y)
{
    struct err err;
    snprintf(y->folder, sizeof y->folder, "/tmp/weir-high-water.XXXXXX");
    assert_non_null(mkdtemp(y->folder));
    snprintf(y->path, sizeof y->path, "%s/weir.db", y->folder);
    assert_int_equal(try_open(y, HIGH_WATER_CHECKED, &err), ERR_OK);
}

static void yard_close(struct yard *y)
{
    struct err err;
    store_close(y->store);
    unlink(y->path);
    assert_int_equal(high_water_remove(y->path, &err), ERR_OK);
    assert_int_equal(rmdir(y->folder), 0);
}

/* A commit that writes so many chunks of the log, and something else. */
static void commit(struct yard *y, int64_t number, size_t chunk_count)
{
    struct str chunks[4] = {STR("a"), STR("b"), STR("c"), STR("d")};
    struct store_number raised = {"test", number + 1};
    struct change_set c = {.chunks = chunks,
                           .chunk_count = chunk_count,
                           .first_chunk = y->store->next_chunk,
                           .numbers = &raised,
                           .number_count = 1};
    struct err err = {.code = ERR_OK};
    assert_int_equal(y->store->ops->commit(y->store, &c, &err), ERR_OK);
}

static struct high_water position_of(const struct yard *y)
{
    struct high_water position;
    struct err err;
    assert_int_equal(store_position_sqlite(y->path, &position, &err), ERR_OK);
    return position;
}

TEST(test_every_commit_counts_once_whatever_it_writes)
{
    static const size_t chunks[] = {1, 1, 0, 1, 3, 0, 4, 1, 2, 1};
    struct yard y;
    struct err err;
    yard_open(&y);
    for (size_t i = 0; i < LENGTH_OF(chunks); i++) {
        commit(&y, (int64_t)i, chunks[i]);
        struct high_water mark = high_water_read(y.path), position = position_of(&y);
        assert_int_equal(position.commits, i + 1);
        assert_int_equal(mark.commits, i + 1);
        assert_true(mark.store && mark.store == position.store);
    }
    store_close(y.store);
    assert_int_equal(try_open(&y, HIGH_WATER_CHECKED, &err), ERR_OK);
    commit(&y, 100, 2);
    assert_int_equal(position_of(&y).commits, LENGTH_OF(chunks) + 1);
    yard_close(&y);
}

TEST(test_a_store_behind_its_mark_is_refused_until_it_is_reset)
{
    struct yard y;
    struct err err;
    int fd;
    yard_open(&y);
    commit(&y, 1, 1);
    store_close(y.store);
    struct high_water ahead = high_water_read(y.path);
    ahead.commits += 7;
    assert_int_equal(high_water_write(y.path, &ahead, &fd, &err), ERR_OK);
    close(fd);
    assert_int_equal(try_open(&y, HIGH_WATER_CHECKED, &err), ERR_STORE_LOST);
    assert_non_null(strstr(err.detail, "7 commits are missing"));
    assert_int_equal(try_open(&y, HIGH_WATER_RESET, &err), ERR_OK);
    assert_int_equal(y.store->loss.code, ERR_STORE_LOST);
    assert_int_equal(high_water_read(y.path).commits, 1);
    store_close(y.store);
    assert_int_equal(try_open(&y, HIGH_WATER_CHECKED, &err), ERR_OK);
    assert_int_equal(y.store->loss.code, ERR_OK);
    yard_close(&y);
}

TEST(test_what_is_no_mark_counts_as_none)
{
    struct yard y;
    struct err err;
    char path[80];
    yard_open(&y);
    commit(&y, 1, 1);
    store_close(y.store);
    snprintf(path, sizeof path, "%s/weir.mark", y.folder);
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "weir-mark 2 x", 13), 13);
    close(fd);
    assert_int_equal(high_water_read(y.path).commits, 0);
    assert_int_equal(try_open(&y, HIGH_WATER_CHECKED, &err), ERR_OK);
    assert_int_equal(high_water_read(y.path).commits, 1);
    yard_close(&y);
}

TEST(test_judgements)
{
    struct err err;
    const struct high_water none = {0, 0}, five = {1, 5}, six = {1, 6}, other = {2, 9}, young = {0, 4};
    assert_int_equal(high_water_judge(&none, &five, &err), ERR_OK);
    assert_int_equal(high_water_judge(&five, &five, &err), ERR_OK);
    assert_int_equal(high_water_judge(&five, &six, &err), ERR_OK); /* an old mark notices less */
    assert_int_equal(high_water_judge(&six, &five, &err), ERR_STORE_LOST);
    assert_int_equal(high_water_judge(&five, &other, &err), ERR_STORE_LOST);
    assert_int_equal(high_water_judge(&five, &young, &err), ERR_STORE_LOST);
    assert_int_equal(high_water_judge(&five, &none, &err), ERR_STORE_LOST);
}
