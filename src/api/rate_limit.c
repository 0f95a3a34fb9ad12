#include "api/rate_limit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"

#include "base/banned.h"

enum { SHARDS = 16, MINUTE_MS = 60000, DAY_MS = 86400000, CLIENTS_A_SHARD_MAX = 65536 };

struct window {
    struct map_node node;
    int64_t client;
    int64_t minute, minute_count, day, day_count, per_minute;
};

struct shard {
    pthread_mutex_t lock;
    struct map windows;
};

struct rate_limit {
    const struct settings *settings;
    struct shard shards[SHARDS];
};

struct rate_limit *rate_limit_new(const struct settings *s)
{
    struct rate_limit *r = must_alloc(sizeof *r);
    r->settings = s;
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&r->shards[i].lock, NULL);
    return r;
}

static void free_window(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct window, node));
}

struct rate_limit *rate_limit_free(struct rate_limit *r)
{
    for (int i = 0; r && i < SHARDS; i++) {
        map_drain(&r->shards[i].windows, free_window, NULL);
        map_free(&r->shards[i].windows);
        pthread_mutex_destroy(&r->shards[i].lock);
    }
    free(r);
    return NULL;
}

/* limits.overrides: CLIENT_ID=PER_MINUTE,... (checked when the settings were read). */
static int64_t limit_of(const struct settings *s, const struct uuid *client_id)
{
    struct str rest = str_of(s->limits_overrides);
    char id[UUID_TEXT_LEN + 1];
    uuid_text(client_id, id);
    while (rest.len) {
        struct str entry = str_cut(&rest, ',');
        struct str name = str_trim(str_cut(&entry, '='));
        int64_t per_minute;
        if (str_equal_nocase(name, str_of(id)) && str_to_int(str_trim(entry), 0, INT64_MAX, &per_minute))
            return per_minute;
    }
    return s->limits_requests_per_minute;
}

static struct window *window_of(struct rate_limit *r, struct shard *shard, int64_t client,
                                const struct uuid *client_id)
{
    uint64_t hash = hash_mix((uint64_t)client);
    for (struct map_node *n = map_first(&shard->windows, hash); n; n = map_next(n)) {
        struct window *w = CONTAINER_OF(n, struct window, node);
        if (w->client == client)
            return w;
    }
    if (shard->windows.count >= CLIENTS_A_SHARD_MAX) /* forgets everyone's window rather than grow for ever */
        map_drain(&shard->windows, free_window, NULL);
    struct window *w = must_alloc(sizeof *w);
    w->client = client;
    w->per_minute = limit_of(r->settings, client_id);
    map_put(&shard->windows, &w->node, hash);
    return w;
}

static enum err_code refuse(int64_t now_ms, int64_t span_ms, int64_t limit, const char *per, struct err *err)
{
    err_set(err, ERR_REQUEST_RATE_LIMITED, "the limit is %lld requests per %s", (long long)limit, per);
    err->retry_after_s = (int)((span_ms - now_ms % span_ms + 999) / 1000);
    return err->code;
}

static enum err_code take(const struct settings *s, struct window *w, int64_t now_ms, struct err *err)
{
    if (w->minute != now_ms / MINUTE_MS) {
        w->minute = now_ms / MINUTE_MS;
        w->minute_count = 0;
    }
    if (w->day != now_ms / DAY_MS) {
        w->day = now_ms / DAY_MS;
        w->day_count = 0;
    }
    if (w->per_minute && w->minute_count >= w->per_minute)
        return refuse(now_ms, MINUTE_MS, w->per_minute, "minute", err);
    if (s->limits_requests_per_day && w->day_count >= s->limits_requests_per_day)
        return refuse(now_ms, DAY_MS, s->limits_requests_per_day, "day", err);
    w->minute_count++;
    w->day_count++;
    return ERR_OK;
}

enum err_code rate_limit_take(struct rate_limit *r, int64_t client, const struct uuid *client_id,
                              int64_t now_ms, struct err *err)
{
    const struct settings *s = r->settings;
    if (!s->limits_requests_per_minute && !s->limits_requests_per_day && !s->limits_overrides)
        return ERR_OK;
    struct shard *shard = &r->shards[(uint64_t)client % SHARDS];
    pthread_mutex_lock(&shard->lock);
    enum err_code code = take(s, window_of(r, shard, client, client_id), now_ms, err);
    pthread_mutex_unlock(&shard->lock);
    return code;
}
