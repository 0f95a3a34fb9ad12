/* Receivers of a shared store: slots that no two handles give away, streams that wait aside for one, and that
 * none of them is left behind; and how much is read for it. */
#include "store/bench_shared.h"

#include <pthread.h>

#include "base/banned.h"

enum { RECEIVER = 7, SLOTS = 3, STREAMS = 30, ROUNDS = 60, NOW_MS = 1000 };
static const struct str queue = {"~streams", 8};
static const char claimed_sql[] = "SELECT count(*) FROM tasks WHERE target=7 AND phase=2";
static const char waiting_sql[] = "SELECT count(*) FROM tasks WHERE target=7 AND phase=3";

static struct task_row stream(int64_t id, int64_t receiver)
{
    struct task_row t = shared_ready_task((int64_t)TASK_ID_OF_OTHERS | id, 5);
    t.target = receiver;
    t.done = 0;
    t.queue = queue;
    return t;
}

static void add_streams(struct bench *b, int64_t from, int64_t count, int64_t receiver)
{
    for (int64_t id = from; id < from + count; id++) {
        struct task_row t = stream(id, receiver);
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    }
}

static enum err_code load_claim(struct store *s, struct arena *a, uint32_t max)
{
    const struct load_claim claim = {&queue, 1, 0, max};
    struct load_set l = {.claims = &claim, .claim_count = 1, .now_ms = NOW_MS};
    return bench_load_shared(s, &l, a);
}

static enum err_code commit_row(struct store *s, enum row_op op, const struct task_row *row)
{
    struct err err = {.code = ERR_OK};
    struct row_change change = {&table_task_row, op, row};
    struct change_set c = {.rows = &change, .row_count = row ? 1 : 0, .first_chunk = s->next_chunk};
    enum err_code code = s->ops->commit(s, &c, &err);
    if (code != ERR_OK)
        s->ops->abandon(s);
    store_forget(s);
    return code;
}

/* Like a batch of the kernel: the row is changed under its touch, and placed. */
static enum err_code commit_claim(struct store *s, struct task *t)
{
    struct task_row row = t->row;
    row.state = TASK_LEASED;
    row.token++;
    row.lease_ms = 90000;
    row.worker = STR("w");
    t->touch = (struct task_touch *)t; /* the store only asks whether there is one */
    return commit_row(s, ROW_UPDATE, &row);
}

/* One is claimed if a slot is free; gives its id, 0: none, or others were faster. */
static int64_t claim_one(struct store *s, struct arena *a, bool obeys)
{
    if (load_claim(s, a, 5) != ERR_OK) {
        shared_abandon(s);
        return 0;
    }
    struct receiver *x = live_receiver(s->live, RECEIVER);
    if (!obeys && x)
        live_receiver_limit(s->live, x, STREAMS); /* the control: as if it had all the slots there are */
    struct task *t = live_best(s->live, &(struct live_claim){&queue, 1, 0});
    if (!t) {
        if (live_has_news_of_slots(s->live))
            (void)!commit_row(s, ROW_UPDATE, NULL);
        else
            shared_abandon(s);
        return 0;
    }
    int64_t id = t->row.id;
    return commit_claim(s, t) == ERR_OK ? id : 0;
}

/* It has nothing more to send now, and comes again later: its slot is free. */
static void end_one(struct store *s, struct arena *a, int64_t id)
{
    struct load_set l = {.tasks = &id, .task_count = 1, .now_ms = NOW_MS};
    for (bool done = false; !done;) {
        if (bench_load_shared(s, &l, a) != ERR_OK) {
            shared_abandon(s);
            continue;
        }
        struct task *t = live_find(s->live, id);
        assert_non_null(t);
        t->touch = (struct task_touch *)t;
        t->row.state = TASK_READY;
        t->row.lease_ms = 0;
        t->row.worker = STR_ABSENT;
        live_place(s->live, t, NOW_MS);
        struct task_row row = t->row;
        done = commit_row(s, ROW_UPDATE, &row) == ERR_OK;
    }
}

struct claimer {
    struct bench *bench;
    struct store *store;
    int64_t claims, most;
    bool obeys;
};

static void *claim_and_end(void *arg)
{
    struct claimer *c = arg;
    struct arena *a = arena_new(1 << 16);
    PGconn *look = bench_session(&c->bench->schema);
    int64_t held[2] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t *slot = &held[round % 2];
        if (*slot)
            end_one(c->store, a, *slot);
        if ((*slot = claim_one(c->store, a, c->obeys)))
            c->claims++;
        int64_t now = bench_number(look, claimed_sql);
        if (now > c->most)
            c->most = now;
    }
    PQfinish(look);
    arena_free(a);
    return NULL;
}

