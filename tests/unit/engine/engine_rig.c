#include "unit/engine/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/time_text.h"
#include "lifecycle/run_lifecycle.h"

#include "base/banned.h"

static struct str or_usual(const char *text, const char *usual)
{
    return str_of(text ? text : usual);
}

static struct uuid or_new(struct rig *r, const struct uuid *id)
{
    static const struct uuid none;
    return memcmp(id, &none, sizeof none) == 0 ? rig_uuid(r) : *id;
}

static void step_done(struct rig *r, const struct command *c)
{
    rig_step(r);
    assert_true(rig_is_done(c));
}

/* --- plans and runs ---------------------------------------------------------------------------------- */

struct plan_command *put_plan_of(struct rig *r, const char *tenant, const char *json)
{
    struct plan_command *c = ARENA_NEW(r->arena, struct plan_command);
    struct plan *p = ARENA_NEW(r->arena, struct plan);
    const struct json *j;
    struct err err;
    assert_int_equal(json_parse(r->arena, arena_str(r->arena, str_of(json)), &j, &err), ERR_OK);
    assert_int_equal(plan_decode(j, r->arena, p, &err), ERR_OK);
    c->tenant = str_of(tenant);
    c->plan = p;
    digest_sha256(json, strlen(json), c->fingerprint);
    rig_post(r, &c->base, &plan_command_type);
    step_done(r, &c->base);
    return c;
}

void put_plan(struct rig *r, const char *json)
{
    struct plan_command *c = put_plan_of(r, TENANT, json);
    assert_int_equal(c->base.result, ERR_OK);
    assert_true(c->created);
}

struct run_command *start_run_of(struct rig *r, const char *tenant, const char *run_id, const char *plan,
                                 const char *params)
{
    struct run_command *c = ARENA_NEW(r->arena, struct run_command);
    *c = (struct run_command){.tenant = str_of(tenant),
                              .run_id = arena_str(r->arena, str_of(run_id)),
                              .plan = str_of(plan),
                              .version = STR("1"),
                              .project = STR("proj"),
                              .environment = STR("prod"),
                              .params = params ? str_of(params) : STR_ABSENT};
    digest_sha256_pair(c->plan, c->params, c->fingerprint);
    rig_post(r, &c->base, &run_command_type);
    step_done(r, &c->base);
    return c;
}

void start_run(struct rig *r, const char *run_id, const char *plan)
{
    struct run_command *c = start_run_of(r, TENANT, run_id, plan, NULL);
    assert_int_equal(c->base.result, ERR_OK);
    assert_true(c->created);
}

/* --- events of engines outside ----------------------------------------------------------------------- */

struct append_item outside_item(struct rig *r, const char *run_id, const struct outside *e)
{
    struct str type = str_of(e->type);
    struct append_item item = {.write = {.type = run_event_of(type),
                                         .name = type,
                                         .step = e->step ? str_of(e->step) : STR_ABSENT,
                                         .step_idx = -1,
                                         .attempt = e->attempt ? e->attempt : 1,
                                         .engine_attempt = 1,
                                         .event_id = or_new(r, &e->event_id),
                                         .emitted = or_usual(e->emitted, "2026-11-16T00:00:00.000Z"),
                                         .plan = or_usual(e->plan, "p"),
                                         .version = or_usual(e->version, "1"),
                                         .payload = e->payload ? str_of(e->payload) : STR_ABSENT},
                               .tenant = or_usual(e->tenant, TENANT),
                               .project = or_usual(e->project, "proj"),
                               .environment = or_usual(e->environment, "prod"),
                               .err = {.code = ERR_OK}};
    struct event_key_parts parts = {.run_id = str_of(run_id),
                                    .step_id = item.write.step,
                                    .logical_attempt = item.write.attempt,
                                    .event_type = type,
                                    .plan_id = item.write.plan,
                                    .plan_version = item.write.version};
    event_key_digest(&parts, item.write.key);
    (void)r;
    return item;
}

