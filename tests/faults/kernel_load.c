/* tests/faults/kernel_load.c - commands from a seed, and the comparison of answers with the store.
 */
#include "faults/kernel_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/time_text.h"
#include "unit/kernel/task_owners.h"
#include "unit/kernel/timer_kinds.h"
#include "faults/sim_image.h"
#include "jobs/client_commands.h"
#include "jobs/job_commands.h"
#include "jobs/purge.h"
#include "jobs/deliver.h"
#include "jobs/webhook_fingerprint.h"
#include "kernel/worker_commands.h"
#include "store/job_view.h"
#include "store/verify.h"
#include "base/banned.h"

enum {
    KNOWN_JOBS_MAX = 8192,
    YOUNG_JOBS = 120, /* commands look at these: older ones are mostly finished */
    ITEMS_MAX = 12,
    CLAIMS_MAX = 10,
    PICKS_MAX = 4,
    SENDS_MAX = 48,
    TEXT_BYTES = 400,
    RETENTION_SECONDS = 60,
};
static const int64_t START_MS = INT64_C(1700000000000);

struct known_job {
    int64_t id;
    uint64_t low, key;
};

/* The last word about a job in this batch. */
struct told {
    int64_t id;
    enum job_state state;
};

struct hands {
    int64_t wall_us, mono_ms;
};

struct kernel_load {
    struct store *store;
    struct kernel *kernel;
    struct reader *reader;
    struct settings settings;
    struct clock clock;
    struct hands hands;
    struct purge purge;
    uint64_t seed, keys_used;
    unsigned done, posted;
    struct kernel_load_stats stats;
    void (*committed)(void *arg);
    void (*fatal)(void *arg);
    void *watch_arg;
    struct err fatal_err;
    int64_t client;
    struct uuid client_id;
    struct known_job *jobs;
    size_t job_count;
    uint64_t refused_key; /* of a submit that was refused: must be free again */
    int64_t webhook;
    uint64_t webhook_low;
    bool webhook_is_deleted;

    struct create_client_command create;
    struct submit_command submit;
    struct submit_item items[ITEMS_MAX];
    uint64_t item_keys[ITEMS_MAX];
    char texts[ITEMS_MAX][3][TEXT_BYTES];
    struct claim_command claim;
    struct claimed_task claimed[CLAIMS_MAX];
    struct worker_command start, finish, release;
    struct worker_item starts[YOUNG_JOBS], finishes[YOUNG_JOBS], releases[YOUNG_JOBS];
    struct job_command cancels[PICKS_MAX], retries[PICKS_MAX];
    size_t cancel_count, retry_count;
    struct key_command key;
    struct create_webhook_command hook;
    struct delete_webhook_command unhook;
    bool key_posted, hook_posted, unhook_posted;
    /* the gateway's side: streams it holds are started in one step and answered in a later one */
    struct claim_command send_claim;
    struct claimed_task send_claimed[SENDS_MAX];
    int64_t streams[SENDS_MAX];
    size_t stream_count;
    struct worker_command send_start, send_finish;
    struct worker_item send_starts[SENDS_MAX], send_finishes[SENDS_MAX];
    struct told told[ITEMS_MAX + CLAIMS_MAX + 3 * YOUNG_JOBS + 2 * PICKS_MAX];
    size_t told_count;
};

static int64_t wall_us(void *self)
{
    return ((struct hands *)self)->wall_us;
}

static int64_t mono_ms(void *self)
{
    return ((struct hands *)self)->mono_ms;
}

static void on_fatal(void *self, const struct err *err)
{
    struct kernel_load *l = self;
    l->fatal_err = *err;
    if (l->fatal)
        l->fatal(l->watch_arg);
}

static void on_committed(void *self, const struct unit *u)
{
    const struct kernel_load *l = self;
    (void)u;
    if (l->committed && l->fatal_err.code == ERR_OK)
        l->committed(l->watch_arg);
}

