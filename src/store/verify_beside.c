/* Data kept beside the jobs so that no read has to scan them: counters, listings, idempotency keys. */
#include "store/verify_jobs.h"

#include "base/banned.h"

static bool note_stats(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct stats_row *r = row;
    struct client_counts stored;
    verify_seen(v);
    struct checked_client *c = verify_client(v, r->client);
    c->has_stats = true;
    counts_from_bytes(&stored, r->counts);
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        if (stored.by_state[s] != c->counts.by_state[s])
            verify_say(v, "client %lld: counts %lld jobs %s, there are %lld", (long long)r->client,
                       (long long)stored.by_state[s], job_state_text((enum job_state)s),
                       (long long)c->counts.by_state[s]);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (stored.by_kind[k] != c->counts.by_kind[k])
            verify_say(v, "client %lld: counts %lld jobs of kind %s, there are %lld", (long long)r->client,
                       (long long)stored.by_kind[k], work_kind_text((enum work_kind)k),
                       (long long)c->counts.by_kind[k]);
    return true;
}

static void check_client(struct map_node *n, void *arg)
{
    const struct checked_client *c = CONTAINER_OF(n, struct checked_client, node);
    if (c->has_row && !c->has_stats)
        verify_say(arg, "client %lld: has no counters", (long long)c->num);
    if (c->has_row && !c->has_secret && !c->is_deleted)
        verify_say(arg, "client %lld: has no secret", (long long)c->num);
    if (!c->has_row && c->has_stats)
        verify_say(arg, "client %lld: has counters and does not exist", (long long)c->num);
}

bool verify_listed_job(struct verify *v, const struct list_entry *e)
{
    if (e->bucket >= LIST_RUNS)
        return false;
    if (e->bucket == LIST_DELIVERIES || e->bucket == LIST_OF_JOB) {
        verify_listed_delivery(v, e);
        return true;
    }
    if (e->bucket == LIST_EARLY || e->bucket == LIST_EARLY_SLOTS)
        return true; /* a job that left in another way stays in it until its time has come */
    struct checked_job *j = verify_find_job(v, e->id);
    if (!j || !j->has_job) {
        verify_say(v, "job number %lld: is listed and has no job row", (long long)e->id);
        return true;
    }
    if (e->bucket == LIST_LATE)
        return true;
    if (e->owner_key != j->client)
        verify_say_job(v, j, "is listed for client %lld", (long long)e->owner_key);
    else if (e->bucket == LIST_ALL)
        j->listed = true;
    else if (j->is_ended && e->bucket == 1 + j->row_state)
        j->listed_final = true;
    else
        verify_say_job(v, j, "is listed in bucket %d, which is not its state", e->bucket);
    return true;
}

static bool note_idem(const struct idem_entry *e, void *arg)
{
    struct verify *v = arg;
    verify_seen(v);
    struct checked_job *j = verify_find_job(v, e->job);
    if (!j || !j->has_job || j->idem != e->hash)
        verify_say(v, "job number %lld: an idempotency entry is not the one of its key", (long long)e->job);
    else
        j->idem_seen = true;
    return true;
}

static void check_places(struct map_node *n, void *arg)
{
    const struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
    if (!j->has_job)
        return;
    if (!j->listed)
        verify_say_job(arg, j, "is missing in its client's list");
    if (j->is_ended && !j->listed_final)
        verify_say_job(arg, j, "is missing in its client's list of %s jobs",
                       job_state_text((enum job_state)j->row_state));
    if (j->idem && !j->idem_seen)
        verify_say_job(arg, j, "has an idempotency key that no restart would find");
}

enum err_code verify_beside(struct verify *v, struct err *err)
{
    struct reader *r = v->reader;
    if (verify_scan(v, &table_stats_row, note_stats, v, err) != ERR_OK ||
        r->ops->reader_scan_idem(r, note_idem, v, err) != ERR_OK)
        return err->code;
    map_each(&job_check(v)->clients, check_client, v);
    map_each(&job_check(v)->jobs, check_places, v);
    verify_delivery_places(v);
    return ERR_OK;
}
