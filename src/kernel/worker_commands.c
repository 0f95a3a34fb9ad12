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

/* What a stream sends next; a job is its own. */
static int64_t task_head(const struct task *t)
{
    if (t->row.owner == TASK_OWNER_STEP)
        return t->row.type;
    return t->row.owner == TASK_OWNER_DELIVERY ? (int64_t)log_ref_at(t->row.refs, (size_t)t->row.seq)
                                               : t->row.id;
}

/* Of a running task. In a shared store leases are what is looked through, so none goes beyond the limit. */
static int64_t lease_until_ms(const struct unit *u, const struct task *t)
{
    int64_t until = u->steady_up_ms + u->settings->queue_lease_ms;
    return u->store->shared && t->run_until_ms < until ? t->run_until_ms : until;
}

/* The task is leased and touched. */
static void start(struct unit *u, struct task *t)
{
    t->run_until_ms = u->steady_up_ms + task_runtime_limit_ms(u->settings, t);
    t->row.lease_ms = lease_until_ms(u, t);
    task_owner_of(t)->started(u, t);
}

static void assign(struct unit *u, struct task *t, struct claim_command *c)
{
    unit_task_touch(u, t);
    t->row.token++;
    t->row.lease_ms = u->steady_up_ms + u->settings->queue_lease_ms;
    live_set_worker(u->store->live, t, c->worker_id, u->steady_ms);
    task_owner_of(t)->assigned(u, t);
    if (c->start)
        start(u, t);
    unit_task_place(u, t);
    c->tasks[c->task_count++] = (struct claimed_task){.id = t->row.id,
                                                      .token = t->row.token,
                                                      .client = t->row.client,
                                                      .attempt = t->row.attempt,
                                                      .lease_expires_ms = t->row.lease_ms,
                                                      .low = (uint64_t)t->row.low,
                                                      .owner = (enum task_owner_kind)t->row.owner,
                                                      .head = task_head(t),
                                                      .subject = t->row.subject};
}

