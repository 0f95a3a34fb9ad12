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

enum { LOOK_MAX = 2000, IDS_A_READ = 256, EVENTS_AT_ONCE = 1000 };

/* --- start ------------------------------------------------------------------------------------------- */

static void run_started(struct call *c)
{
    const struct run_command *command = (const struct run_command *)c->command;
    struct json_writer w;
    call_json(c, command->created ? 201 : 200, &w);
    jw_object(&w);
    encode_str(&w, "runId", command->run_id);
    encode_text(&w, "status", run_status_text(command->status));
    jw_object_end(&w);
    call_send(c);
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

static struct str text_of(const struct call *c, const char *name)
{
    const struct json *m = json_get(c->body, name);
    return m && m->type == JSON_STRING ? m->text : STR_ABSENT;
}

void handle_start_run(struct call *c)
{
    struct run_command *command = ARENA_NEW(c->x->arena, struct run_command);
    const struct json *params = json_get(c->body, "params");
    struct strbuf canonical = {0};
    command->tenant = c->claims->tenant_id;
    command->plan = text_of(c, "planId");
    command->version = text_of(c, "planVersion");
    command->project = text_of(c, "projectId");
    command->environment = text_of(c, "environmentId");
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

static void encode_metadata(struct json_writer *w, const struct run_row *run, bool inconsistent)
{
    jw_key(w, "metadata");
    jw_object(w);
    encode_bool(w, "inconsistent", inconsistent);
    encode_str(w, "originalRunId", run->original);
    jw_object_end(w);
}

static void encode_now(struct json_writer *w, const struct run_row *run)
{
    encode_raw(w, "params", run->params);
    encode_bool(w, "ending", run->ending && !run_status_is_final((enum run_status)run->state));
    encode_time_ms(w, "queuedAt", run->queued_ms);
    encode_time_ms(w, "startedAt", run->started_ms);
    encode_time_ms(w, "endedAt", run->ended_ms);
}

static void send_run(struct call *c, struct reader *reader, const struct run_row *run, struct reading *r)
{
    struct err err;
    const struct run_projection *p = r->as_of;
    call_json(c, 200, &r->w);
    jw_object(&r->w);
    encode_run_summary(&r->w, run);
    jw_key(&r->w, "status");
    jw_text(&r->w, run_status_text(p ? p->status : (enum run_status)run->state));
    encode_metadata(&r->w, run, p ? p->invalid != 0 : run->inconsistent != 0);
    jw_key(&r->w, "lastRunSeq");
    jw_int(&r->w, p ? p->last_seq : run->last_seq);
    if (!p)
        encode_now(&r->w, run);
    jw_key(&r->w, "steps");
    jw_array(&r->w);
    if (reader->ops->reader_range(reader, &table_run_step_row, &(struct run_step_row){.run = run->num},
                                  (size_t)run->step_count, encode_stored_step, r, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&r->w);
    jw_object_end(&r->w);
    call_send(c);
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

struct filter {
    struct str plan, project;
    uint8_t bucket;
    int64_t tenant, limit, below;
};

static bool read_filter(struct call *c, struct filter *f)
{
    struct str status;
    enum run_status s;
    if (!call_query(c, "status", &status) || !call_query(c, "planId", &f->plan) ||
        !call_query(c, "projectId", &f->project) || !call_page(c, &f->limit, &f->below))
        return false;
    f->bucket = LIST_RUNS;
    if (!status.ptr)
        return true;
    if (!run_status_of(status, &s)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "status is none of a run");
        return false;
    }
    f->bucket = (uint8_t)(LIST_RUNS_IN + s);
    return true;
}

static bool matches(const struct call *c, const struct filter *f, const struct run_row *run)
{
    return (!f->plan.ptr || str_equal(f->plan, run->plan)) &&
           (!f->project.ptr || str_equal(f->project, run->project)) &&
           claims_admit(c->claims, STR_ABSENT, run->project) == TOKEN_OK;
}

static void encode_item(struct json_writer *w, const struct run_row *run)
{
    jw_object(w);
    encode_run_summary(w, run);
    encode_text(w, "status", run_status_text((enum run_status)run->state));
    encode_bool(w, "inconsistent", run->inconsistent != 0);
    encode_int(w, "lastRunSeq", run->last_seq);
    encode_time_ms(w, "startedAt", run->started_ms);
    encode_time_ms(w, "endedAt", run->ended_ms);
    jw_object_end(w);
}

/* Rows are looked at one by one, at most LOOK_MAX: a page may be short and still have a cursor. */
static enum err_code encode_page(struct call *c, struct reader *r, const struct filter *f,
                                 struct json_writer *w, int64_t *ret_last, struct err *err)
{
    int64_t ids[IDS_A_READ], below = f->below, given = 0;
    size_t count = IDS_A_READ, looked = 0;
    *ret_last = 0;
    while (count == IDS_A_READ) {
        struct list_query q = {
            .owner_key = f->tenant, .bucket = f->bucket, .below_id = below, .limit = IDS_A_READ};
        if (r->ops->reader_list(r, &q, ids, &count, err) != ERR_OK)
            return err->code;
        for (size_t i = 0; i < count; i++) {
            struct run_row run = {.num = ids[i]};
            bool found;
            if (given == f->limit || looked++ == LOOK_MAX) {
                *ret_last = below;
                return ERR_OK;
            }
            if (r->ops->reader_row(r, &table_run_row, &run, c->x->arena, &found, err) != ERR_OK)
                return err->code;
            below = ids[i];
            if (found && matches(c, f, &run)) {
                encode_item(w, &run);
                given++;
            }
        }
    }
    return ERR_OK;
}

void handle_list_runs(struct call *c)
{
    struct filter f = {.tenant = 0};
    struct tenant_row tenant = {.name = c->claims->tenant_id};
    struct json_writer w;
    struct err err;
    bool found;
    int64_t last = 0;
    if (!read_filter(c, &f))
        return;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_tenant_row, &tenant, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    f.tenant = tenant.num;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    if (found && encode_page(c, r, &f, &w, &last, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&w);
    encode_next(c, &w, last != 0, last);
    jw_object_end(&w);
    call_send(c);
}
