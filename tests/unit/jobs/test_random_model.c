/* Thousands of random commands, time steps, clock changes, restarts and failing commits against a naive model of
 * what each job must be; the whole store is checked again and again. On both stores. */
#include "unit/kernel/rig.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/time_text.h"

#include "base/banned.h"

enum { JOBS_MAX = 4000, CLIENTS = 3, STEPS = 6000, LEASES_MAX = 4000, CHECK_EVERY = 500 };

/* What the model knows of a job: only what commands and time may do to it, no store and no queue. */
struct model_job {
    struct submit_item job;
    int64_t client;
    enum job_state state;
    int64_t attempt, due_ms, lease_ms, limit_ms, finished_ms;
    int64_t token; /* of the newest lease */
    bool purged;
};

struct model {
    struct rig *rig;
    uint64_t random;
    struct model_job *jobs;
    size_t count;
    struct claimed_task leases[LEASES_MAX]; /* every lease ever given, stale ones too */
    size_t lease_count;
    int64_t clients[CLIENTS];
    int64_t steady_offset_ms;
    size_t failed, moves[JOB_STATE_COUNT];
};

static uint64_t draw(struct model *m, uint64_t below)
{
    m->random = hash_mix(m->random + UINT64_C(0x9E3779B97F4A7C15));
    return m->random % below;
}

static int64_t wall_ms(const struct model *m) { return m->rig->wall_us / 1000; }
static int64_t steady_ms(const struct model *m) { return m->rig->mono_ms + m->steady_offset_ms; }

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
            move(m, j, JOB_FAILED);
        if (j->state == JOB_CREATED && j->due_ms <= wall_ms(m))
            move(m, j, JOB_QUEUED);
    }
}

/* Runs one batch with this command in it; false when a commit failed and nothing happened. (When only
 * housekeeping had something to write, the command was answered, but it changed nothing and timers rest.) */
static bool batch(struct model *m, const struct command *c)
{
    struct rig *r = m->rig;
    int failures = draw(m, 12) == 0 ? 2 : 0; /* housekeeping's batch and the commands' */
    r->failures = failures;
    rig_step(r);
    bool failed = r->failures < failures;
    r->failures = 0;
    assert_true(rig_is_done(c));
    assert_true(failed || c->result != ERR_STORAGE_DB_ERROR);
    if (!failed) {
        let_timers_fire(m);
        return true;
    }
    m->failed++;
    rig_pass(r, 200); /* timers rest this long after a failure; the model has no such rule */
    return false;
}

/* --- commands ---------------------------------------------------------------------------------- */

static void submit(struct model *m)
{
    struct rig *r = m->rig;
    if (m->count == JOBS_MAX)
        return;
    int64_t client = m->clients[draw(m, CLIENTS)];
    struct submit_item item = rig_item();
    int64_t after = (int64_t)draw(m, 40000);
    bool deferred = draw(m, 4) == 0;
    item.has_priority = item.has_max_retries = item.has_max_runtime = true;
    item.priority = (int64_t)draw(m, 10);
    item.max_retries = (int64_t)draw(m, 4);
    item.max_runtime_ms = 1000 + (int64_t)draw(m, 60000);
    if (draw(m, 2))
        item.idem_key = arena_printf(r->arena, "key-%llu", (unsigned long long)draw(m, 2000));
    size_t known = m->count;
    for (size_t i = 0; item.idem_key.ptr && i < m->count; i++)
        if (!m->jobs[i].purged && m->jobs[i].client == client && str_equal(m->jobs[i].job.idem_key, item.idem_key))
            known = i;
    struct submit_command *c = rig_post_submit(r, client, &item, 1);
    if (deferred) {
        char *text = arena_alloc(r->arena, TIME_TEXT_MAX);
        c->items[0].type = STR("DEFERRED");
        c->items[0].execution_at = time_text_us(r->wall_us + after * 1000 + 1000, text);
    }
    if (!batch(m, &c->base))
        return;
    assert_int_equal(c->items[0].err.code, ERR_OK);
    if (known < m->count) {
        assert_true(c->items[0].replayed);
        assert_int_equal(c->items[0].id, m->jobs[known].job.id);
        assert_int_equal(c->items[0].state, m->jobs[known].state);
        return;
    }
    assert_false(c->items[0].replayed);
    struct model_job *j = &m->jobs[m->count++];
    *j = (struct model_job){.job = c->items[0], .client = client, .attempt = 1};
    move(m, j, deferred ? JOB_CREATED : JOB_QUEUED);
    j->due_ms = deferred ? wall_ms(m) + after + 1 : 0;
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
        if (!j->purged && j->state == JOB_QUEUED && j->due_ms <= wall_ms(m) && (!best || is_before(j, best)))
            best = j;
    }
    return best;
}

static void claim(struct model *m)
{
    uint32_t max = 1 + (uint32_t)draw(m, 4);
    if (m->lease_count + max > LEASES_MAX)
        return;
    struct claim_command *c = rig_post_claim(m->rig, draw(m, 2) ? "a" : "b", max, 0);
    if (!batch(m, &c->base))
        return;
    for (uint32_t i = 0; i < max; i++) {
        struct model_job *j = next_to_claim(m);
        assert_int_equal(j != NULL, i < c->task_count);
        if (!j)
            break;
        assert_int_equal(c->tasks[i].id, j->job.id);
        assert_int_equal(c->tasks[i].attempt, j->attempt);
        assert_true(c->tasks[i].token > j->token);
        j->token = c->tasks[i].token;
        j->lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
        move(m, j, JOB_ASSIGNED);
        m->leases[m->lease_count++] = c->tasks[i];
    }
}

enum verb { START, BEAT, FINISH, FAIL, RELEASE, VERBS };

