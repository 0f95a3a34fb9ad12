/* Each verb has one batch in flight: while core is busy with it, the next one gathers. So a slow
 * core gets fewer, larger calls, and a fast one gets small ones at once. */
#include "base/log.h"
#include "base/must.h"
#include "domains/runner/runner_internal.h"

#include "base/banned.h"

static void note_answer(struct runner *r, const struct worker_answer *answer)
{
    bool refused = answer->kind != WORKER_ANSWERED;
    if (!answer->http_status || refused == r->refused) /* without a status: runner_link() has told */
        return;
    r->refused = refused;
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

/* ---- claim ---- */

static void claim_answered(void *self, const struct worker_answer *answer)
{
    struct runner_worker *w = self;
    struct runner *r = w->runner;
    int64_t now_ms = clock_mono_ms(r->clock);
    w->claim = NULL;
    r->claims_in_flight--;
    note_answer(r, answer);
    for (size_t i = 0; i < answer->task_count; i++)
        runner_task_new(r, w, &answer->tasks[i]);
    /* Empty, and sooner than asked: core is stopping or shedding, so do not ask in a circle. */
    if (answer->kind == WORKER_ANSWERED && answer->task_count == 0 &&
        now_ms - w->claimed_at_ms < RUNNER_EMPTY_PAUSE_MS)
        r->claim_after_ms = now_ms + RUNNER_EMPTY_PAUSE_MS;
    runner_want_work(r, w);
}

static void pump_claims(struct runner *r, int64_t now_ms)
{
    if (r->draining || now_ms < r->claim_after_ms)
        return;
    struct runner_worker *w;
    while (r->claims_in_flight < RUNNER_CLAIMS_MAX && (w = TAILQ_FIRST(&r->wanting)) &&
           worker_client_can_call(r->client)) {
        TAILQ_REMOVE(&r->wanting, w, link);
        w->wanting = false;
        struct worker_claim claim = {
            .worker_id = str_of(w->id),
            .queues = &r->queue,
            .queue_count = 1,
            .max = (uint32_t)(w->slots_free < WORKER_CLAIM_MAX ? w->slots_free : WORKER_CLAIM_MAX),
            .wait_ms = RUNNER_CLAIM_WAIT_MS,
        };
        w->claimed_at_ms = now_ms;
        w->claim = worker_client_claim(r->client, &claim, claim_answered, w);
        r->claims_in_flight++;
    }
}

void runner_abandon_claims(struct runner *r)
{
    for (int64_t i = 0; i < r->config->workers; i++) {
        struct runner_worker *w = &r->workers[i];
        if (!w->claim)
            continue;
        worker_client_abandon(r->client, w->claim);
        w->claim = NULL;
        r->claims_in_flight--;
    }
}

/* ---- batches ---- */

/* Core answers in the order of the request; a missing or misplaced answer is looked for by id. */
static const struct worker_result *result_of(const struct worker_answer *answer, size_t place,
                                             const struct runner_task *t)
{
    if (place < answer->result_count && str_equal(answer->results[place].task_id, t->ref.task_id))
        return &answer->results[place];
    for (size_t i = 0; i < answer->result_count; i++)
        if (str_equal(answer->results[i].task_id, t->ref.task_id))
            return &answer->results[i];
    return NULL;
}

static void gather(struct runner *r, struct runner_batch *b, enum task_phase from, enum task_phase to,
                   struct worker_task_ref refs[WORKER_BATCH_MAX])
{
    struct runner_task *t;
    for (b->count = 0; b->count < WORKER_BATCH_MAX && (t = TAILQ_FIRST(&r->phases[from])); b->count++) {
        runner_task_put(r, t, to);
        refs[b->count] = t->ref;
        b->tasks[b->count] = t;
    }
}

static void start_answered(void *self, const struct worker_answer *answer)
{
    struct runner *r = self;
    int64_t now_ms = clock_mono_ms(r->clock);
    r->start.call = NULL;
    note_answer(r, answer);
    for (size_t i = 0; i < r->start.count; i++) {
        struct runner_task *t = r->start.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && result->ok && !result->cancel)
            runner_task_started(r, t, now_ms);
        else if (result || refused_for_good(answer))
            runner_task_gone(r, t);
        else
            runner_task_put(r, t, TASK_ASSIGNED); /* not known: starting it again is harmless */
    }
}

