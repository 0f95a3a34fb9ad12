/* store/postgres/postgres_internal.h - what the files of the PostgreSQL backend share. Not for others.
 *
 * A handle is one connection (struct pg_link) and one lane. A batch is two round trips: `load` sends BEGIN
 * and every read as one pipeline, `commit` every write and COMMIT as another. Statements that nothing waits
 * for (ROLLBACK, the end of a snapshot, a hint) is sent and forgotten; its answers are skipped with the next
 * pipeline. */
#ifndef WEIR_STORE_POSTGRES_INTERNAL_H
#define WEIR_STORE_POSTGRES_INTERNAL_H

#include "store/postgres/postgres_clock.h"
#include "store/postgres/postgres_statements.h"
#include "store/postgres/postgres_values.h"
#include "store/store.h"

enum {
    PG_BLOCK_NUMBERS = 4096, /* log numbers a handle takes at a time: the sequence's increment */
    PG_CHUNKS_MAX = 2048     /* of one commit: a block with fewer left is replaced before */
};

/* --- one connection (postgres_connection.c, postgres_pipeline.c) ------------------------------------- */

struct pg_link {
    PGconn *conn; /* NULL: none */
    char *url;
    uint64_t url_hash; /* for postgres_reach.h */
    int64_t timeout_ms;
    int64_t until_ms; /* monotonic: all that is under way ends by then, however much each step may take; 0 */
    int64_t retry_at_ms, backoff_ms; /* monotonic: when the next try to connect may be */
    int64_t pid, started; /* of the server process: its number and backend_start, for postgres_unknown.c */
    struct pg_clock clock;
    bool in_transaction;
    bool by_key;  /* nothing but reads and writes by key goes through it */
    bool follows; /* others of this process look whether a silent database is back: it does not */
    struct pg_params params;
    int *awaited; /* what the pipeline will answer: AWAITED_*, or the statement whose PREPARE it is */
    PGresult **results;
    size_t count, capacity;
    unsigned forgotten; /* synced pipelines with unread answers */
    bool unsent;        /* libpq refused something: the pipeline cannot succeed */
    bool timed_out;     /* the last run or try to connect ended because nothing came in time */
    const char *remedy; /* what an operator has to do about the last refusal; NULL: it may pass */
    uint8_t prepared[PG_STATEMENTS_MAX];
};

void link_init(struct pg_link *l, const struct postgres_options *o);
void link_free(struct pg_link *l);
/* Connects unless it is connected. Fails at once while the last failure is younger than the backoff; and a
 * link that follows, while the database is silent. */
MUST_CHECK enum err_code link_open(struct pg_link *l, struct err *err);
void link_close(struct pg_link *l);
bool link_is_open(const struct pg_link *l);
/* The connection is of no use any more: closes it and says so. */
enum err_code link_lost(struct pg_link *l, const char *doing, struct err *err);
/* The one place SQLSTATEs become ours. Which of them are no outage (a password, a database, a right is
 * missing), with what to do; NULL: wait and try again. */
const char *link_remedy(const char *state);
enum err_code link_refused(const PGresult *r, const char *doing, struct err *err);
int postgres_first_line(const char *text); /* how much of what libpq says is shown: for %.*s */
enum err_code err_conflict(struct err *err, const char *why);
/* By when a step that begins now has to be done; and the note that it was not: no link tries again at once.
 * */
int64_t link_until(const struct pg_link *l);
void link_note_silence(struct pg_link *l, int64_t since_ms);
/* Waits for the socket; false when the time is over. */
bool link_wait(const struct pg_link *l, short events, int64_t until_ms);

/* A pipeline: sends, then one run. link_params() is empty parameters to fill. */
struct pg_params *link_params(struct pg_link *l);
size_t link_send(struct pg_link *l, enum pg_statement statement); /* gives the number of its result */
size_t link_send_sql(struct pg_link *l, const char *sql);         /* not prepared; with the parameters */
/* Sends the rest and reads every answer. On a refusal the connection stays usable (and a transaction failed);
 * when it is lost, it is closed. Results are there until link_clear. */
MUST_CHECK enum err_code link_run(struct pg_link *l, const char *doing, struct err *err);
const PGresult *link_result(const struct pg_link *l, size_t number);
void link_clear(struct pg_link *l);
/* Sends a statement without waiting for its answer. */
void link_forget(struct pg_link *l, const char *sql);
/* Ends the transaction without waiting, if there is one. */
void link_rollback(struct pg_link *l);
void link_begin(struct pg_link *l); /* in the pipeline, unless a transaction is open */
/* In the pipeline: the server ends nothing of this transaction for taking long. */
void link_take_time(struct pg_link *l);

/* --- the handle -------------------------------------------------------------------------------------- */

