/* Plans: put, read, list. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "base/digest.h"
#include "base/must.h"
#include "base/varint.h"
#include "engine/engine_commands.h"

#include "base/banned.h"

static void fingerprint(const struct json *body, uint8_t out[DIGEST_BYTES])
{
    struct strbuf text = {0};
    json_canonical(body, NULL, &text);
    digest_sha256(text.ptr, text.len, out);
    strbuf_free(&text);
}

static void plan_put(struct call *c)
{
    const struct plan_command *command = (const struct plan_command *)c->command;
    struct json_writer w;
    call_json(c, command->created ? 201 : 200, &w);
    jw_object(&w);
    encode_str(&w, "planId", command->plan->id);
    encode_str(&w, "planVersion", command->plan->version);
    encode_int(&w, "steps", command->plan->step_count);
    encode_time_ms(&w, "createdAt", command->created_ms);
    jw_object_end(&w);
    call_send(c);
}

void handle_put_plan(struct call *c)
{
    struct plan_command *command = ARENA_NEW(c->x->arena, struct plan_command);
    struct plan *plan = ARENA_NEW(c->x->arena, struct plan);
    struct err err;
    if (plan_decode(c->body, c->x->arena, plan, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    command->plan = plan;
    command->tenant = c->claims->tenant_id;
    fingerprint(c->body, command->fingerprint);
    call_post(c, &command->base, &plan_command_type, 0, plan_put);
}

/* --- reading ---------------------------------------------------------------------------------------- */

struct names {
    struct arena *arena;
    struct plan_step_row *rows;
    size_t count, capacity;
};

static bool keep_step(const void *row, void *arg)
{
    struct names *n = arg;
    MUST(n->count < n->capacity);
    struct plan_step_row *p = &n->rows[n->count++];
    *p = *(const struct plan_step_row *)row;
    p->step = arena_str(n->arena, p->step);
    p->queue = arena_str(n->arena, p->queue);
    p->needs = arena_str(n->arena, p->needs);
    p->config = p->config.ptr ? arena_str(n->arena, p->config) : p->config;
    return n->count < n->capacity;
}

static void encode_plan_step(struct json_writer *w, const struct names *n, const struct plan_step_row *p)
{
    uint64_t number;
    jw_object(w);
    encode_str(w, "stepId", p->step);
    jw_key(w, "dependsOn");
    jw_array(w);
    for (struct str dependencies = p->needs; dependencies.len && varint_take(&dependencies, &number);)
        if (number < n->count)
            jw_str(w, n->rows[number].step);
    jw_array_end(w);
    encode_str(w, "queue", p->queue);
    if (p->config.ptr) {
        jw_key(w, "config");
        jw_raw(w, p->config);
    }
    encode_int(w, "maxAttempts", p->max_attempts);
    if (p->timeout_ms)
        encode_int(w, "timeoutMs", p->timeout_ms);
    encode_int(w, "delayMs", p->delay_ms);
    jw_object_end(w);
}

static void send_plan(struct call *c, const struct plan_row *plan, const struct names *n)
{
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_str(&w, "planId", plan->plan);
    encode_str(&w, "planVersion", plan->version);
    encode_text(&w, "onFailure", plan_on_failure_text((enum plan_on_failure)plan->on_failure));
    jw_key(&w, "steps");
    jw_array(&w);
    for (size_t i = 0; i < n->count; i++)
        encode_plan_step(&w, n, &n->rows[i]);
    jw_array_end(&w);
    encode_time_ms(&w, "createdAt", plan->created_ms);
    jw_object_end(&w);
    call_send(c);
}

void handle_get_plan(struct call *c)
{
    struct tenant_row tenant = {.name = c->claims->tenant_id};
    struct plan_row plan = {.plan = route_param(&c->match, "plan_id"),
                            .version = route_param(&c->match, "plan_version")};
    bool found = false;
    struct err err = {.code = ERR_OK};
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_tenant_row, &tenant, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    plan.tenant = tenant.num;
    if (found && r->ops->reader_row(r, &table_plan_row, &plan, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    if (!found) {
        call_fail(c, ERR_PLAN_NOT_FOUND, "your tenant has no plan of this name and version");
        return;
    }
    size_t count = (size_t)plan.step_count;
    struct names n = {.arena = c->x->arena,
                      .rows = ARENA_ARRAY(c->x->arena, struct plan_step_row, count),
                      .capacity = count};
    if (r->ops->reader_range(r, &table_plan_step_row, &(struct plan_step_row){.plan = plan.num}, count,
                             keep_step, &n, &err) != ERR_OK)
        call_problem(c, &err);
    else
        send_plan(c, &plan, &n);
}

/* --- list -------------------------------------------------------------------------------------------- */

enum { LOOK_MAX = 2000, ROWS_A_READ = 256 };

struct plan_page {
    struct json_writer w;
    struct str plan; /* only this one's; absent: all */
    int64_t limit, given;
    int64_t last; /* number of the last plan that was looked at */
    size_t looked, read;
};

static bool encode_listed(const void *row, void *arg)
{
    const struct plan_version_row *v = row;
    struct plan_page *p = arg;
    p->last = -v->back;
    p->looked++;
    p->read++;
    if (!p->plan.ptr || str_equal(p->plan, v->plan)) {
        jw_object(&p->w);
        jw_key(&p->w, "planId");
        jw_str(&p->w, v->plan);
        jw_key(&p->w, "planVersion");
        jw_str(&p->w, v->version);
        jw_key(&p->w, "steps");
        jw_int(&p->w, v->step_count);
        encode_time_ms(&p->w, "createdAt", v->created_ms);
        jw_object_end(&p->w);
        p->given++;
    }
    return p->given < p->limit && p->looked < LOOK_MAX;
}

/* Rows are looked at one by one, at most LOOK_MAX: a page may be short and still have a cursor. */
static enum err_code encode_plans(struct reader *r, int64_t tenant, int64_t below, struct plan_page *p,
                                  struct err *err)
{
    do {
        struct plan_version_row from = {.tenant = tenant, .back = 1 - (p->last ? p->last : below)};
        p->read = 0;
        if (r->ops->reader_range(r, &table_plan_version_row, &from, ROWS_A_READ, encode_listed, p, err) !=
            ERR_OK)
            return err->code;
    } while (p->read == ROWS_A_READ && p->given < p->limit && p->looked < LOOK_MAX);
    return ERR_OK;
}

void handle_list_plans(struct call *c)
{
    struct tenant_row tenant = {.name = c->claims->tenant_id};
    struct plan_page p = {.given = 0};
    struct err err = {.code = ERR_OK};
    int64_t below;
    bool found;
    if (!call_query(c, "planId", &p.plan) || !call_page(c, &p.limit, &below))
        return;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_tenant_row, &tenant, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    call_json(c, 200, &p.w);
    jw_object(&p.w);
    jw_key(&p.w, "items");
    jw_array(&p.w);
    if (found && encode_plans(r, tenant.num, below, &p, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&p.w);
    encode_next(c, &p.w, p.given == p.limit || p.looked >= LOOK_MAX, p.last);
    jw_object_end(&p.w);
    call_send(c);
}
