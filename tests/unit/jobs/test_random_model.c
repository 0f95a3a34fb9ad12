/* Thousands of random commands, time steps, restarts and failing commits against a naive model of what each
 * job must be; the whole store is checked again and again. On both stores. */
#include "unit/kernel/rig.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/time_text.h"

#include "base/banned.h"

enum { JOBS_MAX = 4000, CLIENTS = 3, STEPS = 3000, STEPS_SHORT = 400, BATCH_MAX = 6, LEASES_MAX = 1000 };
enum { CHECK_EVERY = 300 };

/* What the model knows of a job: only what commands and time may do to it, no store and no queue. */
struct model_job {
    struct submit_item job;
    int64_t client;
    enum job_state state;
    int64_t attempt, due_ms, lease_ms, limit_ms, finished_ms;
    int64_t token;       /* of the newest lease */
    int64_t ended_token; /* of the lease that was finished last ... */
    bool ended_well;     /* ... and how */
    bool is_auto, purged;
};

struct model {
    struct rig *rig;
    uint64_t random;
    struct model_job *jobs;
    size_t count;
    struct claimed_task leases[LEASES_MAX]; /* the newest leases given, stale ones too */
    size_t lease_count;
    int64_t clients[CLIENTS];
    int64_t steady_offset_ms;
    size_t failed, moves[JOB_STATE_COUNT];
    size_t retried; /* by themselves */
    size_t cancels; /* of the batch that is checked */
};

static uint64_t draw(struct model *m, uint64_t below)
{
    m->random = hash_mix(m->random + UINT64_C(0x9E3779B97F4A7C15));
    return m->random % below;
}

static int64_t wall_ms(const struct model *m)
{
    return m->rig->wall_us / 1000;
}
static int64_t steady_ms(const struct model *m)
{
    return m->rig->mono_ms + m->steady_offset_ms;
}

static struct model_job *job_of(struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->jobs[i].job.id == id)
            return &m->jobs[i];
    return NULL;
}

static void move(struct model *m, struct model_job *j, enum job_state to)
{
    if (job_state_is_final(to))
        j->finished_ms = wall_ms(m);
    j->state = to;
    m->moves[to]++;
}

/* An attempt failed: the end, or at once the next one. */
static void fail_attempt(struct model *m, struct model_job *j, bool retryable)
{
    move(m, j, JOB_FAILED);
    if (!j->is_auto || !retryable || j->attempt > j->job.max_retries)
        return;
    j->attempt++;
    j->due_ms = wall_ms(m) + job_backoff_ms(&m->rig->settings, j->job.id, j->attempt);
    m->retried++;
    move(m, j, JOB_QUEUED);
}

/* What time alone does, at the start of every batch that commits. */
static void let_timers_fire(struct model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct model_job *j = &m->jobs[i];
        if (j->state == JOB_ASSIGNED && j->lease_ms <= steady_ms(m)) {
            j->due_ms = 0;
            move(m, j, JOB_QUEUED);
        }
        if (j->state == JOB_RUNNING && (j->lease_ms <= steady_ms(m) || j->limit_ms <= steady_ms(m)))
            fail_attempt(m, j, true);
        if (j->state == JOB_CREATED && j->due_ms <= wall_ms(m))
            move(m, j, JOB_QUEUED);
    }
}

/* --- commands: posted together, checked in order once their batch is through --------------------- */

enum step_kind { STEP_SUBMIT, STEP_CLAIM, STEP_WORK, STEP_CANCEL, STEP_RETRY };
enum verb { START, BEAT, FINISH, FAIL, BREAK, RELEASE, VERBS }; /* BREAK: not retryable */

struct step {
    enum step_kind kind;
    struct submit_command *submit;
    struct claim_command *claim;
    struct worker_command *work;
    struct job_command *job;
    enum verb verb;
    int64_t due_ms;       /* submit: 0 is now */
    struct model_job *of; /* cancel, retry */
};

static void post_submit(struct model *m, struct step *step)
{
    struct rig *r = m->rig;
    struct submit_item item = rig_item();
    item.has_priority = item.has_max_retries = item.has_max_runtime = true;
    item.priority = (int64_t)draw(m, 10);
    item.max_retries = (int64_t)draw(m, 4);
    item.max_runtime_ms = 1000 + (int64_t)draw(m, 60000);
    if (draw(m, 2))
        item.retry = STR("auto");
    if (draw(m, 2))
        item.idem_key = arena_printf(r->arena, "key-%llu", (unsigned long long)draw(m, 1000));
    if (draw(m, 4) == 0) {
        step->due_ms = wall_ms(m) + 1 + (int64_t)draw(m, 40000);
        item.type = STR("DEFERRED");
        item.execution_at = time_text_ms(step->due_ms, arena_alloc(r->arena, TIME_TEXT_MAX));
    }
    step->submit = rig_post_submit(r, m->clients[draw(m, CLIENTS)], &item, 1);
}