struct postgres_store {
    struct store base;
    struct pg_link link;
    struct arena *scratch;          /* of the call under way */
    int64_t lane_token;             /* 0: no lane yet */
    int64_t lane_pid, lane_started; /* the connection that the lane's row names */
    int64_t batch;                  /* of this lane: the last one that was tried */
    bool lane_in_doubt;             /* a commit was refused: perhaps the lane is another process's */
    bool batch_broken;              /* the transaction of this batch is lost: its commit must not happen */
    bool shared_in_doubt;  /* a commit was refused: perhaps others have made clients, or changed webhooks */
    bool others;           /* other nodes were seen lately: hints are of use */
    int64_t watched_ms;    /* monotonic: when it last looked for leases that have ended; 0: not yet */
    int64_t lanes_seen_ms; /* when this handle last said that the node's lanes are in use */
    int64_t block_end, block_since_ms; /* log numbers up to here are ours, since then */
    int64_t hooks_version;             /* of store->hooks; -1: none read yet */
    int64_t load_now_ms;               /* 0: the batch has not loaded */
    int64_t batch_since_ms;            /* monotonic: when it began to load */
    int64_t targets_tended_ms;         /* monotonic */
    int64_t deliveries_seen_ms;        /* monotonic: when they were looked at last */
    const void **group;                /* room for the rows of one commit */
    size_t group_capacity;
};

extern const struct store_ops store_postgres_ops;

/* Connected, with a lane. Every verb starts here. What deciders see besides the batch's own part (webhooks,
 * the next client's number) stays as it is: a fetch is made in the middle of a decision. */
MUST_CHECK enum err_code postgres_ready(struct postgres_store *s, struct err *err);
/* The same where a batch begins or has been refused: what is in doubt is read again. Never at the start of a
 * commit: it would pass for what was decided by. */
MUST_CHECK enum err_code postgres_ready_anew(struct postgres_store *s, struct err *err);
/* After a failure: nothing stays open. Gives err->code. */
enum err_code postgres_failed(struct postgres_store *s, struct err *err);

/* Schema (postgres_schema.c). */
MUST_CHECK enum err_code postgres_schema_make(struct pg_link *l, struct err *err);
MUST_CHECK enum err_code postgres_schema_check(struct pg_link *l, struct err *err);

/* Lanes (postgres_lanes.c). */
int64_t postgres_node(void); /* this process among those of the database: random */
/* Another node has joined, as it said itself; that it did within the last half minute. Any thread. */
void postgres_met_node(void);
bool postgres_met_node_lately(void);
/* "<what>:<node>": what is said to other nodes. */
enum { POSTGRES_HINT_BYTES = 48 };
void postgres_hint_text(unsigned what, char out[POSTGRES_HINT_BYTES]);
MUST_CHECK enum err_code postgres_lane_take(struct postgres_store *s, struct err *err);
void postgres_lane_leave(struct postgres_store *s);
void postgres_send_lane_batch(struct postgres_store *s); /* in the commit's pipeline */

/* The result of a commit whose answer was lost (postgres_unknown.c): ERR_OK when it did happen. */
MUST_CHECK enum err_code postgres_find_out(struct postgres_store *s, int64_t pid, int64_t started,
                                           int64_t until_ms, struct err *err);

/* Reading for a batch (postgres_load.c, postgres_claims.c, postgres_fetch.c). */
enum err_code postgres_load(struct store *base, struct load_set *l, struct arena *a, struct err *err);
enum err_code postgres_range_of(struct pg_link *l, const struct table *t, const void *from, size_t max,
                                store_row_fn *fn, void *arg, struct err *err);
enum err_code postgres_range(struct store *s, const struct table *t, const void *from, size_t max,
                             store_row_fn *fn, void *arg, struct err *err);
enum err_code postgres_reader_range(struct reader *r, const struct table *t, const void *from, size_t max,
                                    store_row_fn *fn, void *arg, struct err *err);
enum err_code postgres_fetch(struct store *base, const struct table *t, void *row, struct arena *a,
                             bool *ret_found, struct err *err);
void postgres_abandon(struct store *base);
MUST_CHECK enum err_code postgres_read_hooks(struct postgres_store *s, int64_t version, struct err *err);
MUST_CHECK enum err_code postgres_add_task(struct postgres_store *s, const PGresult *r, int row,
                                           struct task **ret_task, struct err *err);
/* Many rows by key, a statement for each table they are of (postgres_rows.c). */
struct pg_row_groups {
    size_t result[TABLES_MAX], count[TABLES_MAX], *numbers[TABLES_MAX]; /* numbers: of the rows, as sent */
    enum pg_row_statement kind[TABLES_MAX];
    bool locks;        /* set these two; */
    int64_t bytes_max; /* 0: no limit */
};
void postgres_send_rows(struct pg_link *l, const struct load_row *rows, size_t count, struct pg_row_groups *g,
                        struct arena *scratch);
void postgres_take_rows(struct pg_link *l, struct load_row *rows, size_t count, const struct pg_row_groups *g,
                        struct arena *a);
struct pg_claims;
struct pg_claims *postgres_send_claims(struct postgres_store *s, const struct load_set *l);
MUST_CHECK enum err_code postgres_take_claims(struct postgres_store *s, const struct pg_claims *c,
                                              struct err *err);
