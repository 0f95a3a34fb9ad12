/* kernel/kernel.h - the commit loop: whatever is waiting when a commit ends is the next batch.
 *
 * Any thread posts commands; one thread loads, decides and commits them in batches, and calls each
 * command's `done` after its batch is durable (or refused, or failed). Nothing is answered earlier.
 * Timers (timer_kind.h) are decided in the same loop, and so are the times of tasks (schedules, backoff,
 * leases, runtime limits), which are columns of the task's row.
 *
 * Turns: the loop is nobody's own. Whoever holds the turn runs a batch; that is the commit thread, except for
 * a command that comes alone while it sleeps: then the thread that brought it commits it itself
 * (kernel_round_end), which spares the wake-up of one thread before the commit and of another after it.
 *
 * A command that has to wait (a long poll) parks: its decide step says until when, and is asked again
 * whenever a batch made something claimable.
 *
 * Lanes: with a shared store (store/store.h) several threads run batches at once, each with a handle of its
 * own, all from one queue; other nodes do the same. A batch that met somebody else's change is loaded and
 * decided again. The first lane also has the duties that one node does for all: timers, leases, retention. */
#ifndef WEIR_KERNEL_KERNEL_H
#define WEIR_KERNEL_KERNEL_H

#include "kernel/unit.h"

struct clock;
struct command;
struct kernel;

struct command_type {
    const char *name;
    /* Says what rows it needs: called until nothing new is wanted (unit.h). May be NULL. */
    void (*load)(struct unit *u, struct command *c);
    /* Registers changes, or refuses with an error and registers nothing. */
    enum err_code (*decide)(struct unit *u, struct command *c, struct err *err);
    /* The part of the command that decide writes (COMMAND_ANSWER): the kernel clears it before each decide. A
     * batch that met a conflict is decided again. */
    size_t answer_at, answer_bytes;
    /* Never refused for load, and before all that is not (docs/operations/pressure.md). */
    bool critical;
};
/* The answer of such a command begins with this member, and nothing else stands behind it. */
#define COMMAND_ANSWER(type, member)                                                                         \
    .answer_at = offsetof(type, member), .answer_bytes = sizeof(type) - offsetof(type, member)

struct command {
    const struct command_type *type;
    /* Whose turn it is, once, after the batch: result and err are set. The command may be freed by it. */
    void (*done)(struct command *c);
    /* For commands that park: true when nobody waits any more. May be NULL. */
    bool (*abandoned)(const struct command *c);
    enum err_code result;
    struct err err;
    int64_t park_until_ms; /* set by decide to park (monotonic steady time); 0 otherwise */
    void *owner;           /* whoever posted it */
    int64_t received_us;   /* wall clock when the request was complete: the seed of a job */
    size_t bytes;          /* of what it brings (a body), about: a batch takes so many and no more */
    int64_t client;        /* who sent it: takes turns with others when there is much to do */
    uint64_t number;       /* the kernel's: in the order they came */
    int64_t weight;        /* how much work it is, in items; 0: one */
    struct command *next;
    uint64_t waits_for; /* queues (queue_bit) that a command which parks waits for */
    bool parked;
    bool for_first_lane; /* about deliveries: lanes would wait for each other at their receivers */
};

/* Those who watch: called in the turn, after a durable commit, before the answers go out. */
struct kernel_watch {
    void (*committed)(void *self, const struct unit *u);
    /* After the done calls of a batch: wake whoever waits for answers. */
    void (*batch_end)(void *self);
    /* The store said the result of a commit is unknown (fsync failed): the answers are out, end the process.
     * Must not return. */
    void (*fatal)(void *self, const struct err *err);
    /* An HTTP thread begins an inline commit; it has ended one, after the done calls (NULL: batch_end).
     * May be NULL. */
    void (*inline_begins)(void *self);
    void (*inline_batch_end)(void *self);
    const struct notice_kind *const *costly; /* costly kinds that are watched (kernel/notice.h); NULL: none */
    void *self;
};

