#include "api/engine/policy_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

enum { QUIET_MS = 60000 }; /* the watch looks at least so often */

TAILQ_HEAD(question_list, policy_question);
TAILQ_HEAD(taker_list, policy_taker);

struct policy_queue {
    struct policy_queue_config config;
    pthread_t watch;
    pthread_mutex_t lock;
    pthread_cond_t news;
    /* under the lock */
    struct question_list all, waiting; /* in the order they came, which is the order of their ends */
    struct taker_list takers;
    struct map by_id;
    int64_t last_id, watch_until_ms;
    size_t count, bytes, taker_count;
    bool stopped;
    bool resumed; /* since the lock was taken: loop threads must be woken */
};

static int64_t now_ms(const struct policy_queue *q)
{
    return clock_mono_ms(q->config.clock);
}

static void lock(struct policy_queue *q)
{
    pthread_mutex_lock(&q->lock);
}

static void unlock(struct policy_queue *q)
{
    bool resumed = q->resumed;
    q->resumed = false;
    pthread_mutex_unlock(&q->lock);
    if (resumed)
        q->config.wake(q->config.self);
}

/* --- endings, with the lock held --------------------------------------------------------------------- */

static void wait_no_more(struct policy_queue *q, struct policy_taker *t)
{
    TAILQ_REMOVE(&q->takers, t, link);
    q->taker_count--;
    q->resumed = true;
    http_resume(t->x); /* from here on it is its own thread's */
}

static void end(struct policy_queue *q, struct policy_question *x, enum policy_outcome outcome)
{
    TAILQ_REMOVE(&q->all, x, link);
    if (!x->taken)
        TAILQ_REMOVE(&q->waiting, x, next_waiting);
    map_remove(&q->by_id, &x->node);
    q->count--;
    q->bytes -= x->body.len;
    x->outcome = outcome;
    q->resumed = true;
    http_resume(x->x);
}

/* One long poll gets what is waiting; those whose gateway is gone end here, too. */
static void ring(struct policy_queue *q)
{
    struct policy_taker *t;
    bool gone = true;
    while (gone && !TAILQ_EMPTY(&q->waiting) && (t = TAILQ_FIRST(&q->takers))) {
        gone = atomic_load(&t->x->gone);
        wait_no_more(q, t);
    }
}

/* Questions that an earlier process of this gateway took wait again, before later ones. */
static void put_back(struct policy_queue *q, const struct policy_gateway *g)
{
    struct policy_question *x = NULL;
    TAILQ_FOREACH_REVERSE(x, &q->all, question_list, link)
    {
        if (!x->taken || x->taken_by.instance != g->instance || x->taken_by.birth == g->birth)
            continue;
        x->taken = false;
        TAILQ_INSERT_HEAD(&q->waiting, x, next_waiting);
    }
}

/* --- time -------------------------------------------------------------------------------------------- */

