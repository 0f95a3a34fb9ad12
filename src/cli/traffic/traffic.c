/* `weir traffic`: draws kinds, keeps a bounded number of jobs in flight, and turns the loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum { NEW_A_TURN_MAX = 200, TURN_MS = 20, LONGEST_RUN_MS = 126000, ABSENT_MS = 3000, PACE_MS = 2000 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    if (interrupted++ >= 2) { /* stuck after all: the default action */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

int64_t traffic_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}
int64_t traffic_server_us(const struct traffic *s)
{
    return clock_wall_us(&clock_system) + s->clock_offset_us;
}
void traffic_moved(struct traffic *s)
{
    s->last_moved_ms = traffic_now_ms();
}

void traffic_surprise(struct traffic *s, enum work_kind kind, const char *job_id,
                      const struct traffic_finding *f)
{
    s->time_surprises += f->about_time;
    if (s->surprise_count < TRAFFIC_SURPRISES_SHOWN) {
        struct traffic_surprise *u = &s->surprises[s->surprise_count];
        u->kind = kind;
        u->finding = *f;
        snprintf(u->job_id, sizeof u->job_id, "%s", job_id);
    }
    s->surprise_count++;
}

/* The cases that are left are not judged; stuck ones are surprises. No callback may find a case that is
 * gone: the calls end first. */
static void give_up(struct traffic *s, int code, bool stuck)
{
    struct traffic_finding f;
    s->calls_made = traffic_calls_count(s->calls);
    s->calls = traffic_calls_free(s->calls);
    s->fatal = code;
    for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link)) {
        a->batch_count = 0;
        for (struct traffic_case *c; (c = TAILQ_FIRST(&a->to_submit)) || (c = TAILQ_FIRST(&a->cases_list));) {
            finding_set(&f, "weir job explain JOB_ID", traffic_end_text(c->yard.expected), "%s",
                        c->job_id[0] ? "not final when the run was given up" : "never accepted");
            if (stuck) {
                traffic_case_end(c, &f);
            } else {
                s->not_judged++;
                traffic_case_free(c);
            }
        }
    }
}

static void heed_interrupt(struct traffic *s)
{
    if (interrupted && !s->stopping) {
        traffic_progress_pause(s);
        cli_note(s->in,
                 "no more jobs are sent; the %lld in flight are judged first (Ctrl-C again: the table now)",
                 (long long)s->in_flight);
        s->stopping = true;
    }
    if (interrupted > 1)
        give_up(s, CLI_INTERRUPTED, false);
}

/* Says early that the server is gone, and gives up late. */
static void heed_absence(struct traffic *s)
{
    int64_t limit_ms = TRAFFIC_STALL_MS + (int64_t)(LONGEST_RUN_MS * s->time_scale);
    const char *fault = traffic_calls_fault(s->calls, ABSENT_MS);
    if ((fault != NULL) != s->absence_told)
        traffic_progress_pause(s);
    if (fault && !s->absence_told)
        cli_note(s->in, "the server does not answer (%s); it has a minute to come back", fault);
    else if (!fault && s->absence_told)
        cli_note(s->in, "the server is back");
    s->absence_told = fault != NULL;
    if (traffic_calls_away(s->calls)) {
        traffic_progress_pause(s);
        cli_fault("the server has been away for a minute (%s); %lld jobs are not judged",
                  fault ? fault : "no answer", (long long)s->in_flight);
        give_up(s, CLI_FAILED, false);
    } else if (s->in_flight && traffic_now_ms() - s->last_moved_ms > limit_ms) {
        traffic_progress_pause(s);
        cli_fault("nothing has moved for %lld s; %lld jobs are stuck", (long long)limit_ms / 1000,
                  (long long)s->in_flight);
        give_up(s, CLI_FAILED, true);
    }
}

static void run_timers(struct traffic *s)
{
    uint64_t now = (uint64_t)traffic_now_ms();
    for (struct heap_node *n; (n = heap_first(&s->timers)) && n->key <= now;) {
        heap_remove(&s->timers, n);
        traffic_case_timer(CONTAINER_OF(n, struct traffic_case, timer));
    }
}

void traffic_turn(struct traffic *s, int timeout_ms)
{
    traffic_accounts_work(s, traffic_now_ms());
    traffic_calls_work(s->calls, s->receiver ? receiver_fd(s->receiver) : -1, timeout_ms);
    if (s->receiver)
        receiver_work(s->receiver);
    run_timers(s);
    traffic_samples_work(s);
    traffic_progress(s, false);
    if (s->fatal == CLI_OK)
        heed_interrupt(s);
    if (s->fatal == CLI_OK)
        heed_absence(s);
}

void traffic_run_out(struct traffic *s)
{
    while (s->in_flight && s->fatal == CLI_OK)
        traffic_turn(s, TURN_MS);
}

/* --- what is sent next ------------------------------------------------------------------------------ */

