#include "api/engine/signal_limits.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

enum { MINUTE_MS = 60000 };

/* The counters there are: of whom, and for which setting. */
#define COUNTERS(X)                                                                                          \
    X(RUN, "the run", engine_signals_per_run_minute)                                                         \
    X(RUN_CANCEL, "the run", engine_signals_per_run_minute)                                                  \
    X(RUN_STOP, "the run", engine_signals_per_run_minute)                                                    \
    X(TENANT, "the tenant", engine_signals_per_tenant_minute)                                                \
    X(TENANT_CANCEL, "the tenant", engine_signals_per_tenant_minute)                                         \
    X(TENANT_STOP, "the tenant", engine_signals_per_tenant_minute)                                           \
    X(ACTOR_REFUSED, "the actor", engine_refused_signals_per_actor_minute)                                   \
    X(TENANT_REFUSED, "the actor's tenant", engine_signals_per_tenant_minute)
#define X(name, whose, setting) COUNTER_##name,
enum counter { COUNTERS(X) COUNTER_COUNT };
#undef X

struct counted {
    struct map_node node;
    int64_t since_ms, count;
    enum counter what;
    size_t tenant_len, name_len;
    char text[]; /* the tenant, then the run or the actor */
};

struct signal_limits {
    const struct settings *settings;
    pthread_mutex_t lock;
    struct map names;
    uint64_t key[2]; /* so that no caller can choose names that fall together */
};

struct signal_limits *signal_limits_new(const struct settings *s)
{
    struct signal_limits *l = must_alloc(sizeof *l);
    l->settings = s;
    l->key[0] = random_u64();
    l->key[1] = random_u64();
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

static void free_counted(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct counted, node));
}

