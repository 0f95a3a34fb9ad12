/* The end of an attempt to deliver: the owner side of a stream's task, and the breaker of its receiver. */
#include "base/must.h"
#include "base/backoff.h"
#include "jobs/deliver.h"
#include "jobs/job_notices.h"
#include "lifecycle/attempts.h"

#include "base/banned.h"

enum {
    BREAKER_FAILURES = 5,         /* in a row; then one try at a time, with pauses */
    BREAKER_PAUSE_MAX_MS = 10000, /* many streams may wait for one receiver, and each has its tries */
};

/* --- rows ---------------------------------------------------------------------------------------- */

static struct delivery_row head_key(const struct task *s)
{
    return (struct delivery_row){.id = (int64_t)log_ref_at(s->row.refs, (size_t)s->row.done)};
}

static void load(struct unit *u, struct task *s)
{
    if (s->row.done < (int64_t)log_ref_count(s->row.refs)) {
        struct delivery_row key = head_key(s);
        unit_prefetch(u, &table_delivery_row, &key);
    }
    if (deliver_webhook(&s->row))
        unit_prefetch(u, &table_webhook_row, &(struct webhook_row){.id = deliver_webhook(&s->row)});
    if (notices_include(&u->notices, &attempt_notices) && s->row.subject)
        unit_prefetch(u, &table_job_row, &(struct job_row){.id = s->row.subject});
}

/* NULL: it was deleted, or this is a callback. */
static struct webhook_row *webhook_of(struct unit *u, const struct task *s)
{
    struct webhook_row key = {.id = deliver_webhook(&s->row)};
    if (!key.id || !unit_has(u, &table_webhook_row, &key))
        return NULL;
    return unit_row(u, &table_webhook_row, &key);
}

/* --- the breaker of a receiver --------------------------------------------------------------------- */

/* Each answer doubles what it may be sent at a time, up to the usual. */
static void receiver_answers(struct unit *u, struct task *s)
{
    struct receiver *x = s->receiver;
    uint32_t usual = live_receiver_usual(u->store->live);
    x->failures = 0;
    x->open_again_ms = 0;
    if (x->slots < usual)
        live_receiver_limit(u->store->live, x, x->slots > usual / 2 ? usual : x->slots ? x->slots * 2 : 1);
}

static void receiver_fails(struct unit *u, struct task *s)
{
    struct receiver *x = s->receiver;
    if (++x->failures < BREAKER_FAILURES) { /* one at a time until it answers again */
        live_receiver_limit(u->store->live, x, 1);
        return;
    }
    int64_t cap = u->settings->webhooks_cap_ms;
    if (cap > BREAKER_PAUSE_MAX_MS)
        cap = BREAKER_PAUSE_MAX_MS;
    x->open_again_ms =
        u->now_ms + backoff_ms(u->settings->webhooks_base_ms, x->failures - BREAKER_FAILURES, cap);
    live_receiver_limit(u->store->live, x, 0);
}

/* A closed receiver is tried again by one stream, whose time comes when the pause is over. */
static void again(struct unit *u, struct task *s)
{
    struct receiver *x = s->receiver;
    if (x->slots == 0 && u->now_ms >= x->open_again_ms)
        live_receiver_limit(u->store->live, x, 1);
}

/* The stream that failed is gone: another one of the closed receiver has to try. */
static void appoint_another(struct unit *u, int64_t receiver)
{
    struct receiver *x = live_receiver(u->store->live, receiver);
    struct task *s = x && x->slots == 0 ? live_receiver_waiting(x) : NULL;
    if (!s)
        return;
    unit_task_touch(u, s);
    s->row.due_ms = x->open_again_ms;
    unit_task_place(u, s);
}

/* --- webhooks that only fail --------------------------------------------------------------------- */

static void webhook_answers(struct unit *u, struct webhook_row *h)
{
    if (!h || !h->failing_since_ms)
        return;
    h->failing_since_ms = 0;
    unit_update(u, &table_webhook_row, h);
}