struct kernel_load *kernel_load_new(struct store *s, uint64_t seed)
{
    struct kernel_load *l = must_alloc(sizeof *l);
    struct err err;
    l->store = s;
    l->seed = seed;
    l->jobs = must_alloc(KNOWN_JOBS_MAX * sizeof *l->jobs);
    settings_init(&l->settings);
    l->settings.jobs_retention_seconds = RETENTION_SECONDS;
    l->settings.jobs_retry_base_ms = 200;
    int64_t last_ms = uuid_v7_ms(s->last_id); /* a restart comes later than what is stored */
    if (last_ms < START_MS)
        last_ms = START_MS;
    l->hands = (struct hands){.wall_us = last_ms * 1000, .mono_ms = 5000};
    l->clock = (struct clock){wall_us, mono_ms, &l->hands};
    struct kernel_config config = {.owners = task_owners,
                                   .owner_count = LENGTH_OF(task_owners),
                                   .timer_kinds = timer_kinds,
                                   .timer_kind_count = LENGTH_OF(timer_kinds),
                                   .store = s,
                                   .settings = &l->settings,
                                   .clock = &l->clock,
                                   .watch = {.committed = on_committed, .fatal = on_fatal, .self = l},
                                   .housekeep = purge_housekeep,
                                   .housekeep_self = &l->purge};
    l->kernel = kernel_new(&config);
    MUST(s->ops->reader_open(s, &l->reader, &err) == ERR_OK);
    return l;
}

void kernel_load_free(struct kernel_load *l)
{
    l->reader->ops->reader_close(l->reader);
    kernel_free(l->kernel);
    settings_free(&l->settings);
    free(l->jobs);
    free(l);
}

void kernel_load_watch(struct kernel_load *l, void (*committed)(void *arg), void (*fatal)(void *arg),
                       void *arg)
{
    l->committed = committed;
    l->fatal = fatal;
    l->watch_arg = arg;
}

const struct kernel_load_stats *kernel_load_stats(const struct kernel_load *l)
{
    return &l->stats;
}

/* --- commands ----------------------------------------------------------------------------------
 */

static uint64_t roll(struct kernel_load *l, uint64_t sides)
{
    return sim_next(&l->seed) % sides;
}

/* Every command's `done` finds its load through this; the tests use one load at a time. */
static struct kernel_load *stepping;

static void on_done(struct command *c)
{
    (void)c;
    stepping->done++;
}

static void post(struct kernel_load *l, struct command *c, const struct command_type *type)
{
    c->type = type;
    c->done = on_done;
    c->received_us = l->hands.wall_us;
    l->posted++;
    MUST(kernel_post(l->kernel, c));
}

static const struct known_job *pick(struct kernel_load *l)
{
    size_t window = l->job_count < YOUNG_JOBS ? l->job_count : YOUNG_JOBS;
    return &l->jobs[l->job_count - 1 - roll(l, window)];
}

static struct str text_of(char *out, int len)
{
    return (struct str){out, (size_t)len};
}

/* A key decides the whole item, so that the same key asks for the same again. */
static void fill_item(struct kernel_load *l, size_t i, uint64_t key)
{
    static const struct str queues[] = {{"default", 7}, {"reports", 7}};
    uint64_t dice = key * 7 + 3;
    struct submit_item *item = &l->items[i];
    char *key_text = l->texts[i][0], *payload = l->texts[i][1];
    *item = (struct submit_item){.type = STR("EXECUTE"), .work_kind = STR("SUCCESS_FAST")};
    item->idem_key = text_of(key_text, snprintf(key_text, TEXT_BYTES, "key-%llu", (unsigned long long)key));
    item->payload = text_of(payload, snprintf(payload, TEXT_BYTES, "{\"n\":\"%0*llu\"}",
                                              (int)(1 + sim_next(&dice) % 300), (unsigned long long)key));
    item->queue = queues[sim_next(&dice) % LENGTH_OF(queues)];
    item->has_priority = true;
    item->priority = (int64_t)(sim_next(&dice) % 10);
    memcpy(item->fingerprint, &key, sizeof key);
    if (sim_next(&dice) % 8 == 0) {
        item->type = STR("DEFERRED");
        item->execution_at =
            time_text_ms(l->hands.wall_us / 1000 + 500 + (int64_t)roll(l, 4000), l->texts[i][2]);
    }
    l->item_keys[i] = key;
}

