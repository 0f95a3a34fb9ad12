#include "domains/skeleton/domain.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/heart.h"
#include "base/log.h"
#include "base/must.h"
#include "domains/skeleton/domain_internal.h"

#include "base/banned.h"

enum {
    CALL_TIMEOUT_MS = 10000,       /* of any call, beside its wait */
    FINISH_BYTES_MAX = 512 * 1024, /* of results in one call: half of core's body limit */
    ARRIVED_READS_MAX = 1000,      /* before the long polls are given up */
    CALLS_OF_ITS_OWN = 5,          /* one of each verb beside claim, and the report */
};

struct worker_client *domain_client(const struct domain *d)
{
    return d->client;
}
uint32_t domain_task_count(const struct domain *d)
{
    return d->task_count;
}
void domain_watch_fd(struct domain *d, int fd)
{
    d->watched_fd = fd;
}

static void domain_open(struct domain *d, const struct process_start *start, const struct domain_ops *ops,
                        void *self)
{
    *d = (struct domain){
        .process = start,
        .ops = ops,
        .self = self,
        .watched_fd = -1,
        .finish_bytes_max = FINISH_BYTES_MAX,
        .busy_ms = domain_now_ms(),
        .link = {.component = start->kind->name, .instance_id = start->name},
        .report_at_ms = INT64_MAX,
    };
    TAILQ_INIT(&d->rooms);
    TAILQ_INIT(&d->claims);
    for (size_t i = 0; i < LENGTH_OF(d->phases); i++)
        TAILQ_INIT(&d->phases[i]);
    d->client = worker_client_new(&(struct worker_client_config){
        .socket_path = start->socket_path,
        .timeout_ms = CALL_TIMEOUT_MS,
        .calls_max = ops->claims_max + CALLS_OF_ITS_OWN + ops->calls_max,
        .clock = &clock_system,
        .link = domain_link,
        .link_self = d,
    });
    ops->open(self, d);
}

static void domain_close(struct domain *d)
{
    if (d->ops->stop)
        d->ops->stop(d->self);
    domain_tasks_forget(d);
    worker_client_free(d->client);
}

/* ---- the end ---- */

/* Tasks in an answer that has already arrived are ours: unread, they would wait for their lease. */
static void take_arrived_answers(struct domain *d)
{
    struct pollfd arrived = {.fd = worker_client_fd(d->client), .events = POLLIN};
    for (int i = 0; i < ARRIVED_READS_MAX && poll(&arrived, 1, 0) > 0; i++)
        worker_client_work(d->client);
}

static void drain_begin(struct domain *d, int64_t until_ms)
{
    struct domain_task *t;
    d->draining = true;
    d->drain_until_ms = until_ms;
    take_arrived_answers(d);
    while ((t = TAILQ_FIRST(&d->phases[TASK_ASSIGNED])))
        domain_task_unstarted(d, t);
    log_line(LOG_INFO, "draining", d->ops->tasks, LOG_INT(d->task_count), NULL);
    domain_claims_abandon(d);
}

void domain_end(struct domain *d, int exit_code)
{
    int64_t now_ms = domain_now_ms();
    d->exit_code = exit_code;
    if (!d->draining)
        drain_begin(d, now_ms);
    else if (now_ms < d->drain_until_ms)
        d->drain_until_ms = now_ms;
}

static bool is_idle(struct domain *d, int64_t now_ms)
{
    if (d->task_count)
        d->busy_ms = now_ms;
    return process_is_on_demand(d->process->kind->id, d->process->settings) &&
           now_ms - d->busy_ms >= DOMAIN_IDLE_MS;
}

/* True when nothing is left to do, or no time to do it. */
static bool is_drained(struct domain *d, int64_t now_ms)
{
    int64_t end_ms = d->drain_until_ms + DOMAIN_LAST_MS;
    if (d->ops->time_over && now_ms >= d->drain_until_ms)
        d->ops->time_over(d->self, now_ms);
    bool over = d->task_count == 0 && (!d->ops->is_over || d->ops->is_over(d->self, now_ms, end_ms));
    return over || now_ms >= end_ms;
}

static bool is_over(struct domain *d, int64_t now_ms)
{
    if (!d->draining && process_stop_requested())
        drain_begin(d, now_ms + d->process->settings->runtime_drain_ms);
    else if (!d->draining && is_idle(d, now_ms))
        drain_begin(d, now_ms);
    return d->draining && is_drained(d, now_ms);
}

/* ---- waiting ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* All sendable calls have been sent, so only future times count. Otherwise the loop would not sleep while it
 * waits for a long poll of a core that has just come back, which is answered much later. */
static int64_t to_come(int64_t at_ms, int64_t now_ms)
{
    return at_ms > now_ms ? at_ms : INT64_MAX;
}

static int64_t next_at_ms(const struct domain *d, int64_t now_ms)
{
    int64_t at_ms = worker_client_deadline_ms(d->client);
    if (d->ops->next_at_ms)
        at_ms = sooner(at_ms, d->ops->next_at_ms(d->self, now_ms));
    at_ms = sooner(at_ms, to_come(worker_client_ready_at_ms(d->client), now_ms));
    if (!TAILQ_EMPTY(&d->phases[TASK_RUNNING]))
        at_ms = sooner(at_ms, to_come(d->beat_at_ms, now_ms));
    if (!d->report)
        at_ms = sooner(at_ms, to_come(d->report_at_ms, now_ms));
    if (d->draining)
        return sooner(at_ms, d->drain_until_ms + (now_ms < d->drain_until_ms ? 0 : DOMAIN_LAST_MS));
    if (!TAILQ_EMPTY(&d->claims))
        at_ms = sooner(at_ms, to_come(d->claim_after_ms, now_ms));
    if (process_is_on_demand(d->process->kind->id, d->process->settings))
        at_ms = sooner(at_ms, d->busy_ms + DOMAIN_IDLE_MS);
    return at_ms;
}

static void wait_for_something(const struct domain *d, int64_t now_ms)
{
    struct pollfd fds[] = {
        {.fd = worker_client_fd(d->client), .events = POLLIN},
        {.fd = d->watched_fd, .events = POLLIN},
        {.fd = d->draining ? -1 : process_stop_fd(), .events = POLLIN},
    };
    int64_t at_ms = next_at_ms(d, now_ms);
    int64_t wait_ms = at_ms == INT64_MAX ? -1 : at_ms < now_ms ? 0 : at_ms - now_ms;
    int ready = poll(fds, LENGTH_OF(fds), heart_sleep_ms(wait_ms));
    MUST(ready >= 0 || errno == EINTR);
}

int domain_main(const struct process_start *start, const struct domain_ops *ops, void *self)
{
    struct domain *d = must_alloc(sizeof *d);
    struct heart *heart = heart_open(start->kind->name);
    domain_open(d, start, ops, self);
    process_ready(start); /* it connects again by itself, so there is nothing to wait for */
    for (;;) {
        heart_beat(heart);
        int64_t now_ms = domain_now_ms();
        if (ops->work)
            ops->work(self, now_ms);
        if (is_over(d, now_ms))
            break;
        domain_calls_pump(d, now_ms);
        wait_for_something(d, now_ms);
        worker_client_work(d->client);
    }
    heart_close(heart);
    domain_close(d);
    int exit_code = d->exit_code;
    free(d);
    return exit_code;
}
