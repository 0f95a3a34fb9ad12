#include "kernel/worker_commands.h"

#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "lifecycle/key_power.h"

#include "base/banned.h"

struct str token_text(int64_t token, char out[24])
{
    struct strbuf b = {out, 0, 24};
    strbuf_add_int(&b, token);
    return strbuf_str(&b);
}

bool token_parse(struct str text, int64_t *ret_token)
{
    return text.len <= 19 && str_to_int(text, 1, INT64_MAX, ret_token);
}

/* --- claim ------------------------------------------------------------------------------------- */

/* The task is leased and touched. */
static void start(struct unit *u, struct task *t)
{
    unit_task_move(u, t, TASK_ON_START);
    t->row.started_ms = u->now_ms;
    t->run_until_ms = u->steady_ceil_ms + task_runtime_limit_ms(u->settings, t);
    t->row.lease_ms = unit_lease_until_ms(u, t);
    if (unit_owner(u, t)->started)
        unit_owner(u, t)->started(u, t);
}

static void assign(struct unit *u, struct task *t, struct claim_command *c)
{
    unit_task_touch(u, t);
    t->row.token++;
    t->row.lease_ms = u->steady_ceil_ms + u->settings->queue_lease_ms;
    live_set_worker(u->store->live, t, c->worker_id, u->steady_ms);
    unit_task_move(u, t, TASK_ON_CLAIM);
    if (unit_owner(u, t)->assigned)
        unit_owner(u, t)->assigned(u, t);
    if (c->start)
        start(u, t);
    unit_task_place(u, t);
    c->tasks[c->task_count++] = (struct claimed_task){.id = t->row.id,
                                                      .token = t->row.token,
                                                      .client = t->row.client,
                                                      .attempt = t->row.attempt,
                                                      .lease_expires_ms = t->row.lease_ms,
                                                      .low = (uint64_t)t->row.low,
                                                      .owner = unit_owner(u, t),
                                                      .head = unit_owner(u, t)->head(t),
                                                      .subject = t->row.subject};
}

static enum err_code decide_claim(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    struct claim_command *c = (struct claim_command *)base;
    struct live_claim want = {c->queues, c->queue_count, c->client};
    if (!c->wait_until_ms ||
        c->wait_until_ms > u->steady_ceil_ms + c->wait_ms) /* it may get shorter on the way */
        c->wait_until_ms = u->steady_ceil_ms + c->wait_ms;
    live_worker(u->store->live, c->worker_id, u->steady_ms)->is_domain =
        c->queue_count && queue_is_of_domain(c->queues[0]);
    for (size_t i = 0; i < c->queue_count; i++)
        base->waits_for |= queue_bit(c->queues[i]);
    struct task *t;
    while (c->task_count < c->max && (t = live_best(u->store->live, &want)))
        assign(u, t, c);
    if (!c->task_count && c->wait_ms && u->steady_ms < c->wait_until_ms)
        base->park_until_ms = c->wait_until_ms;
    return ERR_OK;
}

static void load_claim(struct unit *u, struct command *base)
{
    const struct claim_command *c = (const struct claim_command *)base;
    unit_prefetch_claim(u, c, &(struct load_claim){c->queues, c->queue_count, c->client, c->max});
}

const struct command_type claim_command_type = {
    "claim", load_claim, decide_claim, COMMAND_ANSWER(struct claim_command, task_count), .critical = true};

/* --- the others -------------------------------------------------------------------------------- */

/* The live task an item may act on, or NULL with the item's code set. */
static struct task *held(struct unit *u, const struct worker_command *c, struct worker_item *item)
{
    struct task *t = unit_task(u, item->id);
    bool mine = t && t->row.low == (int64_t)item->low && (!c->client || t->row.client == c->client) &&
                t->row.token == item->token && (t->phase == TASK_LEASED || t->phase == TASK_RUNNING) &&
                key_queues_have(c->queues, t->row.queue);
    item->code = mine ? ERR_OK : ERR_LEASE_LOST;
    return mine ? t : NULL;
}

static void load_tasks(struct unit *u, struct command *base)
{
    const struct worker_command *c = (const struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++)
        if (!c->items[i].is_bad)
            (void)unit_prefetch_task(u, c->items[i].id);
}

static void load_ended(struct unit *u, int64_t id)
{
    for (int i = 0; i < TASK_OWNERS_MAX; i++)
        if (u->owners[i] && u->owners[i]->load_ended)
            u->owners[i]->load_ended(u, id);
}

/* Besides the rows that the owners of these tasks need, and what tells how a job that is gone ended. */
static void load_ends(struct unit *u, struct command *base)
{
    const struct worker_command *c = (const struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++) {
        const struct worker_item *item = &c->items[i];
        struct task *t = item->is_bad ? NULL : unit_prefetch_task(u, item->id);
        if (t && unit_owner(u, t)->load)
            unit_owner(u, t)->load(u, t);
        else if (!item->is_bad && unit_task_is_gone(u, item->id))
            load_ended(u, item->id);
    }
}

static enum err_code each_item(struct unit *u, struct command *base,
                               void (*one)(struct unit *u, struct worker_command *c,
                                           struct worker_item *item))
{
    struct worker_command *c = (struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++)
        if (!c->items[i].is_bad) {
            c->items[i].cancel = false;
            one(u, c, &c->items[i]);
        }
    return ERR_OK;
}