static void post_submit(struct kernel_load *l)
{
    l->submit = (struct submit_command){.client = l->client, .items = l->items};
    size_t count = 2 + roll(l, ITEMS_MAX - 2);
    for (size_t i = 0; i < count; i++)
        fill_item(l, i, ++l->keys_used);
    if (l->refused_key != 0)
        fill_item(l, 0, l->refused_key);
    else if (l->job_count > 0 && roll(l, 2) == 0)
        fill_item(l, 0, pick(l)->key); /* a client that asks again */
    l->submit.item_count = count;
    post(l, &l->submit.base, &submit_command_type);
}

static void post_claim(struct kernel_load *l)
{
    static const struct str queues[] = {{"default", 7}, {"reports", 7}};
    l->claim = (struct claim_command){.worker_id = STR("worker-1"),
                                      .queues = queues,
                                      .queue_count = LENGTH_OF(queues),
                                      .max = (uint32_t)(1 + roll(l, CLAIMS_MAX)),
                                      .tasks = l->claimed};
    post(l, &l->claim.base, &claim_command_type);
}

static void add_item(struct worker_command *c, const struct task *t)
{
    c->items[c->item_count++] =
        (struct worker_item){.id = t->row.id, .token = t->row.token, .low = (uint64_t)t->row.low};
}

static void add_finish(struct kernel_load *l, const struct task *t)
{
    add_item(&l->finish, t);
    struct task_outcome *o = &l->finish.items[l->finish.item_count - 1].outcome;
    o->success = roll(l, 3) != 0;
    if (o->success)
        o->result = STR("{\"rows\":12}");
    else
        *o = (struct task_outcome){
            .error_code = STR("broken"), .error_message = STR("it did not work"), .retryable = true};
}

static void post_work(struct kernel_load *l)
{
    l->start = (struct worker_command){.items = l->starts};
    l->finish = (struct worker_command){.items = l->finishes};
    l->release = (struct worker_command){.items = l->releases};
    size_t window = l->job_count < YOUNG_JOBS ? l->job_count : YOUNG_JOBS;
    for (size_t i = 0; i < window; i++) {
        const struct task *t = live_find(l->store->live, l->jobs[l->job_count - 1 - i].id);
        if (!t || roll(l, 2) == 0)
            continue;
        if (t->phase == TASK_RUNNING)
            add_finish(l, t);
        else if (t->phase == TASK_LEASED)
            add_item(roll(l, 8) == 0 ? &l->release : &l->start, t);
    }
    post(l, &l->start.base, &start_command_type);
    post(l, &l->finish.base, &finish_command_type);
    post(l, &l->release.base, &release_command_type);
}

static size_t post_job_commands(struct kernel_load *l, struct job_command *out,
                                const struct command_type *type)
{
    size_t count = l->job_count > 0 ? roll(l, PICKS_MAX + 1) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct known_job *j = pick(l);
        out[i] = (struct job_command){.client = l->client, .id = j->id, .low = j->low};
        post(l, &out[i].base, type);
    }
    return count;
}

