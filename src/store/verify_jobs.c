/* What is remembered of jobs while the check goes on, and the comparison when all of it has been met. */
#include "store/verify_jobs.h"

#include <stdio.h>

#include "base/hash.h"

#include "base/banned.h"

void verify_say_job(struct verify *v, const struct checked_job *j, const char *fmt, ...)
{
    char who[64], text[UUID_TEXT_LEN + 1];
    if (j->has_job) {
        struct uuid id = uuid_from_v7(j->id, (uint64_t)j->low);
        uuid_text(&id, text);
        snprintf(who, sizeof who, "job %s: ", text);
    } else {
        snprintf(who, sizeof who, "job number %lld: ", (long long)j->id);
    }
    va_list args;
    va_start(args, fmt);
    verify_vsay(v, who, fmt, args);
    va_end(args);
}

struct checked_job *verify_find_job(const struct verify *v, int64_t id)
{
    for (struct map_node *n = map_first(&job_check(v)->jobs, hash_mix((uint64_t)id)); n; n = map_next(n)) {
        struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
        if (j->id == id)
            return j;
    }
    return NULL;
}

struct checked_job *verify_add_job(struct verify *v, int64_t id)
{
    struct checked_job *j = ARENA_NEW(v->arena, struct checked_job);
    j->id = id;
    j->state = JOB_NO_STATE;
    map_put(&job_check(v)->jobs, &j->node, hash_mix((uint64_t)id));
    return j;
}

struct checked_client *verify_client(struct verify *v, int64_t num)
{
    for (struct map_node *n = map_first(&job_check(v)->clients, hash_mix((uint64_t)num)); n;
         n = map_next(n)) {
        struct checked_client *c = CONTAINER_OF(n, struct checked_client, node);
        if (c->num == num)
            return c;
    }
    struct checked_client *c = ARENA_NEW(v->arena, struct checked_client);
    c->num = num;
    map_put(&job_check(v)->clients, &c->node, hash_mix((uint64_t)num));
    return c;
}

/* --- the comparison ---------------------------------------------------------------------------- */

/* Events of a job without a row are fine only when the job was purged: it must have ended. */
static void check_purged(struct verify *v, const struct checked_job *j)
{
    if (!j->broken && !job_state_is_final((enum job_state)j->state))
        verify_say_job(v, j, "has events up to %s and no row", job_state_text((enum job_state)j->state));
}

static void check_against_log(struct verify *v, const struct checked_job *j)
{
    if (j->broken)
        return; /* told when the event was met */
    if (j->seq != j->row_seq)
        verify_say_job(v, j, "its row says %u events, the log has %u", j->row_seq, j->seq);
    else if (j->state != j->row_state)
        verify_say_job(v, j, "its row says %s, its events say %s",
                       job_state_text((enum job_state)j->row_state),
                       j->seq ? job_state_text((enum job_state)j->state) : "nothing");
    else if (j->attempt != j->row_attempt)
        verify_say_job(v, j, "its row says attempt %u, its events say %u", j->row_attempt, j->attempt);
    else if (j->last_us != j->row_last_us)
        verify_say_job(v, j, "its row and its last event differ in time");
    else if (j->row_refs != j->log_refs || j->kept_seen != j->kept_count)
        verify_say_job(v, j, "its references do not point at its events");
    if (j->is_ended && j->row_state == JOB_FAILED && (j->row_attempt > j->max_retries) != j->exhausted)
        verify_say_job(v, j, "job.retries_exhausted must stand behind the last failure, and only there");
}

static void check_job(struct map_node *n, void *arg)
{
    struct verify *v = arg;
    const struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
    if (!j->has_job) {
        check_purged(v, j);
        return;
    }
    if (!j->is_live && !j->is_ended) {
        verify_say_job(v, j, "has neither a live nor a final state");
        return;
    }
    check_against_log(v, j);
    if (j->archives + 1 != j->row_attempt)
        verify_say_job(v, j, "attempt %u needs %u archived reports, there are %u", j->row_attempt,
                       j->row_attempt - 1, j->archives);
    struct client_counts *counts = &verify_client(v, j->client)->counts;
    counts->by_state[j->row_state]++;
    if (j->kind != WORK_KIND_NONE)
        counts->by_kind[j->kind]++;
}

/* --- the rules ----------------------------------------------------------------------------------- */

static enum err_code check_first(struct verify *v, struct err *err)
{
    if (verify_find_first_chunk(v, err) != ERR_OK || verify_clients(v, err) != ERR_OK)
        return err->code;
    return verify_job_rows(v, err);
}

static enum err_code check_rows(struct verify *v, struct err *err)
{
    if (verify_job_ends(v, err) != ERR_OK || verify_log(v, err) != ERR_OK ||
        verify_delivery_rows(v, err) != ERR_OK)
        return err->code;
    map_each(&job_check(v)->jobs, check_job, v);
    return ERR_OK;
}

static void end(void *self)
{
    struct job_check *c = self;
    map_free(&c->jobs);
    map_free(&c->clients);
    map_free(&c->deliveries);
}

const struct verify_rules verify_jobs = {.name = "jobs",
                                         .bytes = sizeof(struct job_check),
                                         .first = check_first,
                                         .task = verify_job_task,
                                         .rows = check_rows,
                                         .listed = verify_listed_job,
                                         .last = verify_beside,
                                         .end = end};
