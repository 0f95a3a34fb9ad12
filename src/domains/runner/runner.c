/* The work of the runner on the tasks that the skeleton brings. */
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "domains/runner/runner_internal.h"

#include "base/banned.h"

enum { CLAIMS_MAX = 16 }; /* long polls in flight, whatever the number of workers */

static const struct str queue = {"default", 7};

static struct runner_task *of(struct domain_task *t)
{
    return CONTAINER_OF(t, struct runner_task, task);
}

static void runner_open(void *self, struct domain *d)
{
    struct runner *r = self;
    r->domain = d;
    r->workers = must_alloc((size_t)r->settings->runner_workers * sizeof *r->workers);
    for (int64_t i = 0; i < r->settings->runner_workers; i++) {
        struct runner_worker *w = &r->workers[i];
        domain_room_add(d, &w->room, (uint32_t)r->settings->runner_concurrency);
        domain_claim_add(d, &w->claim, &w->room, &queue, 1, WORKER_CLAIM_MAX);
    }
}

static struct domain_task *take(void *self, struct domain_room *room, const struct worker_task *claimed)
{
    (void)self;
    (void)room;
    return runner_task_new(claimed);
}

static void begin(void *self, struct domain_task *t, int64_t now_ms)
{
    runner_task_begin(self, of(t), now_ms);
}

static void abandon(void *self, struct domain_task *t)
{
    runner_task_stop(self, of(t));
}

static bool report(void *self, struct domain_task *task, size_t bytes, struct arena *a,
                   struct worker_finish *ret)
{
    struct runner_task *t = of(task);
    struct strbuf text CLEANUP(strbuf_free) = {0};
    (void)self;
    if (t->end != END_SUCCESS) {
        *ret = runner_task_report(t, STR_ABSENT);
        return true;
    }
    if (simulated_work_result_bytes_max(&t->definition) > bytes)
        return false;
    simulated_work_write_result(&t->definition, &text);
    *ret = runner_task_report(t, arena_str(a, strbuf_str(&text)));
    return true;
}

/* A report without its result is small and says why. */
static bool shrink(void *self, struct domain_task *task)
{
    struct runner_task *t = of(task);
    (void)self;
    if (t->end != END_SUCCESS)
        return false;
    t->end = END_RESULT_TOO_LARGE;
    return true;
}

static void drop(void *self, struct domain_task *t)
{
    (void)self;
    free(of(t));
}

static void fire_timers(void *self, int64_t now_ms)
{
    struct runner *r = self;
    struct heap_node *n;
    while ((n = heap_first(&r->timers)) && n->key <= (uint64_t)now_ms)
        runner_task_due(r, CONTAINER_OF(n, struct runner_task, timer), now_ms);
}

static int64_t next_at_ms(void *self, int64_t now_ms)
{
    const struct runner *r = self;
    const struct heap_node *timer = heap_first(&r->timers);
    (void)now_ms;
    return timer ? (int64_t)timer->key : INT64_MAX;
}

static void time_over(void *self, int64_t now_ms)
{
    struct runner *r = self;
    struct heap_node *n;
    (void)now_ms;
    while ((n = heap_first(&r->timers))) /* all that run have one */
        runner_task_end(r, CONTAINER_OF(n, struct runner_task, timer), END_SHUTDOWN);
}

static void log_stopped(void *self)
{
    const struct runner *r = self;
    struct exercise_count used = exerciser_count(r->exerciser);
    log_line(LOG_INFO, "stopped", "unreported", LOG_INT(domain_task_count(r->domain)), "cpu_us",
             LOG_INT((int64_t)used.cpu_us), "memory_blocks", LOG_INT((int64_t)used.blocks), "files",
             LOG_INT((int64_t)used.files), NULL);
}

static const struct domain_ops ops = {
    .tasks = "tasks",
    .task_key = "job_id",
    .claims_max = CLAIMS_MAX,
    .open = runner_open,
    .take = take,
    .begin = begin,
    .abandon = abandon,
    .report = report,
    .shrink = shrink,
    .drop = drop,
    .work = fire_timers,
    .next_at_ms = next_at_ms,
    .time_over = time_over,
    .stop = log_stopped,
};

int runner_main(const struct process_start *start)
{
    struct runner r = {.settings = start->settings, .exerciser = exerciser_new(start->scratch_fd)};
    int exit_code = domain_main(start, &ops, &r);
    exerciser_free(r.exerciser);
    heap_free(&r.timers);
    free(r.workers);
    return exit_code;
}