static void post_keys_and_webhooks(struct kernel_load *l)
{
    l->key_posted = roll(l, 6) == 0;
    l->unhook_posted = l->webhook != 0 && !l->webhook_is_deleted && roll(l, 4) == 0;
    l->hook_posted = !l->unhook_posted && roll(l, 6) == 0;
    if (l->key_posted) {
        l->key = (struct key_command){.action = KEY_CREATE,
                                      .who = {.kind = PRINCIPAL_OPERATOR},
                                      .client_id = l->client_id,
                                      .rotate = true};
        memcpy(l->key.new_hash, &l->seed, sizeof l->seed);
        post(l, &l->key.base, &key_command_type);
    }
    if (l->hook_posted) {
        l->hook = (struct create_webhook_command){.client = l->client, .events = STR("job.failed")};
        char *url = l->texts[ITEMS_MAX - 1][2];
        l->hook.url = text_of(
            url, snprintf(url, TEXT_BYTES, "https://example.net/%llu", (unsigned long long)l->stats.steps));
        webhook_fingerprint(l->hook.url, l->hook.events, l->hook.fingerprint);
        post(l, &l->hook.base, &create_webhook_command_type);
    }
    if (l->unhook_posted) {
        l->unhook =
            (struct delete_webhook_command){.client = l->client, .id = l->webhook, .low = l->webhook_low};
        post(l, &l->unhook.base, &delete_webhook_command_type);
    }
}

static void post_deliveries(struct kernel_load *l)
{
    static char names[DELIVERY_SLOTS][DELIVERY_QUEUE_MAX];
    static struct str queues[DELIVERY_SLOTS];
    for (int i = 0; i < DELIVERY_SLOTS; i++)
        queues[i] = text_of(names[i], snprintf(names[i], sizeof names[i], "~deliver.%d", i));
    l->send_start = (struct worker_command){.items = l->send_starts};
    l->send_finish = (struct worker_command){.items = l->send_finishes};
    for (size_t i = 0; i < l->stream_count; i++) {
        const struct task *t = live_find(l->store->live, l->streams[i]);
        if (t && t->phase == TASK_LEASED)
            add_item(&l->send_start, t);
        if (!t || t->phase != TASK_RUNNING || roll(l, 3) == 0)
            continue;
        add_item(&l->send_finish, t);
        bool success = roll(l, 4) != 0;
        l->send_finish.items[l->send_finish.item_count - 1].outcome =
            (struct task_outcome){.success = success, .status = success ? 200 : 500, .retryable = true};
    }
    l->send_claim = (struct claim_command){.worker_id = STR("gateway-1"),
                                           .queues = queues,
                                           .queue_count = DELIVERY_SLOTS,
                                           .max = SENDS_MAX,
                                           .tasks = l->send_claimed};
    post(l, &l->send_start.base, &start_command_type);
    post(l, &l->send_finish.base, &finish_command_type);
    post(l, &l->send_claim.base, &claim_command_type);
}

/* Those it holds, and those it got now. */
static void hear_deliveries(struct kernel_load *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->stream_count; i++) {
        const struct task *t = live_find(l->store->live, l->streams[i]);
        if (t && (t->phase == TASK_LEASED || t->phase == TASK_RUNNING))
            l->streams[kept++] = l->streams[i];
    }
    for (uint32_t i = 0; i < l->send_claim.task_count && kept < SENDS_MAX; i++)
        l->streams[kept++] = l->send_claimed[i].id;
    l->stream_count = kept;
}

static void post_all(struct kernel_load *l)
{
    l->cancel_count = l->retry_count = 0;
    l->key_posted = l->hook_posted = l->unhook_posted = false;
    if (l->client == 0) {
        l->create = (struct create_client_command){.replayed = false};
        memcpy(l->create.client_id.bytes, &l->seed, sizeof l->seed);
        l->client_id = l->create.client_id;
        post(l, &l->create.base, &create_client_command_type);
        return;
    }
    post_submit(l);
    post_claim(l);
    post_work(l);
    l->cancel_count = post_job_commands(l, l->cancels, &cancel_command_type);
    l->retry_count = post_job_commands(l, l->retries, &retry_command_type);
    post_keys_and_webhooks(l);
    post_deliveries(l);
}

