/* Each verb has one batch in flight: while core is busy with it, the next one gathers. So a slow core gets
 * fewer, larger calls, and a fast one gets small ones at once. */
#include "base/log.h"
#include "base/must.h"
#include "domains/skeleton/domain_internal.h"

#include "base/banned.h"

void domain_note_answer(struct domain *d, const struct worker_answer *answer)
{
    bool refused = answer->kind != WORKER_ANSWERED;
    if (!answer->http_status || refused == d->refused) /* without a status: domain_link() has told */
        return;
    d->refused = refused;
    if (refused)
        log_line(LOG_WARN, "calls_refused", "error_message", LOG_TEXT(answer->detail), NULL);
    else
        log_line(LOG_INFO, "calls_taken", NULL);
}

/* A refusal that the same call would meet again. Without these tasks, their leases run out. */
static bool refused_for_good(const struct worker_answer *answer)
{
    if (answer->kind != WORKER_REFUSED)
        return false;
    return answer->http_status != 401 && answer->http_status != 403 && answer->http_status != 429;
}

/* Core answers in the order of the request; a missing or misplaced answer is looked for by id. */
static const struct worker_result *result_of(const struct worker_answer *answer, size_t place,
                                             const struct domain_task *t)
{
    if (place < answer->result_count && str_equal(answer->results[place].task_id, t->ref.task_id))
        return &answer->results[place];
    for (size_t i = 0; i < answer->result_count; i++)
        if (str_equal(answer->results[i].task_id, t->ref.task_id))
            return &answer->results[i];
    return NULL;
}

static bool can_send(const struct domain *d, const struct domain_batch *b, enum domain_phase from)
{
    return !b->call && !TAILQ_EMPTY(&d->phases[from]) && worker_client_can_call(d->client);
}

/* ---- start and release: calls that only name tasks ---- */

typedef struct worker_call *refs_call_fn(struct worker_client *c, const struct worker_task_ref *tasks,
                                         size_t count, worker_answer_fn *answered, void *self);

static void send_refs(struct domain *d, struct domain_batch *b, enum domain_phase from, enum domain_phase to,
                      refs_call_fn *call, worker_answer_fn *answered)
{
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    struct domain_task *t;
    if (!can_send(d, b, from))
        return;
    for (b->count = 0; b->count < WORKER_BATCH_MAX && (t = TAILQ_FIRST(&d->phases[from])); b->count++) {
        domain_task_put(d, t, to);
        refs[b->count] = t->ref;
        b->tasks[b->count] = t;
    }
    b->call = call(d->client, refs, b->count, answered, d);
}

static void start_answered(void *self, const struct worker_answer *answer)
{
    struct domain *d = self;
    int64_t now_ms = domain_now_ms();
    d->start.call = NULL;
    domain_note_answer(d, answer);
    for (size_t i = 0; i < d->start.count; i++) {
        struct domain_task *t = d->start.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && result->ok && !result->cancel)
            domain_task_started(d, t, now_ms);
        else if (result || refused_for_good(answer))
            domain_task_gone(d, t);
        else
            domain_task_unstarted(d, t); /* not known: starting it again is harmless */
    }
}

static void release_answered(void *self, const struct worker_answer *answer)
{
    struct domain *d = self;
    int64_t now_ms = domain_now_ms();
    d->release.call = NULL;
    domain_note_answer(d, answer);
    for (size_t i = 0; i < d->release.count; i++) {
        struct domain_task *t = d->release.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && !result->ok && str_is(result->code, "not_releasable"))
            domain_task_started(d, t, now_ms); /* its start went through, only the answer was lost */
        else if (result || refused_for_good(answer))
            domain_task_gone(d, t);
        else
            domain_task_put(d, t, TASK_BACK);
    }
}

/* ---- heartbeat ---- */

static void heartbeat_answered(void *self, const struct worker_answer *answer)
{
    struct domain *d = self;
    d->heartbeat.call = NULL;
    domain_note_answer(d, answer);
    if (answer->kind != WORKER_ANSWERED)
        d->beat_at_ms = worker_client_ready_at_ms(d->client); /* a new round once core is back */
    for (size_t i = 0; i < d->heartbeat.count; i++) {
        struct domain_task *t = d->heartbeat.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        /* Its result may have gone out meanwhile; then that answer counts, not this one. */
        if (d->ops->abandon && t->phase == TASK_RUNNING && result && (!result->ok || result->cancel)) {
            d->ops->abandon(d->self, t);
            domain_task_gone(d, t);
        }
        domain_task_unbeat(d, t);
    }
}

