/* Runs: start, read (also as of an earlier runSeq), list. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "base/digest.h"
#include "base/must.h"
#include "base/random.h"
#include "engine/engine_commands.h"
#include "lifecycle/run_projection.h"
#include "runs/run_event.h"

#include "base/banned.h"

enum { EVENTS_AT_ONCE = 1000 };

/* --- start ------------------------------------------------------------------------------------------- */

static void run_started(struct call *c)
{
    const struct run_command *command = (const struct run_command *)c->command;
    struct json_writer w;
    call_object(c, command->created ? 201 : 200, &w);
    encode_str(&w, "runId", command->run_id);
    encode_text(&w, "status", run_status_text(command->status));
    call_send_object(c, &w);
}

/* It is read under a path of its own: what cannot stand there as one segment would never be found again. */
static bool run_id_is_sound(struct str id)
{
    return id.len <= RUN_ID_MAX && !memchr(id.ptr, '|', id.len) && !memchr(id.ptr, '\0', id.len) &&
           !memchr(id.ptr, '/', id.len) && !str_is(id, ".") && !str_is(id, "..");
}

/* One that the caller did not name is named here, by a UUID. */
static bool read_run_id(struct call *c, struct str *ret)
{
    const struct json *given = json_get(c->body, "runId");
    struct uuid id = uuid_v4();
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    *ret = given ? given->text : arena_str(c->x->arena, (struct str){text, UUID_TEXT_LEN});
    if (run_id_is_sound(*ret))
        return true;
    call_fail(c, ERR_RUN_INVALID, "runId has at most %d bytes, no |, no / and no zero byte", RUN_ID_MAX);
    return false;
}

void handle_start_run(struct call *c)
{
    struct run_command *command = ARENA_NEW(c->x->arena, struct run_command);
    const struct json *params = json_get(c->body, "params");
    struct strbuf canonical = {0};
    command->tenant = c->claims->tenant_id;
    command->plan = json_text(c->body, "planId");
    command->version = json_text(c->body, "planVersion");
    command->project = json_text(c->body, "projectId");
    command->environment = json_text(c->body, "environmentId");
    command->params = params ? params->source : STR_ABSENT;
    if ((int64_t)command->params.len > c->api->config.settings->jobs_payload_max_bytes) {
        call_fail(c, ERR_RUN_INVALID, "params are larger than jobs.payload_max_bytes");
        return;
    }
    if (!call_project(c, command->project) || !read_run_id(c, &command->run_id))
        return;
    json_canonical(c->body, "runId", &canonical);
    digest_sha256(canonical.ptr, canonical.len, command->fingerprint);
    strbuf_free(&canonical);
    call_post(c, &command->base, &run_command_type, 0, run_started);
}

/* --- read -------------------------------------------------------------------------------------------- */

struct reading {
    struct call *call;
    struct json_writer w;
    const struct run_projection *as_of; /* NULL: as it is now */
    int64_t until;
    struct run_projection *projection;
    struct transition_fault fault;
    int64_t seen;
};

static bool encode_stored_step(const void *row, void *arg)
{
    const struct run_step_row *s = row;
    struct reading *r = arg;
    if (!r->as_of) {
        encode_step(&r->w, s->step, (enum step_status)s->state, s->attempt, s);
        return true;
    }
    const struct projected_step *p = run_projection_step(r->as_of, s->step);
    if (p || r->until < 0)
        encode_step(&r->w, s->step, p ? p->state.status : STEP_PENDING, p ? p->state.attempt : 0, NULL);
    return true;
}

static bool project_event(const void *row, void *arg)
{
    const struct run_event_row *e = row;
    struct reading *r = arg;
    if (e->seq > r->until)
        return false;
    run_projection_apply(r->projection, e->seq, (enum run_event_type)e->type, e->step, e->attempt, &r->fault);
    r->seen = e->seq;
    return true;
}

/* Reduces the events up to `until`. */
static enum err_code project(struct reader *reader, const struct run_row *run, struct reading *r,
                             struct err *err)
{
    int64_t before;
    do {
        struct run_event_row from = {.run = run->num, .seq = r->seen + 1};
        before = r->seen;
        if (reader->ops->reader_range(reader, &table_run_event_row, &from, EVENTS_AT_ONCE, project_event, r,
                                      err) != ERR_OK)
            return err->code;
    } while (r->seen > before && r->seen < r->until);
    return ERR_OK;
}