struct append_command *post_append(struct rig *r, const char *tenant, const char *run_id,
                                   const struct append_item *items, size_t count)
{
    struct append_command *c = ARENA_NEW(r->arena, struct append_command);
    c->tenant = str_of(tenant);
    c->run_id = arena_str(r->arena, str_of(run_id));
    c->items = ARENA_ARRAY(r->arena, struct append_item, count);
    memcpy(c->items, items, count * sizeof *items);
    c->item_count = count;
    rig_post(r, &c->base, &append_command_type);
    return c;
}

struct append_item append_one(struct rig *r, const char *run_id, const struct outside *e)
{
    struct append_item item = outside_item(r, run_id, e);
    struct append_command *c = post_append(r, TENANT, run_id, &item, 1);
    step_done(r, &c->base);
    if (c->base.result != ERR_OK)
        c->items[0].err = c->base.err;
    return c->items[0];
}

int64_t append_good(struct rig *r, const char *run_id, const char *type, const char *step, int64_t attempt)
{
    struct append_item item =
        append_one(r, run_id, &(struct outside){.type = type, .step = step, .attempt = attempt});
    assert_int_equal(item.err.code, ERR_OK);
    assert_false(item.place.duplicate);
    return item.place.seq;
}

struct event_id_command *ask_event_id(struct rig *r, const char *tenant, const char *run_id,
                                      const uint8_t key[DIGEST_BYTES])
{
    struct event_id_command *c = ARENA_NEW(r->arena, struct event_id_command);
    c->tenant = str_of(tenant);
    c->run_id = str_of(run_id);
    memcpy(c->key, key, sizeof c->key);
    c->event_id = rig_uuid(r);
    rig_post(r, &c->base, &event_id_command_type);
    step_done(r, &c->base);
    return c;
}

/* --- signals ----------------------------------------------------------------------------------------- */

static void set_roles(struct rig *r, struct policy_actor *actor, const char *roles)
{
    struct str *list = ARENA_ARRAY(r->arena, struct str, 8);
    for (const char *at = roles; at && *at;) {
        const char *end = strchr(at, ',');
        list[actor->role_count++] = (struct str){at, end ? (size_t)(end - at) : strlen(at)};
        at = end ? end + 1 : NULL;
    }
    actor->roles = list;
}

struct signal_command *post_signal(struct rig *r, const struct sent *s)
{
    struct signal_command *c = ARENA_NEW(r->arena, struct signal_command);
    struct str payload = arena_str(r->arena, or_usual(s->payload, "{}"));
    struct err err;
    *c = (struct signal_command){
        .run_id = arena_str(r->arena, str_of(s->run)),
        .actor = {.user_id = or_usual(s->actor, "ada"), .tenant = or_usual(s->tenant, TENANT)},
        .actor_shown = or_usual(s->actor, "ada"),
        .signal_id = or_new(r, &s->signal_id),
        .type = s->type,
        .audit_reason = s->reason ? str_of(s->reason) : STR_ABSENT,
        .given = s->given,
        .room = s->room,
        .decision_id = rig_uuid(r),
        .policy_id = rig_uuid(r),
        .new_run_id = arena_printf(r->arena, "again-%s", s->run)};
    set_roles(r, &c->actor, s->roles ? s->roles : "Admin");
    assert_int_equal(json_parse(r->arena, payload, &c->payload, &err), ERR_OK);
    digest_sha256_pair(str_of(signal_type_text(s->type)), payload, c->fingerprint);
    rig_post(r, &c->base, &signal_command_type);
    return c;
}

struct signal_command *send_signal(struct rig *r, const struct sent *s)
{
    struct signal_command *c = post_signal(r, s);
    step_done(r, &c->base);
    return c;
}

enum err_code signal_run(struct rig *r, const char *run, enum signal_type type, const char *payload)
{
    struct signal_command *c =
        send_signal(r, &(struct sent){.run = run, .type = type, .payload = payload, .reason = "because"});
    return c->base.result != ERR_OK ? c->base.result : c->answer.refusal.code;
}

static struct settle_command *settle_by(struct rig *r, const struct uuid *policy_id,
                                        const struct policy_actor *actor, bool approve)
{
    struct settle_command *c = ARENA_NEW(r->arena, struct settle_command);
    c->policy_id = *policy_id;
    c->actor = *actor;
    c->actor_shown = actor->user_id;
    c->approve = approve;
    c->new_run_id = STR("again-approved");
    rig_post(r, &c->base, &settle_command_type);
    step_done(r, &c->base);
    return c;
}

