#include "jobs/purge.h"

#include "jobs/client_state.h"
#include "jobs/creates.h"
#include "jobs/job_notices.h"
#include "jobs/purge_internal.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/key_list.h"

#include "base/banned.h"

/* Keys are looked through as a whole, so seldom; deliveries of no job are few. */
enum {
    CHUNKS_A_TURN = 16,
    KEYS_A_TURN = 200,
    SELDOM_MS = 3600000,
    ATTEMPTS_MAX = 1001,
    DELIVERIES_A_TURN = 1000,
    LATE_A_TURN = 100,
    LATE_MS = 60000,
    EARLY_MS = 5000
};

/* --- jobs -------------------------------------------------------------------------------------- */

static void drop_archives(struct unit *u, int64_t job, int64_t attempts)
{
    for (int64_t n = 1; n < attempts && n < ATTEMPTS_MAX; n++) {
        struct archive_row key = {.job = job, .attempt = n};
        if (unit_fetch(u, &table_archive_row, &key))
            unit_delete(u, &table_archive_row, &key);
    }
}

/* Copies that were kept when older chunks of this job were dropped. */
static void drop_kept(struct unit *u, const struct end_row *end)
{
    for (size_t i = 0; i < log_ref_count(end->refs); i++) {
        if (log_ref_chunk(log_ref_at(end->refs, i)) >= u->store->first_chunk)
            continue;
        struct kept_row key = {.job = end->id, .seq = (int64_t)i + 1};
        if (unit_fetch(u, &table_kept_row, &key))
            unit_delete(u, &table_kept_row, &key);
    }
}

/* --- deliveries of a job ------------------------------------------------------------------------- */

/* Of those that were read none waits to be sent; PURGE_KEEPS: one does. */
static enum purged read_deliveries(struct unit *u, int64_t job, uint8_t bucket, int64_t *ids,
                                   size_t *ret_count)
{
    struct err err;
    struct list_query q = {
        .owner_key = job, .bucket = bucket, .below_id = INT64_MAX, .limit = DELIVERIES_A_TURN};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return PURGE_WAITS;
    enum err_code code = u->reader->ops->reader_list(u->reader, &q, ids, ret_count, &err);
    u->reader->ops->reader_end(u->reader);
    for (size_t i = 0; code == ERR_OK && i < *ret_count; i++) {
        struct delivery_row key = {.id = ids[i]};
        const struct delivery_row *d = unit_fetch(u, &table_delivery_row, &key);
        if (u->load_err.code != ERR_OK)
            return PURGE_WAITS;
        if (d && d->state == DELIVERY_PENDING)
            return PURGE_KEEPS;
    }
    return code == ERR_OK ? PURGED : PURGE_WAITS;
}

static void drop_deliveries(struct unit *u, int64_t job, uint8_t bucket, const int64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct delivery_row key = {.id = ids[i]};
        const struct delivery_row *d = unit_row(u, &table_delivery_row, &key);
        unit_list(u, job, bucket, ids[i], true);
        if (!d)
            continue;
        if (d->webhook)
            unit_list(u, d->webhook, LIST_DELIVERIES, ids[i], true);
        unit_delete(u, &table_delivery_row, d);
    }
}

static enum purged purge_deliveries(struct unit *u, int64_t job)
{
    static const uint8_t buckets[] = {LIST_DELIVERIES, LIST_OF_JOB};
    int64_t ids[2][DELIVERIES_A_TURN];
    size_t counts[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        enum purged found = read_deliveries(u, job, buckets[i], ids[i], &counts[i]);
        if (found != PURGED)
            return found;
    }
    for (int i = 0; i < 2; i++)
        drop_deliveries(u, job, buckets[i], ids[i], counts[i]);
    return counts[0] < DELIVERIES_A_TURN && counts[1] < DELIVERIES_A_TURN ? PURGED : PURGE_WAITS;
}