static void webhook_fails(struct unit *u, struct webhook_row *h, bool gone)
{
    int64_t limit_ms = u->settings->webhooks_disable_after_seconds * 1000;
    if (!h || !h->enabled)
        return;
    bool too_long = limit_ms && h->failing_since_ms && u->now_ms - h->failing_since_ms >= limit_ms;
    if (!gone && !too_long && h->failing_since_ms)
        return;
    if (!h->failing_since_ms)
        h->failing_since_ms = u->now_ms;
    if (gone || too_long) {
        h->enabled = 0;
        h->disabled_ms = u->now_ms;
        h->disabled_why = gone ? WEBHOOK_GONE : WEBHOOK_FAILING;
        unit_notify(u, &disabled_webhook_notices, h);
        deliver_disabled(u, h);
    }
    unit_update(u, &table_webhook_row, h);
}

/* --- after an attempt ---------------------------------------------------------------------------- */

static void let_go(struct unit *u, struct task *s)
{
    s->row.lease_ms = 0;
    s->row.started_ms = 0;
    live_set_worker(u->store->live, s, STR_ABSENT, 0);
}

/* The head is done with, one way or the other. */
static void next_delivery(struct unit *u, struct task *s)
{
    int64_t receiver = s->row.target;
    let_go(u, s);
    s->row.done++;
    s->row.attempt = 1;
    s->row.due_ms = deliver_not_before_ms(u, s, 0);
    bool more = s->row.done < (int64_t)log_ref_count(s->row.refs);
    bool job_says_more = s->row.target < 0 && unit_task(u, s->row.subject);
    if (!more && !job_says_more) {
        unit_task_end(u, s);
        appoint_another(u, receiver);
        return;
    }
    if (more)
        unit_task_move(u, s, TASK_ON_RETRY);
    else
        deliver_drained(u, s);
    unit_task_place(u, s);
    if (!more)
        appoint_another(u, receiver);
}

static void try_again(struct unit *u, struct task *s, int64_t delivery, int64_t retry_after_ms)
{
    int64_t wait = delivery_backoff_ms(u->settings, delivery, s->row.attempt);
    if (u->defers_retries && wait < UNIT_DEFER_MS) /* a pause of nothing is no reason to pass now */
        wait = UNIT_DEFER_MS;
    if (retry_after_ms > RETRY_AFTER_MAX_MS)
        retry_after_ms = RETRY_AFTER_MAX_MS;
    let_go(u, s);
    s->row.attempt++;
    s->row.due_ms = deliver_not_before_ms(u, s, u->now_ms + (wait > retry_after_ms ? wait : retry_after_ms));
    unit_task_move(u, s, TASK_ON_RETRY);
    unit_task_place(u, s);
}

static void move_delivery(struct unit *u, struct delivery_row *d, enum delivery_trigger on)
{
    enum delivery_state to;
    MUST(delivery_move((enum delivery_state)d->state, on, &to));
    d->state = to;
    unit_update(u, &table_delivery_row, d);
    struct delivery_end_notice *n = ARENA_NEW(u->arena, struct delivery_end_notice);
    n->delivered = to == DELIVERY_DELIVERED;
    unit_notify(u, &delivery_end_notices, n);
}

enum verdict { VERDICT_DELIVERED, VERDICT_FAILED, VERDICT_UNDELIVERABLE };

static void attempt_over(struct unit *u, struct task *s, enum verdict verdict, const struct attempt *a,
                         int64_t retry_after_ms)
{
    struct delivery_row key = head_key(s), *d = unit_row(u, &table_delivery_row, &key);
    if (!d || d->state != DELIVERY_PENDING) { /* purged or damaged: nothing to send */
        next_delivery(u, s);
        return;
    }
    d->attempts = attempts_add(u->arena, d->attempts, a);
    if (verdict == VERDICT_DELIVERED) {
        move_delivery(u, d, DELIVERY_ON_SUCCESS);
        next_delivery(u, s);
    } else if (verdict == VERDICT_UNDELIVERABLE || s->row.attempt > s->row.max_retries) {
        move_delivery(u, d, DELIVERY_ON_GIVE_UP);
        next_delivery(u, s);
    } else {
        unit_update(u, &table_delivery_row, d);
        try_again(u, s, d->id, retry_after_ms);
    }
}