/* Ends what is over; when the next one will be. */
static int64_t expire(struct policy_queue *q, int64_t now)
{
    int64_t next = now + QUIET_MS;
    for (struct policy_question *x; (x = TAILQ_FIRST(&q->all));) {
        if (x->until_ms > now) {
            next = x->until_ms < next ? x->until_ms : next;
            break;
        }
        end(q, x, POLICY_UNANSWERED);
    }
    for (struct policy_taker *t = TAILQ_FIRST(&q->takers), *after; t; t = after) {
        after = TAILQ_NEXT(t, link);
        if (t->until_ms <= now)
            wait_no_more(q, t);
        else
            next = t->until_ms < next ? t->until_ms : next;
    }
    return next;
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t ns = at.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){.tv_sec = at.tv_sec + ms / 1000 + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void *watch(void *self)
{
    struct policy_queue *q = self;
    lock(q);
    while (!q->stopped) {
        int64_t now = now_ms(q);
        q->watch_until_ms = expire(q, now);
        unlock(q);
        lock(q);
        struct timespec until = in_ms(q->watch_until_ms - now);
        if (!q->stopped && q->watch_until_ms > now)
            (void)pthread_cond_timedwait(&q->news, &q->lock, &until);
    }
    unlock(q);
    return NULL;
}

/* Something ends then: the watch must not sleep longer. */
static void watch_until(struct policy_queue *q, int64_t until_ms)
{
    if (until_ms >= q->watch_until_ms)
        return;
    q->watch_until_ms = until_ms;
    pthread_cond_signal(&q->news);
}

/* --- a queue ----------------------------------------------------------------------------------------- */

/* Signals are for other threads. */
static void start_watch(struct policy_queue *q)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    MUST(pthread_create(&q->watch, NULL, watch, q) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct policy_queue *policy_queue_new(const struct policy_queue_config *config)
{
    struct policy_queue *q = must_alloc(sizeof *q);
    pthread_condattr_t monotonic;
    q->config = *config;
    TAILQ_INIT(&q->all);
    TAILQ_INIT(&q->waiting);
    TAILQ_INIT(&q->takers);
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    start_watch(q);
    return q;
}

void policy_queue_stop(struct policy_queue *q)
{
    struct policy_question *x;
    struct policy_taker *t;
    lock(q);
    bool stopped = q->stopped;
    q->stopped = true;
    while ((x = TAILQ_FIRST(&q->all)))
        end(q, x, POLICY_STOPPED);
    while ((t = TAILQ_FIRST(&q->takers)))
        wait_no_more(q, t);
    pthread_cond_signal(&q->news);
    unlock(q);
    if (!stopped)
        pthread_join(q->watch, NULL);
}

struct policy_queue *policy_queue_free(struct policy_queue *q)
{
    if (!q)
        return NULL;
    policy_queue_stop(q);
    map_free(&q->by_id);
    pthread_cond_destroy(&q->news);
    pthread_mutex_destroy(&q->lock);
    free(q);
    return NULL;
}

/* --- asking and answering ---------------------------------------------------------------------------- */

bool policy_queue_ask(struct policy_queue *q, struct policy_question *x)
{
    lock(q);
    bool room = !q->stopped && q->count < POLICY_QUESTIONS_MAX && x->body.len <= POLICY_QUESTION_BYTES_MAX &&
                x->body.len <= POLICY_QUEUE_BYTES_MAX - q->bytes;
    if (room) {
        x->id = ++q->last_id;
        x->until_ms = now_ms(q) + q->config.timeout_ms;
        x->taken = false;
        TAILQ_INSERT_TAIL(&q->all, x, link);
        TAILQ_INSERT_TAIL(&q->waiting, x, next_waiting);
        map_put(&q->by_id, &x->node, (uint64_t)x->id);
        q->count++;
        q->bytes += x->body.len;
        watch_until(q, x->until_ms);
        ring(q);
    } else {
        x->outcome = q->stopped ? POLICY_STOPPED : POLICY_UNANSWERED;
    }
    unlock(q);
    return room;
}

size_t policy_queue_take(struct policy_queue *q, const struct policy_taker *t, struct json_writer *w)
{
    struct policy_question *x;
    size_t count = 0;
    lock(q);
    put_back(q, &t->gateway);
    int64_t now = now_ms(q);
    while ((int64_t)count < t->max && w->out->len < POLICY_TAKE_BYTES && (x = TAILQ_FIRST(&q->waiting))) {
        TAILQ_REMOVE(&q->waiting, x, next_waiting);
        x->taken = true;
        x->taken_by = t->gateway;
        count++;
        jw_object(w);
        encode_int(w, "id", x->id);
        encode_int(w, "timeout_ms", x->until_ms - now);
        jw_key(w, "body");
        jw_raw(w, x->body);
        jw_object_end(w);
    }
    ring(q); /* the questions that did not fit are for another call */
    unlock(q);
    return count;
}

bool policy_queue_park(struct policy_queue *q, struct policy_taker *t)
{
    lock(q);
    bool parked = !q->stopped && TAILQ_EMPTY(&q->waiting) && q->taker_count < POLICY_TAKERS_MAX;
    if (parked) {
        t->until_ms = now_ms(q) + t->wait_ms;
        TAILQ_INSERT_TAIL(&q->takers, t, link);
        q->taker_count++;
        watch_until(q, t->until_ms);
    }
    unlock(q);
    return parked;
}

void policy_queue_pass_on(struct policy_queue *q)
{
    lock(q);
    ring(q);
    unlock(q);
}

static void keep_words(struct policy_question *x, struct str said)
{
    size_t len = said.len < sizeof x->words ? said.len : sizeof x->words;
    if (len)
        memcpy(x->words, said.ptr, len);
    x->reason = len ? (struct str){x->words, len} : STR_ABSENT;
}

size_t policy_queue_depth(struct policy_queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t count = q->count;
    pthread_mutex_unlock(&q->lock);
    return count;
}

void policy_queue_answer(struct policy_queue *q, int64_t id, enum policy_outcome outcome,
                         const struct policy_given *said)
{
    lock(q);
    struct map_node *n = map_first(&q->by_id, (uint64_t)id);
    if (n) {
        struct policy_question *x = CONTAINER_OF(n, struct policy_question, node);
        x->allowed = said->allowed;
        x->requires_approval = said->requires_approval;
        keep_words(x, said->reason);
        end(q, x, outcome);
    }
    unlock(q);
}
