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

struct counted {
    struct map_node node;
    int64_t since_ms, count;
    size_t tenant_len, run_len;
    char name[]; /* a letter for what it is, the tenant, the run */
};

struct signal_limits {
    const struct settings *settings;
    pthread_mutex_t lock;
    struct map names;
    uint64_t key[2]; /* so that nobody outside can choose names that fall together */
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

static bool is_it(const struct counted *x, char what, struct str tenant, struct str run)
{
    return x->name[0] == what && x->tenant_len == tenant.len && x->run_len == run.len &&
           (!tenant.len || !memcmp(x->name + 1, tenant.ptr, tenant.len)) &&
           (!run.len || !memcmp(x->name + 1 + tenant.len, run.ptr, run.len));
}

static struct counted *new_counted(char what, struct str tenant, struct str run, int64_t now_ms)
{
    struct counted *x = must_alloc(sizeof *x + 1 + tenant.len + run.len);
    x->since_ms = now_ms;
    x->tenant_len = tenant.len;
    x->run_len = run.len;
    x->name[0] = what;
    if (tenant.len)
        memcpy(x->name + 1, tenant.ptr, tenant.len);
    if (run.len)
        memcpy(x->name + 1 + tenant.len, run.ptr, run.len);
    return x;
}

static struct counted *counted_of(struct signal_limits *l, char what, struct str tenant, struct str run,
                                  int64_t now_ms)
{
    uint64_t hash = hash_sip(l->key, tenant.ptr, tenant.len) ^ (uint64_t)(unsigned char)what;
    if (run.len)
        hash = hash_sip((uint64_t[2]){l->key[0] ^ hash, l->key[1]}, run.ptr, run.len);
    struct counted *x = NULL;
    for (struct map_node *n = map_first(&l->names, hash); n && !x; n = map_next(n))
        if (is_it(CONTAINER_OF(n, struct counted, node), what, tenant, run))
            x = CONTAINER_OF(n, struct counted, node);
    if (!x) {
        x = new_counted(what, tenant, run, now_ms);
        map_put(&l->names, &x->node, hash);
    }
    if (now_ms - x->since_ms >= MINUTE_MS || now_ms < x->since_ms) {
        x->since_ms = now_ms;
        x->count = 0;
    }
    return x;
}

static enum err_code refuse(const struct counted *x, const char *whose, int64_t max, int64_t now_ms,
                            struct err *err)
{
    err_set(err, ERR_REQUEST_RATE_LIMITED, "%s got %lld signals in this minute, the most allowed", whose,
            (long long)max);
    err->retry_after_s = (int)((x->since_ms + MINUTE_MS - now_ms + 999) / 1000);
    return err->code;
}

static enum err_code take(struct signal_limits *l, struct str tenant, struct str run, int64_t now_ms,
                          struct err *err)
{
    int64_t run_max = l->settings->engine_signals_per_run_minute,
            tenant_max = l->settings->engine_signals_per_tenant_minute;
    if (l->names.count >= SIGNAL_LIMITS_MAX)
        map_drain(&l->names, free_counted, NULL);
    struct counted *of_run = counted_of(l, 'r', tenant, run, now_ms);
    struct counted *of_tenant = counted_of(l, 't', tenant, (struct str){"", 0}, now_ms);
    if (run_max && of_run->count >= run_max)
        return refuse(of_run, "the run", run_max, now_ms, err);
    if (tenant_max && of_tenant->count >= tenant_max)
        return refuse(of_tenant, "the tenant", tenant_max, now_ms, err);
    of_run->count++;
    of_tenant->count++;
    return ERR_OK;
}

enum err_code signal_limits_take(struct signal_limits *l, struct str tenant, struct str run, int64_t now_ms,
                                 struct err *err)
{
    pthread_mutex_lock(&l->lock);
    enum err_code code = take(l, tenant, run, now_ms, err);
    pthread_mutex_unlock(&l->lock);
    return code;
}
