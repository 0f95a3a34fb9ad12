/* kernel/unit.h - the unit of work: everything one batch has read and will write.
 *
 * A decider sees the world only through its unit: rows that its load step wanted, live tasks, the time,
 * fresh ids. It registers changes here or refuses and registers nothing. A row changed twice in a batch is
 * written once. Changes of live tasks show at once to later commands of the batch; unit_abort() undoes
 * them when the commit fails.
 *
 * Process:   core, whoever holds the turn (kernel.h); one at a time.
 * Lifetime:  unit_start .. unit_commit; memory is the batch arena's. */
#ifndef WEIR_KERNEL_UNIT_H
#define WEIR_KERNEL_UNIT_H

#include "base/map.h"
#include "base/uuid.h"
#include "config/settings.h"
#include "kernel/census.h"
#include "kernel/notice.h"
#include "store/store.h"

enum {
    UNIT_BYTES_MAX = 8 << 20, /* of arena: a batch of large rows and bodies ends early */
    UNIT_DEFER_MS = 1000,     /* under pressure, what can wait does so long before the next look */
};

struct random;
struct task_owner;
struct timer_kind;
struct unit_row;
struct task_touch;

/* Shared stores: what this batch wants to have in memory, and what it has looked for. */
struct unit_wanted {
    int64_t *tasks;
    size_t task_count, task_capacity;
    struct load_claim *claims;
    size_t claim_count, claim_capacity;
    struct load_key *keys;
    size_t key_count, key_capacity;
    struct load_row *rows; /* wanted and not read yet */
    size_t row_count, row_capacity;
    bool has_new;        /* something was wanted since the last load */
    bool at_once;        /* what is wanted is read at once, as of a store with one writer */
    uint32_t loads;      /* so far in this batch */
    struct map known;    /* struct known_thing */
    int64_t next_due_ms; /* answer to a look for timers */
};

/* The unit of work of one lane: the rows that a batch has loaded and the changes its deciders have
 * registered. */
struct unit {
    struct store *store;
    struct arena *arena;
    const struct settings *settings;
    struct uuid_v7_source *ids;
    const struct random *random;
    const struct task_owner *const *owners;      /* by their numbers: TASK_OWNERS_MAX places, some empty */
    const struct timer_kind *const *timer_kinds; /* the same, TIMER_KINDS_MAX places */
    struct reader *reader;  /* housekeeping's own snapshot reader; may be NULL in tests */
    int64_t now_us, now_ms; /* wall clock as far as it is right, one instant for the whole batch */
    int64_t locked_at_ms;   /* wall clock when the rows were in hand, never before now_ms: of a shared store a
                             * batch waits for those who hold them, so what they wrote has an earlier time */
    bool may_delete;   /* false while the wall clock is in doubt (kernel/wall_guard.h): retention waits */
    int64_t steady_ms; /* wall clock that never jumps, cut to ms: what has passed is asked of it */
    int64_t steady_ceil_ms; /* the same, rounded up: deadlines are counted from it, so none is early */

    struct log_builder log;
    struct map rows;
    struct unit_row *row_list, **row_tail;
    uint32_t inserted[TABLES_MAX]; /* rows of each table that this batch adds */
    struct task_touch *touches;
    struct list_entry *list;
    size_t list_count, list_capacity;
    struct idem_entry *idem_add, *idem_drop;
    size_t idem_add_count, idem_add_capacity, idem_drop_count, idem_drop_capacity;
    struct notices notices;
    int64_t drop_chunks_below;
    int64_t early_slot;    /* that was listed last (jobs/purge_early.h) */
    bool wrote;            /* the commit had something to write */
    bool met_share;        /* a client was refused for having its share of the jobs */
    struct census *census; /* NULL unless the store is shared */
    struct census_part counted;
    int64_t known_client;               /* shared: whose committed counters this batch has read ... */
    struct client_counts *known_counts; /* ... and these are */
    uint64_t made_ready;                /* queues (queue_bit) with a committed task that can be claimed */
    int64_t nearest_timer_ms;           /* that a committed task waits for; INT64_MAX: none */
    int64_t oldest_us;       /* wall clock when the first of its requests was complete; 0: it has none */
    bool sheds_low_priority; /* under pressure: new work of the low class is refused ... */
    bool defers_retries;     /* ... and what can wait does (deliveries again, the purge) */
    struct err load_err;     /* the first failure of the load phase */
    bool trusts_reads; /* what cannot be was found again and again: unit_report_inconsistent does nothing */
    struct unit_wanted wanted;
};

/* A queue as one bit of 64, by its name: enough to know nearly always who has no reason to look. */
uint64_t queue_bit(struct str name);

void unit_start(struct unit *u);
/* Writes everything in one durable transaction. ERR_OK when there was nothing to write, too. */
MUST_CHECK enum err_code unit_commit(struct unit *u, struct err *err);
/* Undoes what touched memory; after a failed commit. */
void unit_abort(struct unit *u);
void unit_free_rows(struct unit *u); /* the map's table; call once at the end of the unit's life */

/* --- loading ------------------------------------------------------------------------------------
 *
 * The load step of a command says what its decide step needs. It is called until nothing new is wanted: what
 * is not there yet comes, of a shared store in one round trip with what the other commands of the batch want,
 * and then the step may go by it and want more. Of a store with one writer everything is there at once.
 * Prefetching is a matter of speed: what nobody wanted is read when it is looked for. Only unit_row() and
 * changes MUST know their row. */

