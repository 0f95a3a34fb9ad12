/* POST /v1/jobs:cancel and /v1/jobs:retry by a filter; POST /v1/queues/{queue}:purge.
 *
 * A call is a chain of parts: read ids of jobs that match, newest first, then one command for them, then
 * the next part. So neither this thread nor a batch is busy with it for long, and others have their turn in
 * between. Each command is all or nothing; the call is not: what an earlier part did stays when a later one
 * fails. A call ends when `limit` jobs matched, when there are no more, or after LOOKS_MAX rows; then
 * `more` and `next_cursor` say where the next call goes on. */
#include "api/handlers.h"
#include "api/jobs/job_calls.h"
#include "api/jobs/list_filter.h"
#include "base/json_members.h"
#include "jobs/queue_commands.h"
#include "jobs/submit_values.h"
#include "lifecycle/key_power.h"

#include "base/banned.h"

enum {
    BULK_LIMIT_DEFAULT = 1000,
    BULK_LIMIT_MAX = 10000,
    LOOKS_A_PART = 2000,
    LOOKS_MAX = 20000,
    ROWS_A_READ = 64, /* with their payloads */
};

struct bulk {
    struct list_filter filter; /* its below_id is where the next part goes on */
    enum bulk_action action;
    int64_t state;   /* cancel: that they must be in, -1: any unfinished one; retry: JOB_FAILED */
    bool reads_rows; /* the filter asks for more than state and queue */
    const char *reason;
    int64_t limit, matched, changed, looked;
    bool is_done; /* there are no more */
    void (*answer)(struct call *c, const struct bulk *b);
    int64_t ids[BULK_IDS_MAX]; /* of this part */
    size_t id_count;
};

/* --- reading ------------------------------------------------------------------------------------------ */

static size_t ids_a_read(const struct bulk *b)
{
    return b->reads_rows ? ROWS_A_READ : BULK_IDS_MAX;
}

static enum err_code read_ids(struct reader *r, int64_t client, const struct bulk *b, int64_t *ids,
                              size_t *ret_count, struct err *err)
{
    const struct list_filter *f = &b->filter;
    struct list_query q = {
        .owner_key = client, .below_id = f->below_id, .from_id = f->from_id, .limit = ids_a_read(b)};
    if (b->action == BULK_CANCEL) {
        q.queue = f->queue;
        return r->ops->reader_live(r, &q, b->state, ids, ret_count, err);
    }
    q.bucket = (uint8_t)(1 + JOB_FAILED);
    return r->ops->reader_list(r, &q, ids, ret_count, err);
}

/* Takes those of the ids that match. What a job's row says never changes, and its state is the decider's to
 * look at, so no other row is read. */
static enum err_code take_matches(struct reader *r, struct arena *a, struct bulk *b, const int64_t *ids,
                                  size_t count, struct err *err)
{
    struct load_row *rows = ARENA_ARRAY(a, struct load_row, count);
    for (size_t i = 0; b->reads_rows && i < count; i++) {
        struct job_row *job = ARENA_NEW(a, struct job_row);
        job->id = ids[i];
        rows[i] = (struct load_row){.table = &table_job_row, .row = job};
    }
    if (b->reads_rows && store_read_rows(r, rows, count, a, err) != ERR_OK)
        return err->code;
    size_t room =
        (size_t)(b->limit - b->matched) < BULK_IDS_MAX ? (size_t)(b->limit - b->matched) : BULK_IDS_MAX;
    for (size_t i = 0; i < count && b->id_count < room; i++) {
        struct job_view v = {.state = b->filter.state};
        if (b->reads_rows && rows[i].found)
            v.job = *(const struct job_row *)rows[i].row;
        if (!b->reads_rows || (rows[i].found && list_filter_matches(&b->filter, &v)))
            b->ids[b->id_count++] = ids[i];
        b->filter.below_id = ids[i];
        b->looked++;
    }
    return ERR_OK;
}

/* Fills `ids`: as many as a command takes, or as a part looks at. */
static enum err_code read_part(struct call *c, struct bulk *b, struct err *err)
{
    int64_t ids[BULK_IDS_MAX];
    size_t count = 0;
    struct reader *r = api_read_begin(c->api, err);
    if (!r)
        return err->code;
    struct arena *scratch = arena_new(1 << 14);
    int64_t part_end = b->looked + LOOKS_A_PART;
    enum err_code code = ERR_OK;
    b->id_count = 0;
    while (code == ERR_OK && !b->is_done && b->id_count < BULK_IDS_MAX &&
           b->matched + (int64_t)b->id_count < b->limit && b->looked < part_end) {
        code = read_ids(r, c->who.client, b, ids, &count, err);
        if (code == ERR_OK)
            code = take_matches(r, scratch, b, ids, count, err);
        b->is_done = count < ids_a_read(b) && (!count || b->filter.below_id == ids[count - 1]);
        arena_reset(scratch);
    }
    arena_free(scratch);
    return code;
}

/* --- one part after the other --------------------------------------------------------------------------- */

static void next_part(struct call *c);