static void purge_job(struct unit *u, const struct job_row *job, const struct end_row *end)
{
    unit_count_move(u, job->client, (enum job_state)end->state, JOB_NO_STATE);
    if (job->kind != WORK_KIND_NONE)
        unit_counts(u, job->client)->by_kind[job->kind]--;
    unit_list(u, job->client, LIST_ALL, job->id, true);
    unit_list(u, job->client, (uint8_t)(1 + end->state), job->id, true);
    if (job->idem_key.ptr)
        unit_idem_drop(u, idem_hash(job->client, job->idem_key), job->id);
    drop_archives(u, job->id, end->attempt);
    drop_kept(u, end);
    unit_delete(u, &table_end_row, end);
    unit_delete(u, &table_job_row, job);
}

enum purged purge_one(struct unit *u, int64_t id, int64_t cutoff_ms, bool *ret_late)
{
    *ret_late = false;
    if (unit_task(u, id))
        return PURGE_KEEPS;
    struct end_row end_key = {.id = id};
    struct job_row job_key = {.id = id};
    const struct end_row *end = unit_fetch(u, &table_end_row, &end_key);
    const struct job_row *job = unit_fetch(u, &table_job_row, &job_key);
    if (u->load_err.code != ERR_OK)
        return PURGE_WAITS;
    if (!end || !job)
        return PURGED;
    if (end->finished_ms > cutoff_ms)
        return PURGE_KEEPS;
    enum purged deliveries = purge_deliveries(u, id);
    if (deliveries == PURGED)
        purge_job(u, job, end);
    *ret_late = deliveries == PURGE_KEEPS;
    return deliveries;
}

/* --- the log ----------------------------------------------------------------------------------- */

static enum purged purge_event_job(struct unit *u, const struct event *e, int64_t cutoff_ms)
{
    bool late;
    enum purged done = purge_one(u, e->job, cutoff_ms, &late);
    if (late) /* its events leave the log now, which will not lead here again */
        unit_list(u, 0, LIST_LATE, e->job, false);
    return done;
}

static void keep_event(struct unit *u, const struct event *e)
{
    struct kept_row *row = ARENA_NEW(u->arena, struct kept_row);
    *row = (struct kept_row){.job = e->job, .seq = e->seq, .event = event_encode_in(u->arena, e)};
    if (!unit_fetch(u, &table_kept_row, row) && u->load_err.code == ERR_OK)
        unit_insert(u, &table_kept_row, row);
}

static bool chunk_is_over(struct str chunk, int64_t cutoff_ms)
{
    struct event e;
    for (size_t at = LOG_FIRST_OFFSET; at < chunk.len && event_decode(chunk, at, &e, &at);)
        if (e.at_us / 1000 > cutoff_ms)
            return false;
    return true;
}

struct old_chunk {
    int64_t number;
    struct str data;
};

/* The oldest chunks of the log that are all past retention, at most CHUNKS_A_TURN. */
struct old_chunks {
    struct arena *arena;
    int64_t cutoff_ms;
    struct old_chunk chunks[CHUNKS_A_TURN];
    size_t count;
};

static bool note_old_chunk(int64_t number, struct str data, void *arg)
{
    struct old_chunks *o = arg;
    if (!chunk_is_over(data, o->cutoff_ms))
        return false;
    o->chunks[o->count++] = (struct old_chunk){number, arena_str(o->arena, data)};
    return o->count < CHUNKS_A_TURN;
}

static bool read_old_chunks(struct unit *u, int64_t cutoff_ms, struct old_chunks *ret)
{
    struct err err;
    *ret = (struct old_chunks){.arena = u->arena, .cutoff_ms = cutoff_ms};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code =
        u->reader->ops->reader_scan_log(u->reader, u->store->first_chunk, note_old_chunk, ret, &err);
    u->reader->ops->reader_end(u->reader);
    return code == ERR_OK;
}

/* All that the events of a chunk will need comes together. */
static void load_jobs(struct unit *u, struct str chunk)
{
    struct event e;
    do {
        for (size_t at = LOG_FIRST_OFFSET; at < chunk.len && event_decode(chunk, at, &e, &at);) {
            if (unit_prefetch_task(u, e.job))
                continue;
            unit_prefetch(u, &table_end_row, &(struct end_row){.id = e.job});
            unit_prefetch(u, &table_job_row, &(struct job_row){.id = e.job});
        }
    } while (unit_load(u));
}

