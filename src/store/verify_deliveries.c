/* Deliveries: each that waits stands in exactly one stream, each is listed where people look for it. */
#include "base/hash.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/attempts.h"
#include "store/row_rules.h"
#include "store/verify_jobs.h"

#include "base/banned.h"

struct checked_delivery {
    struct map_node node;
    int64_t id, webhook, job;
    uint32_t streams; /* in which it waits */
    bool has_row, is_pending, listed, listed_of_job;
};

static struct checked_delivery *find(const struct verify *v, int64_t id)
{
    for (struct map_node *n = map_first(&job_check(v)->deliveries, hash_mix((uint64_t)id)); n;
         n = map_next(n)) {
        struct checked_delivery *d = CONTAINER_OF(n, struct checked_delivery, node);
        if (d->id == id)
            return d;
    }
    return NULL;
}

static struct checked_delivery *need(struct verify *v, int64_t id)
{
    struct checked_delivery *d = find(v, id);
    if (d)
        return d;
    d = ARENA_NEW(v->arena, struct checked_delivery);
    d->id = id;
    map_put(&job_check(v)->deliveries, &d->node, hash_mix((uint64_t)id));
    return d;
}

void verify_stream(struct verify *v, const struct task_row *r)
{
    const char *broken = task_broken_rule(r);
    if (broken) {
        verify_say(v, "stream %lld: its live row breaks a rule: %s", (long long)r->id, broken);
        return;
    }
    if (!verify_client(v, r->client)->has_row)
        verify_say(v, "stream %lld: its client does not exist", (long long)r->id);
    for (size_t i = (size_t)r->done; i < log_ref_count(r->refs); i++)
        need(v, (int64_t)log_ref_at(r->refs, i))->streams++;
}

static bool attempts_are_sound(struct str attempts)
{
    struct attempt one;
    while (attempts_take(&attempts, &one))
        continue;
    return attempts.len == 0;
}

static bool note_delivery(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct delivery_row *r = row;
    verify_seen(v);
    struct checked_delivery *d = need(v, r->id);
    d->has_row = true;
    d->webhook = r->webhook;
    d->job = r->job;
    d->is_pending = r->state == DELIVERY_PENDING;
    if (r->state < 0 || r->state >= DELIVERY_STATE_COUNT || !attempts_are_sound(r->attempts))
        verify_say(v, "delivery %lld: its row is damaged", (long long)r->id);
    const struct checked_job *j = r->job ? verify_find_job(v, r->job) : NULL;
    if (r->job && (!j || !j->has_job || j->client != r->client || r->event < 1 || r->event > j->row_seq))
        verify_say(v, "delivery %lld: carries an event that its job does not have", (long long)r->id);
    return true;
}

void verify_listed_delivery(struct verify *v, const struct list_entry *e)
{
    struct checked_delivery *d = find(v, e->id);
    bool of_job = e->bucket == LIST_OF_JOB;
    int64_t owner = !d ? 0 : of_job || !d->webhook ? d->job : d->webhook;
    if (!d || !d->has_row || e->owner_key != owner)
        verify_say(v, "delivery %lld: is listed for %lld and is not there", (long long)e->id,
                   (long long)e->owner_key);
    else if (of_job)
        d->listed_of_job = true;
    else
        d->listed = true;
}

static void check_delivery(struct map_node *n, void *arg)
{
    struct verify *v = arg;
    const struct checked_delivery *d = CONTAINER_OF(n, struct checked_delivery, node);
    if (!d->has_row) {
        verify_say(v, "delivery %lld: waits in a stream and has no row", (long long)d->id);
        return;
    }
    if (d->streams != d->is_pending)
        verify_say(v, "delivery %lld: is %s and waits in %u streams", (long long)d->id,
                   d->is_pending ? "pending" : "done", d->streams);
    if (!d->listed || (d->webhook && d->job && !d->listed_of_job))
        verify_say(v, "delivery %lld: is missing in a list", (long long)d->id);
}

enum err_code verify_delivery_rows(struct verify *v, struct err *err)
{
    return verify_scan(v, &table_delivery_row, note_delivery, v, err);
}

void verify_delivery_places(struct verify *v)
{
    map_each(&job_check(v)->deliveries, check_delivery, v);
}