struct kernel_config {
    struct store *store;
    struct store *const *more_lanes; /* shared: further handles, one thread each. The caller's, as `store` */
    size_t more_lane_count;
    const struct settings *settings;
    const struct task_owner *const *owners; /* in any order (task_owner.h) */
    size_t owner_count;
    const struct timer_kind *const *timer_kinds; /* in any order (timer_kind.h) */
    size_t timer_kind_count;
    const struct clock *clock;
    const struct random *random; /* of ids; NULL: the OS's */
    struct kernel_watch watch;
    /* Retention, once a second: registers a bounded part of the work in the unit and says whether there is
     * more. A decider like any other, but it may read through u->reader. May be NULL. */
    bool (*housekeep)(void *self, struct unit *u);
    /* The same for what every node has to save by itself, in the same batch; and how that batch went. May be
     * NULL. */
    bool (*save)(void *self, struct unit *u);
    void (*saved)(void *self, bool stored);
    void *housekeep_self;
    /* HTTP threads may commit the only waiting command themselves. Only where another thread takes over their
     * connections when the disk is slow (watch.inline_begins). */
    bool commits_inline;
};

struct kernel *kernel_new(const struct kernel_config *config);
struct kernel *kernel_free(struct kernel *k); /* the thread must be stopped */

MUST_CHECK enum err_code kernel_start_thread(struct kernel *k, struct err *err);
/* Finishes what is queued, answers what is parked with nothing, joins. */
void kernel_stop_thread(struct kernel *k);

/* Any thread. False: too many wait already; it is not taken, its err says so, `done` is not called. */
MUST_CHECK bool kernel_post(struct kernel *k, struct command *c);
/* The same for threads that serve many in rounds: it is taken up by kernel_round_end() at the latest, which
 * the caller MUST call before it sleeps. */
MUST_CHECK bool kernel_post_in_round(struct kernel *k, struct command *c);
/* Wakes the commit thread if this round posted something it does not know of; or commits it here and now when
 * it is one command alone, the commit thread sleeps, and the disk was quick the last time. `done` is then
 * called by this thread. */
void kernel_round_end(struct kernel *k);
/* One batch on the caller's thread, for tests and simulation (no thread started). Gives the number of
 * commands done. */
size_t kernel_step(struct kernel *k);
/* From the next batch on: new work of the low class is refused; what can wait does. Any thread. */
void kernel_set_pressure(struct kernel *k, bool sheds_low_priority, bool defers_retries);
/* An operator says that the wall clock is right, wherever it has jumped (kernel/wall_guard.h). From the next
 * batch on. Any thread. */
void kernel_accept_clock(struct kernel *k);
/* Another node has news (enum store_hint, or'ed). Any thread. */
void kernel_hint(struct kernel *k, unsigned what);

struct kernel_stats {
    uint64_t batches, commands, commit_errors;
    uint64_t inline_commits; /* batches that an HTTP thread ran */
    uint64_t conflicts;      /* batches that met others' changes and were decided again */
    bool leads;              /* this node has the duties */
    uint32_t live, queued, waiting, assigned, running, workers;
    int64_t deliveries;                          /* stored and not yet made */
    uint32_t commands_waiting, critical_waiting; /* now */
    int64_t commands_waiting_bytes;
    uint64_t refused;       /* commands that found no room to wait */
    int64_t last_commit_us; /* duration of the last commit */
    bool clock_in_doubt;    /* the wall clock has jumped, or is not known to be right: nothing is deleted */
    bool storing;           /* false after a failed commit until a write succeeds */
    bool client_is_full;    /* in the last minute a client was refused for having its share of the jobs */
    int64_t wal_pages;
};
void kernel_stats(struct kernel *k, struct kernel_stats *ret_stats); /* any thread */

#endif