static void apply(struct model *m, struct model_job *j, enum verb verb)
{
    switch (verb) {
    case START:
        if (j->state == JOB_ASSIGNED) {
            j->lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
            j->limit_ms = steady_ms(m) + j->job.max_runtime_ms;
            move(m, j, JOB_RUNNING);
        }
        break;
    case BEAT:
        if (j->state == JOB_RUNNING)
            j->lease_ms = steady_ms(m) + m->rig->settings.queue_lease_ms;
        break;
    case FINISH:
    case FAIL:
        if (j->state == JOB_RUNNING)
            move(m, j, verb == FINISH ? JOB_SUCCEEDED : JOB_FAILED);
        break;
    case RELEASE:
        if (j->state == JOB_ASSIGNED) {
            j->due_ms = 0;
            move(m, j, JOB_QUEUED);
        }
        break;
    case VERBS:
        break;
    }
}

static void work(struct model *m)
{
    static const struct command_type *const types[VERBS] = {&start_command_type, &heartbeat_command_type,
                                                            &finish_command_type, &finish_command_type,
                                                            &release_command_type};
    if (!m->lease_count)
        return;
    /* mostly recent leases, now and then an old one that must be refused */
    size_t back = (size_t)draw(m, draw(m, 5) ? 8 : 4000);
    const struct claimed_task *t = &m->leases[back < m->lease_count ? m->lease_count - 1 - back : 0];
    static const enum verb weights[] = {START, START, START, BEAT, FINISH, FINISH, FAIL, FAIL, RELEASE};
    enum verb verb = weights[draw(m, LENGTH_OF(weights))];
    struct worker_command *c = rig_post_work(m->rig, types[verb], t, verb == FINISH);
    if (!batch(m, &c->base))
        return;
    struct model_job *j = job_of(m, t->id);
    bool held = !j->purged && j->token == t->token && (j->state == JOB_ASSIGNED || j->state == JOB_RUNNING);
    if (held)
        apply(m, j, verb);
    else
        assert_true(c->items[0].code == ERR_LEASE_LOST || c->items[0].cancel);
}

static void cancel_or_retry(struct model *m, bool retry)
{
    if (!m->count)
        return;
    size_t back = (size_t)draw(m, draw(m, 3) ? 40 : JOBS_MAX);
    struct model_job *j = &m->jobs[back < m->count ? m->count - 1 - back : 0];
    struct job_command *c = rig_post_job(m->rig, retry ? &retry_command_type : &cancel_command_type, j->client, &j->job);
    if (!batch(m, &c->base))
        return;
    if (j->purged) {
        assert_int_equal(c->base.result, ERR_JOB_NOT_FOUND);
        return;
    }
    if (!retry && !job_state_is_final(j->state))
        move(m, j, JOB_CANCELED);
    if (retry && j->state == JOB_FAILED) {
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

static void idle(struct model *m)
{
    rig_pass(m->rig, (int64_t)draw(m, draw(m, 10) ? 3000 : 40000));
    struct worker_command *nothing = ARENA_NEW(m->rig->arena, struct worker_command);
    rig_post(m->rig, &nothing->base, &heartbeat_command_type);
    batch(m, &nothing->base);
}

/* --- comparing --------------------------------------------------------------------------------- */

/* Purging is not modelled: a job may be gone once it is old enough, and only then. */
static void compare_job(struct model *m, struct model_job *j)
{
    struct job_view v;
    if (j->purged)
        return;
    if (!rig_find(m->rig, j->job.id, &v)) {
        assert_true(job_state_is_final(j->state));
        assert_true(j->finished_ms + m->rig->settings.jobs_retention_seconds * 1000 <= wall_ms(m));
        j->purged = true;
        return;
    }
    assert_int_equal(v.state, j->state);
    assert_int_equal(v.attempt, j->attempt);
    assert_int_equal(v.job.client, j->client);
}

/* The purge works beside the commands, so the model looks what is gone before it relies on it. */
static void notice_purged(struct model *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (!m->jobs[i].purged && job_state_is_final(m->jobs[i].state))
            compare_job(m, &m->jobs[i]);
}

static void compare_all(struct model *m)
{
    for (size_t i = 0; i < m->count; i++)
        compare_job(m, &m->jobs[i]);
    rig_expect_sound(m->rig);
}

static void restart(struct model *m)
{
    rig_restart(m->rig, (int64_t)draw(m, 5000));
    m->steady_offset_ms = wall_ms(m) - m->rig->mono_ms;
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
    for (int step = 1; step <= STEPS; step++) {
        if (purges)
            notice_purged(m);
        uint64_t what = draw(m, 100);
        if (what < 25)
            submit(m);
        else if (what < 45)
            claim(m);
        else if (what < 80)
            work(m);
        else if (what < 84)
            cancel_or_retry(m, false);
        else if (what < 92)
            cancel_or_retry(m, true);
        else
            idle(m);
        if (draw(m, 400) == 0)
            restart(m);
        if (step % CHECK_EVERY == 0)
            compare_all(m);
    }
    compare_all(m);
    for (int s = JOB_CREATED; s < JOB_STATE_COUNT; s++)
        assert_true(m->moves[s] > 20); /* the walk went everywhere */
    assert_true(m->failed > 100);
    free(m->jobs);
    free(m);
}

/* [JOB-150] [JOB-151] [JOB-153] under random commands and failing commits */
static void test_random_commands_agree_with_a_naive_model(void **state) { run(*state, 1, false); }

static void test_random_commands_agree_with_a_naive_model_while_old_jobs_are_purged(void **state)
{
    run(*state, 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_random_commands_agree_with_a_naive_model),
        RIG_TEST(test_random_commands_agree_with_a_naive_model_while_old_jobs_are_purged),
    };
    return RIG_RUN_BOTH(tests);
}
