/* `weir simulate`: draws kinds, keeps a bounded number of jobs in flight, and turns the loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/simulate/simulate_internal.h"

#include "base/banned.h"

enum { NEW_A_TURN_MAX = 200, TURN_MS = 20, LONGEST_RUN_MS = 126000, ABSENT_MS = 3000, PACE_MS = 2000 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    if (interrupted++ >= 2) { /* stuck after all: as if nobody had caught it */
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

int64_t sim_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}
int64_t sim_server_us(const struct simulation *s)
{
    return clock_wall_us(&clock_system) + s->clock_offset_us;
}
void sim_moved(struct simulation *s)
{
    s->last_moved_ms = sim_now_ms();
}

void sim_surprise(struct simulation *s, enum work_kind kind, const char *job_id, const struct sim_finding *f)
{
    s->time_surprises += f->about_time;
    if (s->surprise_count < SIM_SURPRISES_SHOWN) {
        struct sim_surprise *u = &s->surprises[s->surprise_count];
        u->kind = kind;
        u->finding = *f;
        snprintf(u->job_id, sizeof u->job_id, "%s", job_id);
    }
    s->surprise_count++;
}

/* The cases that are left are not judged; stuck ones are surprises. No callback may find a case that is
 * gone: the calls end first. */
static void give_up(struct simulation *s, int code, bool stuck)
{
    struct sim_finding f;
    s->calls_made = sim_calls_count(s->calls);
    s->calls = sim_calls_free(s->calls);
    s->fatal = code;
    for (struct sim_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link)) {
        a->batch_count = 0;
        for (struct sim_case *c; (c = TAILQ_FIRST(&a->to_submit)) || (c = TAILQ_FIRST(&a->cases_list));) {
            finding_set(&f, "weir job explain JOB_ID", sim_end_text(c->yard.expected), "%s",
                        c->job_id[0] ? "not final when the run was given up" : "never accepted");
            if (stuck) {
                sim_case_end(c, &f);
            } else {
                s->not_judged++;
                sim_case_free(c);
            }
        }
    }
}

static void heed_interrupt(struct simulation *s)
{
    if (interrupted && !s->stopping) {
        sim_progress_pause(s);
        cli_note(s->in,
                 "no more jobs are sent; the %lld in flight are judged first (Ctrl-C again: the table now)",
                 (long long)s->in_flight);
        s->stopping = true;
    }
    if (interrupted > 1)
        give_up(s, CLI_INTERRUPTED, false);
}

/* Says early that the server is gone, and gives up late. */
static void heed_absence(struct simulation *s)
{
    int64_t limit_ms = SIM_STALL_MS + (int64_t)(LONGEST_RUN_MS * s->time_scale);
    const char *fault = sim_calls_fault(s->calls, ABSENT_MS);
    if ((fault != NULL) != s->absence_told)
        sim_progress_pause(s);
    if (fault && !s->absence_told)
        cli_note(s->in, "the server does not answer (%s); it has a minute to come back", fault);
    else if (!fault && s->absence_told)
        cli_note(s->in, "the server is back");
    s->absence_told = fault != NULL;
    if (sim_calls_away(s->calls)) {
        sim_progress_pause(s);
        cli_fault("the server has been away for a minute (%s); %lld jobs are not judged",
                  fault ? fault : "no answer", (long long)s->in_flight);
        give_up(s, CLI_FAILED, false);
    } else if (s->in_flight && sim_now_ms() - s->last_moved_ms > limit_ms) {
        sim_progress_pause(s);
        cli_fault("nothing has moved for %lld s; %lld jobs are stuck", (long long)limit_ms / 1000,
                  (long long)s->in_flight);
        give_up(s, CLI_FAILED, true);
    }
}

static void run_timers(struct simulation *s)
{
    uint64_t now = (uint64_t)sim_now_ms();
    for (struct heap_node *n; (n = heap_first(&s->timers)) && n->key <= now;) {
        heap_remove(&s->timers, n);
        sim_case_timer(CONTAINER_OF(n, struct sim_case, timer));
    }
}

void sim_turn(struct simulation *s, int timeout_ms)
{
    sim_accounts_work(s, sim_now_ms());
    sim_calls_work(s->calls, s->receiver ? receiver_fd(s->receiver) : -1, timeout_ms);
    if (s->receiver)
        receiver_work(s->receiver);
    run_timers(s);
    sim_samples_work(s);
    sim_progress(s, false);
    if (s->fatal == CLI_OK)
        heed_interrupt(s);
    if (s->fatal == CLI_OK)
        heed_absence(s);
}

