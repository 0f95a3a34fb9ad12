#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/must.h"
#include "http/http_internal.h"

#include "base/banned.h"

void loop_queue(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    if (c->queued)
        return;
    c->queued = true;
    c->next_queued = NULL;
    if (l->todo_last)
        l->todo_last->next_queued = c;
    else
        l->todo_first = c;
    l->todo_last = c;
}

void loop_wake(struct http_loop *l)
{
    /* Only a sleeping loop needs the system call; one that is awake looks before it sleeps. The wake
     * descriptor is edge-triggered: every write rings, so it need not be read. */
    if (atomic_load(&l->sleeping) && atomic_exchange(&l->sleeping, false)) {
        uint64_t one = 1;
        ssize_t n = write(l->wake_fd, &one, sizeof one);
        MUST(n == (ssize_t)sizeof one);
    }
}

static void on_event(struct http_loop *l, const struct epoll_event *ev)
{
    void *who = ev->data.ptr;
    if (who == l)
        return; /* the wake descriptor: every round looks for its cause anyway */
    struct listener *first = l->listeners;
    if ((char *)who >= (char *)first && (char *)who < (char *)(first + l->listener_count))
        (void)listen_accept(l, who);
    else
        conn_on_event(who, ev->events);
}

static void run_resumed(struct http_loop *l)
{
    struct http_exchange *stack = atomic_exchange(&l->resumed, NULL), *first = NULL;
    while (stack) { /* turned round: first resumed, first answered */
        struct http_exchange *x = stack;
        stack = x->next_resumed;
        x->next_resumed = first;
        first = x;
    }
    while (first) {
        struct http_exchange *x = first;
        first = x->next_resumed;
        x->next_resumed = NULL;
        conn_resumed(x);
    }
}

