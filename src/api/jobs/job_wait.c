#include "api/jobs/job_wait.h"

#include "api/reads.h"

#include "base/banned.h"

enum {
    SCRATCH_BYTES = 4096,
    LOOK_AGAIN_MS = 1000, /* after an error */
    ELSEWHERE_MS = 50,    /* other nodes write all the time, mostly about other jobs: so often at most */
};

struct job_wait {
    int64_t job, until_ms; /* monotonic */
    void (*send)(struct call *c, const struct job_view *v);
    struct followed *followed;
    struct arena *scratch; /* emptied before each look */
    /* Of the last look: */
    uint64_t news, elsewhere; /* of the job, and of other nodes */
    int64_t looked_ms;
    bool failed; /* or there was none yet */
};

static void let_go(struct call *c, struct job_wait *w)
{
    followers_leave(c->api->followers, w->followed);
    w->scratch = arena_free(w->scratch);
}

/* The client is gone. */
static void wait_ended(struct http_exchange *x)
{
    struct call *c = x->data;
    let_go(c, c->data);
}

/* Answers if there is something to answer; false: it waits on. */
static bool look(struct call *c, struct job_wait *w, bool is_over)
{
    struct err err = {.code = ERR_OK};
    struct job_view v;
    bool found = false;
    struct reader *r = api_read_begin(c->api, &err);
    arena_reset(w->scratch);
    if (r && job_view_read(r, w->scratch, w->job, &v, &found, &err) == ERR_OK && !found)
        err_set(&err, ERR_JOB_NOT_FOUND, "the job was purged while the call waited");
    if (err.code == ERR_OK && (is_over || !v.is_live)) {
        w->send(c, &v);
        return true;
    }
    w->failed = err.code != ERR_OK;
    if (!w->failed)
        return false;
    if (err_http_status(err.code) >= 500 && !is_over) { /* the store is away: soon again */
        reads_end(c->api->reads);
        return false;
    }
    call_problem(c, &err);
    return true;
}

/* Whether the key or token still holds; false: answered. */
static bool is_admitted(struct call *c, struct job_wait *w, int64_t wall_ms)
{
    struct err err = {.code = ERR_OK};
    arena_reset(w->scratch);
    if (!credential_is_due(c, wall_ms) || credential_check(c, w->scratch, wall_ms, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* When there may be something to see; at once: 0 or less. */
static int64_t look_in_ms(struct call *c, const struct job_wait *w, int64_t now_ms)
{
    if (w->failed)
        return w->looked_ms ? w->looked_ms + LOOK_AGAIN_MS - now_ms : 0;
    if (followed_news(w->followed) != w->news)
        return 0;
    bool elsewhere = followers_elsewhere(c->api->followers) != w->elsewhere;
    return elsewhere ? w->looked_ms + ELSEWHERE_MS - now_ms : INT64_MAX;
}

static void tick_next(struct call *c, const struct job_wait *w, int64_t now_ms, int64_t wall_ms)
{
    int64_t ms = w->until_ms - now_ms, left_ms = c->credential.look_at_ms - wall_ms;
    int64_t look_ms = look_in_ms(c, w, now_ms);
    ms = left_ms < ms ? left_ms : ms;
    http_stream_tick_in(c->x, look_ms < ms ? look_ms : ms);
}

static void wait_tick(struct http_exchange *x)
{
    struct call *c = x->data;
    struct job_wait *w = c->data;
    int64_t now_ms = clock_mono_ms(c->api->config.clock), wall_ms = clock_wall_ms(c->api->config.clock);
    bool is_over = now_ms >= w->until_ms || http_hold_is_over(x);
    bool answered = !is_admitted(c, w, wall_ms);
    if (!answered && (is_over || look_in_ms(c, w, now_ms) <= 0)) {
        w->news = followed_news(w->followed);
        w->elsewhere = followers_elsewhere(c->api->followers);
        w->looked_ms = now_ms;
        answered = look(c, w, is_over);
    }
    if (answered)
        let_go(c, w);
    else
        tick_next(c, w, now_ms, wall_ms);
    reads_request_end(c->api->reads);
}

void job_wait_start(struct call *c, int64_t job, int64_t wait_ms,
                    void (*send)(struct call *c, const struct job_view *v))
{
    struct job_wait *w = ARENA_NEW(c->x->arena, struct job_wait);
    w->job = job;
    w->until_ms = clock_mono_ms(c->api->config.clock) + wait_ms;
    w->send = send;
    w->failed = true;
    /* Joined before the first look, in the first tick: events committed in between are announced. */
    w->followed = followers_join(c->api->followers, job);
    w->scratch = arena_new(SCRATCH_BYTES);
    c->data = w;
    credential_begin(c);
    c->x->on_stream_tick = wait_tick;
    c->x->on_stream_end = wait_ended;
    http_hold(c->x, wait_ms);
}
