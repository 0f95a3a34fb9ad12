/* Runs: every run's events are reduced again from the first one on, and what is stored beside them has to be
 * the same: status, steps, watermark, the flag of what was invalid and one alert for each such event. No two
 * of them have the same key. */
#include "base/hash.h"
#include "base/must.h"
#include "lifecycle/run_projection.h"
#include "store/row_rules.h"
#include "store/verify_runs.h"

#include "base/banned.h"

enum { EVENTS_AT_ONCE = 1000, RUN_ARENA_BYTES = 1 << 16 };

struct checked_run {
    struct map_node node;
    int64_t num, tenant, index_entries;
    uint64_t events, steps, invalid, alerts;
    uint64_t tasks, open; /* of its steps: that are live, that its rows name */
    uint8_t state;
    bool is_external, listed, listed_in_state, is_stopped;
};

/* An event that was seen, by a hash of what its key is made of. */
struct seen_event {
    struct map_node node;
    int64_t seq;
};

/* One run, while it is looked at. */
struct reduction {
    struct verify *verify;
    struct checked_run *run;
    const struct run_row *row;
    struct run_projection projection;
    struct arena *arena;
    struct map seen;
    int64_t next;   /* the seq that has to come */
    bool gap, full; /* there may be more */
    uint64_t left, failed;
};

static void say(struct reduction *r, const char *what)
{
    verify_say(r->verify, "run %.*s: %s", STR_ARG(r->row->id), what);
}

static struct checked_run *find_run(const struct verify *v, int64_t num)
{
    for (struct map_node *n = map_first(&run_check(v)->runs, hash_mix((uint64_t)num)); n; n = map_next(n))
        if (CONTAINER_OF(n, struct checked_run, node)->num == num)
            return CONTAINER_OF(n, struct checked_run, node);
    return NULL;
}

bool verify_has_run(const struct verify *v, int64_t num)
{
    return find_run(v, num) != NULL;
}

/* --- one run --------------------------------------------------------------------------------------- */

/* The parts of the key beside the run (runs/event_key.h); the run's own plan is not stored. */
static struct str step_in_key(const struct run_event_row *e)
{
    return e->step.ptr ? e->step : STR("RUN");
}

static uint64_t hash_of_key(const struct run_event_row *e)
{
    const struct str texts[] = {step_in_key(e), e->name, e->plan, e->version};
    uint64_t h = hash_mix((uint64_t)e->attempt ^ (uint64_t)e->type << 32);
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        h = hash_mix(hash_fnv1a(h, texts[i].ptr, texts[i].len));
    return h;
}

static bool same_key(const struct run_event_row *a, const struct run_event_row *b)
{
    return a->type == b->type && a->attempt == b->attempt && str_equal(step_in_key(a), step_in_key(b)) &&
           str_equal(a->name, b->name) && str_equal(a->plan, b->plan) && str_equal(a->version, b->version);
}

static void check_key(struct reduction *r, const struct run_event_row *e)
{
    struct reader *reader = r->verify->reader;
    struct seen_event *s = ARENA_NEW(r->arena, struct seen_event);
    uint64_t hash = hash_of_key(e);
    for (struct map_node *n = map_first(&r->seen, hash); n; n = map_next(n)) {
        struct run_event_row former = {.run = e->run, .seq = CONTAINER_OF(n, struct seen_event, node)->seq};
        bool found = false;
        struct err err;
        if (reader->ops->reader_row(reader, &table_run_event_row, &former, r->arena, &found, &err) ==
                ERR_OK &&
            found && same_key(&former, e))
            verify_say(r->verify, "run %.*s: its events %lld and %lld have one key", STR_ARG(r->row->id),
                       (long long)former.seq, (long long)e->seq);
    }
    s->seq = e->seq;
    map_put(&r->seen, &s->node, hash);
}

static bool reduce_event(const void *row, void *arg)
{
    const struct run_event_row *e = row;
    struct reduction *r = arg;
    verify_seen(r->verify);
    verify_row(r->verify, &table_run_event_row, e);
    r->verify->result->run_events++;
    r->full = true;
    if (e->seq != r->next || e->type < 0 || e->type > RUN_EVENT_UNKNOWN || e->event_id.len != 16) {
        r->gap = true;
        return false;
    }
    r->next++;
    check_key(r, e);
    run_projection_apply(&r->projection, e->seq, (enum run_event_type)e->type, e->step, e->attempt, NULL);
    return true;
}

