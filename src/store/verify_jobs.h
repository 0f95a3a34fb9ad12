/* store/verify_jobs.h - the rules of jobs, and of clients, keys, webhooks and deliveries: what their files
 * share. Not for others.
 *
 * The order matters: rows first (they say how many events each job must have and where), then kept copies and
 * the log (they fold to a state), then the comparison, then what is kept beside the jobs (counters, listings,
 * idempotency keys). */
#ifndef WEIR_STORE_VERIFY_JOBS_H
#define WEIR_STORE_VERIFY_JOBS_H

#include "base/map.h"
#include "store/verify_internal.h"

/* All that is remembered of a job while the log passes by. */
struct checked_job {
    struct map_node node;
    int64_t id, low, client;
    uint64_t shared; /* digest of the columns that jobs and tasks both hold */
    /* Sums over number and position of its events: as the row lists them, as the log has them. */
    uint64_t row_refs, log_refs;
    uint64_t idem; /* hash of its idempotency key; 0: none */
    int64_t row_last_us, last_us;
    uint32_t row_seq, seq, row_attempt, attempt, max_retries;
    uint32_t kept; /* number of the last event whose chunk was purged: that one and others are in `kept` */
    uint32_t kept_count, kept_seen; /* how many those are, how many are there */
    uint32_t archives;              /* reports of earlier attempts */
    uint8_t kind, row_state, state;
    struct early_event *early; /* met before their turn, by number */
    bool has_job, is_live, is_ended, broken, exhausted, released, listed, listed_final, idem_seen;
};

/* Several lanes write chunks side by side, so an event may stand before the one it follows. */
struct early_event {
    struct early_event *next;
    struct event event; /* without its extra */
};

struct checked_client {
    struct map_node node;
    int64_t num;
    uint8_t uuid[16];
    struct client_counts counts;
    bool has_row, has_stats, has_secret, is_deleted;
    uint8_t numbers; /* rows of client_numbers that lead to it */
};

struct job_check {
    struct map jobs, clients, deliveries; /* the structs above live in the arena */
    int64_t first_chunk, next_chunk;      /* 0: the log is empty */
};

static inline struct job_check *job_check(const struct verify *v)
{
    return verify_self(v, &verify_jobs);
}

void verify_say_job(struct verify *v, const struct checked_job *j, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct checked_job *verify_find_job(const struct verify *v, int64_t id);
struct checked_job *verify_add_job(struct verify *v, int64_t id);
/* One event as it counts in row_refs and log_refs. */
uint64_t verify_ref(uint64_t seq, uint64_t ref);
struct checked_client *verify_client(struct verify *v, int64_t num); /* made when absent */

/* The passes, in order. */
enum err_code verify_find_first_chunk(struct verify *v, struct err *err);
enum err_code verify_clients(struct verify *v, struct err *err); /* clients, secrets, keys, webhooks */
enum err_code verify_job_rows(struct verify *v, struct err *err);
bool verify_job_task(struct verify *v, const struct task_row *t);
enum err_code verify_job_ends(struct verify *v, struct err *err); /* ends, archives */
enum err_code verify_log(struct verify *v, struct err *err);      /* kept, log */
enum err_code verify_delivery_rows(struct verify *v, struct err *err);
void verify_stream(struct verify *v, const struct task_row *r); /* a task that is one */
bool verify_listed_job(struct verify *v, const struct list_entry *e);
void verify_listed_delivery(struct verify *v, const struct list_entry *e);
enum err_code verify_beside(struct verify *v, struct err *err); /* counters, listings, idempotency */
void verify_delivery_places(struct verify *v);                  /* after all the others */

#endif