struct settle_command *settle_decision(struct rig *r, const struct uuid *policy_id, const char *actor,
                                       bool approve)
{
    return settle_by(r, policy_id, &(struct policy_actor){.user_id = str_of(actor), .tenant = STR(TENANT)},
                     approve);
}

struct settle_command *settle_of_project(struct rig *r, const struct uuid *policy_id, const char *project,
                                         bool approve)
{
    const struct str projects[] = {str_of(project)};
    return settle_by(r, policy_id,
                     &(struct policy_actor){.user_id = STR("bob"),
                                            .tenant = STR(TENANT),
                                            .scoped = true,
                                            .projects = projects,
                                            .project_count = 1},
                     approve);
}

/* --- workers ------------------------------------------------------------------------------------------ */

struct claimed_task claim_step(struct rig *r, const char *run, const char *step)
{
    struct claimed_task t = rig_claim(r, "w");
    const struct run_row of = run_of(r, run);
    assert_ptr_equal(t.owner, &step_task_owner);
    assert_int_equal(t.subject, of.num);
    assert_int_equal(t.head, step_of(r, run, step).idx);
    return t;
}

void begin_step(struct rig *r, const char *run, const char *step, struct claimed_task *ret_task)
{
    *ret_task = claim_step(r, run, step);
    assert_int_equal(rig_work(r, &start_command_type, ret_task).code, ERR_OK);
}

enum err_code end_step(struct rig *r, const struct claimed_task *t, const struct task_outcome *o)
{
    struct worker_command *c = rig_post_work(r, &finish_command_type, t, true);
    c->items[0].outcome = *o;
    step_done(r, &c->base);
    return c->items[0].code;
}

enum err_code succeed_step(struct rig *r, const struct claimed_task *t)
{
    return end_step(r, t, &(struct task_outcome){.success = true, .result = STR("{\"n\":1}")});
}

enum err_code fail_step(struct rig *r, const struct claimed_task *t, bool retryable)
{
    return end_step(r, t,
                    &(struct task_outcome){.error_code = STR("broken"),
                                           .error_message = STR("it broke"),
                                           .retryable = retryable});
}

void do_step(struct rig *r, const char *run, const char *step, bool success)
{
    struct claimed_task t;
    begin_step(r, run, step, &t);
    assert_int_equal(success ? succeed_step(r, &t) : fail_step(r, &t, true), ERR_OK);
}

/* --- what a reader sees ------------------------------------------------------------------------------- */

static void begin(struct rig *r)
{
    struct err err;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
}

bool find_run(struct rig *r, const char *run_id, struct run_row *ret_run)
{
    struct run_id_row id = {.id = str_of(run_id)};
    if (!rig_row(r, &table_run_id_row, &id))
        return false;
    *ret_run = (struct run_row){.num = id.run};
    assert_true(rig_row(r, &table_run_row, ret_run));
    return true;
}

struct run_row run_of(struct rig *r, const char *run_id)
{
    struct run_row run;
    assert_true(find_run(r, run_id, &run));
    return run;
}

/* A copy of a row, texts and all. */
static void copy_row(struct rig *r, const struct table *t, const void *row, void *to)
{
    memcpy(to, row, t->row_size);
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT) {
            struct str *text = (struct str *)(void *)((char *)to + t->columns[i].offset);
            *text = arena_str(r->arena, *text);
        }
}

struct looked_for {
    struct rig *rig;
    const char *name;
    struct run_step_row step;
    bool found;
};

static bool look_for_step(const void *row, void *arg)
{
    struct looked_for *l = arg;
    const struct run_step_row *s = row;
    if (!str_is(s->step, l->name))
        return true;
    copy_row(l->rig, &table_run_step_row, s, &l->step);
    l->found = true;
    return false;
}

enum { ROWS_MAX = 100000 };

