/* The fold: every event in order, checked against the lifecycle, gives the state its job must be in. */
#include "base/hash.h"
#include "store/verify_jobs.h"

#include "base/banned.h"

/* As job_reason() writes it (jobs/job_move.h). */
#define RELEASED_BEGINS "{\"reason\":\"released\""

static bool note_first(int64_t number, struct str chunk, void *arg)
{
    (void)chunk;
    job_check(arg)->first_chunk = number;
    return false;
}

enum err_code verify_find_first_chunk(struct verify *v, struct err *err)
{
    job_check(v)->first_chunk = INT64_MAX; /* an empty log: everything was purged */
    return v->reader->ops->reader_scan_log(v->reader, 0, note_first, v, err);
}

/* --- one event --------------------------------------------------------------------------------- */

static bool is_exhausted_note(const struct event *e)
{
    return e->event == JOB_EVENT_RETRIES_EXHAUSTED && e->prev == JOB_FAILED && e->next == JOB_FAILED;
}

static bool is_legal_move(const struct event *e)
{
    for (int on = 0; on < JOB_TRIGGER_COUNT; on++) {
        const struct job_move *move = job_find_move(e->prev, (enum job_trigger)on);
        if (move && move->to == e->next && move->event == e->event)
            return true;
    }
    return is_exhausted_note(e);
}

static bool is_retry(const struct event *e)
{
    return e->prev == JOB_FAILED && e->next == JOB_QUEUED;
}

/* A worker gave the task back after the start: no attempt is spent. The attempt may also have failed with an
 * error of that name: then it counts as with any other failure. */
static bool is_release(const struct event *e)
{
    return e->event == JOB_EVENT_FAILED && str_starts(e->extra, RELEASED_BEGINS);
}

static bool is_right_attempt(const struct checked_job *j, const struct event *e)
{
    bool rises = e->seq == 1 || is_retry(e);
    return e->attempt == j->attempt + rises || (is_retry(e) && j->released && e->attempt == j->attempt);
}

static const char *event_broken_rule(const struct checked_job *j, const struct event *e)
{
    if (e->seq != j->seq + 1)
        return "events are numbered 1, 2, 3, ...";
    if (e->prev != (enum job_state)j->state)
        return "each event starts where the one before it ended";
    if (!is_legal_move(e))
        return "every move is one of the lifecycle's";
    if (e->at_us <= j->last_us)
        return "the times of a job's events rise";
    if (!is_right_attempt(j, e))
        return "the attempt rises with each retry, and only then";
    if (j->exhausted)
        return "nothing follows job.retries_exhausted";
    if (j->has_job && e->kind != j->kind)
        return "the scenario is the job's work kind";
    return NULL;
}

/* The remaining events of a purged job begin at any number. */
static struct checked_job *purged_job(struct verify *v, const struct event *e)
{
    struct checked_job *j = verify_add_job(v, e->job);
    j->seq = e->seq - 1;
    j->state = (uint8_t)e->prev;
    j->last_us = e->at_us - 1;
    j->attempt = e->attempt - (e->seq == 1 || is_retry(e));
    return j;
}

static void fold_event(struct verify *v, struct checked_job *j, const struct event *e)
{
    if (j->broken)
        return; /* told once; the rest would only repeat it */
    const char *broken = event_broken_rule(j, e);
    if (broken) {
        verify_say_job(v, j, "event %u (%s) breaks a rule: %s", e->seq, job_event_text(e->event), broken);
        j->broken = true;
        return;
    }
    j->seq = e->seq;
    j->state = (uint8_t)e->next;
    j->last_us = e->at_us;
    j->attempt = e->attempt;
    j->exhausted = is_exhausted_note(e);
    j->released = is_release(e);
}