/* The row by its key columns as this batch has it; NULL: it is still to come, or there is none. */
void *unit_prefetch(struct unit *u, const struct table *t, const void *key);
/* The live task of this id; NULL as above. */
struct task *unit_prefetch_task(struct unit *u, int64_t id);
/* This task was looked for, and does not live. */
bool unit_task_is_gone(const struct unit *u, int64_t id);
/* Tasks that a claim may take; once for each `asker`. */
void unit_prefetch_claim(struct unit *u, const void *asker, const struct load_claim *claim);
/* The job that used an idempotency key; the text stays where it is until the batch ends. */
void unit_prefetch_key(struct unit *u, int64_t client, struct str key);
/* Brings what is wanted. False: nothing new was. For load steps outside a command (housekeeping):
 * do { prefetch } while (unit_load(u)). */
bool unit_load(struct unit *u);
/* What this batch read of a shared store does not fit together: others may have written between two reads.
 * The batch is decided again, and only if that does not help the error stands. */
void unit_report_inconsistent(struct unit *u, const struct err *err);

/* --- rows --------------------------------------------------------------------------------------- */

/* The row as this batch sees it, or NULL when there is none. MUST have been prefetched or inserted. */
void *unit_row(struct unit *u, const struct table *t, const void *key);
/* The same for any row: one that nobody prefetched is read now. NULL also when that failed; then nothing of
 * this batch is written. */
void *unit_fetch(struct unit *u, const struct table *t, const void *key);
/* Does this batch know the row, whether it exists or not? (a decider that may run without its load step can
 * find out) */
bool unit_has(struct unit *u, const struct table *t, const void *key);
/* Every row that begins as `from` does, from its second number on (store.h: range), `max` at most: calls fn
 * for each as this batch sees it; behind them those that it has inserted itself, in that order. */
void unit_each_of_range(struct unit *u, const struct table *t, const void *from, size_t max,
                        void (*fn)(struct unit *u, void *row, void *arg), void *arg);
/* `row` lives in the batch arena (or longer). */
void unit_insert(struct unit *u, const struct table *t, void *row);
void unit_update(struct unit *u, const struct table *t,
                 void *row); /* a row from unit_row, changed in place */
void unit_delete(struct unit *u, const struct table *t, const void *key);
/* Calls fn for each row of the table that this batch inserts, in the order of registration. Also between a
 * commit and the next unit_start. */
void unit_each_inserted(const struct unit *u, const struct table *t, void (*fn)(const void *row, void *arg),
                        void *arg);

/* --- live tasks -------------------------------------------------------------------------------- */

struct task *unit_task(struct unit *u, int64_t id); /* NULL when not live */
/* The same for a task about another: not looked for when all about that one is in memory. */
struct task *unit_task_about(struct unit *u, int64_t id, int64_t subject);
struct task *unit_task_add(struct unit *u, const struct task_row *row);
/* Every task about this one is in memory, if there is any. */
bool unit_has_all_about(const struct unit *u, const struct task *t);
void unit_task_touch(struct unit *u, struct task *t); /* before the first change of its row */
/* Before a change of times that a restart gives anew: written only where others look at the row. */
void unit_task_touch_times(struct unit *u, struct task *t);
/* When the lease of this task ends if it is given or extended now. */
int64_t unit_lease_until_ms(const struct unit *u, const struct task *t);
/* Moves it, as lifecycle/task_lifecycle.h says: no other line assigns its state. MUST have this move. */
void unit_task_move(struct unit *u, struct task *t, enum task_trigger on);
void unit_task_place(struct unit *u, struct task *t); /* after the change: back into the indexes */
/* Keeps a copy of the text; absent: none. */
void unit_task_progress(struct unit *u, struct task *t, struct str progress);
void unit_task_end(struct unit *u, struct task *t); /* it leaves the live queue */

/* --- the rest ---------------------------------------------------------------------------------- */

/* Ids, and what is random in them: deciders have no other. */
int64_t unit_id(struct unit *u);                   /* the 60-bit key of a v7 id, larger than all before it */
int64_t unit_id_at(struct unit *u, int64_t at_ms); /* the same, of a time that is not before now_ms */
int64_t unit_uuid_tail(struct unit *u);            /* the random half that makes a v7 id of such a key */
struct uuid unit_uuid_v4(struct unit *u);
/* Whether there is room for one more unfinished job, and one more that waits to be claimed (census.h). On a
 * shared store the room is this batch's from here on, until it ends: call it once for each job. */
bool unit_take_room(struct unit *u, struct room *r);
void unit_give_room_back(struct unit *u, const struct room *r); /* the job is refused after all */
void unit_list(struct unit *u, int64_t client, uint8_t bucket, int64_t id, bool removed);
void unit_idem_add(struct unit *u, uint64_t hash, int64_t job);
void unit_idem_drop(struct unit *u, uint64_t hash, int64_t job);
struct client_counts *unit_counts(struct unit *u, int64_t client);
/* How many jobs the client has as this batch sees it. Of a shared store: what was committed when the
 * batch first asked, with what it adds; that costs a query, and batches beside it are not counted. */
void unit_read_counts(struct unit *u, int64_t client, struct client_counts *ret);
/* A job of this client moves; JOB_NO_STATE: it is new, or purged. */
void unit_count_move(struct unit *u, int64_t client, enum job_state from, enum job_state to);
/* Tells watchers, after the commit (kernel/notice.h). The row lives as long as the batch; NULL: the kind says
 * it all. */
void unit_notify(struct unit *u, const struct notice_kind *kind, const void *row);

#endif
