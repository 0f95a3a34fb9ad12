#include "kernel/census.h"

#include "base/must.h"

#include "base/banned.h"

void census_init(struct census *c)
{
    pthread_mutex_init(&c->lock, NULL);
}

void census_free(struct census *c)
{
    pthread_mutex_destroy(&c->lock);
}

static int64_t above_none(int64_t n)
{
    return n > 0 ? n : 0;
}

static bool has_room(int64_t there, int64_t max)
{
    return max < 0 || there < max;
}

bool census_take(struct census *c, struct census_part *p, struct room *r)
{
    pthread_mutex_lock(&c->lock);
    r->live = c->taken_live;
    r->ready = c->taken_ready;
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        int64_t n = c->states[i].others + c->states[i].own;
        if (job_state_is_final((enum job_state)i))
            continue;
        r->live += n;
        if (job_state_phase((enum job_state)i) == TASK_READY)
            r->ready += n;
    }
    bool fits = has_room(r->live, r->live_max) && has_room(r->ready, r->ready_max);
    int64_t live = fits && r->live_max >= 0, ready = fits && r->ready_max >= 0;
    p->taken_live += live;
    p->taken_ready += ready;
    c->taken_live += live;
    c->taken_ready += ready;
    pthread_mutex_unlock(&c->lock);
    return fits;
}

void census_give_back(struct census *c, struct census_part *p, const struct room *r)
{
    pthread_mutex_lock(&c->lock);
    p->taken_live -= r->live_max >= 0;
    p->taken_ready -= r->ready_max >= 0;
    c->taken_live -= r->live_max >= 0;
    c->taken_ready -= r->ready_max >= 0;
    pthread_mutex_unlock(&c->lock);
}

void census_begin(struct census *c, struct census_part *p)
{
    MUST(!p->begun);
    p->begun = true;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        c->states[i].coming += above_none(p->moved[i]);
        c->states[i].going += above_none(-p->moved[i]);
    }
    pthread_mutex_unlock(&c->lock);
}

void census_end(struct census *c, struct census_part *p, bool committed)
{
    pthread_mutex_lock(&c->lock);
    c->taken_live -= p->taken_live;
    c->taken_ready -= p->taken_ready;
    for (int i = 0; p->begun && i < JOB_STATE_COUNT; i++) {
        c->states[i].came += above_none(p->moved[i]);
        c->states[i].went += above_none(-p->moved[i]);
        c->states[i].own += committed ? p->moved[i] : 0;
    }
    pthread_mutex_unlock(&c->lock);
    *p = (struct census_part){0};
}

void census_count_start(struct census *c, struct census_count *ret)
{
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        ret->own[i] = c->states[i].own;
        ret->came[i] = c->states[i].came;
        ret->went[i] = c->states[i].went;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Of the commits that had not ended before the count and had begun when it was done, each may be in it. */
void census_counted(struct census *c, const struct census_count *start,
                    const int64_t by_state[JOB_STATE_COUNT])
{
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        struct census_state *s = &c->states[i];
        int64_t without_ours = by_state[i] - start->own[i];
        int64_t least = without_ours - (s->coming - start->came[i]);
        int64_t most = without_ours + (s->going - start->went[i]);
        if (s->others < least)
            s->others = least;
        if (s->others > most)
            s->others = most;
    }
    pthread_mutex_unlock(&c->lock);
}

int64_t census_jobs(struct census *c, enum job_state state)
{
    pthread_mutex_lock(&c->lock);
    int64_t n = c->states[state].others + c->states[state].own;
    pthread_mutex_unlock(&c->lock);
    return above_none(n);
}