/* Its turn comes when the ones before it have been met. */
static void set_aside(struct verify *v, struct checked_job *j, const struct event *e)
{
    struct early_event **at = &j->early;
    while (*at && (*at)->event.seq < e->seq)
        at = &(*at)->next;
    struct early_event *early = ARENA_NEW(v->arena, struct early_event);
    *early = (struct early_event){.next = *at, .event = *e};
    early->event.extra = is_release(e) ? STR(RELEASED_BEGINS) : STR_ABSENT; /* borrowed from the chunk */
    *at = early;
}

static void note_event(struct verify *v, struct checked_job *j, const struct event *e)
{
    v->result->events++;
    if (e->seq > j->seq + 1) {
        set_aside(v, j, e);
        return;
    }
    if (!j->has_job && e->seq <= j->seq && is_legal_move(e))
        return; /* of a purged job: before where its rest was thought to start */
    fold_event(v, j, e);
    while (j->early && !j->broken && j->early->event.seq <= j->seq + 1) {
        fold_event(v, j, &j->early->event);
        j->early = j->early->next;
    }
}

/* Those whose turn never came: one before them is missing. */
static void check_early(struct map_node *n, void *arg)
{
    struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
    if (j->early)
        fold_event(arg, j, &j->early->event);
}

uint64_t verify_ref(uint64_t seq, uint64_t ref)
{
    return hash_mix(hash_mix(seq) + ref);
}

/* --- kept copies ------------------------------------------------------------------------------- */

static bool note_kept(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct kept_row *r = row;
    struct event e;
    size_t next;
    verify_seen(v);
    struct checked_job *j = verify_find_job(v, r->job);
    if (!j) {
        verify_say(v, "job number %lld: has a kept event and no job row", (long long)r->job);
        return true;
    }
    if (!event_decode(r->event, 0, &e, &next) || next != r->event.len || e.job != r->job ||
        (int64_t)e.seq != r->seq) {
        verify_say_job(v, j, "its kept event %lld is damaged", (long long)r->seq);
        j->broken = true;
    } else if (r->seq > j->kept) {
        verify_say_job(v, j, "its event %lld is kept though it is in the log", (long long)r->seq);
    } else {
        j->kept_seen++;
        note_event(v, j, &e);
    }
    return true;
}

/* --- chunks ------------------------------------------------------------------------------------ */

static void note_chunk_events(struct verify *v, int64_t number, struct str chunk)
{
    struct event e;
    for (size_t at = LOG_FIRST_OFFSET, next; at < chunk.len; at = next) {
        if (!event_decode(chunk, at, &e, &next)) {
            verify_say(v, "log: chunk %lld holds no event at byte %zu", (long long)number, at);
            return;
        }
        struct checked_job *j = verify_find_job(v, e.job);
        if (!j)
            j = purged_job(v, &e);
        j->log_refs += verify_ref(e.seq, (uint64_t)number << 16 | at);
        note_event(v, j, &e);
    }
}

static bool note_chunk(int64_t number, struct str chunk, void *arg)
{
    struct verify *v = arg;
    verify_seen(v);
    v->result->chunks++;
    bool numbered_through = !v->reader->ops->load; /* lanes of a shared store take numbers in blocks */
    if (numbered_through && job_check(v)->next_chunk && number != job_check(v)->next_chunk)
        verify_say(v, "log: chunk %lld follows chunk %lld", (long long)number,
                   (long long)job_check(v)->next_chunk - 1);
    job_check(v)->next_chunk = number + 1;
    if (log_chunk_is_sound(chunk))
        note_chunk_events(v, number, chunk);
    else
        verify_say(v, "log: chunk %lld is damaged", (long long)number);
    return true;
}

enum err_code verify_log(struct verify *v, struct err *err)
{
    if (verify_scan(v, &table_kept_row, note_kept, v, err) != ERR_OK ||
        v->reader->ops->reader_scan_log(v->reader, 0, note_chunk, v, err) != ERR_OK)
        return err->code;
    map_each(&job_check(v)->jobs, check_early, v);
    return ERR_OK;
}
