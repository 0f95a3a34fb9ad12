/* runtime/actor.h - workers inside one process that fail alone: one actor a partition, one mailbox each.
 *
 * An actor is an object on its process's own loop, not a thread: `handle` gets one message after the other
 * and returns how it went. A FAILED message costs that message and the state of that actor; the supervisor
 * starts the actor again alone, after runtime/supervision.h, and every other actor goes on. Waiting messages
 * stay in their order. One restart too many ends the supervisor: all actors are stopped, all messages given
 * back by `drop`, and the process has to leave with ACTOR_EXIT, so that root counts it.
 *
 * Process:   any child. One thread: the one that calls actors_run. Nothing here blocks.
 * Bounded:   `actors` mailboxes of `mailbox_max` messages. A full one refuses: actors_send says so.
 * Owns:      the objects that `start` made, until `stop`. Messages are the caller's: each message that was
 *            taken is given either to `handle` or to `drop`, and never touched after that.
 * Loop:      actors_send(...) for new messages; actors_run(a, now); sleep until actors_due(a) at most; when
 *            actors_ended(a): clean up, return ACTOR_EXIT.
 * Time:      passed in, milliseconds that only go forward. Failures are logged by the caller's `failed`. */
#ifndef WEIR_RUNTIME_ACTOR_H
#define WEIR_RUNTIME_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "runtime/process_table.h"

enum {
    ACTOR_EXIT = 70,       /* EX_SOFTWARE: the exit code of a process whose actors' supervisor has ended */
    ACTORS_MAX = 4096,     /* in one supervisor */
    ACTORS_RUN_BURST = 64, /* messages of one actor in a run, so that none keeps the others waiting */
};

enum actor_outcome {
    ACTOR_DONE,   /* handled; the next message may come */
    ACTOR_BUSY,   /* taken, and no more until actors_ready: how a transfer that goes on keeps its order */
    ACTOR_LATER,  /* not taken: it stays first in the mailbox until actors_ready */
    ACTOR_FAILED, /* `err` says why: the message is dropped, the actor starts afresh */
};

/* Why a message comes back. */
enum actor_drop {
    ACTOR_DROP_FAILED /* its actor failed on it */,
    ACTOR_DROP_ENDED /* the supervisor ended */
};

enum actor_state {
    ACTOR_RUNS,
    ACTOR_WAITS /* BUSY or LATER */,
    ACTOR_RESTARTS /* after a pause */,
    ACTOR_ENDED
};

struct actor_failure {
    uint32_t partition;
    uint64_t restarts;  /* of this actor so far, this one included */
    int64_t delay_ms;   /* until it starts again; < 0: the supervisor has ended */
    uint32_t in_window; /* restarts the supervisor counts in its window */
    const char *reason;
};

struct actor_verbs {
    /* Makes the state of actor `partition`. A failure counts as a failure of the actor. May be NULL. */
    enum err_code (*start)(void *context, uint32_t partition, void **ret_state, struct err *err);
    enum actor_outcome (*handle)(void *state, void *message, int64_t now_ms, struct err *err);
    /* After a failure, and at the end. Gives up the work under way. May be NULL. */
    void (*stop)(void *state);
    /* The message will not be handled. May be NULL when messages need no care. */
    void (*drop)(void *context, uint32_t partition, void *message, enum actor_drop why);
    /* Told of each failure, before its restart; the place for a log line. May be NULL. */
    void (*failed)(void *context, const struct actor_failure *failure);
};

struct actors_config {
    const struct actor_verbs *verbs;
    void *context;
    uint32_t actors;             /* partitions, numbered from 0 */
    uint32_t mailbox_max;        /* messages waiting for one actor */
    enum domain_id domain;       /* names its supervisor ... */
    struct domain_limits limits; /* ... and how many restarts it may count; domain_limits() gives them */
};

struct actors;

struct actors *actors_new(const struct actors_config *config, int64_t now_ms);
/* Stops all actors; waiting messages are dropped as ENDED. NULL is fine; always returns NULL. */
struct actors *actors_free(struct actors *a);

/* False: its mailbox is full, or the supervisor has ended; the message stays the caller's. */
bool actors_send(struct actors *a, uint32_t partition, void *message);
/* The actor has what it waited for: it takes messages again. No harm when it did not wait. */
void actors_ready(struct actors *a, uint32_t partition);
/* A failure found outside `handle`, such as at the end of a transfer. */
void actors_fail(struct actors *a, uint32_t partition, const char *reason, int64_t now_ms);

/* Starts what is to be started again and hands out messages, ACTORS_RUN_BURST an actor at most. Gives how
 * many were handed out. */
size_t actors_run(struct actors *a, int64_t now_ms);
/* When actors_run has something to do by itself: 0 at once, INT64_MAX never. */
int64_t actors_due(const struct actors *a);

bool actors_ended(const struct actors *a);
enum actor_state actors_state(const struct actors *a, uint32_t partition);
uint32_t actors_depth(const struct actors *a, uint32_t partition); /* messages waiting */
uint64_t actors_restarts(const struct actors *a, uint32_t partition);
uint64_t actors_restarts_all(const struct actors *a);

#endif