/* Milliseconds until something is due. */
static int sleep_ms(const struct http_loop *l)
{
    if (l->todo_first || l->closed)
        return 0;
    int64_t until = heavy_next_ms(l);
    const struct heap_node *n = heap_first(&l->timers);
    if (n && (int64_t)n->key < until)
        until = (int64_t)n->key;
    if (l->accept_again_ms && l->accept_again_ms < until)
        until = l->accept_again_ms;
    if (until == INT64_MAX)
        return -1;
    int64_t left = until - l->now_ms;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

bool loop_answer_for(struct http_loop *l)
{
    if (pthread_mutex_trylock(&l->own) != 0)
        return false;
    l->now_ms = clock_mono_ms(l->server->config.clock);
    run_resumed(l);
    int ms = sleep_ms(l);
    bool wakes = ms >= 0 && l->now_ms + ms < l->sleeps_until_ms; /* more to do, or sooner than it thinks */
    pthread_mutex_unlock(&l->own);
    if (wakes)
        loop_wake(l);
    return true;
}

static void run_todo(struct http_loop *l)
{
    struct http_conn *first = l->todo_first;
    l->todo_first = l->todo_last = NULL; /* requests queued from now on wait for the next round */
    while (first) {
        struct http_conn *c = first;
        first = c->next_queued;
        c->queued = false;
        conn_on_turn(c);
    }
}

static void run_timers(struct http_loop *l)
{
    for (struct heap_node *n = heap_first(&l->timers); n && (int64_t)n->key <= l->now_ms;
         n = heap_first(&l->timers)) {
        struct http_conn *c = CONTAINER_OF(n, struct http_conn, timer);
        heap_remove(&l->timers, n);
        if (c->state == CONN_CLOSED || c->deadline_ms == INT64_MAX)
            continue;
        if (c->deadline_ms > l->now_ms)
            heap_put(&l->timers, n, (uint64_t)c->deadline_ms);
        else
            conn_on_deadline(c);
    }
}

static void free_closed(struct http_loop *l)
{
    struct http_conn *c = l->closed;
    l->closed = NULL;
    while (c) {
        struct http_conn *next = c->next_closed;
        if (c->queued) { /* its turn comes in the next round */
            c->next_closed = l->closed;
            l->closed = c;
        } else {
            conn_free(c);
        }
        c = next;
    }
}

static void begin_drain(struct http_loop *l)
{
    l->drain_begun = true;
    for (uint32_t i = 0; i < l->listener_count; i++)
        while (listen_accept(l, &l->listeners[i])) /* connections that are queued already get an answer */
            ;
    listen_close(l);
    for (struct http_conn *c = l->conns; c; c = c->next)
        conn_drain(c);
}

/* How long to sleep. Threads that hand us something from now on see that we sleep, and wake us. */
static int prepare_sleep(struct http_loop *l)
{
    int ms = heart_sleep_ms(sleep_ms(l)); /* it must be awake often enough to show that it lives */
    l->sleeps_until_ms = l->now_ms + ms;
    if (ms == 0)
        return 0;
    atomic_store(&l->sleeping, true);
    const struct http_server *s = l->server;
    bool more = atomic_load(&l->resumed) || atomic_load(&l->ticked) || atomic_load(&l->evicts) ||
                atomic_load(&s->stopping) || (atomic_load(&s->draining) && !l->drain_begun);
    return more ? 0 : ms;
}

static void run_round(struct http_loop *l, int event_count)
{
    l->now_ms = clock_mono_ms(l->server->config.clock);
    l->handshakes.in_round = 0;
    for (int i = 0; i < event_count; i++)
        on_event(l, &l->events[i]);
    run_resumed(l);
    if (atomic_load_explicit(&l->ticked, memory_order_relaxed)) {
        atomic_store(&l->ticked, false);
        stream_tick_all(l);
    }
    peers_close_evicted(l);
    run_todo(l);
    heavy_run(l);
    run_timers(l);
    if (l->accept_again_ms && l->accept_again_ms <= l->now_ms && !l->drain_begun)
        listen_start(l);
    if (atomic_load_explicit(&l->server->draining, memory_order_relaxed) && !l->drain_begun)
        begin_drain(l);
    free_closed(l);
}

/* False: the round's end took so long that another thread serves this loop now. */
static bool end_round(struct http_loop *l)
{
    const struct http_config *config = &l->server->config;
    if (config->on_round_end)
        config->on_round_end(config->context);
    return loop_takeover_end(l);
}

static void end_all(struct http_loop *l)
{
    run_resumed(l);
    for (struct http_conn *c = l->conns; c; c = c->next) {
        if (c->state == CONN_STREAM)
            stream_lose(c);
        else
            conn_close(c);
    }
    run_todo(l); /* nothing happens there any more; it empties the lists */
    heavy_drop_all(l);
    free_closed(l);
    MUST(!l->conns);
    while (l->owed) {
        struct exchange *ex = l->owed;
        exchange_list_remove(&l->owed, ex);
        exchange_give_back(l, ex);
    }
    listen_close(l);
    exchange_pool_free(l);
    heap_free(&l->timers);
}

/* One round: sleep, then do what has come. The loop is its own only while it is awake. */
static void sleep_and_run(struct http_loop *l)
{
    pthread_mutex_lock(&l->own);
    int ms = prepare_sleep(l);
    pthread_mutex_unlock(&l->own);
    int n = epoll_wait(l->epoll_fd, l->events, EVENTS_PER_ROUND, ms);
    MUST(n >= 0 || errno == EINTR);
    pthread_mutex_lock(&l->own);
    atomic_store(&l->sleeping, false);
    heart_waits(l->heart, false);
    run_round(l, n);
    pthread_mutex_unlock(&l->own);
}

bool loop_serve(struct http_loop *l)
{
    heart_waits(l->heart, false); /* also of one that was taken over from a thread that waits */
    while (!atomic_load(&l->server->stopping)) {
        sleep_and_run(l);
        if (!end_round(l))
            return false;
    }
    heart_close(l->heart);
    pthread_mutex_lock(&l->own);
    end_all(l);
    pthread_mutex_unlock(&l->own);
    return end_round(l);
}
