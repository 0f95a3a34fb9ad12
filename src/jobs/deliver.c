#include "jobs/deliver.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/url.h"
#include "base/uuid.h"
#include "base/backoff.h"
#include "runtime/partition.h"

#include "base/banned.h"

enum { STREAM_PRIORITY = 4, REPLAY_PRIORITY = 1 };
#define FAR_MS INT64_C(253402300799000) /* the end of the year 9999: an idle stream waits for no time */

/* --- keys ---------------------------------------------------------------------------------------- */

int64_t deliver_stream_id(int64_t webhook, int64_t job)
{
    uint64_t h = hash_mix(hash_mix((uint64_t)webhook) ^ (uint64_t)job);
    return (int64_t)(TASK_ID_OF_OTHERS | h >> 5);
}

int64_t deliver_replay_id(int64_t delivery)
{
    uint64_t h = hash_mix(hash_mix((uint64_t)delivery ^ (uint64_t)RECEIVER_OF_REPLAY));
    return (int64_t)(TASK_ID_OF_OTHERS | h >> 5);
}

int64_t deliver_webhook(const struct task_row *stream)
{
    return stream->target > 0 ? stream->target & ~RECEIVER_OF_REPLAY : 0;
}

/* A webhook is its own receiver; callbacks share one per scheme, host and port: negative, so never a
 * webhook's. */
static int64_t callback_receiver(struct str text)
{
    struct url url;
    struct str endpoint = url_parse(text, &url) ? text : str_of(url.endpoint);
    return -(int64_t)(hash_mix(hash_fnv1a(HASH_FNV_START, endpoint.ptr, endpoint.len)) >> 2 | 1);
}

/* By receiver and job, as order is: the gateway's partitions are made of slots (runtime/partition.h). */
_Static_assert((int)DELIVERY_SLOTS == (int)PARTITION_SLOTS, "a slot each");

static struct str queue_of(struct unit *u, int64_t receiver, int64_t job)
{
    char instance[24], room[24];
    snprintf(instance, sizeof instance, "%lld", (long long)receiver);
    snprintf(room, sizeof room, "%lld", (long long)job);
    uint64_t hash = partition_hash(str_of(instance), str_of(room));
    return arena_printf(u->arena, "~deliver.%u", partition_slot(hash));
}

