#include "jobs/job_move.h"

#include "base/json_members.h"
#include "base/must.h"
#include "jobs/deliver.h"
#include "jobs/purge_early.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

enum { REASON_BYTES_MAX = 512, ERROR_TEXT_MAX = 1000 };

static struct str cut(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max && ((unsigned char)s.ptr[max] & 0xC0) == 0x80) /* not inside a character */
        max--;
    return (struct str){s.ptr, max};
}

static struct str finish_json(struct unit *u, struct strbuf *b)
{
    struct str text = arena_str(u->arena, strbuf_str(b));
    strbuf_free(b);
    return text;
}

struct str job_reason(struct unit *u, const char *reason, struct str message)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "reason", cut(str_of(reason), REASON_BYTES_MAX / 4));
    if (message.ptr) {
        encode_str(&w, "message",
                   cut(message, REASON_BYTES_MAX / 4)); /* escaping may make six bytes of one */
    }
    jw_object_end(&w);
    return finish_json(u, &b);
}

struct str job_error(struct unit *u, struct str code, struct str message, bool retryable)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "code", cut(code, ERROR_TEXT_MAX));
    encode_str(&w, "message", cut(message, ERROR_TEXT_MAX));
    encode_bool(&w, "retryable", retryable);
    jw_object_end(&w);
    return finish_json(u, &b);
}

struct task_row job_task_row(const struct job_row *job)
{
    return (struct task_row){.id = job->id,
                             .low = job->low,
                             .client = job->client,
                             .owner = job_task_owner.number,
                             .kind = job->kind,
                             .priority = job->priority,
                             .created_ms = job->created_ms,
                             .max_runtime_ms = job->max_runtime_ms,
                             .max_retries = job->max_retries,
                             .queue_ttl_ms = job->queue_ttl_ms,
                             .retry = job->retry,
                             .queue = job->queue};
}

static void tell(struct unit *u, const struct task *t, const struct event *e, bool is_release)
{
    int64_t since_ms = t->row.last_us / 1000;
    struct job_notice *n = ARENA_NEW(u->arena, struct job_notice);
    n->event = *e;
    n->low = (uint64_t)t->row.low;
    n->client = t->row.client;
    n->worker = arena_str(u->arena, t->row.worker);
    if (job_state_is_final(e->next))
        n->queue = arena_str(u->arena, t->row.queue);
    if (e->event == JOB_EVENT_ASSIGNED && t->row.due_ms > since_ms)
        since_ms = t->row.due_ms;
    n->waited_ms = e->at_us / 1000 - since_ms;
    n->ran_ms = job_state_is_final(e->next) && t->row.started_ms ? e->at_us / 1000 - t->row.started_ms : -1;
    n->is_release = is_release;
    unit_notify(u, &job_notices, n);
}

static void append(struct unit *u, struct task *t, const struct job_move *move, enum job_state prev,
                   struct str extra, bool is_release)
{
    struct event e = {.job = t->row.id,
                      .seq = (uint32_t)log_ref_count(t->row.refs) + 1,
                      .event = move->event,
                      .prev = prev,
                      .next = move->to,
                      .at_us = u->now_us > t->row.last_us ? u->now_us : t->row.last_us + 1,
                      .attempt = (uint32_t)t->row.attempt,
                      .kind = (uint8_t)t->row.kind,
                      .id = unit_uuid_v4(u),
                      .extra = extra};
    task_add_ref(t, log_append(&u->log, &e));
    tell(u, t, &e, is_release);
    t->row.last_us = e.at_us;
    deliver_event(u, t, &e);
}

/* Behind the last failure. */
static const struct job_move exhausted = {.to = JOB_FAILED, .event = JOB_EVENT_RETRIES_EXHAUSTED};

static void write_end(struct unit *u, struct task *t, const struct job_ending *ending)
{
    struct end_row *end = ARENA_NEW(u->arena, struct end_row);
    *end = (struct end_row){.id = t->row.id,
                            .client = t->row.client,
                            .kind = t->row.kind,
                            .state = t->row.job_state,
                            .attempt = t->row.attempt,
                            .token = t->row.token,
                            .started_ms = t->row.started_ms,
                            .finished_ms = t->row.last_us / 1000,
                            .last_us = t->row.last_us,
                            .seq = (int64_t)log_ref_count(t->row.refs),
                            .result = ending ? ending->result : STR_ABSENT,
                            .error = ending ? ending->error : STR_ABSENT,
                            .refs = arena_str(u->arena, t->row.refs)};
    unit_insert(u, &table_end_row, end);
    unit_list(u, t->row.client, (uint8_t)(1 + t->row.job_state), t->row.id, false);
    purge_list_early(u, &t->row, end->finished_ms);
    unit_task_end(u, t);
}

/* Each time a job becomes QUEUED its time begins anew. A backoff does not count: the job cannot be claimed
 * then. */
static int64_t queue_deadline_ms(const struct unit *u, const struct task *t)
{
    int64_t ttl_ms = t->row.queue_ttl_ms ? t->row.queue_ttl_ms : u->settings->jobs_queue_ttl_seconds * 1000;
    int64_t backoff_ms = t->row.due_ms > u->now_ms ? t->row.due_ms - u->now_ms : 0;
    return ttl_ms ? u->steady_ceil_ms + backoff_ms + ttl_ms : 0;
}

bool job_move(struct unit *u, struct task *t, enum job_trigger on, struct str extra,
              const struct job_ending *ending)
{
    enum job_state prev = (enum job_state)t->row.job_state;
    const struct job_move *move = job_find_move(prev, on);
    if (!move)
        return false;
    unit_count_move(u, t->row.client, prev, move->to);
    if (prev == JOB_NO_STATE && t->row.kind != WORK_KIND_NONE)
        unit_counts(u, t->row.client)->by_kind[t->row.kind]++;
    t->row.job_state = move->to;
    t->row.expire_ms = move->to == JOB_QUEUED ? queue_deadline_ms(u, t) : 0;
    if (t->row.progress.ptr) /* it has left RUNNING, the only state with progress */
        unit_task_progress(u, t, STR_ABSENT);
    append(u, t, move, prev, extra, ending && ending->is_release);
    if (!job_state_is_final(move->to) || (ending && ending->is_retried))
        return true;
    if (move->to == JOB_FAILED && t->row.attempt > t->row.max_retries)
        append(u, t, &exhausted, JOB_FAILED, STR_ABSENT, false);
    write_end(u, t, ending);
    return true;
}
