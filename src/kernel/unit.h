/* kernel/unit.h - the unit of work: everything one batch has read and will write.
 *
 * A decider sees the world only through its unit: rows that its load step asked for, live tasks, the time,
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
#include "store/store.h"

/* What happened, for those who watch after the commit: logs, metrics, streams, later webhooks. */
struct notice {
    struct event event;
    uint64_t low;
    int64_t client;
    int64_t waited_ms; /* on job.assigned: since it could be claimed; on job.running: since assigned */
    int64_t ran_ms;    /* on a final event after a start; else -1 */
    int64_t duration_ms;
    struct str worker;
    struct str queue; /* on the end of an attempt or a job; else absent */
};

/* A run got events, up to this number. */
struct run_notice {
    int64_t run, seq;
};

/* A webhook was disabled, for those who watch. */
struct webhook_notice {
    const struct webhook_row *webhook;
    struct webhook_notice *next;
};

/* What was held for approval is settled, for those who watch. */
struct decision_notice {
    const struct decision_row *decision;
    struct decision_notice *next;
};

/* An attempt to deliver that is over, for whoever asked to be told (kernel_watch.attempts). Rows and texts
 * are the batch's. */
struct attempt_notice {
    const struct delivery_row *delivery;
    const struct job_row *job;
    const struct webhook_row *webhook;   /* NULL: the job's callback, or the webhook is gone */
    int64_t stream_low, token;           /* of the lease: no two attempts have the same */
    int64_t attempt, started_ms, status; /* status 0: there was no answer */
    struct str error;                    /* absent: delivered */
};

enum {
    UNIT_BYTES_MAX = 8 << 20, /* of arena: a batch of large rows and bodies ends early */
    UNIT_PUT_OFF_MS = 1000,   /* under pressure, what can wait does so long before the next look */
};

struct unit_row;
struct task_touch;

/* Shared stores: what this batch asks to have in memory, and which tasks it knows to be there or not. */
struct unit_asked {
    int64_t *tasks;
    size_t task_count, task_capacity;
    struct load_claim *claims;
    size_t claim_count, claim_capacity;
    struct load_key *keys;
    size_t key_count, key_capacity;
    struct load_row *rows; /* wanted and not read yet */
    size_t row_count, row_capacity;
    struct map known;
    int64_t next_due_ms; /* answer to a look for timers */
};

/* What the store's memory learns at publish time: caches outside the store (API keys). */
struct unit {
    struct store *store;
    struct arena *arena;
    const struct settings *settings;
    struct uuid_v7_source *ids;
    struct reader *reader;  /* housekeeping's own snapshot reader; may be NULL in tests */
    int64_t now_us, now_ms; /* wall clock as far as it is right, one instant for the whole batch */
    int64_t held_ms;        /* wall clock when the rows were in hand, never before now_ms: of a shared store a
                             * batch waits for those who hold them, so what they wrote has an earlier time */
    bool may_delete;      /* false while the wall clock is in doubt (kernel/wall_guard.h): retention waits */
    int64_t steady_ms;    /* wall clock that never jumps, cut to ms: what has passed is asked of it */
    int64_t steady_up_ms; /* the same, rounded up: deadlines are counted from it, so none is early */

    struct log_builder log;
    struct map rows;
    struct unit_row *row_list, **row_tail;
    uint32_t inserted[TABLE_COUNT]; /* rows of each table that this batch adds */
    struct task_touch *touches;
    struct list_entry *list;
    size_t list_count, list_capacity;
    struct idem_entry *idem_add, *idem_drop;
    size_t idem_add_count, idem_add_capacity, idem_drop_count, idem_drop_capacity;
    struct notice *notices;
    size_t notice_count, notice_capacity;
    struct run_notice *run_notices; /* one per event, in order */
    size_t run_notice_count, run_notice_capacity;
    int64_t *progressed; /* jobs whose workers told how far they are */
    size_t progressed_count, progressed_capacity;
    struct webhook_notice *disabled;
    struct decision_notice *settled;
    bool tells_attempts; /* whether the next list is filled at all */
    struct attempt_notice *attempts;
    size_t attempt_count, attempt_capacity;
    int64_t drop_chunks_below;
    int64_t early_slot;    /* that was listed last (jobs/purge_early.h) */
    bool wrote;            /* the commit had something to write */
    bool met_share;        /* a client was refused for having its share of the jobs */
    bool audited;          /* decisions or alerts are among what it inserts, or a decision was settled */
    bool keys_changed;     /* API keys were written: caches must be refreshed before answers go out */
    struct census *census; /* NULL unless the store is shared */
    struct census_part counted;
    int64_t known_client;               /* shared: whose committed counters this batch has read ... */
    struct client_counts *known_counts; /* ... and these are */
    uint64_t made_ready;                /* queues (queue_bit) with a committed task that can be claimed */
    int64_t nearest_timer_ms;           /* that a committed task waits for; INT64_MAX: none */
    uint32_t delivered, given_up;       /* deliveries that ended in this batch */
    int64_t oldest_us;   /* wall clock when the first of its requests was complete; 0: it has none */
    bool refuses_low;    /* under pressure: new work of the low class is refused ... */
    bool puts_off;       /* ... and what can wait does (deliveries again, the purge) */
    struct err load_err; /* the first failure of the load phase */
    bool believes;       /* what cannot be was found again and again: unit_suspect does nothing */
    struct unit_asked asked;
};