static void part_done(struct call *c)
{
    const struct bulk_command *command = (const struct bulk_command *)c->command;
    struct bulk *b = c->data;
    b->changed += command->changed;
    if (command->is_full) { /* the next call begins with the one for which there was no room */
        b->matched -= (int64_t)(command->id_count - command->handled);
        b->filter.below_id = command->ids[command->handled] + 1;
        b->is_done = false;
    }
    bool ends = b->is_done || command->is_full || b->matched >= b->limit || b->looked >= LOOKS_MAX;
    if (ends)
        b->answer(c, b);
    else
        next_part(c);
}

static void next_part(struct call *c)
{
    struct bulk *b = c->data;
    struct err err = {.code = ERR_OK};
    struct bulk_command *command = ARENA_NEW(c->x->arena, struct bulk_command);
    if (read_part(c, b, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    b->matched += (int64_t)b->id_count;
    command->action = b->action;
    command->client = c->who.client;
    command->queues = c->who.power.queues;
    command->only_state = b->state;
    command->reason = b->reason;
    command->ids = b->ids;
    command->id_count = b->id_count;
    command->base.weight = (int64_t)b->id_count;
    call_post(c, &command->base, &bulk_command_type, 0, part_done); /* also without ids: others have a turn */
}

static void start(struct call *c, struct bulk *b)
{
    c->data = b;
    if (!b->filter.nothing)
        next_part(c);
    else
        b->answer(c, b);
}

/* --- by filter ------------------------------------------------------------------------------------------ */

static void send_counts(struct call *c, const struct bulk *b)
{
    struct json_writer w;
    bool more = !b->is_done && !b->filter.nothing;
    call_object(c, 200, &w);
    encode_int(&w, "matched", b->matched);
    encode_int(&w, "changed", b->changed);
    encode_bool(&w, "more", more);
    encode_str(&w, "next_cursor", more ? list_cursor_text(c->x->arena, b->filter.below_id) : STR_ABSENT);
    call_send_object(c, &w);
}

/* False: answered. */
static bool read_filter(struct call *c, struct list_filter *ret)
{
    const struct json *filter = json_get(c->body, "filter");
    struct err err = {.code = ERR_OK};
    struct list_query_texts q = {.cursor = json_text(c->body, "cursor")};
    bool is_empty = true;
#define X(name)                                                                                              \
    q.name = json_text(filter, #name);                                                                       \
    is_empty &= !q.name.ptr;
    JOB_FILTERS(X)
#undef X
    if (is_empty)
        err_set(
            &err, ERR_REQUEST_MALFORMED,
            "filter must name at least one of state, type, kind, work_kind, queue, outcome, created_after, "
            "created_before");
    else
        (void)!list_filter_parse(&q, ret, &err);
    if (err.code == ERR_OK && q.queue.ptr && !call_has_queue(c, q.queue))
        err_set(&err, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s", STR_ARG(q.queue));
    if (err.code == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* A cancel is for unfinished jobs, a retry for FAILED ones: a filter of other states finds none. */
static void bind_state(struct bulk *b)
{
    struct list_filter *f = &b->filter;
    bool is_final = f->has_state && job_state_is_final(f->state);
    if (b->action == BULK_CANCEL) {
        f->nothing |= is_final;
        b->state = f->has_state ? (int64_t)f->state : -1;
    } else {
        f->nothing |= f->has_state && f->state != JOB_FAILED;
        b->state = JOB_FAILED;
    }
}

static void by_filter(struct call *c, enum bulk_action action)
{
    struct bulk *b = ARENA_NEW(c->x->arena, struct bulk);
    const struct json *limit = json_get(c->body, "limit");
    b->action = action;
    b->answer = send_counts;
    b->limit = BULK_LIMIT_DEFAULT;
    if (limit && limit->type == JSON_NUMBER &&
        (!json_to_int(limit, &b->limit) || b->limit < 1 || b->limit > BULK_LIMIT_MAX)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "limit must be from 1 to %d", BULK_LIMIT_MAX);
        return;
    }
    if (!read_filter(c, &b->filter))
        return;
    bind_state(b);
    b->filter.queues = c->who.power.queues;
    b->reads_rows = b->filter.has_type || b->filter.has_work_kind || b->filter.kind.ptr ||
                    b->filter.queues.ptr || (action == BULK_RETRY && b->filter.queue.ptr);
    start(c, b);
}

void handle_cancel_jobs(struct call *c)
{
    by_filter(c, BULK_CANCEL);
}
void handle_retry_jobs(struct call *c)
{
    by_filter(c, BULK_RETRY);
}

/* --- a queue ---------------------------------------------------------------------------------------------
 * */

static void send_purged(struct call *c, const struct bulk *b)
{
    struct json_writer w;
    call_object(c, 200, &w);
    encode_int(&w, "canceled", b->changed);
    encode_bool(&w, "more", !b->is_done);
    call_send_object(c, &w);
}

void handle_purge_queue(struct call *c)
{
    struct bulk *b = ARENA_NEW(c->x->arena, struct bulk);
    if (!call_queue_param(c, &b->filter.queue))
        return;
    b->action = BULK_CANCEL;
    b->state = JOB_QUEUED;
    b->reason = "purged";
    b->limit = BULK_LIMIT_MAX;
    b->answer = send_purged;
    b->filter.below_id = INT64_MAX;
    start(c, b);
}