static struct model_job *user_of_key(struct model *m, int64_t client, struct str key)
{
    for (size_t i = 0; key.ptr && i < m->count; i++)
        if (!m->jobs[i].purged && m->jobs[i].client == client && str_equal(m->jobs[i].job.idem_key, key))
            return &m->jobs[i];
    return NULL;
}

static void check_submit(struct model *m, const struct step *step)
{
    const struct submit_item *item = &step->submit->items[0];
    const struct model_job *former = user_of_key(m, step->submit->client, item->idem_key);
    assert_int_equal(item->err.code, ERR_OK);
    assert_int_equal(item->replayed, former != NULL);
    if (former) {
        assert_int_equal(item->id, former->job.id);
        assert_int_equal(item->state, former->state);
        return;
    }
    struct model_job *j = &m->jobs[m->count++];
    *j = (struct model_job){.job = *item,
                            .client = step->submit->client,
                            .attempt = 1,
                            .due_ms = step->due_ms,
                            .is_auto = item->retry.ptr != NULL};
    move(m, j, step->due_ms ? JOB_CREATED : JOB_QUEUED);
    assert_int_equal(item->state, j->state);
}

static bool is_before(const struct model_job *a, const struct model_job *b)
{
    return a->job.priority != b->job.priority ? a->job.priority > b->job.priority : a->job.id < b->job.id;
}

static struct model_job *next_to_claim(struct model *m)
{
    struct model_job *best = NULL;
    for (size_t i = 0; i < m->count; i++) {
        struct model_job *j = &m->jobs[i];
        if (j->state == JOB_QUEUED && j->due_ms <= wall_ms(m) && (!best || is_before(j, best)))
            best = j;
    }
    return best;
}

static void check_claim(struct model *m, const struct step *step)
{
    const struct claim_command *c = step->claim;
    for (uint32_t i = 0; i < c->max; i++) {
        struct model_job *j = next_to_claim(m);
        /* A shared store brings as many as are asked for: of those the batch may cancel some first. */
        if (j && i == c->task_count && m->rig->shared && m->cancels)
            break;
        assert_int_equal(j != NULL, i < c->task_count);
        if (!j)
            break;
        assert_int_equal(c->tasks[i].id, j->job.id);
        assert_int_equal(c->tasks[i].attempt, j->attempt);
        assert_true(c->tasks[i].token > j->token);
        j->token = c->tasks[i].token;
        j->lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
        move(m, j, JOB_ASSIGNED);
        m->leases[m->lease_count++ % LEASES_MAX] = c->tasks[i];
    }
}

static bool post_work(struct model *m, struct step *step)
{
    static const struct command_type *const types[VERBS] = {&start_command_type,  &heartbeat_command_type,
                                                            &finish_command_type, &finish_command_type,
                                                            &finish_command_type, &release_command_type};
    static const enum verb weights[] = {START,  START, START, BEAT,  FINISH,
                                        FINISH, FAIL,  FAIL,  BREAK, RELEASE};
    if (!m->lease_count)
        return false;
    /* mostly recent leases, now and then an old one that must be refused */
    size_t back = (size_t)draw(m, draw(m, 5) ? 8 : LEASES_MAX), newest = m->lease_count - 1;
    const struct claimed_task *t = &m->leases[(back <= newest ? newest - back : 0) % LEASES_MAX];
    step->verb = weights[draw(m, LENGTH_OF(weights))];
    step->work = rig_post_work(m->rig, types[step->verb], t, step->verb == FINISH);
    if (step->verb == BREAK)
        step->work->items[0].outcome.retryable = false;
    return true;
}

static void work_moves(struct model *m, struct model_job *j, enum verb verb)
{
    int64_t lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
    switch (verb) {
    case START:
        if (j->state == JOB_ASSIGNED) {
            j->lease_ms = lease_ms;
            j->limit_ms = steady_ms(m) + j->job.max_runtime_ms;
            move(m, j, JOB_RUNNING);
        }
        break;
    case BEAT:
        if (j->state == JOB_RUNNING)
            j->lease_ms = lease_ms;
        break;
    case FINISH:
        if (j->state == JOB_RUNNING) {
            move(m, j, JOB_SUCCEEDED);
            j->ended_token = j->token;
            j->ended_well = true;
        }
        break;
    case FAIL:
    case BREAK:
        if (j->state == JOB_RUNNING) {
            fail_attempt(m, j, verb == FAIL);
            j->ended_token = j->token;
            j->ended_well = false;
        }
        break;
    case RELEASE:
        if (j->state == JOB_RUNNING)
            move(m, j, JOB_FAILED);
        j->due_ms = 0;
        move(m, j, JOB_QUEUED);
        break;
    case VERBS:
        break;
    }
}

