/* cli/traffic/traffic_internal.h - the memory of the traffic generator: cases, accounts, and the run itself.
 *
 * A case is one job on its way, from the draw of its kind to the judgement:
 *
 *   (drawn) ─► SUBMITTING ─► HELPED ─► FOLLOWED ─► REPORTING ─► (judged)
 *                  │ ▲           │ ▲        │ retry
 *                  │ └─ missed ──┘ └────────┘
 *                  └─► (judged): refused
 *
 * HELPED is everything done to it from outside (traffic_help in expectation.h); while FOLLOWED its account's
 * listing tells when it is final. An account is a client of the server with its key; many share the load,
 * because a client has a limit of requests a minute. One thread, no locks. */
#ifndef WEIR_TRAFFIC_INTERNAL_H
#define WEIR_TRAFFIC_INTERNAL_H

#include <sys/queue.h>

#include "base/heap.h"
#include "base/uuid.h"
#include "cli/command.h"
#include "cli/traffic/calls.h"
#include "cli/traffic/judge.h"
#include "cli/traffic/latency.h"
#include "cli/traffic/mix.h"
#include "cli/traffic/receiver.h"

enum {
    TRAFFIC_IN_FLIGHT_MAX = 1000,    /* cases with accounts of our own */
    TRAFFIC_IN_FLIGHT_MIN = 100,     /* so many at least, however slow the server is */
    TRAFFIC_AHEAD_S = 10,            /* and as many as it ends in this time */
    TRAFFIC_IN_FLIGHT_KEY_MAX = 150, /* with --key: one client, 600 requests a minute */
    TRAFFIC_ACCOUNT_CASES_MAX = 100, /* then another account takes over: see docs/traffic.md */
    TRAFFIC_BATCH_MAX = 100,         /* cases in one submit */
    TRAFFIC_SURPRISES_SHOWN = 20,    /* one by one; all are counted */
    TRAFFIC_TRIES_MAX = 20,          /* of a cancel that came too late */
    TRAFFIC_HOLD_MS = 2000,          /* a far future job is watched this long */
    TRAFFIC_LATE_CASES_MAX = 200,    /* for the restart */
    TRAFFIC_STALL_MS = 90000,        /* nothing moved for so long (and the longest run): given up */
    TRAFFIC_DELIVERY_MS_MAX =
        60000, /* from one callback of a job to its next, beyond what the log announces */
    TRAFFIC_DELIVERIES_MS_MAX = 1800000, /* for all callbacks of a job */
    TRAFFIC_DELIVERIES_KEPT = 16,        /* messages of one job */
    TRAFFIC_ACCOUNTS_KEPT = 200,         /* counted at the end; older ones when they leave */
    TRAFFIC_SAMPLES_MAX = 64,
};

enum traffic_step { STEP_SUBMITTING, STEP_HELPED, STEP_FOLLOWED, STEP_REPORTING, STEP_DELIVERIES };

struct traffic_case {
    struct traffic *sim;
    struct traffic_account *account;
    TAILQ_ENTRY(traffic_case) link; /* in its account's list */
    struct heap_node timer;
    enum work_kind kind;
    enum traffic_step step;
    struct traffic_yardstick yard;
    int64_t number;
    int tries;       /* submitted anew because help came too late */
    int64_t attempt; /* the attempt whose end is awaited */
    char job_id[UUID_TEXT_LEN + 1];
    int64_t created_us;             /* by the server */
    struct traffic_case *twin;      /* TWO_KEYS: the one with the other key, until it has an id */
    bool cancel_sent, refused_last; /* RETRY_ALL: the last retry was refused as it must be */
    int64_t latency_us;
    struct receiver_port *port; /* where its callbacks go; NULL: it has none */
    int64_t deliveries_until_ms, deliveries_end_ms, log_read_ms;
    int event_count;
    struct traffic_delivery deliveries[TRAFFIC_DELIVERIES_KEPT];
    int delivery_count;
};

TAILQ_HEAD(traffic_case_list, traffic_case);

struct traffic_account {
    struct traffic *sim;
    struct traffic_caller caller;
    TAILQ_ENTRY(traffic_account) link;
    char secret[128];
    bool given;          /* by --key: others may use it too */
    int64_t cases, jobs; /* cases it was given; jobs the server accepted */
    struct traffic_case_list to_submit, cases_list;
    struct traffic_case *batch[TRAFFIC_BATCH_MAX]; /* being submitted */
    size_t batch_count;
    bool polling, counting, leaving;
    int64_t poll_at_ms, poll_every_ms;
    struct strbuf cursor;
};

struct traffic_kind_count {
    int64_t sent, as_expected, unexpected, again;
    struct latency latency;
};

struct traffic_surprise {
    enum work_kind kind;
    char job_id[UUID_TEXT_LEN + 1];
    struct traffic_finding finding;
};

/* How far a run was, and how much memory core had. */
struct traffic_sample {
    int64_t at_ms, judged, in_flight;
    int64_t core_bytes; /* -1: the server does not tell */
};

