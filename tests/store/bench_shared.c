#include "store/bench_shared.h"

#include <unistd.h>

#include "base/clock.h"

#include "base/banned.h"

const struct str shared_queue = {"q", 1};

int64_t shared_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

struct store *shared_open_other(struct bench *b)
{
    struct err err;
    enum err_code code;
    struct store *s = bench_open_again(b, &code, &err);
    assert_int_equal(code, ERR_OK);
    return s;
}

enum err_code bench_load_shared(struct store *s, struct load_set *l, struct arena *a)
{
    struct err err = {.code = ERR_OK};
    enum err_code code = s->ops->load(s, l, a, &err);
    if (code != ERR_OK)
        print_message("load: %s\n", err.detail);
    return code;
}

void shared_abandon(struct store *s)
{
    s->ops->abandon(s);
    store_forget(s);
}

enum err_code shared_change(struct store *s, const struct table *t, enum row_op op, const void *row,
                            struct err *err)
{
    struct row_change changes = {t, op, row};
    struct change_set c = {.rows = &changes, .row_count = 1, .first_chunk = s->next_chunk};
    *err = (struct err){.code = ERR_OK};
    enum err_code code = s->ops->commit(s, &c, err);
    store_forget(s);
    if (code != ERR_OK)
        print_message("refused: %s\n", err->detail);
    return code;
}

struct task_row shared_ready_task(int64_t id, int64_t priority)
{
    return (struct task_row){.id = id,
                             .client = 1 + id % 2,
                             .priority = priority,
                             .queue = shared_queue,
                             .state = TASK_READY,
                             .job_state = id < (INT64_C(1) << 59) ? JOB_QUEUED : JOB_NO_STATE,
                             .attempt = 1,
                             .refs = {"one ref.", 8}};
}

void shared_wait_until(PGconn *c, const char *sql, int64_t least)
{
    for (int64_t until = shared_now_ms() + SHARED_PATIENCE_MS; bench_number(c, sql) < least;) {
        assert_true(shared_now_ms() < until);
        usleep(SHARED_LOOK_MS * 1000);
    }
}

enum err_code shared_insert_job(struct store *s, int64_t id, struct err *err)
{
    struct job_row job = {.id = id, .client = 1, .queue = shared_queue};
    return shared_change(s, &table_job_row, ROW_INSERT, &job, err);
}

bool shared_job_is_there(struct bench *b, int64_t id)
{
    struct job_row key = {.id = id};
    return bench_fetch(b, &table_job_row, &key) != NULL;
}

void shared_expect_recovery(struct bench *b, struct store *s, int64_t id)
{
    struct err err;
    int64_t until = shared_now_ms() + SHARED_PATIENCE_MS;
    while (shared_insert_job(s, id, &err) != ERR_OK) {
        assert_true(shared_now_ms() < until);
        usleep(SHARED_LOOK_MS * 1000);
    }
    assert_true(shared_job_is_there(b, id));
}
