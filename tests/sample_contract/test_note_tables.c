/* A table that stands outside of src/store is a table like any other, on every store. That its rows are kept,
 * scanned and copied whole is shown by the store's own tests, which are built with it once more
 * (meson.build). */
#include "sample_contract/note_tables.h"
#include "store/bench_store.h"
#include "store/verify.h"

#include "base/banned.h"

static struct note_row note(int64_t id, int64_t state)
{
    return (struct note_row){.id = id, .client = 1, .state = state, .shown_by = STR("")};
}

BENCH_TEST(the_table_stands_behind_those_of_the_store, b)
{
    assert_int_equal(table_count, STORE_TABLE_COUNT + 1);
    assert_int_equal(table_note_row.number, STORE_TABLE_COUNT);
    assert_ptr_equal(tables[STORE_TABLE_COUNT], &table_note_row);
}

BENCH_TEST_ON("sqlite postgres", no_other_state_is_storable_and_the_worker_may_not_be_absent, b)
{
    for (int64_t state = -1; state <= NOTE_STATE_COUNT; state++) {
        struct note_row row = note(10 + state, state);
        assert_int_equal(bench_change(b, &table_note_row, ROW_INSERT, &row) == ERR_OK,
                         state >= 0 && state < NOTE_STATE_COUNT);
    }
    struct note_row row = note(99, NOTE_NEW);
    row.shown_by = STR_ABSENT;
    assert_int_not_equal(bench_change(b, &table_note_row, ROW_INSERT, &row), ERR_OK);
}

BENCH_TEST_ON("sqlite postgres", its_ids_are_never_given_again, b)
{
    struct note_row row = note(INT64_C(1) << 50, NOTE_NEW);
    assert_int_equal(bench_change(b, &table_note_row, ROW_INSERT, &row), ERR_OK);
    bench_reopen(b);
    assert_int_equal(b->store->last_id, row.id);
}

static void note_problem(void *arg, const char *line)
{
    *(bool *)arg |= strstr(line, "sample_notes: row 5 breaks a rule: state") != NULL;
}

BENCH_TEST_ON("memory", a_state_that_there_is_not_is_told, b)
{
    for (int64_t state = NOTE_LATE; state <= NOTE_STATE_COUNT; state++) {
        struct note_row row = note(5, state);
        bool told = false;
        struct verify_result result;
        struct err err;
        assert_int_equal(bench_change(b, &table_note_row, state == NOTE_LATE ? ROW_INSERT : ROW_UPDATE, &row),
                         ERR_OK);
        assert_int_equal(store_verify(b->reader, note_problem, NULL, &told, &result, &err), ERR_OK);
        assert_int_equal(told, state == NOTE_STATE_COUNT);
    }
}

int main(void)
{
    return bench_run_all();
}
