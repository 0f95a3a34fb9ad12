/* Loop takeover: a loop whose round ends with a wait does not keep its connections waiting.
 *
 * The server has one thread more than it has loops. The spare thread sleeps until a round announces that it
 * is about to wait (http_round_waits), then looks every few milliseconds. When a loop still waits after
 * WAIT_MS, the spare thread takes it over and serves it from then on. The thread that waited learns this when
 * it returns, and becomes the spare one. A disk that stops therefore delays the connections of one loop by
 * some milliseconds, once. */
#include <stdio.h>
#include <time.h>

#include "http/http_internal.h"

#include "base/banned.h"

enum {
    WAIT_MS = 20,
    LOOK_MS = 20,
    LOOKS = 50, /* a second after the last wait it sleeps until it is called */
};

/* The loop that this thread serves, and since when the end of its round waits. */
static _Thread_local struct http_loop *served;
static _Thread_local int64_t waits_since_ms;

void http_round_waits(void)
{
    struct http_loop *l = served;
    if (!l)
        return;
    waits_since_ms = clock_mono_ms(l->server->config.clock) + 1; /* never 0 */
    atomic_store(&l->waits_since_ms, waits_since_ms);
    heart_waits(l->heart, true);
    if (atomic_exchange(&l->server->loop_takeover.looks, LOOKS) == 0)
        loop_takeover_call(l->server);
}

const struct http_loop *loop_takeover_served(void)
{
    return served;
}

bool loop_takeover_end(struct http_loop *l)
{
    int64_t since = waits_since_ms;
    waits_since_ms = 0;
    /* After a takeover there is 0, or a later time of the other thread. */
    return !since || atomic_compare_exchange_strong(&l->waits_since_ms, &since, 0);
}

void loop_takeover_init(struct loop_takeover *x)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&x->lock, NULL);
}

void loop_takeover_destroy(struct loop_takeover *x)
{
    pthread_cond_destroy(&x->wake);
    pthread_mutex_destroy(&x->lock);
}

void loop_takeover_call(struct http_server *s)
{
    pthread_mutex_lock(&s->loop_takeover.lock);
    pthread_cond_signal(&s->loop_takeover.wake);
    pthread_mutex_unlock(&s->loop_takeover.lock);
}

static void sleep_a_little(struct http_server *s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(&s->loop_takeover.wake, &s->loop_takeover.lock, &until);
}

static struct http_loop *find_one_that_waits(struct http_server *s)
{
    int64_t now = clock_mono_ms(s->config.clock);
    for (uint32_t i = 0; i < s->loop_count; i++) {
        int64_t since = atomic_load(&s->loops[i].waits_since_ms);
        if (since && now - since >= WAIT_MS &&
            atomic_compare_exchange_strong(&s->loops[i].waits_since_ms, &since, 0))
            return &s->loops[i];
    }
    return NULL;
}

/* NULL when the server stops. */
static struct http_loop *stand_by(struct http_server *s)
{
    struct http_loop *found = NULL;
    pthread_mutex_lock(&s->loop_takeover.lock);
    while (!found && !atomic_load(&s->stopping)) {
        if (atomic_load(&s->loop_takeover.looks) == 0) {
            pthread_cond_wait(&s->loop_takeover.wake, &s->loop_takeover.lock);
            continue;
        }
        sleep_a_little(s);
        found = find_one_that_waits(s);
        int looks = atomic_load(&s->loop_takeover.looks);
        if (!found && looks > 0) /* a wait that began just now keeps it at LOOKS */
            (void)atomic_compare_exchange_strong(&s->loop_takeover.looks, &looks, looks - 1);
    }
    pthread_mutex_unlock(&s->loop_takeover.lock);
    return found;
}

static void name_thread(const struct http_loop *l)
{
    char name[16] = "http-takeover"; /* for top, perf and the benchmark */
    if (l)
        snprintf(name, sizeof name, "http-%u", l->number);
    (void)pthread_setname_np(pthread_self(), name);
}

void *server_thread_main(void *thread)
{
    struct http_server *s = ((struct server_thread *)thread)->server;
    struct http_loop *l = ((struct server_thread *)thread)->loop;
    for (;;) {
        if (!l) {
            name_thread(NULL);
            l = stand_by(s);
        }
        if (!l)
            return NULL;
        name_thread(l);
        served = l;
        bool over = loop_serve(l);
        served = NULL;
        if (over)
            return NULL;
        l = NULL;
    }
}
