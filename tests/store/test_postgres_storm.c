/* Connections that are cut all the time: what was answered is what is there, no more and no less. */
#include "store/bench_shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/banned.h"

enum { LANES = 3, DONE_EACH = 150, CUT_EVERY_US = 20000 };

struct storm {
    struct bench *bench;
    atomic_uint lanes_left;
    atomic_uint acknowledged, refused, conflicts, unknown;
};

struct lane {
    struct storm *storm;
    int64_t first_id;
};

/* One more in the row that all lanes change, and a job of its own beside it, in one commit. */
static enum err_code add_one(struct store *s, struct arena *a, int64_t id, bool *ret_loaded, struct err *err)
{
    struct key_head_row head = {.client = 1};
    struct load_row row = {.table = &table_key_head_row, .row = &head};
    struct load_set l = {.rows = &row, .row_count = 1, .now_ms = 1000};
    if (s->ops->load(s, &l, a, err) != ERR_OK)
        return err->code;
    MUST(row.found);
    *ret_loaded = true;
    head.active++;
    struct job_row job = {.id = id, .client = 1, .queue = shared_queue};
    const struct row_change rows[] = {{&table_key_head_row, ROW_UPDATE, &head},
                                      {&table_job_row, ROW_INSERT, &job}};
    struct change_set c = {.rows = rows, .row_count = 2, .first_chunk = s->next_chunk};
    return s->ops->commit(s, &c, err);
}

static void *work(void *arg)
{
    struct lane *x = arg;
    struct postgres_options o = {.url = x->storm->bench->schema.url, .timeout_ms = SHARED_TIMEOUT_MS};
    struct arena *a = arena_new(1 << 12);
    struct store *s = NULL;
    struct err err;
    while (store_open_postgres(&o, &s, &err) != ERR_OK)
        usleep(SHARED_LOOK_MS * 1000);
    int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
    for (int done = 0, tried = 0; done < DONE_EACH && shared_now_ms() < until; tried++) {
        err = (struct err){.code = ERR_OK};
        bool loaded = false;
        enum err_code code = add_one(s, a, x->first_id + tried, &loaded, &err);
        done += code == ERR_OK;
        atomic_fetch_add(code == ERR_OK ? &x->storm->acknowledged
                         : err.conflict ? &x->storm->conflicts
                         : loaded       ? &x->storm->unknown /* of a commit */
                                        : &x->storm->refused,
                         1);
        if (code != ERR_OK)
            usleep(1000);
        shared_abandon(s);
        arena_reset(a);
    }
    store_close(s);
    arena_free(a);
    atomic_fetch_sub(&x->storm->lanes_left, 1);
    return NULL;
}

BENCH_TEST(test_what_was_acknowledged_is_there_and_nothing_else, b)
{
    struct storm storm = {.bench = b, .lanes_left = LANES};
    struct lane lanes[LANES];
    pthread_t threads[LANES];
    PGconn *cutter = bench_session(&b->schema);
    struct key_head_row head = {.client = 1};
    int cuts = 0;
    bench_sql(cutter, "SET client_min_messages=error"); /* some are gone already */
    assert_int_equal(bench_change(b, &table_key_head_row, ROW_INSERT, &head), ERR_OK);
    for (int64_t i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){&storm, 1 + i * 1000000};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &lanes[i]), 0);
    }
    for (; atomic_load(&storm.lanes_left); cuts++) {
        bench_sql(cutter, "SELECT pg_terminate_backend(a.pid) FROM lanes l JOIN pg_stat_activity a "
                          "ON a.pid=l.pid AND a.backend_start=l.started ORDER BY random() LIMIT 1");
        usleep(CUT_EVERY_US);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    print_message("%d cuts, %u conflicts, %u refused\n", cuts, atomic_load(&storm.conflicts),
                  atomic_load(&storm.refused));
    unsigned acknowledged = atomic_load(&storm.acknowledged);
    assert_int_equal(atomic_load(&storm.unknown), 0);
    assert_true(atomic_load(&storm.conflicts) + atomic_load(&storm.refused) > 0); /* it was a storm */
    assert_int_equal(bench_number(cutter, "SELECT active FROM key_heads"), acknowledged);
    assert_int_equal(bench_number(cutter, "SELECT count(*) FROM jobs"), acknowledged);
    assert_int_equal(acknowledged, LANES * DONE_EACH); /* and they got on */
    PQfinish(cutter);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
