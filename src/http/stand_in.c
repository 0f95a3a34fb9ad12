/* The stand-in: a loop whose round ends with a wait does not keep its connections waiting.
 *
 * There is one thread more than there are loops. It sleeps until a round says that it is about to wait
 * (http_round_waits), then looks every few milliseconds. A loop that still waits after WAIT_MS is taken
 * over and served by the stand-in from then on; the thread that waited finds out when it returns, and
 * stands by from then on. So a disk that stops delays the connections of one loop by some milliseconds,
 * once. */
#include <stdio.h>
#include <time.h>

#include "http/http_internal.h"

#include "base/banned.h"

enum {
    WAIT_MS = 20,
    LOOK_MS = 20,
    LOOKS = 50, /* a second after the last wait it sleeps until it is called */
};

/* What this thread serves, and since when the end of its round waits. */
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
    if (atomic_exchange(&l->server->stand_in.looks, LOOKS) == 0)
        stand_in_call(l->server);
}

const struct http_loop *stand_in_serves(void)
{
    return served;
}

bool stand_in_is_not_needed(struct http_loop *l)
{
    int64_t since = waits_since_ms;
    waits_since_ms = 0;
    /* Whoever took the loop over has put 0 there, or a later time of its own. */
    return !since || atomic_compare_exchange_strong(&l->waits_since_ms, &since, 0);
}

void stand_in_init(struct stand_in *x)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&x->lock, NULL);
}

void stand_in_destroy(struct stand_in *x)
{
    pthread_cond_destroy(&x->wake);
    pthread_mutex_destroy(&x->lock);
}

void stand_in_call(struct http_server *s)
{
    pthread_mutex_lock(&s->stand_in.lock);
    pthread_cond_signal(&s->stand_in.wake);
    pthread_mutex_unlock(&s->stand_in.lock);
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
    (void)pthread_cond_timedwait(&s->stand_in.wake, &s->stand_in.lock, &until);
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
    pthread_mutex_lock(&s->stand_in.lock);
    while (!found && !atomic_load(&s->stopping)) {
        if (atomic_load(&s->stand_in.looks) == 0) {
            pthread_cond_wait(&s->stand_in.wake, &s->stand_in.lock);
            continue;
        }
        sleep_a_little(s);
        found = find_one_that_waits(s);
        int looks = atomic_load(&s->stand_in.looks);
        if (!found && looks > 0) /* a wait that began just now keeps it at LOOKS */
            (void)atomic_compare_exchange_strong(&s->stand_in.looks, &looks, looks - 1);
    }
    pthread_mutex_unlock(&s->stand_in.lock);
    return found;
}

static void name_thread(const struct http_loop *l)
{
    char name[16] = "http-stand-in"; /* for top, perf and the benchmark */
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
