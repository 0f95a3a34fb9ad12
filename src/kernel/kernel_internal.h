/* kernel/kernel_internal.h - what the kernel's own files share: kernel.c (making and asking), commit_batch.c
 * (one batch), commit_shared.c (what a batch on a shared store needs besides), commit_parked.c (long polls),
 * commit_thread.c (one batch after the other), commit_inline.c (inline commits), duties.c, timers.c,
 * worker_commands.c.
 *
 * A lane runs batches; what stands above its `turn` belongs to whoever holds that. `lock` is held for moments
 * only, never while deciding or writing; it may be taken inside a turn, a turn inside it only by trying.
 * `publish` is held while the results of a batch are told: watchers and `done` calls see one at a time. */
#ifndef WEIR_KERNEL_INTERNAL_H
#define WEIR_KERNEL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/heart.h"
#include "kernel/ended_leases.h"
#include "kernel/kernel.h"
#include "kernel/waiting.h"
#include "kernel/wall_guard.h"

/* Commands are for any lane, or for the first one only. */
enum lane_kind { FOR_ANY, FOR_FIRST, LANE_KINDS };
/* Batches take what is critical first: a flood of the rest does not delay it. */
enum urgency { CRITICAL, ORDINARY, URGENCIES };

struct lane {
    struct kernel *kernel;
    struct unit unit;
    struct uuid_v7_source ids;
    int64_t timers_paused_until_ms;
    int64_t probe_ms, lead_ms, watch_ms;
    int64_t workers_swept_ms, workers_counted_ms, housekeeping_ms, housekept_ms, saving_ms;
    int64_t next_due_ms;   /* shared, with the duties: when a timer is due ... */
    int64_t led_ms;        /* shared: when the store last said that it has the duties */
    int64_t next_lapse_ms; /* ... and when a lease ends, unless it is extended */
    int64_t parked_looked_ms;
    uint32_t workers; /* counted last */
    bool has_duties;  /* the first lane's, if this node has them */
    bool ending;      /* the turn's own view of `stopping`, taken with each batch */
    bool is_inline;   /* an HTTP thread runs this batch */
    struct err lost;  /* the store's result is unknown: the commit thread ends the process */
    pthread_mutex_t turn;

    struct heart *heart; /* written by whoever has the turn, or by its own thread */
    pthread_t thread;
    bool thread_runs;
    pthread_cond_t wake;    /* with the kernel's lock, as what follows */
    uint64_t filled;        /* queues that got something since its batch began */
    bool sleeping;          /* nobody has woken it yet */
    int64_t sleep_until_ms; /* steady; while sleeping */
};

struct kernel {
    struct kernel_config config;
    struct wall_guard wall;     /* the first lane's */
    _Atomic bool accepts_wall;  /* an operator has said that the clock is right */
    int64_t wall_minus_mono_us; /* fixed at start: steady = mono + this, unless the store is shared */
    const struct task_owner *owners[TASK_OWNERS_MAX]; /* by their numbers */
    const struct timer_kind *timer_kinds[TIMER_KINDS_MAX];
    struct lane *lanes;
    size_t lane_count;
    pthread_mutex_t publish;
    struct census census;    /* shared: jobs of all nodes */
    _Atomic int64_t last_id; /* the highest id of a batch that was committed, by any lane */

    pthread_mutex_t lock; /* guards what follows */
    struct ended_leases ended_leases;
    struct waiting queue[LANE_KINDS][URGENCIES];
    uint64_t numbers; /* given to commands */
    struct command_list parked[LANE_KINDS];
    bool stopping;
    _Atomic bool unannounced; /* something was posted in a round, and the commit thread sleeps on */
    /* Shared: queues (queue_bit) in which something may be claimable that no lane has in memory. */
    uint64_t look_for_parked[LANE_KINDS];
    bool timer_moved;          /* shared: one may be due before the duties' lane looks again */
    bool inbox_filled;         /* shared: an application has put something in (jobs/inbox.h) */
    bool disk_is_quick;        /* the last batch that wrote was done in little time */
    bool ended;                /* the threads are gone: whoever posts now is answered at once */
    int64_t failure_logged_ms; /* a full disk fails every batch: one line a second tells it */
    int64_t share_met_ms;      /* monotonic: a client was last refused for having its share; 0: never */
    struct kernel_stats stats;
    _Atomic bool sheds_low_priority, defers_retries; /* under pressure (kernel_set_pressure) */
};

/* Time that never jumps, and of a shared store the same on all nodes. */
static inline int64_t steady_now_us(const struct kernel *k)
{
    int64_t mono = clock_mono_us(k->config.clock);
    return k->config.store->shared ? store_clock_us(k->config.store, mono) : mono + k->wall_minus_mono_us;
}

static inline int64_t steady_now(const struct kernel *k)
{
    return steady_now_us(k) / 1000;
}

/* The wall clock as it is, of a shared store the database's. */
static inline int64_t raw_wall_us(const struct kernel *k)
{
    return k->config.store->shared ? steady_now_us(k) : clock_wall_us(k->config.clock);
}

