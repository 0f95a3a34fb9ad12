/* `weir simulate`: draws kinds, keeps a bounded number of jobs in flight, and turns the loop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/simulate/simulate_internal.h"

#include "base/banned.h"

enum { NEW_A_TURN_MAX = 200, TURN_MS = 20, LONGEST_RUN_MS = 126000 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
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

/* Every case that is left is a surprise of its own. No callback may find a case that is gone: the calls
 * end first. */
static void give_up(struct simulation *s, const char *why)
{
    struct sim_finding f;
    cli_fault("%s; %lld jobs are not judged", why, (long long)s->in_flight);
    s->calls = sim_calls_free(s->calls);
    s->fatal = CLI_FAILED;
    for (struct sim_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link)) {
        a->batch_count = 0;
        for (struct sim_case *c; (c = TAILQ_FIRST(&a->to_submit)) || (c = TAILQ_FIRST(&a->cases_list));) {
            finding_set(&f, "weir job explain JOB_ID", sim_end_text(c->yard.expected), "%s",
                        c->job_id[0] ? "not final when the run was given up" : "never accepted");
            sim_case_end(c, &f);
        }
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
    int64_t limit_ms = SIM_STALL_MS + (int64_t)(LONGEST_RUN_MS * s->time_scale);
    sim_accounts_work(s, sim_now_ms());
    sim_calls_work(s->calls, s->receiver ? receiver_fd(s->receiver) : -1, timeout_ms);
    if (s->receiver)
        receiver_work(s->receiver, sim_now_ms());
    run_timers(s);
    sim_progress(s, false);
    if (interrupted && !s->stopping) {
        cli_note(s->in,
                 "\nno more jobs are sent; what is in flight is judged first (Ctrl-C again ends at once)");
        s->stopping = true;
    }
    if (sim_calls_away(s->calls))
        give_up(s, "the server has been away for a minute");
    else if (s->in_flight && sim_now_ms() - s->last_moved_ms > limit_ms)
        give_up(s, "nothing has moved for a long time");
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

static bool may_send(struct simulation *s)
{
    int64_t most = s->current->given ? SIM_IN_FLIGHT_KEY_MAX : SIM_IN_FLIGHT_MAX;
    int64_t now_us = clock_mono_us(&clock_system);
    if (s->stopping || s->drawn >= s->jobs || s->in_flight >= most || !s->mix.weight_sum)
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
    for (int i = 0; i < NEW_A_TURN_MAX && may_send(s); i++) {
        if (!s->current->given && s->current->cases >= SIM_ACCOUNT_CASES_MAX)
            s->fatal = sim_account_add(s);
        if (s->fatal != CLI_OK)
            return;
        send_kind(s, sim_mix_next(&s->mix));
    }
}

static void run(struct simulation *s)
{
    s->started_ms = sim_now_ms();
    s->next_send_us = clock_mono_us(&clock_system);
    sim_moved(s);
    while (s->fatal == CLI_OK && s->drawn < s->jobs && !s->stopping && s->mix.weight_sum) {
        send_some(s);
        if (!s->in_flight)
            sim_moved(s); /* between two jobs of a low rate nothing moves, and nothing should */
        if (s->fatal == CLI_OK)
            sim_turn(s, s->rate > 0 ? TURN_MS / 4 : TURN_MS);
    }
    sim_run_out(s);
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
    receiver_free(s->receiver);
    heap_free(&s->timers);
    map_free(&s->by_number);
    free(s);
}

int command_simulate(const struct invocation *in)
{
    struct simulation *s = must_alloc(sizeof *s);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    s->in = in;
    TAILQ_INIT(&s->accounts);
    int code = sim_set_up(s);
    if (code == CLI_OK) {
        sigaction(SIGINT, &action, NULL);
        run(s);
        sim_result_show(s);
        code = s->fatal != CLI_OK ? s->fatal : s->surprise_count ? CLI_FAILED : CLI_OK;
    }
    free_all(s);
    return code;
}