/* A test is about no job, and has no followers. */
static void tell(struct unit *u, struct task *s, const struct attempt *a)
{
    struct job_row job = {.id = s->row.subject};
    if (!notices_include(&u->notices, &attempt_notices) || !job.id || !unit_has(u, &table_job_row, &job))
        return;
    struct delivery_row key = head_key(s);
    struct attempt_notice *n = ARENA_NEW(u->arena, struct attempt_notice);
    *n = (struct attempt_notice){.delivery = unit_row(u, &table_delivery_row, &key),
                                 .job = unit_row(u, &table_job_row, &job),
                                 .webhook = webhook_of(u, s),
                                 .stream_low = s->row.low,
                                 .token = s->row.token,
                                 .attempt = s->row.attempt,
                                 .started_ms = a->at_ms,
                                 .status = a->status,
                                 .error = a->error};
    if (n->delivery && n->job)
        unit_notify(u, &attempt_notices, n);
}

static void finished(struct unit *u, struct task *s, const struct task_outcome *o)
{
    struct attempt a = {.at_ms = s->row.started_ms,
                        .duration_ms = o->duration_ms,
                        .status = o->status,
                        .error = o->success ? STR_ABSENT : o->error_code};
    struct webhook_row *hook = webhook_of(u, s);
    bool gone = o->status == 410 && hook;
    if (o->success) {
        receiver_answers(u, s);
        webhook_answers(u, hook);
    } else if (o->status ||
               o->retryable) { /* an attempt that was never sent says nothing about the receiver */
        receiver_fails(u, s);
        webhook_fails(u, hook, gone);
    }
    enum verdict verdict = o->success              ? VERDICT_DELIVERED
                           : o->retryable && !gone ? VERDICT_FAILED
                                                   : VERDICT_UNDELIVERABLE;
    tell(u, s, &a);
    attempt_over(u, s, verdict, &a, o->retry_after_ms);
}

/* The sender is gone: the attempt may have reached the receiver, and counts. */
static void sender_lost(struct unit *u, struct task *s, const char *why)
{
    struct attempt a = {
        .at_ms = s->row.started_ms, .duration_ms = u->now_ms - s->row.started_ms, .error = str_of(why)};
    tell(u, s, &a); /* by the token its sender had */
    s->row.token++;
    attempt_over(u, s, VERDICT_FAILED, &a, 0);
}

static void lost(struct unit *u, struct task *s, enum task_loss how)
{
    sender_lost(u, s, how == TASK_TIMED_OUT ? "timeout" : "sender_lost");
}

static int64_t head(const struct task *s)
{
    return (int64_t)log_ref_at(s->row.refs, (size_t)s->row.done);
}

static void released(struct unit *u, struct task *s, const struct task_return *r)
{
    (void)r; /* only the gateway holds such leases, and it names no delay */
    s->row.due_ms = deliver_not_before_ms(u, s, 0);
}

/* An idle stream waits for no time; should its far time come, it goes on waiting. */
static void due(struct unit *u, struct task *s)
{
    s->row.due_ms = u->now_ms + INT64_C(31536000000);
}

/* A delivery whose time comes by the clock was tried before, or its receiver was: a retry, a redelivery that
 * waits already, the end of a closed receiver's pause. What is new is sent at once and is never put off. */
const struct task_owner delivery_task_owner = {
    .number = 1,
    .name = "delivery",
    .can_wait = true,
    .load = load,
    .head = head,
    .due = due,
    .again = again,
    .finished = finished,
    .lost = lost,
    .released = released,
};
