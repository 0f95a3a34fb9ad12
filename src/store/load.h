/* store/load.h - what a batch asks of a shared store, all in one round trip; and what the holder of the
 * duties is told; how nodes hear of each other. A part of store/store.h. */
#ifndef WEIR_STORE_LOAD_H
#define WEIR_STORE_LOAD_H

#include "store/rows.h"

/* Up to `max` tasks that can be claimed, the best ones of these queues; unlocked ones, then locked. */
struct load_claim {
    const struct str *queues;
    size_t queue_count;
    int64_t client; /* 0: any client's */
    uint32_t max;
};

/* The job that used this idempotency key, if there is one: into store->idem, its task into store->live. */
struct load_key {
    int64_t client;
    struct str key;
};

/* A row by key, like fetch: the key columns of `row` are set. */
struct load_row {
    const struct table *table;
    void *row;
    bool found; /* answer */
    bool later; /* answer: there is one, but it was not read, for those before it filled row_bytes_max */
};

/* Tasks come into store->live with their worker, placed by the time `now_ms`; with a job come the streams of
 * deliveries about it. A task that is not there afterwards does not exist. */
struct load_set {
    const int64_t *tasks; /* by id, in any order, perhaps more than once */
    size_t task_count;
    const struct load_claim *claims;
    size_t claim_count;
    const struct load_key *keys;
    size_t key_count;
    struct load_row *rows;
    size_t row_count;
    int64_t row_bytes_max; /* of rows that may be large; 0: no limit. The first one comes in any case */
    /* Timers that are due by now_ms; tasks that are, or whose lease ended before it. 0: none. */
    uint32_t due_max;
    int64_t now_ms;
    int64_t next_due_ms; /* answer, when asked for due ones: the next time of one; INT64_MAX: none waits */
};

/* Duties that one node has for all (timers, leases, retention), and whether there is anything to do. */
struct store_duties {
    bool leads; /* the rest is for the holder of the duties */
    bool inbox; /* an application has put something in (jobs/inbox.h) */
    /* When the first timer is due, and when the first lease ends or the first run is over its limit, as
     * things are now; INT64_MAX: none. */
    int64_t next_due_ms, next_lapse_ms;
    int64_t given_anew; /* leases, see `lead` */
};

/* The receiver of hints of other nodes. Both are called on the listener's thread and must be quick. */
struct store_listening {
    void (*hint)(void *self, unsigned what); /* enum store_hint, or'ed */
    /* Each failed try to listen, also that the connection was lost; and that it is there. May be NULL. */
    void (*link)(void *self, bool works, const char *why);
    void *self;
};
enum store_hint { HINT_READY = 1, HINT_KEYS = 2, HINT_EVENTS = 4, HINT_TIMER = 8, HINT_INBOX = 16 };

#endif
