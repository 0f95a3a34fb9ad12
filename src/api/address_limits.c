#include "api/address_limits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/must.h"

#include "base/banned.h"

enum { SHARDS = 16, WAYS = 4, PLACES = ADDRESSES_MAX / SHARDS / WAYS, WINDOW_MS = 60000 };

struct entry {
    struct http_address network;
    int64_t until_ms; /* 0: the entry is free */
    uint32_t counts[ADDRESS_BUDGET_COUNT], logged, unlogged;
};

struct shard {
    pthread_mutex_t lock;
    int64_t unlogged;              /* of addresses that were forgotten */
    struct entry (*entries)[WAYS]; /* PLACES */
};

struct address_limits {
    const struct settings *settings;
    const struct clock *clock;
    uint32_t next_tick;                    /* the shard that is looked at next */
    _Atomic int64_t lines, lines_until_ms; /* of all addresses, in this minute */
    struct shard shards[SHARDS];
    struct entry entries[SHARDS][PLACES][WAYS]; /* apart: a page is touched only for an address in it */
};

struct address_limits *address_limits_new(const struct settings *s, const struct clock *clock)
{
    struct address_limits *a = must_alloc(sizeof *a);
    a->settings = s;
    a->clock = clock;
    for (int i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&a->shards[i].lock, NULL);
        a->shards[i].entries = a->entries[i];
    }
    return a;
}

struct address_limits *address_limits_free(struct address_limits *a)
{
    for (int i = 0; a && i < SHARDS; i++)
        pthread_mutex_destroy(&a->shards[i].lock);
    free(a);
    return NULL;
}

static uint32_t requests_of(const struct entry *e)
{
    uint32_t n = 0;
    for (int i = 0; i < ADDRESS_BUDGET_COUNT; i++)
        n += e->counts[i];
    return n;
}

static void tell(const struct entry *e)
{
    char text[HTTP_ADDRESS_TEXT_MAX];
    log_line(LOG_INFO, "requests_not_logged", "peer", LOG_STR(http_address_text(&e->network, text)),
             "requests", LOG_INT(e->unlogged), NULL);
}

/* The entry of a network in its minute; an old or a small one makes room. With the shard's lock held. */
static struct entry *entry_of(struct shard *s, uint32_t place, const struct http_address *network,
                              int64_t now_ms)
{
    struct entry *ways = s->entries[place], *chosen = &ways[0];
    for (int i = 0; i < WAYS; i++) {
        struct entry *e = &ways[i];
        bool over = e->until_ms <= now_ms;
        if (!over && memcmp(e->network.bytes, network->bytes, sizeof network->bytes) == 0)
            return e;
        bool chosen_is_over = chosen->until_ms <= now_ms;
        if (!chosen_is_over && (over || requests_of(e) < requests_of(chosen)))
            chosen = e;
    }
    if (chosen->unlogged && chosen->until_ms <= now_ms)
        tell(chosen);
    else
        s->unlogged += chosen->unlogged;
    *chosen = (struct entry){.network = *network, .until_ms = now_ms + WINDOW_MS};
    return chosen;
}

static struct shard *lock_shard(struct address_limits *a, const struct http_address *from,
                                struct http_address *ret_network, uint32_t *ret_place)
{
    *ret_network = http_address_network(from);
    uint64_t hash = hash_secret(ret_network->bytes, sizeof ret_network->bytes);
    struct shard *s = &a->shards[hash % SHARDS];
    *ret_place = (uint32_t)(hash / SHARDS % PLACES);
    pthread_mutex_lock(&s->lock);
    return s;
}

static int64_t quota_of(const struct settings *s, enum address_budget budget, const char **ret_key)
{
    switch (budget) {
#define X(name, field, key)                                                                                  \
    case ADDRESS_##name:                                                                                     \
        *ret_key = key;                                                                                      \
        return s->field;
        ADDRESS_BUDGETS(X)
#undef X
    case ADDRESS_BUDGET_COUNT:
        break;
    }
    MUST(false);
    return 0;
}

enum err_code address_limits_take(struct address_limits *a, const struct http_address *from,
                                  enum address_budget budget, struct err *err)
{
    const char *key;
    int64_t quota = quota_of(a->settings, budget, &key), now_ms = clock_mono_ms(a->clock), wait_ms = 0;
    struct http_address network;
    uint32_t place;
    if (!quota)
        return ERR_OK;
    struct shard *s = lock_shard(a, from, &network, &place);
    struct entry *e = entry_of(s, place, &network, now_ms);
    if (e->counts[budget] < quota)
        e->counts[budget]++;
    else
        wait_ms = e->until_ms - now_ms;
    pthread_mutex_unlock(&s->lock);
    if (!wait_ms)
        return ERR_OK;
    (void)err_set(err, ERR_REQUEST_RATE_LIMITED,
                  "%lld such requests a minute without credentials from one address (%s)", (long long)quota,
                  key);
    err->retry_after_s = (int)((wait_ms + 999) / 1000);
    return err->code;
}

/* Threads may both begin the minute anew: then it has a few lines more. */
static bool has_line_for_all(struct address_limits *a, int64_t now_ms)
{
    if (atomic_load_explicit(&a->lines_until_ms, memory_order_relaxed) <= now_ms) {
        atomic_store_explicit(&a->lines_until_ms, now_ms + WINDOW_MS, memory_order_relaxed);
        atomic_store_explicit(&a->lines, 0, memory_order_relaxed);
    }
    return atomic_fetch_add_explicit(&a->lines, 1, memory_order_relaxed) < ADDRESS_ALL_LINES_MAX;
}

bool address_limits_may_log(struct address_limits *a, const struct http_address *from)
{
    int64_t now_ms = clock_mono_ms(a->clock);
    struct http_address network;
    uint32_t place;
    struct shard *s = lock_shard(a, from, &network, &place);
    struct entry *e = entry_of(s, place, &network, now_ms);
    bool may = e->logged < ADDRESS_LINES_MAX && has_line_for_all(a, now_ms);
    e->logged += may;
    e->unlogged += !may;
    pthread_mutex_unlock(&s->lock);
    return may;
}

void address_limits_tick(struct address_limits *a)
{
    struct shard *s = &a->shards[a->next_tick++ % SHARDS];
    int64_t now_ms = clock_mono_ms(a->clock);
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < PLACES * WAYS; i++) {
        struct entry *e = &s->entries[i / WAYS][i % WAYS];
        if (e->unlogged && e->until_ms <= now_ms) {
            tell(e);
            *e = (struct entry){0};
        }
    }
    int64_t others = s->unlogged;
    s->unlogged = 0;
    pthread_mutex_unlock(&s->lock);
    if (others)
        log_line(LOG_INFO, "requests_not_logged", "requests", LOG_INT(others), NULL);
}