static void each_of(struct rig *r, const struct table *t, const void *from, store_row_fn *fn, void *arg)
{
    struct err err;
    begin(r);
    enum err_code code = r->reader->ops->reader_range(r->reader, t, from, ROWS_MAX, fn, arg, &err);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(code, ERR_OK);
}

static void each_row(struct rig *r, const struct table *t, store_row_fn *fn, void *arg)
{
    struct err err;
    begin(r);
    enum err_code code = r->reader->ops->reader_scan(r->reader, t, fn, arg, &err);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(code, ERR_OK);
}

struct run_step_row step_of(struct rig *r, const char *run_id, const char *step)
{
    struct looked_for l = {.rig = r, .name = step};
    const struct run_row run = run_of(r, run_id);
    each_of(r, &table_run_step_row, &(struct run_step_row){.run = run.num}, look_for_step, &l);
    assert_true(l.found);
    return l.step;
}

struct event_list {
    struct rig *rig;
    struct run_event_row *events;
    size_t count;
};

static bool take_event(const void *row, void *arg)
{
    struct event_list *l = arg;
    copy_row(l->rig, &table_run_event_row, row, &l->events[l->count++]);
    return true;
}

struct run_event_row *events_of(struct rig *r, const char *run_id, size_t *ret_count)
{
    const struct run_row run = run_of(r, run_id);
    struct event_list l = {r, ARENA_ARRAY(r->arena, struct run_event_row, (size_t)run.last_seq + 1), 0};
    each_of(r, &table_run_event_row, &(struct run_event_row){.run = run.num, .seq = 1}, take_event, &l);
    assert_int_equal(l.count, run.last_seq);
    for (size_t i = 0; i < l.count; i++)
        assert_int_equal(l.events[i].seq, i + 1);
    *ret_count = l.count;
    return l.events;
}

const char *story_of(struct rig *r, const char *run_id)
{
    struct strbuf b = {0};
    size_t count;
    const struct run_event_row *e = events_of(r, run_id, &count);
    for (size_t i = 0; i < count; i++) {
        struct str name = run_event_name(&e[i]);
        strbuf_addf(&b, "%s%.*s", i ? " " : "", STR_ARG(name));
        if (e[i].step.ptr)
            strbuf_addf(&b, ":%.*s", STR_ARG(e[i].step));
        if (e[i].step.ptr || e[i].attempt != 1)
            strbuf_addf(&b, ":%lld", (long long)e[i].attempt);
    }
    const char *text = arena_copy(r->arena, b.ptr ? b.ptr : "", b.len);
    strbuf_free(&b);
    return text;
}

struct alert_count {
    struct rig *rig;
    enum alert_category category;
    struct alert_row *last;
    size_t count;
};

static bool count_alert(const void *row, void *arg)
{
    struct alert_count *c = arg;
    const struct alert_row *a = row;
    if (a->category != (int64_t)c->category)
        return true;
    c->count++;
    if (c->last)
        copy_row(c->rig, &table_alert_row, a, c->last);
    return true;
}

size_t count_alerts(struct rig *r, enum alert_category category, struct alert_row *ret)
{
    struct alert_count c = {r, category, ret, 0};
    each_row(r, &table_alert_row, count_alert, &c);
    return c.count;
}

static bool count_row(const void *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

size_t count_rows(struct rig *r, const struct table *t)
{
    size_t n = 0;
    each_row(r, t, count_row, &n);
    return n;
}

struct decision_row decision_by(struct rig *r, const struct uuid *policy_id)
{
    struct policy_key_row key = {.policy = {(const char *)policy_id->bytes, sizeof policy_id->bytes}};
    struct decision_row d = {0};
    assert_true(rig_row(r, &table_policy_key_row, &key));
    d.id = key.decision;
    assert_true(rig_row(r, &table_decision_row, &d));
    return d;
}

static bool count_if_ready(const void *row, void *arg)
{
    const struct task_row *t = row;
    *(uint32_t *)arg += t->owner == step_task_owner.number && task_row_phase(t) == TASK_READY;
    return true;
}

uint32_t count_ready(struct rig *r)
{
    uint32_t n = 0;
    each_row(r, &table_task_row, count_if_ready, &n);
    return n;
}