/* The same finish came before; it is surely known while the job is as that one left it. */
static void check_finish_again(const struct model_job *j, const struct step *step)
{
    const struct worker_item *item = &step->work->items[0];
    bool same = (step->verb == FINISH || step->verb == FAIL || step->verb == BREAK) &&
                item->token == j->ended_token && (step->verb == FINISH) == j->ended_well;
    bool untouched = j->token == j->ended_token && j->state != JOB_CANCELED;
    if (same && untouched && !j->purged)
        assert_int_equal(item->code, ERR_OK);
    if (!same)
        assert_true(item->code == ERR_LEASE_LOST || item->cancel);
}

static void check_work(struct model *m, const struct step *step)
{
    const struct worker_item *item = &step->work->items[0];
    struct model_job *j = job_of(m, item->id);
    if (j->token == item->token && (j->state == JOB_ASSIGNED || j->state == JOB_RUNNING))
        work_moves(m, j, step->verb);
    else
        check_finish_again(j, step);
}

static bool post_job(struct model *m, struct step *step)
{
    if (!m->count)
        return false;
    size_t back = (size_t)draw(m, draw(m, 3) ? 40 : JOBS_MAX);
    step->of = &m->jobs[back < m->count ? m->count - 1 - back : 0];
    const struct command_type *type = step->kind == STEP_RETRY ? &retry_command_type : &cancel_command_type;
    step->job = rig_post_job(m->rig, type, step->of->client, &step->of->job);
    return true;
}

static void check_job(struct model *m, const struct step *step)
{
    struct model_job *j = step->of;
    const struct job_command *c = step->job;
    if (j->purged) {
        assert_int_equal(c->base.result, ERR_JOB_NOT_FOUND);
        return;
    }
    if (step->kind == STEP_CANCEL && !job_state_is_final(j->state))
        move(m, j, JOB_CANCELED);
    if (step->kind == STEP_RETRY && j->state == JOB_FAILED) {
        if (j->attempt > j->job.max_retries) {
            assert_int_equal(c->base.result, ERR_JOB_CONFLICT);
            return;
        }
        j->attempt++;
        j->due_ms = wall_ms(m) + job_backoff_ms(&m->rig->settings, j->job.id, j->attempt);
        move(m, j, JOB_QUEUED);
    }
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->state, j->state);
    assert_int_equal(c->attempt, j->attempt);
}

/* Posts one random command; false when there was nothing to do it to. */
static bool post_one(struct model *m, struct step *step)
{
    uint64_t what = draw(m, 100);
    *step = (struct step){.kind = what < 28   ? STEP_SUBMIT
                                  : what < 48 ? STEP_CLAIM
                                  : what < 87 ? STEP_WORK
                                  : what < 91 ? STEP_CANCEL
                                              : STEP_RETRY};
    switch (step->kind) {
    case STEP_SUBMIT:
        if (m->count + BATCH_MAX >= JOBS_MAX)
            return false;
        post_submit(m, step);
        return true;
    case STEP_CLAIM:
        step->claim = rig_post_claim(m->rig, draw(m, 2) ? "a" : "b", 1 + (uint32_t)draw(m, 3), 0);
        return true;
    case STEP_WORK:
        return post_work(m, step);
    case STEP_CANCEL:
    case STEP_RETRY:
        return post_job(m, step);
    }
    return false;
}

static void check_one(struct model *m, const struct step *step)
{
    switch (step->kind) {
    case STEP_SUBMIT:
        check_submit(m, step);
        return;
    case STEP_CLAIM:
        check_claim(m, step);
        return;
    case STEP_WORK:
        check_work(m, step);
        return;
    case STEP_CANCEL:
    case STEP_RETRY:
        check_job(m, step);
        return;
    }
}

/* Purging is not modelled: a job may be gone once it is old enough, and only then. */
static void notice_purged(struct model *m)
{
    struct job_view v;
    for (size_t i = 0; i < m->count; i++) {
        struct model_job *j = &m->jobs[i];
        if (j->purged || !job_state_is_final(j->state) || rig_find(m->rig, j->job.id, &v))
            continue;
        assert_true(j->finished_ms + m->rig->settings.jobs_retention_seconds * 1000 <= wall_ms(m));
        j->purged = true;
    }
}

