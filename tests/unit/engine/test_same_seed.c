/* Deciders are pure: what a stream of commands leaves in the store depends on the commands, the clock and the
 * seed of the ids alone. */
#include "base/hash.h"
#include "unit/engine/engine_rig.h"
#include "unit/jobs/deliver_calls.h"

#include "base/banned.h"

enum { OPS = 300, JOBS_MAX = 200 };

enum op {
    SUBMIT,
    SUBMIT_KEYED,
    DEFER,
    WORK,
    ABANDON,
    CANCEL,
    RETRY,
    DELIVER,
    START_RUN,
    STEP_WORK,
    SIGNAL,
    WAIT,
    OP_COUNT
};

struct recorded {
    enum op op;
    uint64_t pick;
};

/* A player's hands: what the stream has made so far. */
struct player {
    struct rig *rig;
    int64_t client;
    struct submit_item jobs[JOBS_MAX];
    size_t job_count, run_count;
};

static void record(struct recorded *list, uint64_t seed)
{
    for (size_t i = 0; i < OPS; i++) {
        uint64_t roll = hash_mix(seed + i);
        list[i] = (struct recorded){(enum op)(roll % OP_COUNT), roll >> 8};
    }
}

static void submit(struct player *p, struct str key)
{
    struct submit_item item = rig_item();
    item.max_retries = 2;
    item.has_max_retries = true;
    item.idem_key = key;
    item = rig_submit(p->rig, p->client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    if (p->job_count < JOBS_MAX)
        p->jobs[p->job_count++] = item;
}

/* Jobs and steps wait in one queue. */
static void work(struct player *p, uint64_t pick, bool ends)
{
    struct claim_command *c = rig_post_claim(p->rig, "worker", (uint32_t)(1 + pick % 3), 0);
    rig_step(p->rig);
    for (uint32_t i = 0; i < c->task_count; i++) {
        rig_post_work(p->rig, &start_command_type, &c->tasks[i], true);
        rig_step(p->rig);
        if (ends)
            rig_post_work(p->rig, &finish_command_type, &c->tasks[i], pick % 4 != 0);
    }
    rig_step(p->rig);
}

static void deliver(struct player *p, uint64_t pick)
{
    const struct claim_command *c = claim_some(p->rig, 4);
    for (uint32_t i = 0; i < c->task_count; i++)
        (void)answer(p->rig, &c->tasks[i], (pick >> i) % 3 ? 200 : 500);
}

static const char *run_name(struct player *p, uint64_t number)
{
    return arena_printf(p->rig->arena, "run-%llu", (unsigned long long)number).ptr;
}

static void signal_one(struct player *p, uint64_t pick)
{
    static const enum signal_type types[] = {SIGNAL_PAUSE, SIGNAL_RESUME, SIGNAL_CANCEL};
    if (p->run_count)
        (void)signal_run(p->rig, run_name(p, pick % p->run_count), types[pick % LENGTH_OF(types)], "{}");
}

static void play_one(struct player *p, const struct recorded *x)
{
    const struct submit_item *job = p->job_count ? &p->jobs[x->pick % p->job_count] : NULL;
    switch (x->op) {
    case SUBMIT:
        submit(p, STR_ABSENT);
        return;
    case SUBMIT_KEYED:
        submit(p, arena_printf(p->rig->arena, "key-%llu", (unsigned long long)(x->pick % 8)));
        return;
    case DEFER:
        (void)rig_submit_deferred(p->rig, p->client, 1 + (int64_t)(x->pick % 9000));
        return;
    case WORK:
    case STEP_WORK:
        work(p, x->pick, true);
        return;
    case ABANDON:
        work(p, x->pick, false);
        return;
    case CANCEL:
        if (job)
            (void)rig_cancel(p->rig, p->client, job);
        return;
    case RETRY:
        if (job)
            (void)rig_retry(p->rig, p->client, job);
        return;
    case DELIVER:
        deliver(p, x->pick);
        return;
    case START_RUN:
        start_run(p->rig, run_name(p, p->run_count++), "pair");
        return;
    case SIGNAL:
        signal_one(p, x->pick);
        return;
    case WAIT:
    case OP_COUNT:
        rig_pass(p->rig, (int64_t)(x->pick % 40000));
        rig_step(p->rig);
        return;
    }
}

static uint64_t play(struct rig *r, const struct recorded *list, uint64_t seed)
{
    struct player *p = ARENA_NEW(r->arena, struct player);
    p->rig = r;
    r->seed = seed;
    p->client = rig_new_client(r, NULL);
    (void)new_webhook(r, p->client, "http://hooks.test/", "job.failed,job.queued");
    put_plan(r, "{\"planId\":\"pair\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\",\"maxAttempts\":2},"
                "{\"stepId\":\"b\",\"dependsOn\":[\"a\"]}]}");
    for (size_t i = 0; i < OPS; i++)
        play_one(p, &list[i]);
    assert_true(p->job_count > 20 && p->run_count > 5);
    return rig_digest(r);
}

static uint64_t play_anew(const struct recorded *list, uint64_t seed)
{
    void *r = NULL;
    assert_int_equal(rig_up(&r), 0);
    uint64_t digest = play(r, list, seed);
    assert_int_equal(rig_down(&r), 0);
    return digest;
}

RIG_TEST_UNSHARED(one_stream_of_commands_with_one_seed_leaves_the_same_bytes_in_the_store, r,
                  "a node's ids and log numbers depend on who has had the store before")
{
    struct recorded list[OPS];
    record(list, 7);
    uint64_t digest = play(r, list, 11); /* before the others: one rig at a time */
    assert_true(play_anew(list, 11) == digest);
    assert_true(play_anew(list, 12) != digest);
    list[0].op = list[0].op == SUBMIT ? WAIT : SUBMIT;
    assert_true(play_anew(list, 11) != digest);
}

int main(void)
{
    return rig_run_all();
}
