/* unit/kernel/rig.h - a kernel on a bench: any store, a clock whose hands the test turns, commits that
 * fail when told to. Every test ends with a full check of the store (store_verify): no problem may be left.
 *
 * One rig at a time; commands live in its arena until rig_down. */
#ifndef WEIR_TESTS_RIG_H
#define WEIR_TESTS_RIG_H

#include "base/clock.h"
#include "base/must.h"
#include "base/random.h"
#include "unit/kernel/task_owners.h"
#include "unit/kernel/timer_kinds.h"
#include "jobs/client_commands.h"
#include "jobs/job_commands.h"
#include "jobs/job_notices.h"
#include "jobs/purge.h"
#include "kernel/worker_commands.h"
#include "store/job_view.h"
#include "store/bench_schema.h"
#include "store/verify.h"

enum { RIG_EVENTS_MAX = 64 };

struct rig {
    bool on_disk; /* closing the store loses nothing */
    bool shared;  /* PostgreSQL: what the store has in memory is the batch's */
    char path[64];
    struct bench_schema schema;
    struct clock clock;
    int64_t wall_us, mono_ms;
    struct random random;
    _Atomic uint64_t seed; /* of all ids: two rigs that do the same have the same store */
    struct settings settings;
    struct store *store;
    struct store_ops ops;         /* the backend's, with our commit */
    const struct store_ops *real; /* the backend's own */
    struct kernel *kernel;
    struct store *other_store; /* of the node that is not at work (rig_switch_node) */
    struct kernel *other_kernel;
    struct reader *reader;
    struct purge purge;
    struct arena *arena;
    int failures;                         /* so many commits to come fail */
    enum err_code failure;                /* with this; nothing is written */
    int fetches_left;                     /* the one after so many row reads fails; negative: none does */
    size_t commits;                       /* that reached the backend */
    size_t writes[TABLES_MAX];            /* row changes of the last commit */
    size_t fetches[TABLES_MAX];           /* rows read, found or not */
    size_t notices;                       /* of the last committed batch */
    struct job_notice last_notice;        /* the last that had any: numbers only, texts are gone with it */
    bool tells_attempts;                  /* from the next rig_restart on */
    size_t attempts;                      /* told of so far */
    struct attempt_notice last_attempt;   /* numbers and error only: its rows are gone with the batch */
    int64_t commit_takes_us;              /* a commit sleeps so long first: a slow disk */
    void (*before_commit)(struct rig *r); /* once, when the next batch has been loaded and decided */
    bool probe_fails;
    int64_t load_outage_ms; /* shared: the next load lasts so long, and then has to be done again */
    int fatal;
};

/* Which backend the next rig_up opens; set by the group. */
extern bool rig_use_disk, rig_use_postgres;
int rig_group_memory(void **state);
int rig_group_disk(void **state);
int rig_group_postgres(void **state);

/* One kind of timers more, of a test; NULL: none. From the next kernel on, until the rig goes down. */
extern const struct timer_kind *rig_timer_kind;

/* cmocka setup and teardown: *state is the rig. */
int rig_up(void **state);
int rig_down(void **state);

void rig_pass(struct rig *r, int64_t ms);     /* both hands */
void rig_set_wall(struct rig *r, int64_t ms); /* somebody sets the clock: the wall hand only, by so much */
/* Kernel and store are closed and opened again after `down_ms`; the memory store only loses its kernel. */
void rig_restart(struct rig *r, int64_t down_ms);
/* The kernel anew, with ids that start over: the next one was given before, if the clock stands still. */
void rig_forget_ids(struct rig *r);
/* Shared stores: from now on everything goes to another node of the same store; and back again. */
void rig_switch_node(struct rig *r);
size_t rig_step(struct rig *r);
/* Of all that the store holds: rows, log, listings, idempotency keys. */
uint64_t rig_digest(struct rig *r);
void rig_expect_sound(struct rig *r); /* store_verify finds nothing */

/* --- commands: post_* waits for rig_step, the others step at once ------------------------------ */

struct uuid rig_uuid(struct rig *r); /* a new one, of the rig's seed */
bool rig_is_done(const struct command *c);
void rig_post(struct rig *r, struct command *c, const struct command_type *type);

int64_t rig_new_client(struct rig *r, struct uuid *ret_id); /* its number; ret_id may be NULL */
struct submit_item rig_item(void);                          /* EXECUTE, SUCCESS_FAST */
struct submit_command *rig_post_submit(struct rig *r, int64_t client, const struct submit_item *items,
                                       size_t count);
struct submit_item rig_submit(struct rig *r, int64_t client, const struct submit_item *item);
struct submit_item rig_submit_default(struct rig *r, int64_t client);
struct submit_item rig_submit_deferred(struct rig *r, int64_t client, int64_t after_ms);

struct job_command *rig_post_job(struct rig *r, const struct command_type *type, int64_t client,
                                 const struct submit_item *job);
struct job_command *rig_cancel(struct rig *r, int64_t client, const struct submit_item *job);
struct job_command *rig_retry(struct rig *r, int64_t client, const struct submit_item *job);

struct claim_command *rig_post_claim(struct rig *r, const char *worker, uint32_t max, int64_t wait_ms);
/* One task of queue `default`, which must be there. */
struct claimed_task rig_claim(struct rig *r, const char *worker);
size_t rig_claim_count(struct rig *r, const char *worker, uint32_t max);
struct worker_command *rig_post_work(struct rig *r, const struct command_type *type,
                                     const struct claimed_task *task, bool success);
struct worker_item rig_work(struct rig *r, const struct command_type *type, const struct claimed_task *task);
struct worker_item rig_fail(struct rig *r, const struct claimed_task *task);
/* Claim, start, finish of one job. */
void rig_run(struct rig *r, bool success);

/* --- what a reader sees ------------------------------------------------------------------------ */

bool rig_row(struct rig *r, const struct table *t, void *row); /* by its key; false: there is none */
size_t rig_rows(struct rig *r, const struct table *t);         /* how many there are */
uint32_t rig_live_count(struct rig *r); /* unfinished jobs, also where memory does not hold them */
uint32_t rig_stream_count(struct rig *r, enum task_phase phase); /* the same of streams of deliveries */
struct task_row rig_task(struct rig *r, int64_t id);             /* must be alive; texts are the rig's */
bool rig_find(struct rig *r, int64_t id, struct job_view *ret_view);
struct job_view rig_view(struct rig *r, int64_t id); /* must exist */
enum job_state rig_state(struct rig *r, int64_t id);
size_t rig_events(struct rig *r, int64_t id, struct event *ret_events);
size_t rig_event_count(struct rig *r, int64_t id);
struct event rig_last_event(struct rig *r, int64_t id);
struct client_counts rig_counts(struct rig *r, int64_t client); /* as stored */

#define RIG_TEST_ON(stores, name, parameter, why)                                                            \
    TEST_OF_GROUPS(name, struct rig *parameter, rig_up, rig_down, stores, why)
#define RIG_TEST(name, parameter) RIG_TEST_ON(NULL, name, parameter, NULL)
/* One that does not run on PostgreSQL, and why. */
#define RIG_TEST_UNSHARED(name, parameter, why) RIG_TEST_ON("memory sqlite", name, parameter, why)
#define RIG_OWN_CLOCK                           "all nodes go by the database's clock, which nobody sets"
int rig_run_both(void); /* the tests of the program in memory and on SQLite */
int rig_run_all(void);  /* on PostgreSQL, too */

#endif