/* One batch of up to BATCH_MAX commands. Every twelfth meets a store that refuses: then nothing has happened.
 * (When only housekeeping had something to write, commands that change nothing are answered all the same.) */
static void batch(struct model *m, bool purges)
{
    struct rig *r = m->rig;
    struct step steps[BATCH_MAX];
    size_t count = 0, want = draw(m, BATCH_MAX + 1);
    for (size_t i = 0; i < want; i++)
        count += post_one(m, &steps[count]);
    int failures = draw(m, 12) == 0 ? 2 : 0; /* housekeeping's commit and the commands' */
    r->failures = failures;
    assert_int_equal(rig_step(r), count);
    bool failed = r->failures < failures;
    r->failures = 0;
    if (failed) {
        m->failed++;
        rig_pass(r, 200); /* timers rest this long after a failure; the model has no such rule */
        return;
    }
    if (purges)
        notice_purged(m);
    let_timers_fire(m);
    m->cancels = 0;
    for (size_t i = 0; i < count; i++)
        m->cancels += steps[i].kind == STEP_CANCEL;
    for (size_t i = 0; i < count; i++)
        check_one(m, &steps[i]);
}

/* --- comparing --------------------------------------------------------------------------------- */

static void compare_all(struct model *m)
{
    notice_purged(m);
    for (size_t i = 0; i < m->count; i++) {
        const struct model_job *j = &m->jobs[i];
        if (j->purged)
            continue;
        struct job_view v = rig_view(m->rig, j->job.id);
        assert_int_equal(v.state, j->state);
        assert_int_equal(v.attempt, j->attempt);
        assert_int_equal(v.job.client, j->client);
    }
    rig_expect_sound(m->rig);
}

static void restart(struct model *m)
{
    rig_restart(m->rig, (int64_t)draw(m, 5000));
    m->steady_offset_ms = wall_ms(m) - m->rig->mono_ms;
    if (m->rig->shared)
        return; /* leases are stored, and other nodes go by them */
    for (size_t i = 0; i < m->count; i++) {
        struct model_job *j = &m->jobs[i];
        struct job_view v;
        if (j->purged || (j->state != JOB_ASSIGNED && j->state != JOB_RUNNING))
            continue;
        assert_true(rig_find(m->rig, j->job.id, &v));
        j->lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
        int64_t left = j->job.max_runtime_ms - (wall_ms(m) - v.started_ms);
        j->limit_ms = steady_ms(m) + (left > 0 ? left : 0);
    }
}

/* A database takes its time: the whole way only in make test-long. */
static int steps_of(const struct rig *r)
{
    const char *is_long = getenv("WEIR_TEST_LONG");
    return r->shared && !(is_long && str_is(str_of(is_long), "1")) ? STEPS_SHORT : STEPS;
}

static void run(struct rig *r, uint64_t seed, bool purges)
{
    struct model *m = must_alloc(sizeof *m);
    m->jobs = must_alloc(JOBS_MAX * sizeof *m->jobs);
    m->rig = r;
    m->random = seed;
    m->steady_offset_ms = wall_ms(m) - r->mono_ms;
    r->settings.jobs_retention_seconds = purges ? 60 : 86400;
    for (int i = 0; i < CLIENTS; i++)
        m->clients[i] = rig_new_client(r, NULL);
    int steps = steps_of(r);
    for (int step = 1; step <= steps; step++) {
        batch(m, purges);
        rig_pass(r, (int64_t)draw(m, draw(m, 50) ? 700 : 40000));
        if (draw(m, 400) == 0)
            restart(m);
        if (step % CHECK_EVERY == 0)
            compare_all(m);
    }
    compare_all(m);
    for (int s = JOB_CREATED; s < JOB_STATE_COUNT; s++)
        assert_true(m->moves[s] > (size_t)steps / 150); /* the walk went everywhere */
    assert_true(m->failed > (size_t)steps / 30);
    assert_true(m->retried > (size_t)steps / 150);
    free(m->jobs);
    free(m);
}

/* WEIR_SEED=N walks another way. */
static uint64_t seed(void)
{
    int64_t n = 1;
    const char *text = getenv("WEIR_SEED");
    return text && str_to_int(str_of(text), 0, INT64_MAX, &n) ? (uint64_t)n : 1;
}

/* [JOB-150] [JOB-151] [JOB-153] under random commands and failing commits */
RIG_TEST(test_random_commands_agree_with_a_naive_model, r)
{
    run(r, seed(), false);
}

RIG_TEST(test_random_commands_agree_with_a_naive_model_while_old_jobs_are_purged, r)
{
    run(r, seed() + 1000000, true);
}

int main(void)
{
    return rig_run_all();
}