static void seen(struct unit *u, struct task *t)
{
    if (t->worker && t->worker->last_seen_ms < u->steady_ms)
        t->worker->last_seen_ms = u->steady_ms;
}

static void start_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (!t)
        return;
    item->lease_expires_ms = t->row.lease_ms;
    if (t->phase == TASK_RUNNING) /* a repeated start of the same lease changes nothing */
        return;
    unit_task_touch(u, t);
    seen(u, t);
    start(u, t);
    item->lease_expires_ms = t->row.lease_ms;
    unit_task_place(u, t);
}

static enum err_code decide_start(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    return each_item(u, base, start_one);
}

static bool find_ended(struct unit *u, const struct worker_command *c, const struct worker_item *item,
                       enum lease_end how, struct ended_lease *ret_lease)
{
    struct ended_lease key = {.task = item->id, .token = item->token, .client = c->client, .how = how};
    return kernel_find_ended(u, &key, ret_lease);
}

/* Not written to disk, unless it carries progress: a lease lives in memory and is granted anew when core
 * starts; but of a shared store another node may look whether it has ended. */
static void beat_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (t) {
        seen(u, t);
        if (t->phase == TASK_RUNNING && !t->touch) {
            unit_task_touch_times(u, t);
            t->row.lease_ms = unit_lease_until_ms(u, t);
            unit_task_place(u, t);
        }
        if (item->has_progress && t->phase == TASK_RUNNING && unit_owner(u, t)->progressed) {
            unit_task_touch(u, t);
            unit_owner(u, t)->progressed(u, t, &item->progress);
        }
        item->lease_expires_ms = t->row.lease_ms;
        item->cancel = t->row.cancel_asked != 0;
        return;
    }
    struct ended_lease ended;
    if (!find_ended(u, c, item, LEASE_CUT, &ended))
        return;
    item->code = ERR_OK;
    item->cancel = true;
    item->lease_expires_ms = (int64_t)ended.until.key;
}

static enum err_code decide_heartbeat(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    return each_item(u, base, beat_one);
}

/* Of one that holds no lease: has the same finish come before? */
static bool was_finished(struct unit *u, const struct worker_command *c, const struct worker_item *item)
{
    struct ended_lease ended;
    const struct task *t = unit_task(u, item->id);
    struct finish_again f = {.id = item->id,
                             .token = item->token,
                             .client = c->client,
                             .low = item->low,
                             .queues = c->queues,
                             .outcome = &item->outcome};
    if (find_ended(u, c, item, item->outcome.success ? LEASE_SUCCEEDED : LEASE_FAILED, &ended))
        return true;
    if (t)
        return unit_owner(u, t)->was_finished && unit_owner(u, t)->was_finished(u, t, &f);
    for (int i = 0; i < TASK_OWNERS_MAX; i++)
        if (u->owners[i] && u->owners[i]->was_finished && u->owners[i]->was_finished(u, NULL, &f))
            return true;
    return false;
}

static void finish_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (!t) {
        item->code = was_finished(u, c, item) ? ERR_OK : ERR_LEASE_LOST;
        return;
    }
    if (t->phase != TASK_RUNNING) { /* never started: the lifecycle has no such move */
        item->code = ERR_JOB_CONFLICT;
        return;
    }
    bool late = u->steady_ms >= t->run_until_ms;
    seen(u, t);
    unit_task_touch(u, t);
    if (late || unit_owner(u, t)->remembers_finishes)
        lease_remember_ended(u, t, item->outcome.success ? LEASE_SUCCEEDED : LEASE_FAILED);
    if (late)
        unit_owner(u, t)->lost(u, t, TASK_TIMED_OUT);
    else
        unit_owner(u, t)->finished(u, t, &item->outcome);
}

static enum err_code decide_finish(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    return each_item(u, base, finish_one);
}

static void release_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (!t)
        return;
    const struct task_owner *owner = unit_owner(u, t);
    item->release.reason = "released";
    if (t->phase == TASK_RUNNING && !owner->releases_started) {
        item->code = ERR_NOT_RELEASABLE;
        return;
    }
    unit_task_return(u, t, &item->release);
}

/* The answer of a claim did not reach its worker. A task that counts as started cannot be unstarted: it ends
 * as if its lease had ended. */
static void give_back_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (t && t->phase == TASK_RUNNING) {
        unit_task_touch(u, t);
        unit_owner(u, t)->lost(u, t, TASK_WORKER_LOST);
    } else if (t) {
        release_one(u, c, item);
    }
}

static enum err_code decide_give_back(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    return each_item(u, base, give_back_one);
}

static enum err_code decide_release(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    return each_item(u, base, release_one);
}

/* Their answers are those of the items, each written by `one`. */
const struct command_type start_command_type = {"start", load_tasks, decide_start, .critical = true};
const struct command_type heartbeat_command_type = {"heartbeat", load_tasks, decide_heartbeat,
                                                    .critical = true};
const struct command_type finish_command_type = {"finish", load_ends, decide_finish, .critical = true};
const struct command_type release_command_type = {"release", load_tasks, decide_release, .critical = true};
const struct command_type give_back_command_type = {"give_back", load_ends, decide_give_back,
                                                    .critical = true};