static struct str replay_queue_of(struct unit *u, const struct delivery_row *d)
{
    struct uuid id = uuid_from_v7(d->id, (uint64_t)d->low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    return arena_printf(u->arena, "~replay.%u", partition_slot(partition_hash(str_of(text), STR_ABSENT)));
}

struct task *deliver_find_stream(struct unit *u, int64_t webhook, int64_t job)
{
    struct task *s = unit_task_about(u, deliver_stream_id(webhook, job), job);
    bool is_it = s && s->row.subject == job && (webhook ? s->row.target == webhook : s->row.target < 0);
    return is_it ? s : NULL;
}

/* --- streams ------------------------------------------------------------------------------------- */

void deliver_drained(struct unit *u, struct task *s)
{
    unit_task_move(u, s, TASK_ON_DRAIN);
    s->row.due_ms = FAR_MS;
}

int64_t deliver_not_before_ms(struct unit *u, const struct task *s, int64_t at_ms)
{
    const struct receiver *x = live_receiver(u->store->live, s->row.target);
    if (!x || x->slots)
        return at_ms;
    int64_t pause_ends_ms = x->open_again_ms > u->now_ms ? x->open_again_ms : u->now_ms + 1;
    return at_ms > pause_ends_ms ? at_ms : pause_ends_ms;
}

struct stream_key {
    int64_t id, receiver, priority;
    struct str queue;
};

static struct task *add_stream(struct unit *u, int64_t client, int64_t job, const struct stream_key *k)
{
    const struct settings *s = u->settings;
    struct task_row row = {.id = k->id,
                           .low = unit_uuid_tail(u),
                           .client = client,
                           .owner = delivery_task_owner.number,
                           .priority = k->priority,
                           .created_ms = u->now_ms,
                           .max_runtime_ms = s->webhooks_timeout_ms + DELIVERY_MARGIN_MS,
                           .max_retries = s->webhooks_max_attempts - 1,
                           .subject = job,
                           .target = k->receiver,
                           .queue = k->queue,
                           .state = TASK_WAITING,
                           .job_state = JOB_NO_STATE,
                           .attempt = 1,
                           .due_ms = FAR_MS,
                           .refs = {"", 0}};
    return unit_task_add(u, &row);
}

static struct task *open_stream(struct unit *u, int64_t client, int64_t webhook, int64_t job,
                                int64_t receiver)
{
    struct stream_key k = {.id = deliver_stream_id(webhook, job),
                           .receiver = receiver,
                           .priority = STREAM_PRIORITY,
                           .queue = queue_of(u, receiver, job)};
    return add_stream(u, client, job, &k);
}

static struct task *open_replay(struct unit *u, const struct delivery_row *d)
{
    struct stream_key k = {.id = deliver_replay_id(d->id),
                           .receiver = d->webhook | RECEIVER_OF_REPLAY,
                           .priority = REPLAY_PRIORITY,
                           .queue = replay_queue_of(u, d)};
    return add_stream(u, d->client, d->job, &k);
}

static void append(struct unit *u, struct task *s, int64_t delivery, int64_t at_ms)
{
    unit_task_touch(u, s);
    task_add_ref(s, (uint64_t)delivery);
    if (s->row.state == TASK_WAITING) {
        unit_task_move(u, s, TASK_ON_DUE);
        s->row.due_ms = deliver_not_before_ms(u, s, at_ms);
    }
    unit_task_place(u, s);
}

void deliver_open_callback(struct unit *u, const struct job_row *job, struct task *t)
{
    if (!job->callback.ptr)
        return;
    t->has_callback = true;
    if (!deliver_find_stream(u, 0, job->id))
        unit_task_place(u, open_stream(u, job->client, 0, job->id, callback_receiver(job->callback)));
}

/* --- deliveries ---------------------------------------------------------------------------------- */

struct delivery_row *deliver_new(struct unit *u, int64_t client, int64_t webhook, int64_t job, int64_t event)
{
    struct delivery_row *d = ARENA_NEW(u->arena, struct delivery_row);
    *d = (struct delivery_row){.id = unit_id(u),
                               .low = unit_uuid_tail(u),
                               .client = client,
                               .webhook = webhook,
                               .job = job,
                               .event = event,
                               .created_ms = u->now_ms,
                               .state = DELIVERY_PENDING};
    unit_insert(u, &table_delivery_row, d);
    unit_list(u, webhook ? webhook : job, LIST_DELIVERIES, d->id, false);
    if (webhook) /* of no job: listed for job 0, where the purge finds it */
        unit_list(u, job, LIST_OF_JOB, d->id, false);
    return d;
}

static void append_at(struct unit *u, const struct delivery_row *d, int64_t at_ms)
{
    struct task *s = deliver_find_stream(u, d->webhook, d->job);
    if (!s && d->webhook) /* of a callback the stream is opened with its job, whose row says where to */
        s = open_stream(u, d->client, d->webhook, d->job, d->webhook);
    if (s)
        append(u, s, d->id, at_ms);
}

void deliver_append(struct unit *u, const struct delivery_row *d)
{
    append_at(u, d, 0);
}

/* What is sent again by request is a webhook's; of a callback, or when another stream has that id, it joins
 * the live ones. */
void deliver_append_again(struct unit *u, const struct delivery_row *d)
{
    int64_t at_ms = u->defers_retries ? u->now_ms + UNIT_DEFER_MS : 0;
    if (d->webhook && !unit_task_about(u, deliver_replay_id(d->id), d->job))
        append(u, open_replay(u, d), d->id, at_ms);
    else
        append_at(u, d, at_ms);
}

/* A job that was fetched for its stream's sake came without knowing of it, and a waiting claim may take it in
 * the same batch. */
static bool has_callback(struct unit *u, struct task *t)
{
    if (!t->has_callback && !unit_has_all_about(u, t))
        t->has_callback = deliver_find_stream(u, 0, t->row.id) != NULL;
    return t->has_callback;
}

void deliver_event(struct unit *u, struct task *t, const struct event *e)
{
    if (has_callback(u, t))
        deliver_append(u, deliver_new(u, t->row.client, 0, e->job, e->seq));
    const struct client_hooks *hooks = hooks_of(&u->store->hooks, t->row.client);
    for (size_t i = 0; hooks && i < hooks->count; i++) {
        const struct hook *h = &hooks->hooks[i];
        if (h->enabled && h->events & UINT32_C(1) << e->event)
            deliver_append(u, deliver_new(u, t->row.client, h->id, e->job, e->seq));
    }
}

void deliver_disabled(struct unit *u, const struct webhook_row *webhook)
{
    const struct client_hooks *hooks = hooks_of(&u->store->hooks, webhook->client);
    for (size_t i = 0; hooks && i < hooks->count; i++) {
        const struct hook *h = &hooks->hooks[i];
        if (h->id != webhook->id && h->enabled && h->events & HOOK_HEARS_DISABLED)
            deliver_append(u, deliver_new(u, webhook->client, h->id, 0, webhook->id));
    }
}

/* Full jitter: anywhere between nothing and the exponential bound, told by delivery and attempt. */
int64_t delivery_backoff_ms(const struct settings *s, int64_t delivery, int64_t attempt)
{
    int64_t bound = backoff_ms(s->webhooks_base_ms, attempt - 1, s->webhooks_cap_ms);
    return (int64_t)(backoff_spread(delivery, attempt) * (double)bound);
}
