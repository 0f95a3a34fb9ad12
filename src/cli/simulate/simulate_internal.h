/* cli/simulate/simulate_internal.h - the simulator's memory: cases, accounts, and the run itself.
 *
 * A case is one job on its way, from the draw of its kind to the judgement:
 *
 *   (drawn) ─► SUBMITTING ─► HELPED ─► FOLLOWED ─► REPORTING ─► (judged)
 *                  │ ▲           │ ▲        │ retry
 *                  │ └─ missed ──┘ └────────┘
 *                  └─► (judged): refused
 *
 * HELPED is everything done to it from outside (sim_help in expectation.h); while FOLLOWED its account's
 * listing tells when it is final. An account is a client of the server with its key; many share the load,
 * because a client has a limit of requests a minute. One thread, no locks. */
#ifndef WEIR_SIMULATE_INTERNAL_H
#define WEIR_SIMULATE_INTERNAL_H

#include <sys/queue.h>

#include "base/heap.h"
#include "base/uuid.h"
#include "cli/command.h"
#include "cli/simulate/calls.h"
#include "cli/simulate/judge.h"
#include "cli/simulate/latency.h"
#include "cli/simulate/mix.h"
#include "cli/simulate/receiver.h"

enum {
    SIM_IN_FLIGHT_MAX = 1000,    /* cases with accounts of our own */
    SIM_IN_FLIGHT_MIN = 100,     /* so many at least, however slow the server is */
    SIM_AHEAD_S = 10,            /* and as many as it ends in this time */
    SIM_IN_FLIGHT_KEY_MAX = 150, /* with --key: one client, 600 requests a minute */
    SIM_ACCOUNT_CASES_MAX = 100, /* then another account takes over: see docs/simulate.md */
    SIM_BATCH_MAX = 100,         /* cases in one submit */
    SIM_SURPRISES_SHOWN = 20,    /* one by one; all are counted */
    SIM_TRIES_MAX = 20,          /* of a cancel that came too late */
    SIM_HOLD_MS = 2000,          /* a far future job is watched this long */
    SIM_LATE_CASES_MAX = 200,    /* for the restart */
    SIM_STALL_MS = 90000,        /* nothing moved for so long (and the longest run): given up */
    SIM_DELIVERY_MS_MAX = 60000, /* from one callback of a job to its next, beyond what the log announces */
    SIM_DELIVERIES_MS_MAX = 1800000, /* for all callbacks of a job */
    SIM_DELIVERIES_KEPT = 16,        /* messages of one job */
    SIM_ACCOUNTS_KEPT = 200,         /* counted at the end; older ones when they leave */
    SIM_SAMPLES_MAX = 64,
};

enum sim_step { STEP_SUBMITTING, STEP_HELPED, STEP_FOLLOWED, STEP_REPORTING, STEP_DELIVERIES };

struct sim_case {
    struct simulation *sim;
    struct sim_account *account;
    TAILQ_ENTRY(sim_case) link; /* in its account's list */
    struct heap_node timer;
    enum work_kind kind;
    enum sim_step step;
    struct sim_yardstick yard;
    int64_t number;
    int tries;       /* submitted anew because help came too late */
    int64_t attempt; /* whose end is awaited */
    char job_id[UUID_TEXT_LEN + 1];
    int64_t created_us;             /* by the server */
    struct sim_case *twin;          /* TWO_KEYS: the one with the other key, until it has an id */
    bool cancel_sent, refused_last; /* RETRY_ALL: the last retry was refused as it must be */
    int64_t latency_us;
    struct receiver_port *port; /* where its callbacks go; NULL: it has none */
    int64_t deliveries_until_ms, deliveries_end_ms, log_read_ms;
    int event_count;
    struct sim_delivery deliveries[SIM_DELIVERIES_KEPT];
    int delivery_count;
};

TAILQ_HEAD(sim_case_list, sim_case);

struct sim_account {
    struct simulation *sim;
    struct sim_caller caller;
    TAILQ_ENTRY(sim_account) link;
    char secret[128];
    bool given;          /* by --key: others may use it too */
    int64_t cases, jobs; /* cases it was given; jobs the server accepted */
    struct sim_case_list to_submit, cases_list;
    struct sim_case *batch[SIM_BATCH_MAX]; /* being submitted */
    size_t batch_count;
    bool polling, counting, leaving;
    int64_t poll_at_ms, poll_every_ms;
    struct strbuf cursor;
};

struct sim_kind_count {
    int64_t sent, as_expected, unexpected, again;
    struct latency latency;
};

struct sim_surprise {
    enum work_kind kind;
    char job_id[UUID_TEXT_LEN + 1];
    struct sim_finding finding;
};

/* How far a run was, and how much memory core had. */
struct sim_sample {
    int64_t at_ms, judged, in_flight;
    int64_t core_bytes; /* -1: the server does not tell */
};