/* A queue as one bit of 64, by its name: enough to know nearly always who has no reason to look. */
uint64_t queue_bit(struct str name);

void unit_start(struct unit *u);
/* Writes everything in one durable transaction. ERR_OK when there was nothing to write, too. */
MUST_CHECK enum err_code unit_commit(struct unit *u, struct err *err);
/* Undoes what touched memory; after a failed commit. */
void unit_abort(struct unit *u);
void unit_free_rows(struct unit *u); /* the map's table; call once at the end of the unit's life */

/* --- asking: what a shared store shall have in memory; with others nothing happens ------------------ */

void unit_ask_task(struct unit *u, int64_t id);
void unit_ask_claim(struct unit *u, const struct load_claim *claim);
void unit_ask_key(struct unit *u, int64_t client, struct str key); /* an idempotency key */
/* One round trip for all that was asked, and for up to due_max tasks whose time has come. */
void unit_load_asked(struct unit *u, uint32_t due_max);
/* Reads what was wanted since; called by unit_row() too, so a load step may go by what it has read. */
void unit_load_wanted(struct unit *u);
/* What this batch read of a shared store does not fit together: others may have written between two reads.
 * The batch is decided again, and only if that does not help the error stands. */
void unit_suspect(struct unit *u, const struct err *err);

/* --- rows: load step says what it wants, decide step looks and changes ------------------------- */

/* Reads the row by its key columns unless this batch knows it already; of a shared store together with the
 * others that are wanted. Load phase only. */
void unit_want(struct unit *u, const struct table *t, const void *key);
/* The row as this batch sees it, or NULL when there is none. MUST have been wanted or inserted. */
void *unit_row(struct unit *u, const struct table *t, const void *key);
/* The same for a row that nobody wanted before: it is read now. NULL also when that failed; then nothing of
 * this batch is written. For those who learn only while deciding what they need (a claim). */
void *unit_get(struct unit *u, const struct table *t, const void *key);
/* Every row that begins as `from` does, from its second number on (store.h: range), `max` at most: calls fn
 * for each as this batch sees it; behind them those that it has inserted itself, in that order. */
void unit_each_of_range(struct unit *u, const struct table *t, const void *from, size_t max,
                        void (*fn)(struct unit *u, void *row, void *arg), void *arg);
/* `row` lives in the batch arena (or longer). */
void unit_insert(struct unit *u, const struct table *t, void *row);
void unit_update(struct unit *u, const struct table *t,
                 void *row); /* a row from unit_row, changed in place */
void unit_delete(struct unit *u, const struct table *t, const void *key);
/* Did this batch ask for the row? (a decider that may run without its load step can find out) */
bool unit_knows(struct unit *u, const struct table *t, const void *key);
/* Calls fn for each row of the table that this batch inserts, in the order of registration. Also between a
 * commit and the next unit_start. */
void unit_each_inserted(const struct unit *u, const struct table *t, void (*fn)(const void *row, void *arg),
                        void *arg);

/* Calls fn for each row of the table that this batch has read. */
void unit_each_stored(const struct unit *u, const struct table *t, void (*fn)(const void *row, void *arg),
                      void *arg);

/* --- live tasks -------------------------------------------------------------------------------- */

struct task *unit_task(struct unit *u, int64_t id); /* NULL when not live */
/* The same for a task about another: not looked for when all about that one is in memory. */
struct task *unit_task_about(struct unit *u, int64_t id, int64_t subject);
struct task *unit_task_add(struct unit *u, const struct task_row *row);
void unit_task_touch(struct unit *u, struct task *t); /* before the first change of its row */
void unit_task_place(struct unit *u, struct task *t); /* after the change: back into the indexes */
/* Keeps a copy of the text; absent: none. */
void unit_task_progress(struct unit *u, struct task *t, struct str progress);
void unit_task_end(struct unit *u, struct task *t); /* it leaves the live queue */

/* --- the rest ---------------------------------------------------------------------------------- */

int64_t unit_new_id(struct unit *u);
int64_t unit_new_id_at(struct unit *u, int64_t at_ms); /* the same, of a time that is not before now_ms */
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
struct notice *unit_notice(struct unit *u);
void unit_run_notice(struct unit *u, int64_t run, int64_t seq);
void unit_progressed(struct unit *u, int64_t job);
void unit_disabled(struct unit *u, const struct webhook_row *webhook);  /* a row of this batch */
void unit_settled(struct unit *u, const struct decision_row *decision); /* the same */
struct attempt_notice *unit_attempt(struct unit *u);

#endif
