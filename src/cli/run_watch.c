/* weir run watch, and what `run start --wait` and `run events --follow` share with it: a run followed to its
 * end. The event stream says that something has happened; the picture is drawn from the run itself. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"
#include "base/time_text.h"
#include "cli/run_internal.h"
#include "cli/run_picture.h"
#include "cli/stream_follow.h"

#include "base/banned.h"

enum { REFRESH_MS = 100, REFRESH_SHARE = 10 /* of the time, at most, goes into asking */ };

struct named {
    struct map_node node;
    struct str id;
    uint32_t number;
};

/* From the plan, which never changes: the dependencies of each step. */
struct plan_view {
    struct map by_id;
    struct picture_step *steps; /* dependencies, and `attempt` for how many it may have */
    size_t count;
    bool waits; /* onFailure: wait */
};

struct watch {
    struct run_access *x;
    const char *run_id;
    enum run_follow how;
    struct arena *arena; /* of the plan */
    struct str path;     /* of the run */
    struct plan_view plan;
    struct text_table *table;
    int64_t previous_us;
    bool ended;
    enum run_status status; /* as last heard */
    bool dirty;
    int64_t drawn_at_ms, pause_ms;
    size_t lines, width; /* of the last picture */
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

/* ---- the plan ---- */

static struct named *find_step(const struct plan_view *p, struct str id)
{
    uint64_t hash = hash_fnv1a(HASH_FNV_START, id.ptr, id.len);
    for (struct map_node *n = map_first(&p->by_id, hash); n; n = map_next(n)) {
        struct named *found = (struct named *)n;
        if (str_equal(found->id, id))
            return found;
    }
    return NULL;
}

static void take_dependencies(struct watch *w, struct picture_step *s, const struct json *list)
{
    uint32_t *dependencies = ARENA_ARRAY(w->arena, uint32_t, list ? list->count + 1 : 1);
    for (const struct json *n = list ? list->child : NULL; n; n = n->next) {
        const struct named *other = find_step(&w->plan, n->text);
        if (other)
            dependencies[s->dependency_count++] = other->number;
    }
    s->dependencies = dependencies;
}

static void take_plan(struct watch *w, const struct json *plan)
{
    const struct json *steps = json_get(plan, "steps");
    struct plan_view *p = &w->plan;
    p->waits = str_is(json_text(plan, "onFailure"), "wait");
    p->steps = ARENA_ARRAY(w->arena, struct picture_step, steps ? steps->count + 1 : 1);
    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        struct named *n = ARENA_NEW(w->arena, struct named);
        n->id = arena_str(w->arena, json_text(s, "stepId"));
        n->number = (uint32_t)p->count;
        map_put(&p->by_id, &n->node, hash_fnv1a(HASH_FNV_START, n->id.ptr, n->id.len));
        p->steps[p->count] = (struct picture_step){.id = n->id};
        if (!json_to_int(json_get(s, "maxAttempts"), &p->steps[p->count].attempt))
            p->steps[p->count].attempt = 1;
        p->count++;
    }
    size_t i = 0;
    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next)
        take_dependencies(w, &p->steps[i++], json_get(s, "dependsOn"));
}

