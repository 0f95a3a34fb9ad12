/* Rows of the inbox become jobs, each exactly once, by the rules of a submit. */
#include "unit/kernel/rig.h"

#include "base/hash.h"
#include "jobs/inbox.h"

#include "base/banned.h"

static struct inbox the_inbox;

static void fingerprint(const struct json *body, uint8_t out[16])
{
    struct strbuf text = {0};
    json_canonical(body, NULL, &text);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t h = hash_fnv1a(HASH_FNV_START + i, text.ptr, text.len);
        memcpy(out + 8 * i, &h, 8);
    }
    strbuf_free(&text);
}

/* --- draining, in a command's place --------------------------------------------------------------- */

static bool there_is_more;

static enum err_code decide_drain(struct unit *u, struct command *c, struct err *err)
{
    (void)c;
    (void)err;
    there_is_more = inbox_drain(&the_inbox, u);
    return ERR_OK;
}

static const struct command_type drain_type = {.name = "drain", .decide = decide_drain};

static void post_drain(struct rig *r)
{
    rig_post(r, ARENA_NEW(r->arena, struct command), &drain_type);
}

static void drain(struct rig *r)
{
    post_drain(r);
    rig_step(r);
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    the_inbox = (struct inbox){.fingerprint = fingerprint};
    return rig_up(state);
}

static struct str new_client(struct rig *r, int64_t *ret_number)
{
    struct uuid id;
    char *text = arena_alloc(r->arena, UUID_TEXT_LEN + 1);
    *ret_number = rig_new_client(r, &id);
    uuid_text(&id, text);
    return str_of(text);
}

static struct inbox_row row_of(struct rig *r, struct str client, int64_t id)
{
    return (struct inbox_row){.id = id,
                              .created_ms = r->wall_us / 1000,
                              .priority = -1,
                              .max_runtime_ms = -1,
                              .max_retries = -1,
                              .client = client,
                              .work_kind = STR("SUCCESS_FAST")};
}

static void change(struct rig *r, enum row_op op, const struct inbox_row *row)
{
    struct err err;
    struct row_change one = {&table_inbox_row, op, row};
    struct change_set c = {.rows = &one, .row_count = 1, .first_chunk = r->store->next_chunk};
    assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
}

static void put(struct rig *r, const struct inbox_row *row)
{
    change(r, ROW_INSERT, row);
}

/* Rows id, id + 1, ... in one commit. */
static void put_many(struct rig *r, struct str client, int64_t id, size_t count)
{
    struct err err;
    struct inbox_row *rows = ARENA_ARRAY(r->arena, struct inbox_row, count);
    struct row_change *changes = ARENA_ARRAY(r->arena, struct row_change, count);
    for (size_t i = 0; i < count; i++) {
        rows[i] = row_of(r, client, id + (int64_t)i);
        changes[i] = (struct row_change){&table_inbox_row, ROW_INSERT, &rows[i]};
    }
    struct change_set c = {.rows = changes, .row_count = count, .first_chunk = r->store->next_chunk};
    assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
}

struct counted {
    size_t waiting, failed;
    char error[300];
    int64_t failed_ms, id;
};

static bool count_row(const void *row, void *arg)
{
    struct counted *c = arg;
    const struct inbox_row *i = row;
    if (!i->failed_ms) {
        c->waiting++;
        return true;
    }
    c->failed++;
    c->failed_ms = i->failed_ms;
    c->id = i->id;
    snprintf(c->error, sizeof c->error, "%.*s", STR_ARG(i->error));
    return true;
}

static struct counted count_rows(struct rig *r)
{
    struct counted c = {.waiting = 0};
    struct err err;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, &table_inbox_row, count_row, &c, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return c;
}

struct jobs {
    size_t count;
    struct job_row last;
    struct arena *arena;
};

static bool note_job(const void *row, void *arg)
{
    struct jobs *j = arg;
    j->count++;
    j->last = *(const struct job_row *)row;
    j->last.queue = arena_str(j->arena, j->last.queue);
    j->last.payload = arena_str(j->arena, j->last.payload);
    j->last.callback = arena_str(j->arena, j->last.callback);
    return true;
}

static struct jobs jobs_of(struct rig *r)
{
    struct jobs j = {.arena = r->arena};
    struct err err;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, &table_job_row, note_job, &j, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return j;
}