struct traffic {
    const struct invocation *in;
    struct traffic_calls *calls;
    struct receiver *receiver; /* NULL: the mix has no receiver kinds */
    struct receiver_port *probe_port;
    uint64_t first_address;                /* of the receivers of this run */
    const char *left_out[WORK_KIND_COUNT]; /* why a kind of the mix is left out; NULL: it is sent */
    struct traffic_mix mix;
    struct traffic_expectation expected[WORK_KIND_COUNT];
    char run_id[UUID_TEXT_LEN + 1]; /* in every idempotency key */
    uint64_t seed;
    int64_t jobs;   /* to send */
    int64_t for_ms; /* how long to send; 0: until all are sent */
    double rate;    /* a second; 0: no limit */
    double time_scale, early;
    int64_t slack_ms;
    int64_t clock_offset_us; /* the server's clock less ours */
    int64_t late_wanted;     /* RESTART cases drawn; sent in a phase of their own */

    TAILQ_HEAD(, traffic_account) accounts;
    int64_t account_count;
    struct traffic_account *current; /* takes new cases */
    struct traffic_account *ordered; /* the next one; NULL: none is on its way */
    struct traffic_caller
        registrar; /* makes clients: the operator, or nobody, who may make so many a minute */
    struct heap timers;
    int64_t drawn, in_flight, judged, number;
    int64_t started_ms, last_moved_ms, next_send_us;
    int64_t pace_at_ms, pace_judged; /* since when, and how many were judged then */
    double pace;                     /* judged a second, lately */
    int64_t worked_ms;               /* how long the mix took; 0: not over yet */
    int64_t not_judged;              /* given up by the user, or with the server away */
    bool absence_told;
    struct traffic_calls_count calls_made; /* of calls that are gone */
    struct traffic_sample samples[TRAFFIC_SAMPLES_MAX];
    int sample_count;
    int64_t sample_every_ms, sample_at_ms;
    struct traffic_kind_count kinds[WORK_KIND_COUNT];
    struct traffic_surprise surprises[TRAFFIC_SURPRISES_SHOWN];
    int64_t surprise_count, time_surprises;
    double scale_seen; /* smallest that a full run pointed to; 0: none */
    int64_t progress_at_ms;
    bool bar_drawn; /* and nothing below it */
    bool stopping;  /* no new cases */
    int fatal;      /* exit code that ends the run at once; CLI_OK: none */
};

/* set_up.c - flags, the first account, the time scale, what the server can do. Gives the exit code. */
int traffic_set_up(struct traffic *s);

/* accounts.c - clients, submits in batches, listings. */
int traffic_account_add(struct traffic *s);     /* becomes `current`; CLI_OK, else told */
void traffic_account_change(struct traffic *s); /* orders the next one in time, and turns to it */
struct traffic_account *traffic_account_free(struct traffic_account *a);
void traffic_accounts_work(struct traffic *s, int64_t now_ms);
void traffic_accounts_count_jobs(
    struct traffic *s); /* asks each how many jobs it has: none lost, none extra */

/* cases.c - one case from draw to judgement. */
struct traffic_case *traffic_case_new(struct traffic *s, enum work_kind kind);
void traffic_case_submit(struct traffic_case *c); /* into its account's list */
void traffic_case_write(const struct traffic_case *c, struct json_writer *w, const char *other_value);
void traffic_case_accepted(struct traffic_case *c, const struct json *accepted);
void traffic_case_refused(struct traffic_case *c, long status, const struct json *problem);
void traffic_case_seen(struct traffic_case *c, const struct json *job); /* in a listing */
void traffic_case_follow(struct traffic_case *c);
void traffic_case_fetch_report(struct traffic_case *c);
void traffic_case_end(struct traffic_case *c,
                      const struct traffic_finding *surprise); /* NULL: as expected; frees c */
void traffic_case_timer(struct traffic_case *c);
void traffic_case_call(struct traffic_case *c, const char *method, const char *rest, traffic_answer_fn *done);
void traffic_case_free(struct traffic_case *c);

/* help.c - what is done to a case from outside, by its kind. */
void traffic_help_accepted(struct traffic_case *c);
bool traffic_help_failed(struct traffic_case *c); /* true: it was retried, its end is not yet to come */
void traffic_help_timer(struct traffic_case *c);

/* deliveries.c - callbacks as they arrive. */
receiver_fn traffic_delivery_arrived;                  /* its owner is a case; NULL: the probe */
void traffic_deliveries_await(struct traffic_case *c); /* judges it when all have come, or too late */
void traffic_deliveries_look(struct traffic_case *c);  /* by its timer */

/* restart.c - the last phase: jobs that fall due while the server is away. */
int traffic_restart_possible(struct traffic *s); /* CLI_OK, else told */
void traffic_restart_phase(struct traffic *s);

/* traffic.c */
void traffic_surprise(struct traffic *s, enum work_kind kind, const char *job_id,
                      const struct traffic_finding *f);
void traffic_moved(struct traffic *s);                /* something went on: no stall */
void traffic_turn(struct traffic *s, int timeout_ms); /* one round of the loop */
void traffic_run_out(struct traffic *s);              /* until no case is under way */
int64_t traffic_now_ms(void);
int64_t traffic_server_us(const struct traffic *s); /* the server's wall clock, as far as we know */

/* samples.c - rates and memory over the time of a run, in memory that does not grow. */
void traffic_samples_work(struct traffic *s);
void traffic_sample(struct traffic *s);

/* progress.c, result.c - what people see. */
void traffic_progress(struct traffic *s, bool last);
void traffic_progress_pause(struct traffic *s); /* something else is said: the bar goes on below it */
void traffic_result_show(struct traffic *s);

#endif
