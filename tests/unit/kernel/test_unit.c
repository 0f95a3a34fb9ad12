/* A unit of work by itself: what it sees, what becomes one change set, what watchers are told. */
#include "unit/kernel/rig.h"

#include <stdio.h>

#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { MANY = 300 }; /* more than a list of a unit holds at first */

static struct unit *start(struct rig *r)
{
    lane_start_unit(&r->kernel->lanes[0]);
    return &r->kernel->lanes[0].unit;
}

/* Row changes of this commit. */
static size_t commit(struct rig *r, struct unit *u)
{
    struct err err;
    size_t n = 0, before = r->commits;
    assert_int_equal(unit_commit(u, &err), ERR_OK);
    for (int i = 0; r->commits > before && i < (int)table_count; i++)
        n += r->writes[i];
    assert_int_equal(u->wrote, r->commits > before);
    return n;
}

static struct create_row *named(struct rig *r, const char *scope, const char *name, int64_t created_ms)
{
    struct create_row *row = ARENA_NEW(r->arena, struct create_row);
    *row = (struct create_row){.scope = str_of(scope),
                               .name = str_of(name),
                               .fingerprint = STR("0123456789abcdef"),
                               .uuid = STR("0123456789abcdef"),
                               .created_ms = created_ms};
    return row;
}

static int64_t created_ms(struct unit *u, const struct create_row *key)
{
    const struct create_row *row = unit_fetch(u, &table_create_row, key);
    return row ? row->created_ms : -1;
}

/* The next unit sees what the last one left. */
RIG_TEST(test_rows_are_seen_as_the_batch_has_them, r)
{
    struct create_row *a = named(r, "s", "a", 1), *b = named(r, "s", "b", 2), *other = named(r, "t", "a", 3);
    struct unit *u = start(r);
    assert_int_equal(created_ms(u, a), -1);
    assert_true(unit_has(u, &table_create_row, a) && !unit_has(u, &table_create_row, b));
    unit_insert(u, &table_create_row, a);
    unit_insert(u, &table_create_row, b);
    assert_int_equal(created_ms(u, a), 1);
    assert_int_equal(created_ms(u, named(r, "s", "b", 0)), 2);
    assert_int_equal(created_ms(u, other), -1);
    assert_int_equal(u->inserted[TABLE_NUMBER_create_row], 2);
    assert_int_equal(commit(r, u), 2);
    u = start(r);
    assert_int_equal(created_ms(u, a), 1);
    assert_int_equal(commit(r, u), 0); /* reading writes nothing */
    u = start(r);
    unit_prefetch(u, &table_create_row, a);
    assert_non_null(unit_row(u, &table_create_row, a));
    unit_delete(u, &table_create_row, a);
    assert_null(unit_row(u, &table_create_row, a));
    unit_insert(u, &table_create_row, named(r, "s", "a", 7)); /* in its place: two changes of one row */
    assert_int_equal(created_ms(u, a), 7);
    assert_int_equal(commit(r, u), 2);
    u = start(r);
    assert_int_equal(created_ms(u, a), 7);
    unit_delete(u, &table_create_row, a);
    unit_prefetch(u, &table_create_row, b);
    unit_delete(u, &table_create_row, b);
    assert_int_equal(commit(r, u), 2);
    u = start(r);
    unit_insert(u, &table_create_row, a);
    unit_delete(u, &table_create_row, a); /* it never was */
    assert_int_equal(created_ms(u, a), -1);
    assert_int_equal(commit(r, u), 0);
    assert_int_equal(created_ms(start(r), a), -1);
}

static void count_row(const void *row, void *arg)
{
    (void)row;
    ++*(int *)arg;
}

RIG_TEST(test_rows_that_are_new_are_told_apart, r)
{
    struct create_row *a = named(r, "s", "a", 1), *b = named(r, "s", "b", 2), *c = named(r, "s", "c", 3);
    struct unit *u = start(r);
    unit_insert(u, &table_create_row, a);
    unit_insert(u, &table_create_row, b);
    commit(r, u);
    u = start(r);
    unit_prefetch(u, &table_create_row, a);
    unit_prefetch(u, &table_create_row, b);
    unit_insert(u, &table_create_row, c);
    unit_delete(u, &table_create_row, b);
    unit_insert(u, &table_create_row, named(r, "s", "b", 9));
    int inserted = 0, others = 0;
    unit_each_inserted(u, &table_create_row, count_row, &inserted);
    unit_each_inserted(u, &table_kept_row, count_row, &others);
    assert_int_equal(inserted, 2); /* c, and b anew */
    assert_int_equal(others, 0);
    commit(r, u);
    u = start(r);
    for (int i = 0; i < 3; i++) {
        struct create_row *row = i == 0 ? a : i == 1 ? b : c;
        unit_prefetch(u, &table_create_row, row);
        unit_delete(u, &table_create_row, row);
    }
    commit(r, u);
}