struct simulation {
    const struct invocation *in;
    struct sim_calls *calls;
    struct receiver *receiver; /* NULL: the mix has no receiver kinds */
    struct receiver_port *probe_port;
    uint64_t first_address;                /* of the receivers of this run */
    const char *left_out[WORK_KIND_COUNT]; /* why a kind of the mix is not sent; NULL: it is */
    struct sim_mix mix;
    struct sim_expectation expected[WORK_KIND_COUNT];
    char run_id[UUID_TEXT_LEN + 1]; /* in every idempotency key */
    uint64_t seed;
    int64_t jobs;   /* to send */
    int64_t for_ms; /* how long to send; 0: until all are sent */
    double rate;    /* a second; 0: no limit */
    double time_scale, early;
    int64_t slack_ms;
    int64_t clock_offset_us; /* the server's clock less ours */
    int64_t late_wanted;     /* RESTART cases drawn; sent in a phase of their own */

    TAILQ_HEAD(, sim_account) accounts;
    int64_t account_count;
    struct sim_account *current; /* takes new cases */
    struct sim_account *ordered; /* the next one; NULL: none is on its way */
    struct sim_caller registrar; /* makes clients: the operator, or nobody, who may make so many a minute */
    struct heap timers;
    int64_t drawn, in_flight, judged, number;
    int64_t started_ms, last_moved_ms, next_send_us;
    int64_t pace_at_ms, pace_judged; /* since when, and how many were judged then */
    double pace;                     /* judged a second, lately */
    int64_t worked_ms;               /* how long the mix took; 0: it is under way */
    int64_t not_judged;              /* given up by the user, or with the server away */
    bool absence_told;
    struct sim_calls_count calls_made; /* of calls that are gone */
    struct sim_sample samples[SIM_SAMPLES_MAX];
    int sample_count;
    int64_t sample_every_ms, sample_at_ms;
    struct sim_kind_count kinds[WORK_KIND_COUNT];
    struct sim_surprise surprises[SIM_SURPRISES_SHOWN];
    int64_t surprise_count, time_surprises;
    double scale_seen; /* smallest that a full run pointed to; 0: none */
    int64_t progress_at_ms;
    bool bar_drawn; /* and nothing below it */
    bool stopping;  /* no new cases */
    int fatal;      /* exit code that ends the run at once; CLI_OK: none */
};

/* set_up.c - flags, the first account, the time scale, what the server can do. Gives the exit code. */
int sim_set_up(struct simulation *s);

/* accounts.c - clients, submits in batches, listings. */
int sim_account_add(struct simulation *s);     /* becomes `current`; CLI_OK, else told */
void sim_account_change(struct simulation *s); /* orders the next one in time, and turns to it */
struct sim_account *sim_account_free(struct sim_account *a);
void sim_accounts_work(struct simulation *s, int64_t now_ms);
void sim_accounts_count_jobs(
    struct simulation *s); /* asks each how many jobs it has: none lost, none extra */

/* cases.c - one case from draw to judgement. */
struct sim_case *sim_case_new(struct simulation *s, enum work_kind kind);
void sim_case_submit(struct sim_case *c); /* into its account's list */
void sim_case_write(const struct sim_case *c, struct json_writer *w, const char *other_value);
void sim_case_accepted(struct sim_case *c, const struct json *accepted);
void sim_case_refused(struct sim_case *c, long status, const struct json *problem);
void sim_case_seen(struct sim_case *c, const struct json *job); /* in a listing */
void sim_case_follow(struct sim_case *c);
void sim_case_fetch_report(struct sim_case *c);
void sim_case_end(struct sim_case *c, const struct sim_finding *surprise); /* NULL: as expected; frees c */
void sim_case_timer(struct sim_case *c);
void sim_case_call(struct sim_case *c, const char *method, const char *rest, sim_answer_fn *done);
void sim_case_free(struct sim_case *c);

/* help.c - what is done to a case from outside, by its kind. */
void sim_help_accepted(struct sim_case *c);
bool sim_help_failed(struct sim_case *c); /* true: it was retried, its end is not yet to come */
void sim_help_timer(struct sim_case *c);

/* deliveries.c - callbacks as they arrive. */
receiver_fn sim_delivery_arrived;              /* its owner is a case; NULL: the probe */
void sim_deliveries_await(struct sim_case *c); /* judges it when all have come, or too late */
void sim_deliveries_look(struct sim_case *c);  /* by its timer */

/* restart.c - the last phase: jobs that fall due while the server is away. */
int sim_restart_possible(struct simulation *s); /* CLI_OK, else told */
void sim_restart_phase(struct simulation *s);

/* simulate.c */
void sim_surprise(struct simulation *s, enum work_kind kind, const char *job_id, const struct sim_finding *f);
void sim_moved(struct simulation *s);                /* something went on: no stall */
void sim_turn(struct simulation *s, int timeout_ms); /* one round of the loop */
void sim_run_out(struct simulation *s);              /* until no case is under way */
int64_t sim_now_ms(void);
int64_t sim_server_us(const struct simulation *s); /* the server's wall clock, as far as we know */

/* samples.c - rates and memory over the time of a run, in memory that does not grow. */
void sim_samples_work(struct simulation *s);
void sim_sample(struct simulation *s);

/* progress.c, result.c - what people see. */
void sim_progress(struct simulation *s, bool last);
void sim_progress_pause(struct simulation *s); /* something else is said: the bar goes on below it */
void sim_result_show(struct simulation *s);

#endif