/* Targets (postgres_receivers.c): wanted ones are known after the load; changes go with the commit. */
void postgres_want_receiver(const struct task *t); /* of this stream; NULL and tasks without one are fine */
MUST_CHECK enum err_code postgres_load_targets(struct postgres_store *s, struct err *err);
void postgres_send_targets(struct postgres_store *s, int64_t now_ms);
bool postgres_waits_for_slot(const struct postgres_store *s, const struct task_row *row);
int64_t postgres_slot_wait_phase(void);
MUST_CHECK enum err_code postgres_tend_targets(struct postgres_store *s, struct err *err);
/* One row by key through this connection, for writers and readers. Stats come with their deltas. */
MUST_CHECK enum err_code postgres_row(struct pg_link *l, const struct table *t, bool locks, void *row,
                                      struct arena *a, bool *ret_found, struct err *err);
struct str postgres_counts_sum(const PGresult *r, int counts_column, int delta_column, int first, int end,
                               struct arena *a);

/* Log numbers: asked for in a pipeline, taken from its result. */
bool postgres_wants_block(const struct postgres_store *s, int64_t used);
size_t postgres_send_block(struct postgres_store *s);
void postgres_take_block(struct postgres_store *s, size_t result);

/* Writing (postgres_commit.c). */
enum err_code postgres_commit(struct store *base, const struct change_set *c, struct err *err);

/* Duties, counters, hints (postgres_duties.c, postgres_counts.c). */
enum err_code postgres_lead(struct store *base, struct store_duties *ret_duties, struct err *err);
void postgres_hint(struct store *base, unsigned what);
size_t postgres_send_leases_anew(struct postgres_store *s); /* the result counts them (postgres_leases.c) */
MUST_CHECK enum err_code postgres_fold_counts(struct postgres_store *s, struct err *err);

/* Readers (postgres_reader.c, postgres_scan.c). */
struct pg_reader {
    struct reader base;
    struct pg_link link;
    bool begun;       /* between begin and end */
    bool is_served;   /* of a store that is */
    unsigned cursors; /* so far, for their names */
};
enum err_code postgres_reader_open(struct store *base, struct reader **ret_reader, struct err *err);
void postgres_reader_close(struct reader *r);
enum err_code postgres_reader_begin(struct reader *r, struct err *err);
void postgres_reader_end(struct reader *r);
enum err_code postgres_reader_row(struct reader *r, const struct table *t, void *row, struct arena *a,
                                  bool *ret_found, struct err *err);
enum err_code postgres_reader_rows(struct reader *r, struct load_row *rows, size_t count, struct arena *a,
                                   struct err *err);
enum err_code postgres_reader_chunk(struct reader *r, int64_t number, struct arena *a, struct str *ret_chunk,
                                    struct err *err);
enum err_code postgres_reader_list(struct reader *r, const struct list_query *q, int64_t *ret_ids,
                                   size_t *ret_count, struct err *err);
enum err_code postgres_reader_jobs(struct reader *r, const struct list_query *q, int64_t state,
                                   int64_t *ret_ids, size_t *ret_count, struct err *err);
enum err_code postgres_reader_queues(struct reader *r, int64_t client, store_queue_fn *fn, void *arg,
                                     struct err *err);
enum err_code postgres_reader_live(struct reader *r, const struct list_query *q, int64_t state,
                                   int64_t *ret_ids, size_t *ret_count, struct err *err);
enum err_code postgres_reader_scan(struct reader *r, const struct table *t, store_row_fn *fn, void *arg,
                                   struct err *err);
enum err_code postgres_reader_scan_log(struct reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                       struct err *err);
enum err_code postgres_reader_follow(struct reader *r, struct log_place *place, size_t max,
                                     store_follow_fn *fn, void *arg, struct err *err);
enum err_code postgres_reader_of_client(struct reader *r, const struct table *t, int64_t client,
                                        store_row_fn *fn, void *arg, struct err *err);
enum err_code postgres_reader_scan_list(struct reader *r, store_list_fn *fn, void *arg, struct err *err);
enum err_code postgres_reader_scan_idem(struct reader *r, store_idem_fn *fn, void *arg, struct err *err);
enum err_code postgres_reader_check(struct reader *r, store_check_fn *fn, void *arg, struct err *err);
/* The reader's connection, in its transaction: BEGIN goes out with the first read. */
MUST_CHECK enum err_code postgres_reader_ready(struct pg_reader *r, struct err *err);

/* Store numbers, and which other clients of the database there are (postgres_store_numbers.c). */
void postgres_send_numbers(struct postgres_store *s,
                           const struct change_set *c); /* in the commit's pipeline */
enum err_code postgres_reader_number(struct reader *r, const char *name, int64_t *ret_value, struct err *err);
enum err_code postgres_reader_others(struct reader *r, int64_t *ret_count, struct err *err);

/* The inbox as applications see it (postgres_inbox.c): the last statements of the schema. */
extern const char *const postgres_inbox_sql[];
extern const size_t postgres_inbox_sql_count;

#endif
