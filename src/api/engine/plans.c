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

static void encode_version(struct json_writer *w, const struct plan_version_row *plan)
{
    PLAN_VERSION_FIELDS(ENCODE_FIELD)
}

static void plan_put(struct call *c)
{
    const struct plan_command *command = (const struct plan_command *)c->command;
    struct json_writer w;
    call_object(c, command->created ? 201 : 200, &w);
    encode_version(&w, &(struct plan_version_row){.plan = command->plan->id,
                                                  .version = command->plan->version,
                                                  .step_count = command->plan->step_count,
                                                  .created_ms = command->created_ms});
    call_send_object(c, &w);
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

static void put_dependencies(struct json_writer *w, const struct names *steps, struct str numbers)
{
    uint64_t number;
    jw_array(w);
    while (numbers.len && varint_take(&numbers, &number))
        if (number < steps->count)
            jw_str(w, steps->rows[number].step);
    jw_array_end(w);
}

static void encode_plan_step(struct json_writer *w, const struct names *steps, const struct plan_step_row *s)
{
    jw_object(w);
    PLAN_STEP_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

static void send_plan(struct call *c, const struct plan_row *plan, const struct names *n)
{
    struct json_writer answer, *w = &answer;
    call_object(c, 200, w);
    PLAN_HEAD_FIELDS(ENCODE_FIELD)
    jw_key(w, "steps");
    jw_array(w);
    for (size_t i = 0; i < n->count; i++)
        encode_plan_step(w, n, &n->rows[i]);
    jw_array_end(w);
    encode_time_ms(w, "createdAt", plan->created_ms);
    call_send_object(c, w);
}

void handle_get_plan(struct call *c)
{
    struct plan_row plan = {.plan = route_param(&c->match, "plan_id"),
                            .version = route_param(&c->match, "plan_version")};
    bool found;
    struct err err;
    struct reader *r = call_reader(c);
    if (!r || !call_tenant(c, r, &plan.tenant, &found) ||
        (found && !call_row(c, r, &table_plan_row, &plan, &found)))
        return;
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

enum { ROWS_A_READ = 256 };

struct plan_list {
    struct page page;
    struct str plan;              /* only this one's; absent: all */
    struct plan_version_row from; /* -back is the plan's number: the newest stands first */
};

static enum err_code show_version(struct page *p, const void *row)
{
    const struct plan_version_row *v = row;
    struct plan_list *l = CONTAINER_OF(p, struct plan_list, page);
    l->from.back = v->back + 1;
    if (l->plan.ptr && !str_equal(l->plan, v->plan))
        return ERR_OK;
    jw_object(&p->w);
    encode_version(&p->w, v);
    jw_object_end(&p->w);
    p->given++;
    return ERR_OK;
}

void handle_list_plans(struct call *c)
{
    struct plan_list l = {.page.c = c};
    struct page *p = &l.page;
    int64_t below;
    bool found;
    if (!call_query(c, "planId", &l.plan) || !page_limit(p) || !call_cursor(c, INT64_MAX, &below) ||
        !page_read(p) || !call_tenant(c, p->r, &l.from.tenant, &found) || !page_open(p))
        return;
    l.from.back = 1 - below;
    if (found)
        page_walk_rows(p, &table_plan_version_row, &l.from, ROWS_A_READ, show_version);
    page_close(p, "nextCursor", page_number(p, 1 - l.from.back));
}