static int read_plan(struct watch *w, const struct json *run)
{
    struct server_answer plan CLEANUP(server_answer_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    const struct json *external = json_get(run, "external");
    if (external && external->type == JSON_TRUE)
        return CLI_OK; /* its plan is elsewhere: a list of steps it is */
    strbuf_add_text(&path, "/engine/v1/plans/");
    http_escape(&path, json_text(run, "planId"));
    strbuf_add_text(&path, "/versions/");
    http_escape(&path, json_text(run, "planVersion"));
    int code = run_call(w->x, "GET", strbuf_str(&path), STR_ABSENT, &plan);
    if (code == CLI_OK)
        take_plan(w, plan.json);
    return code;
}

/* ---- drawing ---- */

static enum step_status step_status_named(struct str name)
{
    int s = 0;
    while (s < STEP_STATUS_COUNT && !str_is(name, step_status_text((enum step_status)s)))
        s++;
    return s < STEP_STATUS_COUNT ? (enum step_status)s : STEP_PENDING;
}

static void fill_step(struct watch *w, struct arena *a, const struct json *from, struct picture_step *s)
{
    const struct named *known = find_step(&w->plan, json_text(from, "stepId"));
    int64_t tries = known ? w->plan.steps[known->number].attempt : 1;
    if (known) {
        s->dependencies = w->plan.steps[known->number].dependencies;
        s->dependency_count = w->plan.steps[known->number].dependency_count;
    }
    s->id = json_text(from, "stepId");
    s->status = step_status_named(json_text(from, "status"));
    s->note = run_failure_text(a, json_get(from, "failure"));
    if (!json_to_int(json_get(from, "logicalAttemptId"), &s->attempt))
        s->attempt = 0;
    s->stuck = w->plan.waits && s->status == STEP_FAILED && s->attempt >= tries;
}

static struct str took_text(struct arena *a, const struct json *run)
{
    char now[TIME_TEXT_MAX], took[48];
    struct str ended = json_text(run, "endedAt");
    if (!ended.ptr)
        ended = time_text_ms(clock_wall_ms(&clock_system), now);
    run_took_text(json_text(run, "startedAt"), ended, took, sizeof took);
    return arena_str(a, str_of(took));
}

/* Steps of the plan stand at their number, so that dependencies find them. */
static void draw(struct watch *w, const struct json *run)
{
    struct arena *a = arena_new(65536);
    struct strbuf frame CLEANUP(strbuf_free) = {0};
    const struct json *steps = json_get(run, "steps");
    size_t n = w->plan.count ? w->plan.count : steps ? steps->count : 0, at = 0;
    struct picture_step *views = ARENA_ARRAY(a, struct picture_step, n + 1);
    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        const struct named *known = find_step(&w->plan, json_text(s, "stepId"));
        size_t place = known ? known->number : at++;
        if (place < n)
            fill_step(w, a, s, &views[place]);
    }
    struct picture p = {
        .run_id = json_text(run, "runId"),
        .plan = arena_printf(a, "%.*s %.*s", STR_ARG(json_text(run, "planId")),
                             STR_ARG(json_text(run, "planVersion"))),
        .took = took_text(a, run),
        .status = w->status,
        .steps = views,
        .count = n,
        .graph = w->plan.count > 0,
    };
    size_t width = terminal_width(stdout), height = terminal_height(stdout);
    if (w->lines && width == w->width)
        strbuf_addf(&frame, "\033[%zuA\033[J", w->lines); /* back to the first line, and nothing behind it */
    else if (w->lines)
        strbuf_add_text(&frame, "\033[2J\033[H"); /* lines may have been folded: begin anew */
    w->lines = picture_write(a, &p, height > 1 ? height - 1 : SIZE_MAX, width ? width : 80,
                             terminal_colour(stdout), &frame);
    w->width = width;
    fwrite(frame.ptr, 1, frame.len, stdout);
    fflush(stdout);
    arena_free(a);
}

static void note_status(struct watch *w, const struct json *run)
{
    enum run_status status;
    if (run_status_of(json_text(run, "status"), &status)) {
        w->status = status;
        w->ended = run_status_is_final(status);
    }
}

/* Asks for the run and draws it. A server that is away for a moment is no fault here: the stream tells. */
static void refresh(struct watch *w)
{
    struct server_answer run CLEANUP(server_answer_free) = {0};
    struct server_call call = {.method = "GET", .path = w->path, .bearer = run_access_bearer(w->x)};
    int64_t before = now_ms();
    if (!call.bearer || server_try(w->x->in, &call, &run) != CLI_OK || run.http.status != 200 || !run.json)
        return;
    note_status(w, run.json);
    draw(w, run.json);
    w->dirty = false;
    w->drawn_at_ms = now_ms();
    w->pause_ms = (w->drawn_at_ms - before) * REFRESH_SHARE;
    w->pause_ms = w->pause_ms > REFRESH_MS ? w->pause_ms : REFRESH_MS;
}

/* ---- following ---- */

static void take_event(void *self, const struct json *event, struct str source)
{
    struct watch *w = self;
    struct str end = run_event_end(event);
    if (end.ptr && run_status_of(end, &w->status))
        w->ended = true;
    w->dirty = true;
    if (w->how != FOLLOW_LINES)
        return;
    if (w->x->in->json) {
        printf("%.*s\n", STR_ARG(source));
    } else {
        run_event_row(w->table, event, &w->previous_us);
        text_table_show(w->table, stdout);
    }
    fflush(stdout);
}