void sim_run_out(struct simulation *s)
{
    while (s->in_flight && s->fatal == CLI_OK)
        sim_turn(s, TURN_MS);
}

/* --- what is sent next ------------------------------------------------------------------------------ */

static void send_kind(struct simulation *s, enum work_kind kind)
{
    if (s->expected[kind].help == HELP_RESTART) {
        if (++s->late_wanted == SIM_LATE_CASES_MAX)
            sim_mix_leave_out(&s->mix, kind);
        s->drawn++;
        return;
    }
    struct sim_case *c = sim_case_new(s, kind);
    sim_case_submit(c);
    s->drawn++;
    if (s->expected[kind].help == HELP_TWO_KEYS && s->drawn < s->jobs) {
        struct sim_case *twin = sim_case_new(s, kind);
        c->twin = twin;
        twin->twin = c;
        sim_case_submit(twin);
        s->drawn++;
    }
}

/* As fast as it can: more in flight than the server ends soon would only wait in its queue. */
static int64_t in_flight_most(struct simulation *s)
{
    int64_t most = s->current->given ? SIM_IN_FLIGHT_KEY_MAX : SIM_IN_FLIGHT_MAX, now_ms = sim_now_ms();
    if (s->rate > 0)
        return most;
    if (now_ms - s->pace_at_ms >= PACE_MS) {
        s->pace = (double)(s->judged - s->pace_judged) * 1000 / (double)(now_ms - s->pace_at_ms);
        s->pace_at_ms = now_ms;
        s->pace_judged = s->judged;
    }
    int64_t wanted = (int64_t)(s->pace * SIM_AHEAD_S);
    wanted = wanted < SIM_IN_FLIGHT_MIN ? SIM_IN_FLIGHT_MIN : wanted;
    return wanted < most ? wanted : most;
}

static bool may_send(struct simulation *s)
{
    int64_t most = in_flight_most(s);
    int64_t now_us = clock_mono_us(&clock_system);
    if (s->stopping || s->drawn >= s->jobs || s->in_flight >= most || !s->mix.weight_sum)
        return false;
    sim_account_change(s);
    if (!s->current->given && s->current->cases >= SIM_ACCOUNT_CASES_MAX)
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

static void send_some(struct simulation *s)
{
    for (int i = 0; i < NEW_A_TURN_MAX && s->fatal == CLI_OK && may_send(s); i++) {
        send_kind(s, sim_mix_next(&s->mix));
    }
}

static bool more_to_send(const struct simulation *s)
{
    bool in_time = !s->for_ms || sim_now_ms() - s->started_ms < s->for_ms;
    return in_time && s->drawn < s->jobs && !s->stopping && s->mix.weight_sum;
}

static void run(struct simulation *s)
{
    s->started_ms = s->pace_at_ms = sim_now_ms();
    sim_sample(s);
    s->next_send_us = clock_mono_us(&clock_system);
    sim_moved(s);
    while (s->fatal == CLI_OK && more_to_send(s)) {
        send_some(s);
        if (!s->in_flight)
            sim_moved(s); /* between two jobs of a low rate nothing moves, and nothing should */
        if (s->fatal == CLI_OK)
            sim_turn(s, s->rate > 0 ? TURN_MS / 4 : TURN_MS);
    }
    sim_run_out(s);
    s->worked_ms = sim_now_ms() - s->started_ms;
    if (s->fatal == CLI_OK)
        sim_sample(s); /* the restart gives core a new memory */
    sim_restart_phase(s);
    if (s->fatal == CLI_OK)
        sim_accounts_count_jobs(s);
    sim_progress(s, true);
}

static void free_all(struct simulation *s)
{
    sim_calls_free(s->calls); /* first: no callback meets a case that is gone */
    for (struct sim_account *a; (a = TAILQ_FIRST(&s->accounts));) {
        TAILQ_REMOVE(&s->accounts, a, link);
        sim_account_free(a);
    }
    sim_account_free(s->ordered);
    receiver_free(s->receiver);
    heap_free(&s->timers);
    free(s);
}

int command_simulate(const struct invocation *in)
{
    struct simulation *s = must_alloc(sizeof *s);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = 0};
    s->in = in;
    TAILQ_INIT(&s->accounts);
    int code = sim_set_up(s);
    if (code == CLI_OK) {
        sigaction(SIGINT, &action, NULL);
        run(s);
        sim_result_show(s);
        code = s->surprise_count    ? CLI_FAILED
               : s->fatal != CLI_OK ? s->fatal
               : interrupted        ? CLI_INTERRUPTED
                                    : CLI_OK;
    }
    free_all(s);
    return code;
}