struct seen {
    int64_t seqs[8];
    size_t count;
};

static void see(struct unit *u, void *row, void *arg)
{
    struct seen *s = arg;
    (void)u;
    s->seqs[s->count++] = ((struct kept_row *)row)->seq;
}

static void expect_range(struct unit *u, int64_t job, int64_t from, size_t max, const char *expected)
{
    struct kept_row key = {.job = job, .seq = from};
    struct seen s = {0};
    char text[64] = "";
    unit_each_of_range(u, &table_kept_row, &key, max, see, &s);
    for (size_t i = 0; i < s.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%lld ", (long long)s.seqs[i]);
    assert_string_equal(text, expected);
}

static struct kept_row *kept(struct rig *r, int64_t job, int64_t seq)
{
    struct kept_row *row = ARENA_NEW(r->arena, struct kept_row);
    *row = (struct kept_row){.job = job, .seq = seq, .event = STR("e")};
    return row;
}

/* Those that are stored, without what the batch has deleted; behind them those that it adds. */
RIG_TEST(test_a_range_has_what_is_stored_and_what_the_batch_adds, r)
{
    struct unit *u = start(r);
    for (int64_t seq = 1; seq <= 4; seq++)
        unit_insert(u, &table_kept_row, kept(r, 5, seq));
    unit_insert(u, &table_kept_row, kept(r, 6, 1));
    expect_range(u, 5, 0, 8, "1 2 3 4 ");
    commit(r, u);
    u = start(r);
    expect_range(u, 5, 0, 8, "1 2 3 4 ");
    expect_range(u, 5, 3, 8, "3 4 ");
    expect_range(u, 5, 0, 2, "1 2 ");
    expect_range(u, 6, 0, 8, "1 ");
    expect_range(u, 7, 0, 8, "");
    unit_delete(u, &table_kept_row, kept(r, 5, 2));
    unit_insert(u, &table_kept_row, kept(r, 5, 9));
    unit_insert(u, &table_kept_row, kept(r, 5, 8));
    unit_insert(u, &table_kept_row, kept(r, 7, 8));
    expect_range(u, 5, 0, 8, "1 3 4 9 8 ");
    expect_range(u, 5, 4, 8, "4 9 8 ");
    expect_range(u, 5, 9, 8, "9 ");
    unit_abort(u);
    u = start(r);
    expect_range(u, 5, 0, 8, "1 2 3 4 ");
    expect_range(u, 6, 0, 8, "1 ");
    for (int64_t seq = 1; seq <= 4; seq++)
        unit_delete(u, &table_kept_row, kept(r, 5, seq));
    unit_delete(u, &table_kept_row, kept(r, 6, 1));
    commit(r, u);
}

RIG_TEST(test_a_read_that_fails_is_the_batchs_failure, r)
{
    struct unit *u = start(r);
    r->fetches_left = 1;
    assert_null(unit_fetch(u, &table_create_row, named(r, "s", "a", 0)));
    assert_int_equal(u->load_err.code, ERR_OK);
    assert_null(unit_fetch(u, &table_create_row, named(r, "s", "b", 0)));
    assert_int_equal(u->load_err.code, ERR_STORAGE_DB_ERROR);
    assert_false(unit_has(u, &table_create_row, named(r, "s", "b", 0)));
    snprintf(u->load_err.detail, sizeof u->load_err.detail, "the first");
    r->fetches_left = 0;
    assert_null(unit_fetch(u, &table_create_row, named(r, "s", "c", 0)));
    assert_string_equal(u->load_err.detail, "the first"); /* stays */
    r->fetches_left = 0;
    struct client_counts counts;
    unit_read_counts(u, 77, &counts);
    assert_int_equal(r->fetches_left, -1); /* those that memory does not have are read ... */
    assert_string_equal(u->load_err.detail, "the first");
    unit_abort(u);
    u = start(r);
    r->fetches_left = 0;
    unit_read_counts(u, 77, &counts);
    assert_int_equal(u->load_err.code, ERR_STORAGE_DB_ERROR); /* ... and are not none when they cannot be */
    r->fetches_left = -1;
    unit_abort(u);
}

static enum err_code no_range(struct store *s, const struct table *t, const void *from, size_t max,
                              store_row_fn *fn, void *arg, struct err *err)
{
    (void)s, (void)t, (void)from, (void)max, (void)fn, (void)arg;
    return err_set(err, ERR_STORAGE_DB_ERROR, "told to fail");
}

/* The first one stays. */
RIG_TEST(test_a_range_that_cannot_be_read_is_the_batchs_failure, r)
{
    struct unit *u = start(r);
    r->ops.range = no_range;
    expect_range(u, 5, 0, 8, "");
    assert_int_equal(u->load_err.code, ERR_STORAGE_DB_ERROR);
    snprintf(u->load_err.detail, sizeof u->load_err.detail, "the first");
    expect_range(u, 5, 0, 8, "");
    assert_string_equal(u->load_err.detail, "the first");
    r->ops.range = r->real->range;
    unit_abort(u);
}

static const struct notice_kind read_notices = {.name = "read", .hints = HINT_EVENTS},
                                told_notices = {.name = "told"}, costly_notices = {.name = "costly"},
                                other_notices = {.name = "other"};

/* Everything that grows holds what was put in first and last. */
RIG_TEST(test_watchers_are_told_of_all_in_order, r)
{
    struct unit *u = start(r);
    int64_t rows[MANY];
    unit_notify(u, &told_notices, NULL);
    assert_int_equal(u->notices.hints, 0);
    for (int64_t i = 0; i < MANY; i++) {
        rows[i] = i;
        unit_notify(u, i % 2 ? &read_notices : &told_notices, &rows[i]);
    }
    assert_int_equal(u->notices.hints, HINT_EVENTS);
    assert_int_equal(u->notices.count, MANY + 1);
    for (int64_t i = 0; i < MANY; i++) {
        const struct notice *n = &u->notices.list[i + 1];
        assert_ptr_equal(notice_row(n, i % 2 ? &read_notices : &told_notices), &rows[i]);
        assert_null(notice_row(n, i % 2 ? &told_notices : &read_notices));
    }
    unit_abort(u);
    u = start(r);
    assert_true(!u->notices.count && !u->notices.hints);
    unit_abort(u);
}

RIG_TEST(test_a_costly_kind_is_told_when_somebody_wants_it, r)
{
    struct unit *u = start(r);
    static const struct notice_kind *const wanted[] = {&other_notices, &costly_notices, NULL};
    assert_false(notices_include(&u->notices, &costly_notices));
    u->notices.costly = wanted;
    unit_abort(u);
    u = start(r);
    assert_true(notices_include(&u->notices, &costly_notices));
    assert_false(notices_include(&u->notices, &told_notices));
    unit_abort(u);
}

static bool is_known(const struct rig *r, uint64_t hash, int64_t job)
{
    size_t cursor = 0;
    return idem_find(&r->store->idem, hash, &cursor) == job;
}

/* What it added is unknown again, what it dropped known. */
RIG_TEST(test_keys_of_a_batch_are_undone_with_it, r)
{
    struct unit *u = start(r);
    for (uint64_t i = 1; i <= MANY; i++)
        idem_put(&r->store->idem, 1000 + i, (int64_t)i);
    for (uint64_t i = 1; i <= MANY; i++) {
        unit_idem_add(u, 2000 + i, (int64_t)i);
        unit_idem_drop(u, 1000 + i, (int64_t)i);
        unit_list(u, 1, 2, (int64_t)i, true);
    }
    assert_true(u->idem_add_count == MANY && u->idem_drop_count == MANY && u->list_count == MANY);
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_true(is_known(r, 2000 + i, (int64_t)i) && !is_known(r, 1000 + i, (int64_t)i));
        assert_true(u->idem_add[i - 1].hash == 2000 + i && u->idem_drop[i - 1].job == (int64_t)i);
        assert_true(u->list[i - 1].id == (int64_t)i && u->list[i - 1].removed && u->list[i - 1].bucket == 2);
    }
    unit_abort(u);
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_true(!is_known(r, 2000 + i, (int64_t)i) && is_known(r, 1000 + i, (int64_t)i));
        idem_remove(&r->store->idem, 1000 + i, (int64_t)i);
    }
}

