/* kernel/kernel_internal.h - what the kernel's own files share: kernel.c (making and asking), commit_batch.c
 * (one batch), commit_thread.c (one batch after the other), commit_turn.c (a lone command), timers.c,
 * worker_commands.c.
 *
 * What stands above `turn` belongs to whoever holds it. `lock` is held for moments only, never while deciding
 * or writing; it may be taken inside a turn, a turn inside it only by trying. */
#ifndef WEIR_KERNEL_INTERNAL_H
#define WEIR_KERNEL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernel/ghosts.h"
#include "kernel/kernel.h"

struct command_list {
    struct command *first, **tail;
    size_t count;
};

struct kernel {
    struct unit unit;
    struct kernel_config config;
    struct uuid_v7_source ids;
    struct ghosts ghosts;
    int64_t wall_minus_mono_us; /* fixed at start: steady = mono + this */
    struct command_list parked;
    int64_t timers_paused_until_ms;
    int64_t probe_ms;
    int64_t failure_logged_ms; /* a full disk fails every batch: one line a second tells it */
    int64_t workers_swept_ms, workers_counted_ms, housekeeping_ms;
    bool ending;     /* the turn's own view of `stopping`, taken with each batch */
    bool is_lent;    /* this turn is not the commit thread's */
    struct err lost; /* the store's result is unknown: the commit thread ends the process */
    pthread_mutex_t turn;

    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct command_list queue;
    bool stopping, sleeping;
    int64_t sleep_until_ms;   /* steady; while sleeping */
    _Atomic bool unannounced; /* something was posted in a round, and the commit thread sleeps on */
    bool disk_is_quick;       /* the last batch that wrote was done in little time */
    bool ended;               /* the thread is gone: whoever posts now is answered at once */
    struct kernel_stats stats;
};

static inline void list_init(struct command_list *l)
{
    *l = (struct command_list){.tail = &l->first};
}

static inline void list_add(struct command_list *l, struct command *c)
{
    c->next = NULL;
    *l->tail = c;
    l->tail = &c->next;
    l->count++;
}

static inline struct command *list_take(struct command_list *l)
{
    struct command *c = l->first;
    if (!c)
        return NULL;
    l->first = c->next;
    if (!l->first)
        l->tail = &l->first;
    l->count--;
    return c;
}

/* `front` goes before everything in `l` and is empty afterwards. */
static inline void list_prepend(struct command_list *l, struct command_list *front)
{
    if (!front->first)
        return;
    *front->tail = l->first;
    if (!l->first)
        l->tail = front->tail;
    l->first = front->first;
    l->count += front->count;
    list_init(front);
}

static inline int64_t steady_now_us(const struct kernel *k)
{
    return clock_mono_us(k->config.clock) + k->wall_minus_mono_us;
}

static inline int64_t steady_now(const struct kernel *k)
{
    return steady_now_us(k) / 1000;
}

/* The ghosts of the kernel this unit belongs to. */
struct ghosts *unit_ghosts(struct unit *u);

/* Decides every timer that has passed, at most `max`. Gives how many. */
size_t timers_decide(struct unit *u, size_t max);

/* How long nothing will happen by itself. In a turn. */
int64_t kernel_idle_ms(const struct kernel *k);
/* After a batch, in its turn: checkpoints and the like. */
void kernel_tend(struct kernel *k);

/* One line a second at most, however often it fails. */
void kernel_log_failure(struct kernel *k, const char *what, const struct err *err);
/* Does not return when the store's result is unknown (fsync failed), unless the turn is a lent one. */
void kernel_tell_fatal(struct kernel *k, enum err_code code, const struct err *err);

#endif