static void send_kind(struct traffic *s, enum work_kind kind)
{
    if (s->expected[kind].help == HELP_RESTART) {
        if (++s->late_wanted == TRAFFIC_LATE_CASES_MAX)
            traffic_mix_leave_out(&s->mix, kind);
        s->drawn++;
        return;
    }
    struct traffic_case *c = traffic_case_new(s, kind);
    traffic_case_submit(c);
    s->drawn++;
    if (s->expected[kind].help == HELP_TWO_KEYS && s->drawn < s->jobs) {
        struct traffic_case *twin = traffic_case_new(s, kind);
        c->twin = twin;
        twin->twin = c;
        traffic_case_submit(twin);
        s->drawn++;
    }
}

/* As fast as it can: more in flight than the server ends soon would only wait in its queue. */
static int64_t in_flight_most(struct traffic *s)
{
    int64_t most = s->current->given ? TRAFFIC_IN_FLIGHT_KEY_MAX : TRAFFIC_IN_FLIGHT_MAX,
            now_ms = traffic_now_ms();
    if (s->rate > 0)
        return most;
    if (now_ms - s->pace_at_ms >= PACE_MS) {
        s->pace = (double)(s->judged - s->pace_judged) * 1000 / (double)(now_ms - s->pace_at_ms);
        s->pace_at_ms = now_ms;
        s->pace_judged = s->judged;
    }
    int64_t wanted = (int64_t)(s->pace * TRAFFIC_AHEAD_S);
    wanted = wanted < TRAFFIC_IN_FLIGHT_MIN ? TRAFFIC_IN_FLIGHT_MIN : wanted;
    return wanted < most ? wanted : most;
}

static bool may_send(struct traffic *s)
{
    int64_t most = in_flight_most(s);
    int64_t now_us = clock_mono_us(&clock_system);
    if (s->stopping || s->drawn >= s->jobs || s->in_flight >= most || !s->mix.weight_sum)
        return false;
    traffic_account_change(s);
    if (!s->current->given && s->current->cases >= TRAFFIC_ACCOUNT_CASES_MAX)
        return false;
    if (s->rate <= 0)
        return true;
    if (now_us < s->next_send_us)
        return false;
    if (now_us - s->next_send_us > 1000000) /* a pause is not made up for by a burst */
        s->next_send_us = now_us;
    s->next_send_us += (int64_t)(1e6 / s->rate);
    return true;
}

static void send_some(struct traffic *s)
{
    for (int i = 0; i < NEW_A_TURN_MAX && s->fatal == CLI_OK && may_send(s); i++) {
        send_kind(s, traffic_mix_next(&s->mix));
    }
}

static bool more_to_send(const struct traffic *s)
{
    bool in_time = !s->for_ms || traffic_now_ms() - s->started_ms < s->for_ms;
    return in_time && s->drawn < s->jobs && !s->stopping && s->mix.weight_sum;
}

static void run(struct traffic *s)
{
    s->started_ms = s->pace_at_ms = traffic_now_ms();
    traffic_sample(s);
    s->next_send_us = clock_mono_us(&clock_system);
    traffic_moved(s);
    while (s->fatal == CLI_OK && more_to_send(s)) {
        send_some(s);
        if (!s->in_flight)
            traffic_moved(s); /* between two jobs of a low rate nothing moves, and nothing should */
        if (s->fatal == CLI_OK)
            traffic_turn(s, s->rate > 0 ? TURN_MS / 4 : TURN_MS);
    }
    traffic_run_out(s);
    s->worked_ms = traffic_now_ms() - s->started_ms;
    if (s->fatal == CLI_OK)
        traffic_sample(s); /* the restart gives core a new memory */
    traffic_restart_phase(s);
    if (s->fatal == CLI_OK)
        traffic_accounts_count_jobs(s);
    traffic_progress(s, true);
}

static void free_all(struct traffic *s)
{
    traffic_calls_free(s->calls); /* first: no callback meets a case that is gone */
    for (struct traffic_account *a; (a = TAILQ_FIRST(&s->accounts));) {
        TAILQ_REMOVE(&s->accounts, a, link);
        traffic_account_free(a);
    }
    traffic_account_free(s->ordered);
    receiver_free(s->receiver);
    heap_free(&s->timers);
    free(s);
}

int command_traffic(const struct invocation *in)
{
    struct traffic *s = must_alloc(sizeof *s);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = 0};
    s->in = in;
    TAILQ_INIT(&s->accounts);
    int code = traffic_set_up(s);
    if (code == CLI_OK) {
        sigaction(SIGINT, &action, NULL);
        run(s);
        traffic_result_show(s);
        code = s->surprise_count    ? CLI_FAILED
               : s->fatal != CLI_OK ? s->fatal
               : interrupted        ? CLI_INTERRUPTED
                                    : CLI_OK;
    }
    free_all(s);
    return code;
}
