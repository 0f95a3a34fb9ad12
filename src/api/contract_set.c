#include "api/contract_set.h"

#include "base/must.h"

#include "base/banned.h"

static void add_kinds(struct contract_set *s, const struct contract *c)
{
    for (const struct contract_task *t = c->tasks; t && t->owner; t++) {
        MUST(s->task_count < CONTRACT_TASKS_MAX);
        s->owners[s->task_count] = t->owner;
        s->tasks[s->task_count++] = t;
    }
    for (const struct timer_kind *const *t = c->timers; t && *t; t++) {
        MUST(s->timer_count < CONTRACT_TIMERS_MAX);
        s->timers[s->timer_count++] = *t;
    }
}

enum err_code contract_set_open(struct contract_set *s, const struct contract *const *contracts,
                                struct api *a, struct err *err)
{
    for (; *contracts; contracts++) {
        MUST(s->count < CONTRACTS_MAX);
        void *self = NULL;
        if ((*contracts)->open && (*contracts)->open(a, &self, err) != ERR_OK)
            return err->code;
        s->list[s->count].contract = *contracts;
        s->list[s->count++].self = self;
        add_kinds(s, *contracts);
    }
    return ERR_OK;
}

void contract_set_close(struct contract_set *s)
{
    for (; s->count; s->count--)
        if (s->list[s->count - 1].contract->close)
            s->list[s->count - 1].contract->close(s->list[s->count - 1].self);
}

void *contract_set_self(const struct contract_set *s, const struct contract *c)
{
    size_t i = 0;
    while (i < s->count && s->list[i].contract != c)
        i++;
    MUST(i < s->count);
    return s->list[i].self;
}

const struct contract_task *contract_set_task(const struct contract_set *s, const struct task_owner *owner)
{
    size_t i = 0;
    while (i < s->task_count && s->owners[i] != owner)
        i++;
    MUST(i < s->task_count); /* a task has an owner that the kernel was given */
    return s->tasks[i];
}

/* `call` for each contract that has the function, in order. */
#define EACH(s, function, call)                                                                              \
    for (size_t i = 0; i < (s)->count; i++) {                                                                \
        const struct contract *const of = (s)->list[i].contract;                                             \
        void *const self = (s)->list[i].self;                                                                \
        if (of->function)                                                                                    \
            call;                                                                                            \
    }

void contract_set_stop(const struct contract_set *s)
{
    EACH(s, stop, of->stop(self))
}

void contract_set_committed(const struct contract_set *s, const struct unit *u)
{
    EACH(s, committed, of->committed(self, u))
}

void contract_set_hinted(const struct contract_set *s, unsigned hints)
{
    EACH(s, hinted, of->hinted(self, hints))
}

bool contract_set_housekeep(const struct contract_set *s, struct unit *u)
{
    bool more = false;
    EACH(s, housekeep, more |= of->housekeep(self, u))
    return more;
}

bool contract_set_save(const struct contract_set *s, struct unit *u)
{
    bool more = false;
    EACH(s, save, more |= of->save(self, u))
    return more;
}

void contract_set_saved(const struct contract_set *s, bool stored)
{
    EACH(s, saved, of->saved(self, stored))
}

bool contract_set_serve_internal(const struct contract_set *s, struct http_exchange *x)
{
    bool served = false;
    EACH(s, serve_internal, served = served || of->serve_internal(self, x))
    return served;
}

void contract_set_measure(const struct contract_set *s, struct overload_queues *q)
{
    EACH(s, measure, of->measure(self, q))
}

void contract_set_write_metrics(const struct contract_set *s, struct call *c, const struct kernel_stats *k)
{
    EACH(s, write_metrics, of->write_metrics(self, c, k))
}