static void put_metadata(struct json_writer *w, const struct run_row *run, bool inconsistent)
{
    jw_object(w);
    encode_bool(w, "inconsistent", inconsistent);
    encode_str(w, "originalRunId", run->original);
    jw_object_end(w);
}

static void send_run(struct call *c, struct reader *reader, const struct run_row *run, struct reading *r)
{
    struct err err;
    const struct run_projection *p = r->as_of;
    struct json_writer *w = &r->w;
    call_object(c, 200, w);
    RUN_IDENTITY_FIELDS(ENCODE_FIELD)
    RUN_FIELDS(ENCODE_FIELD)
    if (!p) {
        RUN_NOW_FIELDS(ENCODE_FIELD)
    }
    jw_key(w, "steps");
    jw_array(w);
    if (reader->ops->reader_range(reader, &table_run_step_row, &(struct run_step_row){.run = run->num},
                                  (size_t)run->step_count, encode_stored_step, r, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(w);
    call_send_object(c, w);
}

void handle_get_run(struct call *c)
{
    struct reader *reader;
    struct run_row run;
    struct str at;
    struct err err;
    struct reading r = {.call = c};
    if (!call_query(c, "at", &at) || !call_read_run(c, &reader, &run))
        return;
    if (at.ptr && !str_to_int(at, 0, INT64_MAX, &r.until)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "at has to be a runSeq, 0 or more");
        return;
    }
    if (!at.ptr || r.until >= run.last_seq) {
        send_run(c, reader, &run, &r);
        return;
    }
    struct run_projection p = {0};
    run_projection_start(&p, c->x->arena);
    r.projection = &p;
    if (project(reader, &run, &r, &err) != ERR_OK) {
        call_problem(c, &err);
    } else {
        r.as_of = &p;
        if (run.plan_num)
            r.until = -1; /* every step of the plan; else those that were heard of by then */
        send_run(c, reader, &run, &r);
    }
    run_projection_free(&p);
}

/* --- list -------------------------------------------------------------------------------------------- */

struct run_list {
    struct page page;
    struct str plan, project;
    struct list_query query; /* owner_key: the tenant */
};

/* False: answered. */
static bool read_filter(struct call *c, struct run_list *l)
{
    struct str status;
    enum run_status s;
    if (!call_query(c, "status", &status) || !call_query(c, "planId", &l->plan) ||
        !call_query(c, "projectId", &l->project) || !page_limit(&l->page) ||
        !call_cursor(c, INT64_MAX, &l->query.below_id))
        return false;
    l->query.bucket = LIST_RUNS;
    if (!status.ptr)
        return true;
    if (!run_status_of(status, &s)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "status is none of a run");
        return false;
    }
    l->query.bucket = (uint8_t)(LIST_RUNS_IN + s);
    return true;
}

static bool matches(const struct run_list *l, const struct run_row *run)
{
    return (!l->plan.ptr || str_equal(l->plan, run->plan)) &&
           (!l->project.ptr || str_equal(l->project, run->project)) &&
           claims_admit(l->page.c->claims, STR_ABSENT, run->project) == TOKEN_OK;
}

static enum err_code show_run(struct page *p, int64_t id)
{
    struct run_row row = {.num = id}, *run = &row;
    struct json_writer *w = &p->w;
    bool found;
    if (page_row(p, &table_run_row, run, &found) != ERR_OK || !found ||
        !matches(CONTAINER_OF(p, struct run_list, page), run))
        return p->err.code;
    jw_object(w);
    RUN_IDENTITY_FIELDS(ENCODE_FIELD)
    RUN_ITEM_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    p->given++;
    return ERR_OK;
}

void handle_list_runs(struct call *c)
{
    struct run_list l = {.page.c = c};
    struct page *p = &l.page;
    bool found;
    if (!read_filter(c, &l) || !page_read(p) || !call_tenant(c, p->r, &l.query.owner_key, &found) ||
        !page_open(p))
        return;
    if (found)
        page_walk(p, &l.query, NULL, show_run);
    page_close(p, "nextCursor", page_number(p, l.query.below_id));
}