/* The task with the oldest sign of life, if it is due in this round; NULL: none is. */
static struct domain_task *next_to_beat(struct domain *d, int64_t now_ms)
{
    struct domain_task *t = TAILQ_FIRST(&d->phases[TASK_RUNNING]);
    int64_t age_ms = d->ops->beats_late ? d->process->settings->queue_heartbeat_ms : 0;
    return t && t->beat_round != d->beat_round && now_ms - t->beaten_ms >= age_ms ? t : NULL;
}

/* A round begins every queue.heartbeat_ms; it may take several calls. */
static void pump_heartbeat(struct domain *d, int64_t now_ms)
{
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    struct domain_batch *b = &d->heartbeat;
    struct domain_task *t;
    if (now_ms >= d->beat_at_ms) {
        d->beat_at_ms = now_ms + d->process->settings->queue_heartbeat_ms;
        d->beat_round++;
    }
    if (!can_send(d, b, TASK_RUNNING))
        return;
    for (b->count = 0; b->count < WORKER_BATCH_MAX && (t = next_to_beat(d, now_ms)); b->count++) {
        t->beat_round = d->beat_round;
        t->beaten_ms = now_ms;
        t->beating = true;
        domain_task_put(d, t, TASK_RUNNING); /* to the back */
        refs[b->count] = t->ref;
        b->tasks[b->count] = t;
    }
    if (b->count)
        b->call = worker_client_heartbeat(d->client, refs, b->count, heartbeat_answered, d);
}

/* ---- finish ---- */

/* Makes the next try smaller; false when nothing is left to leave out. */
static bool finish_shrink(struct domain *d)
{
    if (d->finish.count > 1) {
        d->finish_bytes_max /= 2;
        return true;
    }
    return d->ops->shrink && d->ops->shrink(d->self, d->finish.tasks[0]);
}

static void finish_answered(void *self, const struct worker_answer *answer)
{
    struct domain *d = self;
    d->finish.call = NULL;
    bool shrunk = answer->http_status == 413 && finish_shrink(d);
    if (!shrunk)
        domain_note_answer(d, answer);
    for (size_t i = 0; i < d->finish.count; i++) {
        struct domain_task *t = d->finish.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && !result->ok && !str_is(result->code, "lease_lost"))
            log_line(LOG_WARN, "report_refused", d->ops->task_key, LOG_STR(t->name), "error_code",
                     LOG_STR(result->code), NULL);
        if (result || (refused_for_good(answer) && !shrunk))
            domain_task_gone(d, t);
        else
            domain_task_put(d, t, TASK_ENDED); /* not known: asked again; a stale token is harmless */
    }
}

static void pump_finish(struct domain *d)
{
    struct domain_batch *b = &d->finish;
    struct domain_task *t;
    size_t bytes = 0;
    if (!can_send(d, b, TASK_ENDED))
        return;
    struct arena *a = arena_new(16 * 1024);
    struct worker_finish *reports = ARENA_ARRAY(a, struct worker_finish, WORKER_BATCH_MAX);
    for (b->count = 0; b->count < WORKER_BATCH_MAX && (t = TAILQ_FIRST(&d->phases[TASK_ENDED])); b->count++) {
        size_t left = !b->count ? SIZE_MAX : bytes < d->finish_bytes_max ? d->finish_bytes_max - bytes : 0;
        if (!d->ops->report(d->self, t, left, a, &reports[b->count]))
            break;
        bytes += reports[b->count].result.len;
        domain_task_put(d, t, TASK_REPORTING);
        b->tasks[b->count] = t;
    }
    b->call = worker_client_finish(d->client, reports, b->count, finish_answered, d);
    arena_free(a);
}

void domain_calls_pump(struct domain *d, int64_t now_ms)
{
    domain_report(d, now_ms);
    pump_finish(d); /* before the others: reports free places, and core's promises wait for them */
    send_refs(d, &d->release, TASK_BACK, TASK_RELEASING, worker_client_release, release_answered);
    if (!d->draining)
        send_refs(d, &d->start, TASK_ASSIGNED, TASK_STARTING, worker_client_start, start_answered);
    pump_heartbeat(d, now_ms);
    domain_claims_pump(d, now_ms);
}