static enum err_code decide_claim(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    struct claim_command *c = (struct claim_command *)base;
    struct live_claim want = {c->queues, c->queue_count, c->client};
    if (!c->wait_until_ms || c->wait_until_ms > u->steady_ms + c->wait_ms) /* it may get shorter on the way */
        c->wait_until_ms = u->steady_ms + c->wait_ms;
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

static void ask_claim(struct unit *u, const struct command *base)
{
    const struct claim_command *c = (const struct claim_command *)base;
    unit_ask_claim(u, &(struct load_claim){c->queues, c->queue_count, c->client, c->max});
}

static void reset_claim(struct command *base)
{
    ((struct claim_command *)base)->task_count = 0;
}

const struct command_type claim_command_type = {"claim", NULL, decide_claim, ask_claim, reset_claim, true};

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

/* The rows that the owners of these tasks will ask for, and what tells how a job that is gone ended. */
static void load_items(struct unit *u, struct command *base)
{
    const struct worker_command *c = (const struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++) {
        const struct worker_item *item = &c->items[i];
        struct task *t = item->is_bad ? NULL : unit_task(u, item->id);
        if (t && task_owner_of(t)->load)
            task_owner_of(t)->load(u, t);
        else if (!t && !item->is_bad && !task_id_is_stream(item->id))
            job_task_owner.load_ended(u, item->id);
    }
}

static enum err_code each_item(struct unit *u, struct command *base,
                               void (*one)(struct unit *u, struct worker_command *c,
                                           struct worker_item *item))
{
    struct worker_command *c = (struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++)
        if (!c->items[i].is_bad)
            one(u, c, &c->items[i]);
    return ERR_OK;
}

static void ask_items(struct unit *u, const struct command *base)
{
    const struct worker_command *c = (const struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++)
        if (!c->items[i].is_bad)
            unit_ask_task(u, c->items[i].id);
}

static void reset_items(struct command *base)
{
    struct worker_command *c = (struct worker_command *)base;
    for (size_t i = 0; i < c->item_count; i++)
        if (!c->items[i].is_bad)
            c->items[i].cancel = false;
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
 * starts; but of a shared store somebody else may look whether it has ended. */
static void beat_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (t) {
        seen(u, t);
        if (t->phase == TASK_RUNNING && !t->touch) {
            if (u->store->shared)
                unit_task_touch(u, t);
            t->row.lease_ms = lease_until_ms(u, t);
            unit_task_place(u, t);
        }
        if (item->has_progress && t->phase == TASK_RUNNING && task_owner_of(t)->progressed) {
            unit_task_touch(u, t);
            task_owner_of(t)->progressed(u, t, &item->progress);
        }
        item->lease_expires_ms = t->row.lease_ms;
        item->cancel = task_is_asked_to_stop(&t->row);
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

/* A token rises by one with each claim, and by one more when its lease ends otherwise than by its finish. So
 * the tokens of a job that is tried again tell whether the lease before was finished; as a failure, then. */
static bool was_failed_by(const struct task *t, const struct worker_command *c,
                          const struct worker_item *item)
{
    bool leased = t->phase == TASK_LEASED || t->phase == TASK_RUNNING;
    return t->row.owner == TASK_OWNER_JOB && !item->outcome.success && t->row.low == (int64_t)item->low &&
           item->token == t->row.token - leased && (!c->client || t->row.client == c->client) &&
           key_queues_have(c->queues, t->row.queue);
}

/* Of one that holds no lease: has the same finish come before? */
static bool was_finished(struct unit *u, const struct worker_command *c, const struct worker_item *item)
{
    struct ended_lease ended;
    const struct task *t = unit_task(u, item->id);
    if (find_ended(u, c, item, item->outcome.success ? LEASE_SUCCEEDED : LEASE_FAILED, &ended))
        return true;
    if (t || task_id_is_stream(item->id))
        return t && was_failed_by(t, c, item);
    return job_task_owner.was_finished(u, &(struct finish_again){.id = item->id,
                                                                 .token = item->token,
                                                                 .client = c->client,
                                                                 .low = item->low,
                                                                 .queues = c->queues,
                                                                 .outcome = &item->outcome});
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
    if (late || t->row.owner == TASK_OWNER_STEP) /* no row will tell that it came */
        lease_remember_ended(u, t, item->outcome.success ? LEASE_SUCCEEDED : LEASE_FAILED);
    if (late)
        task_owner_of(t)->timed_out(u, t);
    else
        task_owner_of(t)->finished(u, t, &item->outcome);
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
    const struct task_owner *owner = task_owner_of(t);
    item->release.reason = "released";
    if (t->phase == TASK_RUNNING && !owner->released) {
        item->code = ERR_NOT_RELEASABLE;
        return;
    }
    unit_task_touch(u, t);
    if (t->phase == TASK_RUNNING) {
        owner->released(u, t, &item->release);
    } else {
        owner->lease_expired(u, t, &item->release);
        unit_task_place(u, t);
    }
}

/* Its worker never heard of it. What counts as started cannot be unsaid: it ends as if its lease had. */
static void give_back_one(struct unit *u, struct worker_command *c, struct worker_item *item)
{
    struct task *t = held(u, c, item);
    if (t && t->phase == TASK_RUNNING) {
        unit_task_touch(u, t);
        task_owner_of(t)->worker_lost(u, t);
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

const struct command_type start_command_type = {"start", NULL, decide_start, ask_items, reset_items, true};
const struct command_type heartbeat_command_type = {"heartbeat", NULL,        decide_heartbeat,
                                                    ask_items,   reset_items, true};
const struct command_type finish_command_type = {"finish",  load_items,  decide_finish,
                                                 ask_items, reset_items, true};
const struct command_type release_command_type = {"release", NULL,        decide_release,
                                                  ask_items, reset_items, true};
const struct command_type give_back_command_type = {"give_back", load_items,  decide_give_back,
                                                    ask_items,   reset_items, true};