struct signal_limits *signal_limits_free(struct signal_limits *l)
{
    if (!l)
        return NULL;
    map_drain(&l->names, free_counted, NULL);
    map_free(&l->names);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

/* --- counters --------------------------------------------------------------------------------------- */

static bool is_over(const struct counted *x, int64_t now_ms)
{
    return now_ms - x->since_ms >= MINUTE_MS || now_ms < x->since_ms;
}

struct sweep {
    struct map kept;
    int64_t now_ms;
};

static void keep_or_free(struct map_node *n, void *arg)
{
    struct sweep *s = arg;
    struct counted *x = CONTAINER_OF(n, struct counted, node);
    if (is_over(x, s->now_ms))
        free(x);
    else
        map_put(&s->kept, n, n->hash);
}

static void make_space(struct signal_limits *l, int64_t now_ms)
{
    if (l->names.count < SIGNAL_LIMITS_MAX)
        return;
    struct sweep s = {.now_ms = now_ms};
    map_drain(&l->names, keep_or_free, &s);
    map_free(&l->names);
    l->names = s.kept;
    if (l->names.count >= SIGNAL_LIMITS_MAX / 2) /* else the next sweep would come soon again */
        map_drain(&l->names, free_counted, NULL);
}

/* One counter: which, and of which run or actor; tenant's have neither. */
struct place {
    enum counter what;
    struct str name;
};

enum { PLACES = 2 }; /* that one signal counts in: its own, and the tenant's */

static void places_of(const struct signal_sender *s, bool refused, struct place out[PLACES])
{
    if (refused) {
        out[0] = (struct place){COUNTER_ACTOR_REFUSED, s->actor};
        out[1] = (struct place){COUNTER_TENANT_REFUSED, STR("")};
        return;
    }
    bool cancel = s->type == SIGNAL_CANCEL, stop = s->type == SIGNAL_EMERGENCY_STOP;
    out[0] = (struct place){stop ? COUNTER_RUN_STOP : cancel ? COUNTER_RUN_CANCEL : COUNTER_RUN, s->run};
    out[1] = (struct place){stop     ? COUNTER_TENANT_STOP
                            : cancel ? COUNTER_TENANT_CANCEL
                                     : COUNTER_TENANT,
                            STR("")};
}

static int64_t max_of(const struct signal_limits *l, enum counter what)
{
    switch (what) {
#define X(name, whose, setting)                                                                              \
    case COUNTER_##name:                                                                                     \
        return l->settings->setting;
        COUNTERS(X)
#undef X
    case COUNTER_COUNT:
        break;
    }
    MUST(false);
    return 0;
}

static uint64_t hash_of(const struct signal_limits *l, struct str tenant, const struct place *p)
{
    uint64_t of_tenant = hash_sip(l->key, tenant.ptr, tenant.len) ^ (uint64_t)p->what;
    return hash_sip((uint64_t[2]){l->key[0] ^ of_tenant, l->key[1]}, p->name.ptr, p->name.len);
}

/* An absent text is an empty one. */
static bool has_text(const char *at, struct str text)
{
    return !text.len || !memcmp(at, text.ptr, text.len);
}

static void put_text(char *at, struct str text)
{
    if (text.len)
        memcpy(at, text.ptr, text.len);
}

/* NULL: nothing is counted there. */
static struct counted *find(struct signal_limits *l, struct str tenant, const struct place *p)
{
    for (struct map_node *n = map_first(&l->names, hash_of(l, tenant, p)); n; n = map_next(n)) {
        struct counted *x = CONTAINER_OF(n, struct counted, node);
        if (x->what == p->what && x->tenant_len == tenant.len && x->name_len == p->name.len &&
            has_text(x->text, tenant) && has_text(x->text + tenant.len, p->name))
            return x;
    }
    return NULL;
}

static void add_one(struct signal_limits *l, struct str tenant, const struct place *p, int64_t now_ms)
{
    struct counted *x = find(l, tenant, p);
    if (!x) {
        x = must_alloc(sizeof *x + tenant.len + p->name.len);
        x->what = p->what;
        x->since_ms = now_ms;
        x->tenant_len = tenant.len;
        x->name_len = p->name.len;
        put_text(x->text, tenant);
        put_text(x->text + tenant.len, p->name);
        map_put(&l->names, &x->node, hash_of(l, tenant, p));
    }
    if (is_over(x, now_ms)) {
        x->since_ms = now_ms;
        x->count = 0;
    }
    x->count++;
}

/* Removes entries that no longer count: names of runs that do not exist must not pile up. */
static void take_one_back(struct signal_limits *l, struct str tenant, const struct place *p, int64_t taken_ms)
{
    struct counted *x = find(l, tenant, p);
    if (!x || x->since_ms > taken_ms || !x->count || --x->count)
        return;
    map_remove(&l->names, &x->node);
    free(x);
}

/* --- room ------------------------------------------------------------------------------------------- */

static bool has_room(struct signal_limits *l, const struct signal_sender *s, bool refused, int64_t now_ms,
                     struct err *err)
{
    static const char *const whose[] = {
#define X(name, text, setting) [COUNTER_##name] = text,
        COUNTERS(X)
#undef X
    };
    struct place places[PLACES];
    places_of(s, refused, places);
    for (size_t i = 0; i < PLACES; i++) {
        int64_t max = max_of(l, places[i].what);
        const struct counted *x = find(l, s->tenant, &places[i]);
        if (!max || !x || is_over(x, now_ms) || x->count < max)
            continue;
        err_set(err, ERR_REQUEST_RATE_LIMITED, "%s had %lld %s in this minute, the most allowed",
                whose[places[i].what], (long long)max, refused ? "signals refused" : "signals");
        err->retry_after_s = (int)((x->since_ms + MINUTE_MS - now_ms + 999) / 1000);
        return false;
    }
    return true;
}

static void hold(struct signal_limits *l, const struct signal_sender *s, bool refused, int64_t now_ms)
{
    struct place places[PLACES];
    places_of(s, refused, places);
    for (size_t i = 0; i < PLACES; i++)
        add_one(l, s->tenant, &places[i], now_ms);
}

static void give_back(struct signal_limits *l, const struct signal_sender *s, bool refused, int64_t taken_ms)
{
    struct place places[PLACES];
    places_of(s, refused, places);
    for (size_t i = 0; i < PLACES; i++)
        take_one_back(l, s->tenant, &places[i], taken_ms);
}

static enum err_code refuse(struct err *err, const struct err *full)
{
    *err = *full;
    return err->code;
}

static enum err_code take(struct signal_limits *l, const struct signal_sender *s, int64_t now_ms,
                          struct signal_room *ret, struct err *err)
{
    struct signal_room room = {.taken_ms = now_ms};
    room.none_if_allowed = !has_room(l, s, false, now_ms, &room.full);
    if (room.none_if_allowed && s->expected)
        return refuse(err, &room.full);
    room.none_if_refused = !has_room(l, s, true, now_ms, &room.full);
    if (room.none_if_refused && !s->expected)
        return refuse(err, &room.full);
    if (s->expected)
        hold(l, s, false, now_ms);
    if (!room.none_if_refused)
        hold(l, s, true, now_ms);
    *ret = room;
    return ERR_OK;
}

enum err_code signal_limits_take(struct signal_limits *l, const struct signal_sender *s, int64_t now_ms,
                                 struct signal_room *ret, struct err *err)
{
    pthread_mutex_lock(&l->lock);
    make_space(l, now_ms);
    enum err_code code = take(l, s, now_ms, ret, err);
    pthread_mutex_unlock(&l->lock);
    return code;
}

void signal_limits_settle(struct signal_limits *l, const struct signal_sender *s,
                          const struct signal_room *room, bool refused)
{
    pthread_mutex_lock(&l->lock);
    if (refused && s->expected)
        give_back(l, s, false, room->taken_ms);
    if (!refused && !s->expected)
        hold(l, s, false, room->taken_ms); /* a policy decision point allowed what the table does not */
    if (!refused && !room->none_if_refused)
        give_back(l, s, true, room->taken_ms);
    pthread_mutex_unlock(&l->lock);
}

size_t signal_limits_count(struct signal_limits *l)
{
    pthread_mutex_lock(&l->lock);
    size_t count = l->names.count;
    pthread_mutex_unlock(&l->lock);
    return count;
}