/* True when the chunk can go; false when something of it could not be read, or there is more of it. */
static bool purge_chunk(struct unit *u, struct str chunk, int64_t cutoff_ms)
{
    struct event e, kept[LOG_CHUNK_BYTES / EVENT_HEAD_BYTES];
    size_t kept_count = 0;
    bool waits = false;
    load_jobs(u, chunk);
    for (size_t at = LOG_FIRST_OFFSET; at < chunk.len && event_decode(chunk, at, &e, &at);) {
        enum purged done = purge_event_job(u, &e, cutoff_ms);
        waits = waits || done == PURGE_WAITS;
        if (done == PURGE_KEEPS)
            kept[kept_count++] = e;
    }
    for (size_t i = 0; !waits && i < kept_count; i++) /* only of a chunk that goes */
        keep_event(u, &kept[i]);
    return !waits && u->load_err.code == ERR_OK;
}

/* The open chunk goes as others do, and gets no more events then; unless this batch has added some. */
static bool may_drop(struct unit *u, int64_t number)
{
    return number + 1 < u->store->next_chunk || log_builder_leave_open_chunk(&u->log);
}

static bool purge_log(struct unit *u)
{
    int64_t cutoff_ms = u->now_ms - u->settings->jobs_retention_seconds * 1000;
    struct old_chunks old;
    size_t n = 0;
    if (!read_old_chunks(u, cutoff_ms, &old))
        return false;
    for (;
         n < old.count && may_drop(u, old.chunks[n].number) && purge_chunk(u, old.chunks[n].data, cutoff_ms);
         n++)
        u->drop_chunks_below = old.chunks[n].number + 1;
    return n == CHUNKS_A_TURN;
}

/* --- jobs put down for later ------------------------------------------------------------------- */

/* Newest first, a part at a time. Who was retried since is the log's business again. */
static bool purge_late(struct purge *p, struct unit *u)
{
    struct err err;
    int64_t ids[LATE_A_TURN];
    size_t count = 0;
    int64_t cutoff_ms = u->now_ms - u->settings->jobs_retention_seconds * 1000;
    struct list_query q = {
        .bucket = LIST_LATE, .below_id = p->late_below ? p->late_below : INT64_MAX, .limit = LATE_A_TURN};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_list(u->reader, &q, ids, &count, &err);
    u->reader->ops->reader_end(u->reader);
    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        bool late;
        enum purged done = purge_one(u, ids[i], cutoff_ms, &late);
        if (!late && done != PURGE_WAITS)
            unit_list(u, 0, LIST_LATE, ids[i], true);
    }
    p->late_below = code == ERR_OK && count == LATE_A_TURN ? ids[count - 1] : 0;
    return p->late_below != 0;
}

/* --- deliveries of no job -------------------------------------------------------------------------- */

/* Ids begin with their time, so those before the cutoff are those below an id. Pending ones stay. */
static bool purge_rest(struct unit *u)
{
    struct err err;
    int64_t ids[DELIVERIES_A_TURN], old[DELIVERIES_A_TURN];
    size_t count = 0, old_count = 0;
    int64_t cutoff_ms = u->now_ms - u->settings->jobs_retention_seconds * 1000;
    struct list_query q = {
        .owner_key = 0, .bucket = LIST_OF_JOB, .below_id = cutoff_ms << 12, .limit = DELIVERIES_A_TURN};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_list(u->reader, &q, ids, &count, &err);
    u->reader->ops->reader_end(u->reader);
    for (size_t i = 0; code == ERR_OK && i < count; i++) {
        struct delivery_row key = {.id = ids[i]};
        const struct delivery_row *d = unit_fetch(u, &table_delivery_row, &key);
        if (u->load_err.code == ERR_OK && (!d || d->state != DELIVERY_PENDING))
            old[old_count++] = ids[i];
    }
    if (code == ERR_OK && u->load_err.code == ERR_OK)
        drop_deliveries(u, 0, LIST_OF_JOB, old, old_count);
    return old_count == DELIVERIES_A_TURN;
}

/* --- keys -------------------------------------------------------------------------------------- */

struct old_keys {
    int64_t cutoff_ms, now_ms;
    int64_t expiring; /* of those that were seen */
    int64_t ids[KEYS_A_TURN];
    size_t count;
};