static void pump_start(struct runner *r)
{
    if (r->start.call || r->draining || TAILQ_EMPTY(&r->phases[TASK_ASSIGNED]) ||
        !worker_client_can_call(r->client))
        return;
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    gather(r, &r->start, TASK_ASSIGNED, TASK_STARTING, refs);
    r->start.call = worker_client_start(r->client, refs, r->start.count, start_answered, r);
}

static void release_answered(void *self, const struct worker_answer *answer)
{
    struct runner *r = self;
    r->release.call = NULL;
    note_answer(r, answer);
    for (size_t i = 0; i < r->release.count; i++) {
        struct runner_task *t = r->release.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && !result->ok && str_is(result->code, "not_releasable"))
            runner_task_ended(r, t, END_SHUTDOWN); /* its start went through, only the answer was lost */
        else if (result || refused_for_good(answer))
            runner_task_gone(r, t);
        else
            runner_task_put(r, t, TASK_ASSIGNED);
    }
}

static void pump_release(struct runner *r)
{
    if (r->release.call || !r->draining || TAILQ_EMPTY(&r->phases[TASK_ASSIGNED]) ||
        !worker_client_can_call(r->client))
        return;
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    gather(r, &r->release, TASK_ASSIGNED, TASK_RELEASING, refs);
    r->release.call = worker_client_release(r->client, refs, r->release.count, release_answered, r);
}

/* ---- heartbeat ---- */

static void heartbeat_answered(void *self, const struct worker_answer *answer)
{
    struct runner *r = self;
    r->heartbeat.call = NULL;
    note_answer(r, answer);
    if (answer->kind != WORKER_ANSWERED)
        r->beat_at_ms = worker_client_ready_at_ms(r->client); /* a new round once core is back */
    for (size_t i = 0; i < r->heartbeat.count; i++) {
        struct runner_task *t = r->heartbeat.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        /* Its report may have gone out meanwhile; then that answer counts, not this one. */
        if (t->phase == TASK_RUNNING && result && (!result->ok || result->cancel))
            runner_task_gone(r, t);
        runner_task_unbeat(t);
    }
}

/* Every heartbeat_ms a round begins; RUNNING keeps the tasks of older rounds in front. */
static void pump_heartbeat(struct runner *r, int64_t now_ms)
{
    if (now_ms >= r->beat_at_ms) {
        r->beat_at_ms = now_ms + r->config->heartbeat_ms;
        r->beat_round++;
    }
    struct runner_task *t = TAILQ_FIRST(&r->phases[TASK_RUNNING]);
    if (r->heartbeat.call || !t || t->beat_round == r->beat_round || !worker_client_can_call(r->client))
        return;
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    struct runner_batch *b = &r->heartbeat;
    for (b->count = 0; b->count < WORKER_BATCH_MAX; b->count++) {
        t = TAILQ_FIRST(&r->phases[TASK_RUNNING]);
        if (t->beat_round == r->beat_round)
            break;
        t->beat_round = r->beat_round;
        t->beating = true;
        runner_task_put(r, t, TASK_RUNNING); /* to the back */
        refs[b->count] = t->ref;
        b->tasks[b->count] = t;
    }
    b->call = worker_client_heartbeat(r->client, refs, b->count, heartbeat_answered, r);
}

/* ---- finish ---- */

/* Makes the next attempt smaller; false when nothing is left to leave out. */
static bool finish_shrink(struct runner *r)
{
    struct runner_task *first = r->finish.tasks[0];
    if (r->finish.count > 1)
        r->finish_bytes_max /= 2;
    else if (first->end == END_SUCCESS)
        first->end = END_RESULT_TOO_LARGE; /* its report is small and says why */
    else
        return false;
    return true;
}