/* Two handles that each want two at a time, of a receiver that may have three. */
static int64_t most_claimed(struct bench *b, bool obeys)
{
    PGconn *look = bench_session(&b->schema);
    bench_sql(look, "DELETE FROM tasks");
    bench_sql(look, "DELETE FROM targets");
    bench_sql(look, "INSERT INTO targets VALUES(7,3,0,0,0)");
    PQfinish(look);
    add_streams(b, 1, STREAMS, RECEIVER);
    struct claimer c[2] = {{b, b->store, 0, 0, obeys}, {b, shared_open_other(b), 0, 0, obeys}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_and_end, &c[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    store_close(c[1].store);
    assert_true(c[0].claims + c[1].claims > ROUNDS / 2); /* and nobody was left behind for long */
    return c[0].most > c[1].most ? c[0].most : c[1].most;
}

BENCH_TEST(test_two_handles_never_give_away_more_slots_than_there_are, b)
{
    assert_in_range(most_claimed(b, true), 1, SLOTS);
    assert_true(most_claimed(b, false) > SLOTS); /* the control */
}

/* However it came about: who waits for a slot while nobody has one is let in by the holder of the duties. */
BENCH_TEST(test_a_stream_that_was_left_behind_is_let_in, b)
{
    struct store_duties duties = {0};
    struct err err;
    PGconn *look = bench_session(&b->schema);
    add_streams(b, 1, 5, RECEIVER);
    add_streams(b, 11, 5, 8);
    struct task_row claimed = stream(20, 8);
    claimed.state = TASK_LEASED;
    claimed.token = 1;
    claimed.lease_ms = 90000;
    claimed.worker = STR("w");
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &claimed), ERR_OK);
    bench_sql(look, "UPDATE tasks SET phase=3 WHERE phase=1");
    bench_sql(look, "INSERT INTO targets VALUES(9,1,0,0,0)"); /* seen last long ago */
    assert_int_equal(load_claim(b->store, b->arena, 5), ERR_OK);
    assert_int_equal(live_size(b->store->live), 0);
    shared_abandon(b->store);
    assert_int_equal(b->store->ops->lead(b->store, &duties, &err), ERR_OK);
    assert_true(duties.leads);
    assert_int_equal(bench_number(look, "SELECT count(*) FROM tasks WHERE phase=1"), 1);
    assert_int_equal(bench_number(look, "SELECT max(target) FROM tasks WHERE phase=1"), RECEIVER);
    assert_int_equal(bench_number(look, waiting_sql), 4);
    assert_int_equal(bench_number(look, "SELECT count(*) FROM targets WHERE target=9"), 0);
    PQfinish(look);
}

/* Thousands that wait aside, of one receiver and of a thousand: a claim reads none of them, an end as many as
 * it lets in. */
BENCH_TEST(test_what_is_read_does_not_grow_with_those_who_wait, b)
{
    enum { ASIDE = 6000, READ_MAX = 500 };
#define OF_STREAMS " FROM pg_stat_user_tables WHERE relname='tasks' AND schemaname=current_schema()"
    static const char reads[] = "SELECT sum(coalesce(seq_tup_read,0)+coalesce(idx_tup_fetch,0))" OF_STREAMS;
    static const char writes[] = "SELECT sum(n_tup_ins+n_tup_upd)" OF_STREAMS;
    struct store *lane = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    add_streams(b, 1, 6, RECEIVER);
    int64_t id = claim_one(lane, b->arena, true); /* everything is planned while there is next to nothing */
    assert_int_not_equal(id, 0);
    end_one(lane, b->arena, id);
    id = claim_one(lane, b->arena, true);
    assert_int_not_equal(id, 0);
    bench_sql(look, "INSERT INTO tasks SELECT (jsonb_populate_record(t,jsonb_build_object('id',"
                    "n::bigint|576460752303423488,'phase',3,"
                    "'place',n,'target',CASE WHEN n%2=0 THEN 7 ELSE n END))).* FROM tasks t,"
                    "generate_series(1001,7000) n WHERE t.phase=3 LIMIT 6000");
    bench_sql(look, "SELECT pg_stat_force_next_flush()");
    shared_wait_until(look, writes, ASIDE + 6);
    b->store = store_close(b->store);
    int64_t before = bench_number(look, reads), wrote = bench_number(look, writes);
    end_one(lane, b->arena, id);
    assert_int_not_equal(claim_one(lane, b->arena, true), 0);
    store_close(lane);
    shared_wait_until(look, writes, wrote + 2);
    assert_in_range(bench_number(look, reads) - before, 1, READ_MAX);
    bench_sql(look, "SELECT pg_stat_force_next_flush()"); /* the control: a read of all of them shows */
    assert_true(bench_number(look, "SELECT count(low) FROM tasks") > ASIDE);
    shared_wait_until(look, reads, before + ASIDE);
    PQfinish(look);
    b->store = shared_open_other(b);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
