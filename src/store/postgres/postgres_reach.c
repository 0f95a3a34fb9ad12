#include "store/postgres/postgres_reach.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/postgres/postgres_clock.h"

#include "base/banned.h"

static _Atomic int64_t connected_ms;
static _Atomic bool is_any_silent; /* seldom true: spares the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t url;
    bool is_silent;
    struct reach_hosts hosts;
} known;

static char *copy(const char *text)
{
    return text ? must_strdup(text) : NULL;
}

void reach_hosts_free(struct reach_hosts *h)
{
    free(h->host);
    free(h->hostaddr);
    free(h->port);
}

/* With the lock. */
static void know(uint64_t url)
{
    if (known.url == url)
        return;
    reach_hosts_free(&known.hosts);
    memset(&known, 0, sizeof known);
    known.url = url;
}

static void set_silent(uint64_t url, bool is_silent)
{
    pthread_mutex_lock(&lock);
    if (is_silent)
        know(url);
    if (known.url == url)
        known.is_silent = is_silent;
    atomic_store(&is_any_silent, known.is_silent);
    pthread_mutex_unlock(&lock);
}

void reach_answered(uint64_t url)
{
    if (atomic_load_explicit(&is_any_silent, memory_order_relaxed))
        set_silent(url, false);
}

void reach_not_answered(uint64_t url)
{
    set_silent(url, true);
}

bool reach_is_silent(uint64_t url)
{
    if (!atomic_load_explicit(&is_any_silent, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&lock);
    bool is_silent = known.url == url && known.is_silent;
    pthread_mutex_unlock(&lock);
    return is_silent;
}

void reach_connected(uint64_t url)
{
    atomic_store(&connected_ms, pg_mono_ms());
    reach_answered(url);
}

int64_t reach_connected_ms(void)
{
    return atomic_load(&connected_ms);
}

void reach_hosts(uint64_t url, struct reach_hosts *ret)
{
    *ret = (struct reach_hosts){0};
    pthread_mutex_lock(&lock);
    if (known.url == url)
        *ret = (struct reach_hosts){copy(known.hosts.host), copy(known.hosts.hostaddr),
                                    copy(known.hosts.port), known.hosts.turn};
    pthread_mutex_unlock(&lock);
}

/* "a,b,c" to "b,c,a"; a port for all hosts stays. */
static char *turned(const char *list)
{
    const char *comma = list ? strchr(list, ',') : NULL;
    if (!comma)
        return copy(list);
    size_t first = (size_t)(comma - list), rest = strlen(comma + 1);
    char *text = must_alloc(first + rest + 2);
    memcpy(text, comma + 1, rest);
    text[rest] = ',';
    memcpy(text + rest + 1, list, first);
    return text;
}

void reach_hosts_hang(uint64_t url, const struct reach_hosts *tried, PGconn *conn)
{
    PQconninfoOption *options = PQconninfo(conn); /* of the environment and of a service file, too */
    pthread_mutex_lock(&lock);
    know(url);
    bool is_news = known.hosts.turn == tried->turn; /* else another has turned them since */
    if (is_news && options) {
        reach_hosts_free(&known.hosts);
        known.hosts = (struct reach_hosts){.turn = tried->turn + 1};
    }
    for (const PQconninfoOption *o = options; is_news && o && o->keyword; o++) {
        if (strcmp(o->keyword, "host") == 0)
            known.hosts.host = turned(o->val);
        else if (strcmp(o->keyword, "hostaddr") == 0)
            known.hosts.hostaddr = turned(o->val);
        else if (strcmp(o->keyword, "port") == 0)
            known.hosts.port = turned(o->val);
    }
    pthread_mutex_unlock(&lock);
    PQconninfoFree(options);
}