static void finish_answered(void *self, const struct worker_answer *answer)
{
    struct runner *r = self;
    r->finish.call = NULL;
    bool shrunk = answer->http_status == 413 && finish_shrink(r);
    if (!shrunk)
        note_answer(r, answer);
    for (size_t i = 0; i < r->finish.count; i++) {
        struct runner_task *t = r->finish.tasks[i];
        const struct worker_result *result = result_of(answer, i, t);
        if (result && !result->ok && !str_is(result->code, "lease_lost"))
            log_line(LOG_WARN, "report_refused", "job_id", LOG_STR(t->job_id), "error_code",
                     LOG_STR(result->code), NULL);
        if (result || (refused_for_good(answer) && !shrunk))
            runner_task_gone(r, t);
        else
            runner_task_put(r, t, TASK_ENDED); /* not known: asked again; a stale token is harmless */
    }
}

static void pump_finish(struct runner *r)
{
    if (r->finish.call || TAILQ_EMPTY(&r->phases[TASK_ENDED]) || !worker_client_can_call(r->client))
        return;
    struct arena *a = arena_new(16 * 1024);
    struct worker_finish *reports = ARENA_ARRAY(a, struct worker_finish, WORKER_BATCH_MAX);
    struct runner_batch *b = &r->finish;
    struct strbuf result = {0};
    size_t bytes = 0;
    struct runner_task *t;
    for (b->count = 0; b->count < WORKER_BATCH_MAX && (t = TAILQ_FIRST(&r->phases[TASK_ENDED])); b->count++) {
        bool has_result = t->end == END_SUCCESS;
        bytes += has_result ? simulated_work_result_bytes_max(&t->definition) : 0;
        if (b->count && bytes > r->finish_bytes_max)
            break;
        strbuf_clear(&result);
        if (has_result)
            simulated_work_write_result(&t->definition, &result);
        reports[b->count] =
            runner_task_report(t, has_result ? arena_str(a, strbuf_str(&result)) : STR_ABSENT);
        runner_task_put(r, t, TASK_REPORTING);
        b->tasks[b->count] = t;
    }
    b->call = worker_client_finish(r->client, reports, b->count, finish_answered, r);
    strbuf_free(&result);
    arena_free(a);
}

void runner_pump(struct runner *r, int64_t now_ms)
{
    runner_report(r);
    pump_finish(r); /* first: reports free slots, and core's promises wait for them */
    pump_release(r);
    pump_start(r);
    pump_heartbeat(r, now_ms);
    pump_claims(r, now_ms);
}

static int64_t earlier(int64_t at_ms, int64_t other_ms, int64_t now_ms)
{
    return other_ms > now_ms && other_ms < at_ms ? other_ms : at_ms;
}

/* What could be sent now has been sent: only instants still to come count. */
int64_t runner_calls_next_at_ms(const struct runner *r, int64_t now_ms)
{
    const struct runner_task *running = TAILQ_FIRST(&r->phases[TASK_RUNNING]);
    int64_t ready_at_ms = worker_client_ready_at_ms(r->client);
    int64_t at_ms = INT64_MAX;
    if (running)
        at_ms = earlier(at_ms, r->beat_at_ms, now_ms);
    if (!r->draining && !TAILQ_EMPTY(&r->wanting) && r->claims_in_flight < RUNNER_CLAIMS_MAX) {
        at_ms = earlier(at_ms, r->claim_after_ms, now_ms);
        at_ms = earlier(at_ms, ready_at_ms, now_ms);
    }
    if (!TAILQ_EMPTY(&r->phases[TASK_ASSIGNED]) || !TAILQ_EMPTY(&r->phases[TASK_ENDED]) ||
        (running && running->beat_round != r->beat_round) || (r->wants_report && !r->report))
        at_ms = earlier(at_ms, ready_at_ms, now_ms);
    return at_ms;
}
