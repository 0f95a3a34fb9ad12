#include "store/row_rules.h"

#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/key_power.h"
#include "lifecycle/work_kinds.h"
#include "store/live.h"
#include "store/log.h"

#include "base/banned.h"

static bool are_refs(struct str refs)
{
    return refs.len % sizeof(uint64_t) == 0;
}

static bool must_be_there(const struct column *c)
{
    return c->type != COLUMN_INT && !c->may_be_null;
}

const char *row_broken_rule(const struct table *t, const void *row)
{
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        if ((c->has_range && (row_int(row, c) < c->least || row_int(row, c) > c->most)) ||
            (must_be_there(c) && !row_str(row, c).ptr))
            return c->rule;
    }
    return NULL;
}

bool table_has_rules(const struct table *t)
{
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].has_range || must_be_there(&t->columns[i]))
            return true;
    return false;
}

const char *job_broken_rule(const struct job_row *j)
{
    if (j->id <= 0)
        return "the id is a time and a counter";
    if (!work_kind_is_known(j->kind))
        return "the work kind is a known one";
    if (j->max_retries < 0 || j->max_runtime_ms < 1 || j->queue_ttl_ms < 0)
        return "the limits are not negative";
    if (!j->queue.len)
        return "the queue has a name";
    if ((j->idem_key.ptr != NULL) != (j->idem_fingerprint.ptr != NULL))
        return "an idempotency key has a fingerprint";
    return NULL;
}

/* The rules of a job's task beyond those of any task. */
static const char *job_task_broken_rule(const struct task_row *t)
{
    if (t->job_state >= JOB_NO_STATE ||
        job_state_phase((enum job_state)t->job_state) != (enum task_phase)t->state)
        return "the state of a job fits that of its task";
    if (!work_kind_is_known(t->kind))
        return "the work kind is a known one";
    if (t->subject || t->target)
        return "a job has no subject and no receiver";
    if (t->progress.ptr && t->state != TASK_RUNNING)
        return "only a running job has progress";
    if (t->state == TASK_WAITING && !t->due_ms)
        return "a job that waits knows until when";
    if (!are_refs(t->refs))
        return "there is one reference per event";
    return NULL;
}

static const char *stream_broken_rule(const struct task_row *t)
{
    int64_t count = (int64_t)log_ref_count(t->refs);
    if (!are_refs(t->refs) || t->done < 0 || t->done > count)
        return "a stream lists its deliveries";
    if ((t->state == TASK_WAITING) != (t->done == count))
        return "a stream is idle exactly when it has nothing to send";
    return NULL;
}

static const char *step_broken_rule(const struct task_row *t)
{
    if (t->subject <= 0 || t->step < 0)
        return "a step is of a run";
    if (t->refs.len)
        return "a step has no references";
    return NULL;
}

const char *task_broken_rule(const struct task_row *t)
{
    const char *broken = row_broken_rule(&table_task_row, t);
    if (broken)
        return broken;
    if (t->id <= 0 || t->id >> 60)
        return "the id is a time and a counter";
    if (t->client <= 0 || t->client >= CLIENT_NUMBER_MAX)
        return "the client is a known number";
    if (!t->queue.len)
        return "the queue has a name";
    bool leased = t->state == TASK_LEASED || t->state == TASK_RUNNING;
    if (leased != (t->lease_ms != 0) || leased != (t->worker.ptr != NULL))
        return "a lease and its worker stand exactly in LEASED and RUNNING";
    if (leased && t->token < 1)
        return "a lease has a token";
    if ((t->state == TASK_RUNNING) != (t->started_ms != 0))
        return "a start time stands exactly in RUNNING";
    if (t->attempt < 1 || t->attempt > t->max_retries + 1)
        return "the attempt is within the limit";
    if (!task_is_job(t) && t->job_state != JOB_NO_STATE)
        return "only a job has the state of a job";
    if (task_is_job(t))
        return job_task_broken_rule(t);
    return task_is_stream(t) ? stream_broken_rule(t) : step_broken_rule(t);
}

const char *end_broken_rule(const struct end_row *e)
{
    if (e->state != JOB_CANCELED && !e->started_ms)
        return "what succeeded or failed was started";
    if (e->finished_ms != e->last_us / 1000 || e->finished_ms < e->started_ms)
        return "the end is the time of the last event";
    if ((e->state == JOB_FAILED) != (e->error.ptr != NULL))
        return "an error stands exactly in FAILED";
    if (e->state != JOB_SUCCEEDED && e->result.ptr)
        return "a result stands only in SUCCEEDED";
    if (e->attempt < 1)
        return "attempts count from 1";
    if (!are_refs(e->refs) || (int64_t)log_ref_count(e->refs) != e->seq)
        return "there is one reference per event";
    return NULL;
}

const char *api_key_broken_rule(const struct api_key_row *k)
{
    if (k->scopes < 0 || k->scopes >= SCOPE_ALL)
        return "its scopes are known ones, and all of them are stored as none";
    if (!key_queues_are_sound(k->queues))
        return "its queues are names in order, each once";
    if (k->name.ptr && (!k->name.len || k->name.len > KEY_NAME_BYTES_MAX))
        return "its name is not too long";
    if (k->expires_ms <= k->created_ms)
        return "it was made before it expires";
    return NULL;
}

const char *queue_broken_rule(const struct queue_row *q)
{
    if (!q->queue.len)
        return "the queue has a name";
    if (q->max_retries < -1 || q->queue_ttl_ms < 0 || q->retention_ms < 0)
        return "the limits are not negative";
    if (!q->paused && q->retry < 0 && q->max_retries < 0 && !q->queue_ttl_ms && !q->retention_ms)
        return "it sets something";
    return NULL;
}