/* --- the tests ------------------------------------------------------------------------------------------ */

#define INBOX_TEST(name, parameter) TEST_WITH(name, struct rig *parameter, set_up, rig_down)

INBOX_TEST(a_row_becomes_a_job_once, r)
{
    int64_t number;
    struct inbox_row row = row_of(r, new_client(r, &number), 7);
    row.queue = STR("mail");
    row.priority = 8;
    row.payload = STR("{\"to\": \"ada\"}");
    row.callback = STR("http://example.com/hook");
    put(r, &row);
    drain(r);
    drain(r);
    struct jobs jobs = jobs_of(r);
    struct counted left = count_rows(r);
    assert_int_equal(jobs.count, 1);
    assert_int_equal(jobs.last.client, number);
    assert_int_equal(jobs.last.priority, 8);
    assert_true(str_is(jobs.last.queue, "mail"));
    assert_true(str_is(jobs.last.payload, "{\"to\": \"ada\"}"));
    assert_true(str_is(jobs.last.callback, "http://example.com/hook"));
    assert_int_equal(rig_state(r, jobs.last.id), JOB_QUEUED);
    assert_int_equal(left.waiting + left.failed, 0);
    assert_int_equal(the_inbox.taken, 1);
}

INBOX_TEST(two_drains_of_one_batch_make_one_job, r)
{
    int64_t number;
    struct inbox_row row = row_of(r, new_client(r, &number), 1);
    put(r, &row);
    post_drain(r);
    post_drain(r);
    rig_step(r);
    assert_int_equal(jobs_of(r).count, 1);
}