static void turn_hands(struct kernel_load *l)
{
    int64_t ms = (int64_t)roll(l, 1500);
    if (roll(l, 12) == 0)
        ms += l->settings.queue_lease_ms; /* leases end */
    l->hands.wall_us += ms * 1000 + 1;
    l->hands.mono_ms += ms;
}

/* --- answers -----------------------------------------------------------------------------------
 */

static void tell(struct kernel_load *l, int64_t id, enum job_state state)
{
    for (size_t i = 0; i < l->told_count; i++)
        if (l->told[i].id == id) {
            l->told[i].state = state;
            return;
        }
    MUST(l->told_count < LENGTH_OF(l->told));
    l->told[l->told_count++] = (struct told){id, state};
}

static const struct known_job *known(const struct kernel_load *l, uint64_t key)
{
    for (size_t i = l->job_count; i-- > 0;)
        if (l->jobs[i].key == key)
            return &l->jobs[i];
    return NULL;
}

static void hear_submit(struct kernel_load *l)
{
    for (size_t i = 0; i < l->submit.item_count; i++) {
        const struct submit_item *item = &l->items[i];
        MUST(item->err.code == ERR_OK);
        const struct known_job *former = known(l, l->item_keys[i]);
        if (item->replayed) {
            MUST(former && former->id == item->id); /* and so never a job that was refused */
            l->stats.replayed++;
            continue;
        }
        MUST(l->job_count < KNOWN_JOBS_MAX);
        l->jobs[l->job_count++] = (struct known_job){item->id, item->low, l->item_keys[i]};
        tell(l, item->id, item->state);
        l->stats.accepted++;
    }
}

static void hear_work(struct kernel_load *l)
{
    for (uint32_t i = 0; i < l->claim.task_count; i++)
        tell(l, l->claimed[i].id, JOB_ASSIGNED);
    l->stats.claimed += l->claim.task_count;
    for (size_t i = 0; i < l->start.item_count; i++)
        if (l->starts[i].code == ERR_OK) {
            tell(l, l->starts[i].id, JOB_RUNNING);
            l->stats.started++;
        }
    for (size_t i = 0; i < l->finish.item_count; i++)
        if (l->finishes[i].code == ERR_OK) {
            tell(l, l->finishes[i].id, l->finishes[i].outcome.success ? JOB_SUCCEEDED : JOB_FAILED);
            l->stats.finished++;
        }
    for (size_t i = 0; i < l->release.item_count; i++)
        if (l->releases[i].code == ERR_OK)
            tell(l, l->releases[i].id, JOB_QUEUED);
}

static void hear_jobs(struct kernel_load *l)
{
    for (size_t i = 0; i < l->cancel_count; i++)
        if (l->cancels[i].base.result == ERR_OK) {
            tell(l, l->cancels[i].id, l->cancels[i].state);
            l->stats.canceled += l->cancels[i].changed;
        }
    for (size_t i = 0; i < l->retry_count; i++)
        if (l->retries[i].base.result == ERR_OK) {
            tell(l, l->retries[i].id, l->retries[i].state);
            l->stats.retried += l->retries[i].changed;
        }
    if (l->hook_posted && l->hook.base.result == ERR_OK) {
        l->webhook = l->hook.id;
        l->webhook_low = l->hook.low;
        l->webhook_is_deleted = false;
    }
    if (l->unhook_posted && l->unhook.base.result == ERR_OK)
        l->webhook_is_deleted = true;
}

static void hear_all(struct kernel_load *l)
{
    l->told_count = 0;
    if (l->client == 0) {
        l->client = l->store->next_client - 1;
        return;
    }
    l->refused_key = 0;
    hear_submit(l);
    hear_work(l);
    hear_jobs(l);
    hear_deliveries(l);
}