static enum err_code reduce_events(struct reduction *r, struct err *err)
{
    struct reader *reader = r->verify->reader;
    for (r->next = 1, r->full = true; r->full && !r->gap;) {
        struct run_event_row from = {.run = r->row->num, .seq = r->next};
        r->full = false;
        if (reader->ops->reader_range(reader, &table_run_event_row, &from, EVENTS_AT_ONCE, reduce_event, r,
                                      err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

static bool compare_step(const void *row, void *arg)
{
    const struct run_step_row *s = row;
    struct reduction *r = arg;
    const struct projected_step *p = run_projection_step(&r->projection, s->step);
    struct step_state said = p ? p->state : (struct step_state){0, STEP_PENDING};
    verify_seen(r->verify);
    verify_row(r->verify, &table_run_step_row, s);
    r->run->steps++;
    r->run->open += s->task != 0;
    r->left += s->state != STEP_SUCCESS && s->state != STEP_SKIPPED;
    r->failed += s->state == STEP_FAILED && !s->tries_left && !s->task;
    if (s->state != (int64_t)said.status || s->attempt != said.attempt)
        verify_say(r->verify, "run %.*s: its step %.*s is stored as %s %lld, its events say %s %lld",
                   STR_ARG(r->row->id), STR_ARG(s->step),
                   s->state >= 0 && s->state < STEP_STATUS_COUNT
                       ? step_status_text((enum step_status)s->state)
                       : "nothing",
                   (long long)s->attempt, step_status_text(said.status), (long long)said.attempt);
    return true;
}

static void compare_run(struct reduction *r)
{
    const struct run_row *row = r->row;
    const struct run_projection *p = &r->projection;
    if (r->gap || row->last_seq != p->last_seq)
        say(r, "its events are not 1 to its last runSeq");
    if (row->state != (int64_t)p->status)
        say(r, "its status is not what its events say");
    if ((row->inconsistent != 0) != (p->invalid != 0))
        say(r, "its flag inconsistent is not what its events say");
    if ((uint64_t)row->step_count != r->run->steps || p->step_count > r->run->steps)
        say(r, "it has other steps than its events");
    if (!row->plan_num)
        return;
    if ((uint64_t)row->left_count != r->left || (uint64_t)row->open_count != r->run->open ||
        (uint64_t)row->failed_count != r->failed)
        say(r, "it counts its steps wrongly");
}

/* Its name leads to it. */
static enum err_code check_name(struct reduction *r)
{
    struct reader *reader = r->verify->reader;
    struct run_id_row name = {.id = r->row->id};
    struct arena *a = arena_new(1024);
    bool found = false;
    enum err_code code =
        reader->ops->reader_row(reader, &table_run_id_row, &name, a, &found, &run_check(r->verify)->err);
    if (code == ERR_OK && !(found && name.run == r->row->num))
        say(r, "is not found by its name");
    arena_free(a);
    return code;
}

static bool check_run(const void *row, void *arg)
{
    struct verify *v = arg;
    struct checked_run *run = ARENA_NEW(v->arena, struct checked_run);
    struct arena *a = arena_new(RUN_ARENA_BYTES);
    struct reduction r = {.verify = v, .run = run, .row = row, .arena = a};
    *run = (struct checked_run){.num = r.row->num,
                                .tenant = r.row->tenant,
                                .state = (uint8_t)r.row->state,
                                .is_external = r.row->plan_num == 0,
                                .is_stopped = r.row->ending != 0 &&
                                              !run_status_is_final((enum run_status)r.row->state)};
    map_put(&run_check(v)->runs, &run->node, hash_mix((uint64_t)run->num));
    verify_seen(v);
    v->result->runs++;
    run_projection_start(&r.projection, a);
    struct run_step_row steps = {.run = run->num};
    bool ok = check_name(&r) == ERR_OK && reduce_events(&r, &run_check(v)->err) == ERR_OK &&
              v->reader->ops->reader_range(v->reader, &table_run_step_row, &steps, SIZE_MAX >> 1,
                                           compare_step, &r, &run_check(v)->err) == ERR_OK;
    if (ok)
        compare_run(&r);
    run->events = (uint64_t)r.projection.last_seq;
    run->invalid = r.projection.invalid;
    run_projection_free(&r.projection);
    map_free(&r.seen);
    arena_free(a);
    return ok;
}

/* --- what stands beside ---------------------------------------------------------------------------- */

static bool note_index_entry(const void *row, void *arg)
{
    struct verify *v = arg;
    struct checked_run *run = find_run(v, ((const struct run_index_row *)row)->run);
    verify_seen(v);
    if (run)
        run->index_entries++;
    else
        run_check(v)->plan_index_entries++;
    return true;
}

static bool note_alert(const void *row, void *arg)
{
    struct verify *v = arg;
    const struct alert_row *a = row;
    struct checked_run *run = find_run(v, a->run);
    verify_seen(v);
    verify_expect_record(v, LIST_ALERTS, a->tenant, a->id);
    verify_expect_record(v, LIST_ALERTS_OF_RUN, a->run, a->id);
    if (!run)
        verify_say(v, "alert %lld: is about a run that is not there", (long long)a->id);
    else
        run->alerts += a->category == 0; /* engine/alert.h: transition */
    return true;
}

static bool check_task(struct verify *v, const struct task_row *t)
{
    if (t->owner != STEP_TASK_OWNER)
        return false;
    const char *broken = task_broken_rule(t);
    if (broken)
        verify_say(v, "task %lld: breaks a rule: %s", (long long)t->id, broken);
    struct step_task *s = ARENA_NEW(v->arena, struct step_task);
    s->run = t->subject;
    s->next = run_check(v)->tasks_of_runs;
    run_check(v)->tasks_of_runs = s;
    return true;
}

static void check_listed_run(struct verify *v, const struct list_entry *e)
{
    struct checked_run *run = find_run(v, e->id);
    if (!run || e->owner_key != run->tenant)
        verify_say(v, "run number %lld: is listed for %lld and is not there", (long long)e->id,
                   (long long)e->owner_key);
    else if (e->bucket == LIST_RUNS)
        run->listed = true;
    else if (e->bucket == LIST_RUNS_IN + run->state)
        run->listed_in_state = true;
    else
        verify_say(v, "run number %lld: is listed under a status that is not its own", (long long)e->id);
}

static void check_places(struct map_node *n, void *arg)
{
    struct verify *v = arg;
    const struct checked_run *run = CONTAINER_OF(n, struct checked_run, node);
    long long num = (long long)run->num;
    uint64_t entries = 2 * run->events + (run->is_external ? run->steps : 0);
    if (!run->listed || !run->listed_in_state)
        verify_say(v, "run number %lld: is missing in a list", num);
    if ((uint64_t)run->index_entries != entries)
        verify_say(v, "run number %lld: has %lld index entries, its events need %llu", num,
                   (long long)run->index_entries, (unsigned long long)entries);
    if (run->alerts != run->invalid)
        verify_say(v, "run number %lld: has %llu alerts of transitions, %llu events were invalid", num,
                   (unsigned long long)run->alerts, (unsigned long long)run->invalid);
    if (run->tasks != run->open)
        verify_say(v, "run number %lld: its steps name %llu tasks, there are %llu", num,
                   (unsigned long long)run->open, (unsigned long long)run->tasks);
}

static bool check_timer(struct verify *v, const struct timer_row *t)
{
    const struct checked_run *run = find_run(v, t->owner);
    if (t->owner_kind != TIMER_OF_RUN)
        return false;
    if (!run || !run->is_stopped)
        verify_say(v, "run number %lld: has a timer and is not being stopped", (long long)t->owner);
    return true;
}

static enum err_code check_rows(struct verify *v, struct err *err)
{
    run_check(v)->err.code = ERR_OK;
    if (verify_scan(v, &table_run_row, check_run, v, err) != ERR_OK)
        return err->code;
    if (run_check(v)->err.code != ERR_OK) {
        *err = run_check(v)->err;
        return err->code;
    }
    for (const struct step_task *s = run_check(v)->tasks_of_runs; s; s = s->next) {
        struct checked_run *run = find_run(v, s->run);
        if (run)
            run->tasks++;
        else
            verify_say(v, "a step is live and its run is not there");
    }
    if (verify_scan(v, &table_run_index_row, note_index_entry, v, err) != ERR_OK ||
        verify_scan(v, &table_alert_row, note_alert, v, err) != ERR_OK)
        return err->code;
    return verify_records(v, err);
}

/* --- the rules ------------------------------------------------------------------------------------- */

static bool check_listed(struct verify *v, const struct list_entry *e)
{
    if (e->bucket < LIST_RUNS || e->bucket >= LIST_ALERTS + VERIFY_RECORD_LISTS)
        return false;
    if (e->bucket >= LIST_ALERTS)
        verify_listed_record(v, e);
    else
        check_listed_run(v, e);
    return true;
}

static enum err_code check_last(struct verify *v, struct err *err)
{
    (void)err;
    map_each(&run_check(v)->runs, check_places, v);
    verify_record_places(v);
    return ERR_OK;
}

static void end(void *self)
{
    map_free(&((struct run_check *)self)->runs);
}

const struct verify_rules verify_runs = {.name = "runs",
                                         .bytes = sizeof(struct run_check),
                                         .task = check_task,
                                         .rows = check_rows,
                                         .timer = check_timer,
                                         .listed = check_listed,
                                         .last = check_last,
                                         .end = end};