INBOX_TEST(a_commit_that_fails_takes_nothing, r)
{
    int64_t number;
    struct inbox_row row = row_of(r, new_client(r, &number), 1);
    put(r, &row);
    r->failures = 1;
    drain(r);
    assert_int_equal(jobs_of(r).count, 0);
    assert_int_equal(count_rows(r).waiting, 1);
    rig_pass(r, 2000);
    rig_step(r);
    drain(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(count_rows(r).waiting, 0);
}

INBOX_TEST(what_can_be_no_job_stays_with_the_reason, r)
{
    int64_t number;
    struct str client = new_client(r, &number);
    const struct {
        struct str client, type, work_kind, queue, callback, payload, key;
        int64_t priority, execution_ms;
        const char *told;
    } cases[] = {
        {.client = STR("nobody"), .priority = -1, .told = "RFA_CLIENT_NOT_FOUND: client is no client_id"},
        {.client = STR("00000000-0000-4000-8000-000000000000"), .priority = -1, .told = "no client has"},
        {.client = client, .type = STR("DREAM"), .priority = -1, .told = "type must be one of"},
        {.client = client, .type = STR("DEFERRED"), .priority = -1, .told = "execution_at is required"},
        {.client = client, .work_kind = STR("NONE"), .priority = -1, .told = "work_kind is not in"},
        {.client = client, .queue = STR("Not One"), .priority = -1, .told = "queue must match"},
        {.client = client, .callback = STR("ftp://x"), .priority = -1, .told = "callback "},
        {.client = client, .payload = STR("{"), .priority = -1, .told = "payload: "},
        {.client = client, .payload = STR("[1]"), .priority = -1, .told = "payload must be an object"},
        {.client = client, .key = STR(""), .priority = -1, .told = "idempotency_key must"},
        {.client = client, .priority = 10, .told = "priority must be from 0 to 9"},
        {.client = client, .priority = -2, .told = "priority must be from 0 to 9"},
        {.client = client, .priority = -1, .execution_ms = 5, .told = "must lie in the future"},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct inbox_row row = row_of(r, cases[i].client, (int64_t)i + 1);
        row.type = cases[i].type;
        row.work_kind = cases[i].work_kind;
        row.queue = cases[i].queue;
        row.callback = cases[i].callback;
        row.payload = cases[i].payload;
        row.idempotency_key = cases[i].key;
        row.priority = cases[i].priority;
        row.execution_ms = cases[i].execution_ms;
        rig_pass(r, 1);
        put(r, &row);
        drain(r);
        struct counted left = count_rows(r);
        assert_int_equal(left.waiting, 0);
        assert_int_equal(left.failed, i + 1);
        assert_int_equal(left.id, i + 1);
        assert_int_equal(left.failed_ms, r->wall_us / 1000);
        if (!strstr(left.error, cases[i].told))
            print_error("\"%s\" is not in \"%s\"\n", cases[i].told, left.error);
        assert_non_null(strstr(left.error, cases[i].told));
    }
    assert_int_equal(jobs_of(r).count, 0);
    assert_int_equal(the_inbox.refused, LENGTH_OF(cases));
}

INBOX_TEST(a_row_that_was_put_right_is_taken_up_again, r)
{
    int64_t number;
    struct inbox_row row = row_of(r, new_client(r, &number), 1);
    row.queue = STR("Wrong");
    put(r, &row);
    drain(r);
    row.failed_ms = count_rows(r).failed_ms;
    assert_true(row.failed_ms > 0);
    change(r, ROW_DELETE, &row); /* what an UPDATE of the application comes to */
    row.failed_ms = 0;
    row.queue = STR("right");
    put(r, &row);
    drain(r);
    struct counted left = count_rows(r);
    assert_int_equal(left.waiting + left.failed, 0);
    assert_int_equal(jobs_of(r).count, 1);
}

INBOX_TEST(an_idempotency_key_counts_as_over_http, r)
{
    int64_t number;
    struct str client = new_client(r, &number);
    struct inbox_row row = row_of(r, client, 1);
    row.idempotency_key = STR("order-1");
    row.payload = STR("{\"a\":1,\"b\":2}");
    put(r, &row);
    row.id = 2;
    row.payload = STR("{ \"b\": 2, \"a\": 1.0 }"); /* the same value */
    put(r, &row);
    drain(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(count_rows(r).waiting, 0);
    row.id = 3;
    row.payload = STR("{\"a\":2}");
    put(r, &row);
    drain(r);
    struct counted left = count_rows(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(left.failed, 1);
    assert_non_null(strstr(left.error, "RFA_EXEC_IDEMPOTENCY_CONFLICT"));
}

/* To ask for no retries is another job than to leave it to the default. */
INBOX_TEST(a_number_of_nothing_is_not_an_absent_one, r)
{
    int64_t number;
    struct inbox_row row = row_of(r, new_client(r, &number), 1);
    row.idempotency_key = STR("order-1");
    row.max_retries = 0;
    put(r, &row);
    row.id = 2;
    row.max_retries = -1;
    put(r, &row);
    drain(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(count_rows(r).failed, 1);
}

/* Whether its time has come meanwhile or not, it is the same job; and the one of POST /v1/jobs. */
INBOX_TEST(a_key_counts_with_the_time_that_was_asked_for, r)
{
    int64_t number;
    if (r->shared)
        skip(); /* the clock of the database is not turned here */
    struct str client = new_client(r, &number);
    struct inbox_row row = row_of(r, client, 1);
    row.idempotency_key = STR("order-1");
    row.execution_ms = row.created_ms + 5000;
    put(r, &row);
    drain(r);
    row.id = 2;
    put(r, &row);
    rig_pass(r, 10000);
    drain(r);
    struct counted left = count_rows(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(left.waiting + left.failed, 0);
    row.id = 3;
    row.execution_ms++;
    put(r, &row);
    drain(r);
    assert_int_equal(count_rows(r).failed, 1);
}

/* A limit is no reason to refuse for ever. */
INBOX_TEST(rows_wait_while_the_queue_is_full, r)
{
    int64_t number;
    if (r->shared)
        skip(); /* all nodes together are counted once a second: the limit is not kept to the row */
    struct str client = new_client(r, &number);
    r->settings.jobs_queue_size = 2;
    for (int64_t id = 1; id <= 3; id++) {
        struct inbox_row row = row_of(r, client, id);
        put(r, &row);
    }
    drain(r);
    assert_int_equal(jobs_of(r).count, 2);
    assert_int_equal(count_rows(r).waiting, 1);
    assert_int_equal(count_rows(r).failed, 0);
    rig_run(r, true);
    drain(r);
    assert_int_equal(jobs_of(r).count, 3);
    assert_int_equal(count_rows(r).waiting, 0);
}

INBOX_TEST(a_time_that_has_come_meanwhile_is_now, r)
{
    int64_t number;
    if (r->shared)
        skip(); /* timers go by the clock of the database, which nobody turns here */
    struct str client = new_client(r, &number);
    struct inbox_row row = row_of(r, client, 1);
    row.execution_ms = row.created_ms + 5000;
    put(r, &row);
    row.id = 2;
    row.execution_ms = row.created_ms + 500000;
    put(r, &row);
    rig_pass(r, 10000);
    drain(r);
    struct jobs jobs = jobs_of(r);
    assert_int_equal(jobs.count, 2);
    assert_int_equal(jobs.last.execution_ms, row.execution_ms);
    assert_int_equal(rig_state(r, jobs.last.id), JOB_CREATED);
    rig_pass(r, 10);
    rig_step(r);
    assert_int_equal(rig_claim_count(r, "w", 10), 1);
}

/* To the millisecond: what is due now was to come when it was written, and what was not is refused. */
INBOX_TEST(a_time_that_comes_this_moment_is_now, r)
{
    int64_t number;
    if (r->shared)
        skip(); /* the clock of the database is not turned here */
    struct inbox_row row = row_of(r, new_client(r, &number), 1);
    row.execution_ms = row.created_ms + 5000;
    put(r, &row);
    row.id = 2;
    row.created_ms = row.execution_ms;
    put(r, &row);
    rig_pass(r, 5000);
    drain(r);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(count_rows(r).failed, 1);
    assert_int_equal(count_rows(r).id, 2);
}

/* A job that could go into no queue yet would overtake those before it. */
INBOX_TEST(rows_are_taken_in_their_order_also_while_the_queue_is_full, r)
{
    int64_t number;
    if (r->shared)
        skip(); /* all nodes together are counted once a second: the limit is not kept to the row */
    struct str client = new_client(r, &number);
    r->settings.jobs_queue_size = 1;
    for (int64_t id = 1; id <= 3; id++) {
        struct inbox_row row = row_of(r, client, id);
        row.execution_ms = id == 3 ? row.created_ms + 100000 : 0;
        put(r, &row);
    }
    drain(r);
    assert_false(there_is_more);
    assert_int_equal(jobs_of(r).count, 1);
    assert_int_equal(count_rows(r).waiting, 2);
    rig_run(r, true);
    drain(r);
    assert_int_equal(jobs_of(r).count, 3);
}

/* A key of 255 bytes is one, also in UTF-8; a longer one, or one that is no text, is none. */
INBOX_TEST(an_idempotency_key_has_its_bounds, r)
{
    int64_t number;
    struct str client = new_client(r, &number);
    char longest[INBOX_KEY_BYTES_MAX + 1];
    memset(longest, 'k', sizeof longest);
    const struct str keys[] = {
        {longest, 1}, {longest, INBOX_KEY_BYTES_MAX}, {longest, INBOX_KEY_BYTES_MAX + 1}, STR("k\xff")};
    for (size_t i = 0; i < LENGTH_OF(keys); i++) {
        struct inbox_row row = row_of(r, client, (int64_t)i + 1);
        if (r->shared && !str_is_utf8(keys[i]))
            continue; /* the database takes no such text */
        row.idempotency_key = keys[i];
        put(r, &row);
        drain(r);
        assert_int_equal(jobs_of(r).count, i < 2 ? i + 1 : 2);
        assert_int_equal(count_rows(r).failed, i < 2 ? 0 : i - 1);
    }
}

INBOX_TEST(many_rows_are_taken_in_turns_whatever_failed_before, r)
{
    int64_t number;
    struct str client = new_client(r, &number);
    put_many(r, STR("nobody"), 1, INBOX_ROWS_A_TURN + 5);
    drain(r);
    assert_true(there_is_more);
    drain(r);
    assert_false(there_is_more);
    assert_int_equal(count_rows(r).failed, INBOX_ROWS_A_TURN + 5);
    put_many(r, client, INBOX_ROWS_A_TURN + 100, INBOX_ROWS_A_TURN + 1);
    drain(r);
    assert_true(there_is_more);
    assert_int_equal(jobs_of(r).count, INBOX_ROWS_A_TURN);
    drain(r);
    assert_int_equal(jobs_of(r).count, INBOX_ROWS_A_TURN + 1);
    assert_int_equal(count_rows(r).waiting, 0);
}

int main(void)
{
    return rig_run_all();
}