/* A finish may have come too late and count as a timeout; a failure may be tried again by itself. */
static bool is_as_told(const struct job_view *v, enum job_state told)
{
    bool fails = v->state == JOB_FAILED ||
                 (v->state == JOB_QUEUED && v->job.retry == JOB_RETRY_AUTO && v->attempt > 1);
    return v->state == told || ((told == JOB_SUCCEEDED || told == JOB_FAILED) && fails);
}

/* Every answer is what a reader finds. */
static void check_told(struct kernel_load *l)
{
    struct arena *a = arena_new(16 * 1024);
    struct err err;
    MUST(l->reader->ops->reader_begin(l->reader, &err) == ERR_OK);
    for (size_t i = 0; i < l->told_count; i++) {
        struct job_view v;
        bool found = false;
        MUST(job_view_read(l->reader, a, l->told[i].id, &v, &found, &err) == ERR_OK);
        MUST(found);
        MUST(is_as_told(&v, l->told[i].state));
        arena_reset(a);
    }
    l->reader->ops->reader_end(l->reader);
    arena_free(a);
}

/* --- memory against table ----------------------------------------------------------------------
 */

struct comparing {
    struct kernel_load *load;
    size_t rows;
};

/* The lease is left out: heartbeats and restarts renew it in memory only. */
static bool compare_task(const void *row, void *arg)
{
    struct comparing *c = arg;
    const struct task_row *stored = row;
    const struct task *t = live_find(c->load->store->live, stored->id);
    MUST(t);
    MUST(t->row.state == stored->state && t->row.attempt == stored->attempt);
    MUST(t->row.token == stored->token && t->row.job_state == stored->job_state);
    MUST(t->row.due_ms == stored->due_ms && t->row.started_ms == stored->started_ms);
    MUST(str_equal(t->row.refs, stored->refs));
    MUST(str_equal(t->row.worker, stored->worker));
    MUST(!t->touch);
    c->rows++;
    return true;
}

void kernel_load_compare(struct kernel_load *l)
{
    struct comparing c = {.load = l};
    struct err err;
    MUST(l->reader->ops->reader_scan(l->reader, &table_task_row, compare_task, &c, &err) == ERR_OK);
    MUST(c.rows == live_size(l->store->live));
}

/* --- steps -------------------------------------------------------------------------------------
 */

enum err_code kernel_load_step_blind(struct kernel_load *l, struct err *err)
{
    l->posted = l->done = 0;
    l->stats.steps++;
    turn_hands(l);
    post_all(l);
    struct command *first = l->client == 0 ? &l->create.base : &l->submit.base;
    stepping = l;
    kernel_step(l->kernel);
    if (l->fatal_err.code != ERR_OK) {
        *err = l->fatal_err;
        return err->code;
    }
    MUST(l->done == l->posted);
    if (first->result == ERR_OK) {
        hear_all(l);
        return ERR_OK;
    }
    if (l->client != 0 && l->refused_key == 0 && !known(l, l->item_keys[0]))
        l->refused_key = l->item_keys[0];
    *err = first->err;
    return err->code;
}

enum err_code kernel_load_step(struct kernel_load *l, struct err *err)
{
    enum err_code code = kernel_load_step_blind(l, err);
    if (code == ERR_OK)
        check_told(l);
    if (code != ERR_STORE_FSYNC)
        kernel_load_compare(l);
    return code;
}

static void note_problem(void *arg, const char *line)
{
    char *why = arg;
    if (why[0] == '\0')
        snprintf(why, 256, "%s", line);
}

uint64_t kernel_load_verify(struct store *s, char why[256])
{
    struct reader *r = NULL;
    struct err err = {.code = ERR_OK};
    struct verify_result result = {.problems = 1};
    why[0] = '\0';
    if (s->ops->reader_open(s, &r, &err) != ERR_OK ||
        store_verify(r, note_problem, NULL, why, &result, &err) != ERR_OK) {
        snprintf(why, 256, "%s", err.detail);
        result.problems++;
    }
    if (r)
        s->ops->reader_close(r);
    return result.problems;
}