static bool note_old_key(const void *row, void *arg)
{
    struct old_keys *o = arg;
    const struct api_key_row *key = row;
    if ((key->revoked_ms && key->revoked_ms < o->cutoff_ms) ||
        (key->ends_ms && key->ends_ms < o->cutoff_ms) || key->expires_ms < o->cutoff_ms)
        o->ids[o->count++] = key->id;
    int64_t left_ms = key->expires_ms - o->now_ms;
    o->expiring +=
        !key->revoked_ms && !key->ends_ms && left_ms > 0 && left_ms < (int64_t)KEY_WARN_SECONDS * 1000;
    return o->count < KEYS_A_TURN;
}

/* With its place in the list of its client. */
static void purge_key(struct unit *u, int64_t id)
{
    struct api_key_row key = {.id = id};
    const struct api_key_row *row = unit_fetch(u, &table_api_key_row, &key);
    if (!row)
        return;
    struct key_head_row head_key = {.client = row->client};
    struct key_head_row *head = unit_fetch(u, &table_key_head_row, &head_key);
    if (head) {
        struct key_list list = key_list_read(head->listed, head->active);
        key_list_remove(&list, id);
        head->listed = key_list_text(&list, u->arena);
        head->active = head->active == id ? 0 : head->active;
        unit_update(u, &table_key_head_row, head);
    }
    unit_delete(u, &table_api_key_row, &key);
}

static bool purge_keys(struct purge *p, struct unit *u)
{
    struct err err;
    struct old_keys o = {.cutoff_ms = u->now_ms - u->settings->keys_revoked_retention_seconds * 1000,
                         .now_ms = u->now_ms};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_scan(u->reader, &table_api_key_row, note_old_key, &o, &err);
    u->reader->ops->reader_end(u->reader);
    for (size_t i = 0; code == ERR_OK && i < o.count; i++)
        purge_key(u, o.ids[i]);
    if (o.count)
        unit_notify(u, &key_change_notices, NULL);
    if (code == ERR_OK && o.count < KEYS_A_TURN)
        atomic_store(&p->keys_expiring, o.expiring);
    return o.count == KEYS_A_TURN;
}

/* Twice in a retention time, and so often at least. */
static bool is_time(struct unit *u, int64_t checked_ms, int64_t retention_s, int64_t every_ms)
{
    int64_t half_ms = retention_s * 500;
    return u->now_ms - checked_ms >= (half_ms < every_ms ? half_ms : every_ms);
}

bool purge_housekeep(void *self, struct unit *u)
{
    struct purge *p = self;
    if (!u->may_delete)
        return false;
    bool more = purge_log(u);
    if (p->late_below || is_time(u, p->late_checked_ms, u->settings->jobs_retention_seconds, LATE_MS)) {
        more = purge_late(p, u) || more;
        p->late_checked_ms = u->now_ms;
    }
    if (is_time(u, p->early_checked_ms, u->settings->jobs_retention_seconds, EARLY_MS)) {
        bool more_early = purge_early(u);
        if (!more_early)
            p->early_checked_ms = u->now_ms;
        more = more_early || more;
    }
    if (is_time(u, p->flows_checked_ms, u->settings->jobs_retention_seconds, SELDOM_MS) && !purge_flows(u))
        p->flows_checked_ms = u->now_ms;
    if (is_time(u, p->rest_checked_ms, u->settings->jobs_retention_seconds, SELDOM_MS) && !purge_rest(u))
        p->rest_checked_ms = u->now_ms;
    if (is_time(u, p->keys_checked_ms, u->settings->keys_revoked_retention_seconds, SELDOM_MS) &&
        !purge_keys(p, u))
        p->keys_checked_ms = u->now_ms;
    if (is_time(u, p->clients_checked_ms, u->settings->clients_keyless_ttl_seconds, LATE_MS) &&
        !drop_keyless_clients(u))
        p->clients_checked_ms = u->now_ms;
    if (is_time(u, p->creates_checked_ms, u->settings->jobs_retention_seconds, SELDOM_MS)) {
        bool more_creates = creates_drop_old(u);
        if (!more_creates)
            p->creates_checked_ms = u->now_ms;
        more = more || more_creates;
    }
    return more;
}