RIG_TEST(test_ids_rise_and_have_the_time_they_are_given, r)
{
    struct unit *u = start(r);
    int64_t a = unit_id(u), b = unit_id(u), c = unit_id_at(u, u->now_ms + 5000);
    assert_true(a < b && b < c);
    assert_int_equal(b, a + 1); /* nobody else gives any */
    assert_int_equal(uuid_v7_ms(a), u->now_ms);
    assert_int_equal(uuid_v7_ms(c), u->now_ms + 5000);
    assert_int_equal(r->store->last_id, c);
    unit_abort(u);
}

/* Who waits for a queue without one would never be woken. */
TEST(test_every_queue_has_one_of_64_bits)
{
    uint64_t all = 0;
    for (int i = 0; i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof name, "q%d", i);
        uint64_t bit = queue_bit(str_of(name));
        assert_true(bit && !(bit & (bit - 1)));
        all |= bit;
    }
    assert_int_equal(all, UINT64_MAX);
}

/* By it readers know that what they keep is old. */
RIG_TEST(test_every_batch_that_writes_is_counted, r)
{
    int64_t client = rig_new_client(r, NULL);
    uint64_t before = atomic_load(&r->store->commits);
    rig_submit_default(r, client);
    assert_int_equal(atomic_load(&r->store->commits), before + 1);
    rig_step(r);
    assert_int_equal(atomic_load(&r->store->commits), before + 1);
}

int main(void)
{
    return rig_run_both();
}
