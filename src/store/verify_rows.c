/* The rows of jobs: each one sound by itself, and each job in exactly one place. */
#include "base/hash.h"
#include "store/row_rules.h"
#include "store/verify_jobs.h"

#include "base/banned.h"

/* --- jobs -------------------------------------------------------------------------------------- */

static uint64_t digest(const int64_t *numbers, size_t count, struct str queue)
{
    return hash_fnv1a(hash_fnv1a(HASH_FNV_START, numbers, count * sizeof *numbers), queue.ptr, queue.len);
}

static bool note_job(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct job_row *r = row;
    const int64_t shared[] = {r->low,         r->client,       r->kind,
                              r->priority,    r->created_ms,   r->max_runtime_ms,
                              r->max_retries, r->queue_ttl_ms, r->retry};
    verify_seen(v);
    v->result->jobs++;
    struct checked_job *j = verify_add_job(v, r->id);
    j->has_job = true;
    j->low = r->low;
    j->client = r->client;
    j->kind = (uint8_t)r->kind;
    j->max_retries = (uint32_t)r->max_retries;
    j->idem = r->idem_key.ptr ? idem_hash(r->client, r->idem_key) : 0;
    j->shared = digest(shared, sizeof shared / sizeof *shared, r->queue);
    const char *broken = job_broken_rule(r);
    if (broken) {
        verify_say_job(v, j, "its row breaks a rule: %s", broken);
        j->kind = work_kind_is_known(j->kind) ? j->kind : 0;
    }
    if (!verify_client(v, r->client)->has_row)
        verify_say_job(v, j, "belongs to client %lld, which does not exist", (long long)r->client);
    return true;
}

/* --- live and ended ---------------------------------------------------------------------------- */

/* Positions before the oldest chunk were purged; the others are compared with the log by a digest. */
static void note_refs(struct verify *v, struct checked_job *j, struct str refs)
{
    size_t count = log_ref_count(refs);
    for (size_t i = 0; i < count; i++) {
        uint64_t ref = log_ref_at(refs, i);
        if (log_ref_chunk(ref) >= job_check(v)->first_chunk) {
            j->row_refs += verify_ref(i + 1, ref);
            continue;
        }
        j->kept = (uint32_t)i + 1;
        j->kept_count++;
    }
}

static void note_state(struct checked_job *j, int64_t state, int64_t attempt, int64_t seq, int64_t last_us)
{
    j->row_state = (uint8_t)(state >= 0 && state < JOB_STATE_COUNT ? state : JOB_CREATED);
    j->row_attempt = (uint32_t)attempt;
    j->row_seq = (uint32_t)seq;
    j->row_last_us = last_us;
}

static void check_task(struct verify *v, const struct task_row *r)
{
    const int64_t shared[] = {r->low,         r->client,       r->kind,
                              r->priority,    r->created_ms,   r->max_runtime_ms,
                              r->max_retries, r->queue_ttl_ms, r->retry};
    v->result->live++;
    struct checked_job *j = verify_find_job(v, r->id);
    if (!j) {
        verify_say(v, "job number %lld: is live and has no job row", (long long)r->id);
        return;
    }
    const char *broken = task_broken_rule(r);
    if (broken)
        verify_say_job(v, j, "its live row breaks a rule: %s", broken);
    if (j->shared != digest(shared, sizeof shared / sizeof *shared, r->queue))
        verify_say_job(v, j, "its live row differs from its job row");
    j->is_live = true;
    note_state(j, r->job_state, r->attempt, (int64_t)log_ref_count(r->refs), r->last_us);
    note_refs(v, j, r->refs);
}

bool verify_job_task(struct verify *v, const struct task_row *t)
{
    if (task_is_stream(t))
        verify_stream(v, t);
    else if (task_is_job(t))
        check_task(v, t);
    return task_is_stream(t) || task_is_job(t);
}

static bool note_end(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct end_row *r = row;
    verify_seen(v);
    v->result->ended++;
    struct checked_job *j = verify_find_job(v, r->id);
    if (!j) {
        verify_say(v, "job number %lld: has ended and has no job row", (long long)r->id);
        return true;
    }
    if (j->is_live) {
        verify_say_job(v, j, "is live and has ended");
        return true;
    }
    const char *broken = end_broken_rule(r);
    if (broken)
        verify_say_job(v, j, "its final row breaks a rule: %s", broken);
    if (r->client != j->client || r->kind != j->kind)
        verify_say_job(v, j, "its final row differs from its job row");
    j->is_ended = true;
    note_state(j, r->state, r->attempt, r->seq, r->last_us);
    note_refs(v, j, r->refs);
    return true;
}

static bool note_archive(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct archive_row *r = row;
    verify_seen(v);
    struct checked_job *j = verify_find_job(v, r->job);
    if (!j) {
        verify_say(v, "job number %lld: has an archived report and no job row", (long long)r->job);
        return true;
    }
    j->archives++; /* they come in order of attempt */
    if (r->attempt != j->archives || !r->error.ptr || r->result.ptr)
        verify_say_job(v, j, "its archived report of attempt %lld is not the report of a failure",
                       (long long)r->attempt);
    return true;
}

enum err_code verify_job_rows(struct verify *v, struct err *err)
{
    return verify_scan(v, &table_job_row, note_job, v, err);
}

enum err_code verify_job_ends(struct verify *v, struct err *err)
{
    if (verify_scan(v, &table_end_row, note_end, v, err) != ERR_OK)
        return err->code;
    return verify_scan(v, &table_archive_row, note_archive, v, err);
}