/* The time that a batch of the first lane would have now. In its turn. */
static inline int64_t wall_now_ms(const struct kernel *k)
{
    return wall_guard_now(&k->wall, raw_wall_us(k), clock_mono_us(k->config.clock)) / 1000;
}

static inline enum lane_kind kind_of(const struct kernel *k, const struct command *c)
{
    return c->for_first_lane && k->lane_count > 1 ? FOR_FIRST : FOR_ANY;
}

/* The kinds a lane serves are those from FOR_ANY to below this. */
static inline int kinds_of(const struct lane *l)
{
    return l == &l->kernel->lanes[0] ? LANE_KINDS : FOR_FIRST;
}

static inline enum urgency urgency_of(const struct command *c)
{
    return c->type->critical ? CRITICAL : ORDINARY;
}

/* Waiting commands of a kind. */
static inline size_t queue_count(const struct kernel *k, enum lane_kind kind)
{
    return k->queue[kind][CRITICAL].count + k->queue[kind][ORDINARY].count;
}

static inline bool is_queue_empty(const struct kernel *k)
{
    return !queue_count(k, FOR_ANY) && !queue_count(k, FOR_FIRST);
}

static inline bool is_shared(const struct lane *l)
{
    return l->kernel->config.store->shared; /* not by the unit: that is only for whoever has the turn */
}

enum { LED_FRESH_MS = 2000 };

/* Are timers its own, now? Of a shared store only while it has been able to look: after an outage leases are
 * given anew first (store.h: lead), and a batch under way may outlast one. In its turn, in a batch. */
static inline bool lane_has_timers(const struct lane *l)
{
    int64_t now = l->unit.steady_ms;
    return l->has_duties && now >= l->timers_paused_until_ms &&
           (!is_shared(l) || (l->unit.store->leads && now - l->led_ms < LED_FRESH_MS));
}

/* --- ended leases, of all lanes -------------------------------------------------------------------- */

/* By task, token and how it ended; client 0: whoever had it. */
bool kernel_find_ended(struct unit *u, const struct ended_lease *key, struct ended_lease *ret_lease);

/* --- one batch ------------------------------------------------------------------------------------- */

/* A batch on this lane; gives the number of commands done. In its turn. */
size_t lane_step(struct lane *l);
void lane_start_unit(struct lane *l);
void lane_decide_one(struct lane *l, struct command *c);
/* Commits what is decided. On failure memory is as it was, and every command of `decided` has the error. */
enum err_code lane_commit(struct lane *l, struct command_list *decided, struct err *ret_err);

/* timers.c: decides every timer that has passed, at most `max`. Gives how many. */
size_t timers_decide(struct unit *u, size_t max);
enum { BATCH_TIMERS_MAX = 1024 };

/* commit_parked.c: long polls. Those that are done go to `decided`, first; the others wait on. */
void parked_decide(struct lane *l, struct command_list *decided);
void parked_add(struct lane *l, struct command_list *some);
/* Shared: takes those out that wait for what other lanes and nodes may have made, to be asked with others. */
void parked_join(struct lane *l, struct command_list *batch);

/* With the lock held: those that wait for these queues (queue_bit) shall be asked again, also those that a
 * lane has in its hands now. */
void parked_look(struct kernel *k, uint64_t queues);
#define ALL_QUEUES UINT64_MAX

/* commit_shared.c: brings what load steps have wanted, until they want nothing new; before a command is
 * decided what there was no room for; after a conflict puts the batch back as it was. */
void shared_load(struct lane *l, const struct command_list *loaded);
void shared_load_rest(struct lane *l, struct command *c);
void shared_pause(struct lane *l, int tries);
void shared_undecide(struct command_list *decided, struct command_list *batch);
/* After a commit: whoever waits for what it made hears of it, here and elsewhere. */
void shared_tell(struct lane *l);

/* duties.c, in a turn, between batches: retention, can a failed store write again, who has the duties. */
void duties_before_batch(struct lane *l);
void duties_housekeep_soon(struct lane *l); /* somebody has brought work for it */
void duties_after_batch(struct lane *l);

/* How long nothing will happen by itself. In a turn. */
int64_t lane_idle_ms(const struct lane *l);
/* What others have told the lane with the duties; before its batch, with the lock held. */
void lane_take_news(struct lane *l);
/* After a batch, in its turn: checkpoints and the like. */
void lane_tend(struct lane *l);
/* With the lock held: a lane that sleeps, now woken; NULL: none does. The first one if `first`. */
struct lane *kernel_wake_one(struct kernel *k, bool first);

/* One line a second at most, however often it fails. */
void kernel_log_failure(struct kernel *k, const char *what, const struct err *err);
/* Does not return when the store's result is unknown (fsync failed), unless the commit is inline. */
void lane_tell_fatal(struct lane *l, enum err_code code, const struct err *err);

#endif