static void look(void *self)
{
    enum { SECOND_MS = 1000 };
    struct watch *w = self;
    int64_t since = now_ms() - w->drawn_at_ms;
    bool clock_moved = w->status == RUN_RUNNING && since >= SECOND_MS;
    if (w->how == FOLLOW_PICTURE && (w->dirty || clock_moved) && since >= w->pause_ms)
        refresh(w);
}

static const char *bearer(void *self)
{
    const struct watch *w = self;
    return run_access_bearer(w->x);
}

static bool has_ended(void *self)
{
    const struct watch *w = self;
    return w->ended;
}

static bool ask_ended(void *self)
{
    struct watch *w = self;
    struct server_answer run CLEANUP(server_answer_free) = {0};
    if (run_call(w->x, "GET", w->path, STR_ABSENT, &run) == CLI_OK)
        note_status(w, run.json);
    return w->ended;
}

static int follow(struct watch *w, int64_t after)
{
    struct stream_follower f = {
        .in = w->x->in,
        .subject = "run",
        .path = run_path(w->arena, w->run_id, "/events"),
        .timeout = w->x->in->flags->value[FLAG_TIMEOUT],
        .after = after,
        .advice = run_access_advice(w->x),
        .bearer = bearer,
        .on_event = take_event,
        .on_idle = look,
        .has_ended = has_ended,
        .ask_ended = ask_ended,
        .self = w,
    };
    return stream_follow(&f);
}

/* ---- the three ways ---- */

static void watch_begin(struct watch *w, struct run_access *x, const char *run_id, enum run_follow how)
{
    *w = (struct watch){.x = x, .run_id = run_id, .how = how, .arena = arena_new(4096)};
    w->path = run_path(w->arena, run_id, "");
}

static void watch_end(struct watch *w)
{
    text_table_free(w->table);
    map_free(&w->plan.by_id);
    arena_free(w->arena);
}

static int follow_lines(struct watch *w, int64_t after)
{
    w->table = run_event_table(!w->x->in->quiet);
    return follow(w, after);
}

static int follow_picture(struct watch *w, const struct json *run, int64_t seq)
{
    int code = read_plan(w, run);
    if (code != CLI_OK)
        return code;
    draw(w, run);
    w->drawn_at_ms = now_ms();
    w->pause_ms = REFRESH_MS;
    if (!w->ended)
        code = follow(w, seq);
    if (code == CLI_OK && w->dirty)
        refresh(w);
    return code;
}

static int follow_silent(struct watch *w, int64_t seq)
{
    struct server_answer run CLEANUP(server_answer_free) = {0};
    int code = w->ended ? CLI_OK : follow(w, seq);
    if (code == CLI_OK)
        code = run_call(w->x, "GET", w->path, STR_ABSENT, &run);
    if (code != CLI_OK)
        return code;
    if (w->x->in->json)
        server_print_json(&run);
    else if (!w->x->in->quiet)
        run_show(run.json);
    return CLI_OK;
}

int run_watch(struct run_access *x, const char *run_id, enum run_follow how)
{
    struct server_answer run CLEANUP(server_answer_free) = {0};
    struct watch w;
    int64_t seq = 0;
    watch_begin(&w, x, run_id, how);
    int code = run_call(x, "GET", w.path, STR_ABSENT, &run);
    if (code == CLI_OK) {
        bool lines = how == FOLLOW_LINES;
        if (!lines)
            note_status(&w, run.json);
        if (!json_to_int(json_get(run.json, "lastRunSeq"), &seq))
            seq = 0;
        code = lines                   ? follow_lines(&w, 0)
               : how == FOLLOW_PICTURE ? follow_picture(&w, run.json, seq)
                                       : follow_silent(&w, seq);
    }
    watch_end(&w);
    return code == CLI_OK ? run_exit_code(str_of(run_status_text(w.status))) : code;
}

int run_follow_events(struct run_access *x, const char *run_id, int64_t after)
{
    struct watch w;
    watch_begin(&w, x, run_id, FOLLOW_LINES);
    int code = follow_lines(&w, after);
    watch_end(&w);
    return code;
}

int command_run_watch(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    return run_watch(&x, in->args[0], terminal_is(stdout) && !in->json ? FOLLOW_PICTURE : FOLLOW_LINES);
}
