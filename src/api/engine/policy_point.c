#include "api/engine/engine_contract.h"
#include "api/engine/policy_point.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "api/engine/policy_queue.h"
#include "base/json_members.h"
#include "base/must.h"
#include "engine/run_index.h"
#include "runtime/failure_modes.h"

#include "base/banned.h"

struct policy_point {
    const struct settings *settings;
    struct policy_queue *queue;
    _Atomic uint64_t asked, unanswered;
};

struct asking {
    struct policy_question question;
    struct signal_command *command;
    void (*then)(struct call *c, struct signal_command *command);
};

static void wake(void *self)
{
    struct api *a = self;
    if (a->server)
        http_wake(a->server);
}

struct policy_point *policy_point_new(struct api *a)
{
    const struct settings *s = a->config.settings;
    if (!s->engine_policy_url)
        return NULL;
    struct policy_point *p = must_alloc(sizeof *p);
    p->settings = s;
    p->queue = policy_queue_new(&(struct policy_queue_config){
        .clock = a->config.clock, .timeout_ms = s->engine_policy_timeout_ms, .wake = wake, .self = a});
    return p;
}

struct policy_point *policy_point_free(struct policy_point *p)
{
    if (!p)
        return NULL;
    policy_queue_free(p->queue);
    free(p);
    return NULL;
}

void policy_point_stop(struct policy_point *p)
{
    if (p)
        policy_queue_stop(p->queue);
}

void policy_point_depth(struct policy_point *p, int64_t *ret_depth, int64_t *ret_capacity)
{
    *ret_depth = p ? (int64_t)policy_queue_depth(p->queue) : 0;
    *ret_capacity = p ? POLICY_QUESTIONS_MAX : 0;
}

void policy_point_counts(struct policy_point *p, uint64_t *ret_asked, uint64_t *ret_unanswered)
{
    *ret_asked = p ? atomic_load(&p->asked) : 0;
    *ret_unanswered = p ? atomic_load(&p->unanswered) : 0;
}

/* --- what came of it --------------------------------------------------------------------------------- */

static void fall_back(struct policy_point *p, struct policy_given *ret)
{
    const struct settings *s = p->settings;
    const char *fallback = s->engine_policy_fallback;
    atomic_fetch_add(&p->unanswered, 1);
    failure_policy_timeout("engine", s->engine_policy_url, s->engine_policy_timeout_ms, fallback);
    if (strcmp(fallback, "builtin") == 0)
        *ret = (struct policy_given){.source = POLICY_TABLE, .flagged = true};
    else if (strcmp(fallback, "allow_with_flag") == 0)
        *ret =
            (struct policy_given){.source = POLICY_GIVEN,
                                  .allowed = true,
                                  .flagged = true,
                                  .reason = STR("policy decision point did not answer: allowed for review")};
    else
        *ret = (struct policy_given){
            .source = POLICY_GIVEN, .flagged = true, .reason = STR("policy decision point did not answer")};
}

static void go_on(struct call *c, struct asking *a)
{
    const struct policy_question *q = &a->question;
    if (q->outcome == POLICY_STOPPED) {
        call_fail(c, ERR_STORAGE_UNAVAILABLE, "the server is stopping; nothing was done");
        return;
    }
    if (q->outcome == POLICY_ANSWERED)
        a->command->given = (struct policy_given){.source = POLICY_GIVEN,
                                                  .allowed = q->allowed,
                                                  .requires_approval = q->requires_approval,
                                                  .reason = q->reason};
    else
        fall_back(engine_api(c->api)->policy_point, &a->command->given);
    a->then(c, a->command);
}

static void resumed(struct http_exchange *x)
{
    struct call *c = x->data;
    go_on(c, c->data);
}

/* --- asking ------------------------------------------------------------------------------------------ */

static void write_actor(struct json_writer *w, const struct policy_actor *actor)
{
    jw_key(w, "actor");
    jw_object(w);
    encode_str(w, "userId", actor->user_id);
    jw_key(w, "roles");
    jw_array(w);
    for (size_t i = 0; i < actor->role_count; i++)
        jw_str(w, actor->roles[i]);
    jw_array_end(w);
    encode_str(w, "tenantId", actor->tenant);
    jw_object_end(w);
}

static struct str input_of(struct arena *arena, const struct policy_request *r)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    jw_key(&w, "input");
    jw_object(&w);
    write_actor(&w, &r->actor);
    jw_key(&w, "signal");
    jw_object(&w);
    encode_text(&w, "type", signal_type_text(r->signal));
    jw_key(&w, "payload");
    jw_raw(&w, r->payload);
    jw_object_end(&w);
    encode_str(&w, "tenantId", r->tenant);
    encode_str(&w, "runId", r->run_id);
    jw_key(&w, "audit");
    jw_object(&w);
    encode_str(&w, "reason", policy_reason(r->audit_reason));
    jw_object_end(&w);
    jw_object_end(&w);
    jw_object_end(&w);
    return arena_str(arena, strbuf_str(&text));
}

/* Is the step at the place of an index entry the one of this name? */
static enum err_code is_step(struct reader *r, struct arena *arena, const struct run_row *run, int64_t place,
                             struct str name, bool *ret_is, struct err *err)
{
    struct plan_step_row planned = {.plan = run->plan_num, .idx = place};
    struct run_step_row heard = {.run = run->num, .idx = place};
    bool found = false;
    enum err_code code = run->plan_num
                             ? r->ops->reader_row(r, &table_plan_step_row, &planned, arena, &found, err)
                             : r->ops->reader_row(r, &table_run_step_row, &heard, arena, &found, err);
    *ret_is = code == ERR_OK && found && str_equal(run->plan_num ? planned.step : heard.step, name);
    return code;
}

/* Has the run the step that the payload names? A payload that is wrong is refused before anybody is asked. */
static enum err_code look_for_step(struct reader *r, struct arena *arena, const struct run_row *run,
                                   struct signal_command *command, struct err *err)
{
    const struct json *named = json_get(command->payload, "stepId");
    bool found = named != NULL, is_it = !named;
    uint64_t hash = named ? (uint64_t)run_index_hash(RUN_INDEX_STEP, named->text) : 0;
    for (; found && !is_it; hash++) { /* as run_index_find does */
        struct run_index_row m = {.run = run->plan_num ? run->plan_num : run->num, .hash = (int64_t)hash};
        if (r->ops->reader_row(r, &table_run_index_row, &m, arena, &found, err) != ERR_OK ||
            (found && is_step(r, arena, run, m.place, named->text, &is_it, err) != ERR_OK))
            return err->code;
    }
    command->step_unseen = !is_it;
    return ERR_OK;
}

/* The run, its step if one is named, and whether the signal was decided before. What is not there yet is not
 * there for the decider either: nobody is asked about it. */
static enum err_code look(struct call *c, struct signal_command *command, struct run_row *ret_run,
                          bool *ret_decided, struct err *err)
{
    struct run_id_row id = {.id = command->run_id};
    bool found = false;
    struct reader *r = api_read_begin(c->api, err);
    if (!r || r->ops->reader_row(r, &table_run_id_row, &id, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    *ret_run = (struct run_row){.num = id.run};
    if (found && r->ops->reader_row(r, &table_run_row, ret_run, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    command->run_unseen = !found;
    *ret_decided = false;
    struct signal_key_row key = {
        .run = id.run, .signal = {(const char *)command->signal_id.bytes, sizeof command->signal_id.bytes}};
    if (!found)
        return ERR_OK;
    if (r->ops->reader_row(r, &table_signal_key_row, &key, c->x->arena, ret_decided, err) != ERR_OK)
        return err->code;
    return look_for_step(r, c->x->arena, ret_run, command, err);
}

static void ask(struct call *c, struct asking *a, const struct policy_request *request)
{
    struct policy_point *p = engine_api(c->api)->policy_point;
    a->question.x = c->x;
    a->question.body = input_of(c->x->arena, request);
    c->data = a;
    c->x->on_resume = resumed;
    c->x->timeout_at_ms = 0; /* the queue watches the time */
    atomic_fetch_add(&p->asked, 1);
    if (!p->settings->gateway_processes || !policy_queue_ask(p->queue, &a->question))
        go_on(c, a);
}

void policy_point_ask(struct call *c, struct signal_command *command,
                      void (*then)(struct call *c, struct signal_command *command))
{
    struct run_row run;
    bool decided;
    struct err err;
    if (!engine_api(c->api)->policy_point || !c->claims) { /* without a token it is the System */
        then(c, command);
        return;
    }
    if (look(c, command, &run, &decided, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    struct policy_request request = {.actor = command->actor,
                                     .signal = command->type,
                                     .payload = command->payload->source,
                                     .tenant = run.tenant_name,
                                     .run_id = command->run_id,
                                     .audit_reason = command->audit_reason};
    if (command->run_unseen || command->step_unseen || decided ||
        !policy_is_for_point(c->api->config.settings, &request)) {
        then(c, command);
        return;
    }
    struct asking *a = ARENA_NEW(c->x->arena, struct asking);
    a->command = command;
    a->then = then;
    ask(c, a, &request);
}

/* --- the gateway's side ------------------------------------------------------------------------------ */

static void answer_json(struct http_exchange *x, int status)
{
    x->status = status;
    x->content_type = "application/json";
    http_answer(x);
}

static bool read_int(const struct json *object, const char *key, int64_t min, int64_t max, int64_t *ret)
{
    const struct json *j = json_get(object, key);
    return j && json_to_int(j, ret) && *ret >= min && *ret <= max;
}

static bool read_taker(const struct json *root, struct policy_taker *ret)
{
    return read_int(root, "instance", 0, INT64_MAX, &ret->gateway.instance) &&
           read_int(root, "birth", 0, INT64_MAX, &ret->gateway.birth) &&
           read_int(root, "max", 1, POLICY_QUESTIONS_MAX, &ret->max) &&
           read_int(root, "wait_ms", 0, POLICY_WAIT_MS_MAX, &ret->wait_ms);
}

static size_t write_questions(struct policy_point *p, struct policy_taker *t)
{
    struct json_writer w;
    strbuf_clear(&t->x->reply_body);
    jw_start(&w, &t->x->reply_body);
    jw_object(&w);
    jw_key(&w, "questions");
    jw_array(&w);
    size_t count = policy_queue_take(p->queue, t, &w);
    jw_array_end(&w);
    jw_object_end(&w);
    return count;
}

static void taker_resumed(struct http_exchange *x)
{
    struct policy_point *p = engine_api(x->context)->policy_point;
    struct policy_taker *t = x->data;
    x->data = NULL; /* no call, for api_on_done() */
    if (atomic_load(&x->gone))
        policy_queue_pass_on(p->queue);
    else
        write_questions(p, t);
    answer_json(x, 200);
}

static void take(struct policy_point *p, struct http_exchange *x, const struct json *root)
{
    struct policy_taker *t = ARENA_NEW(x->arena, struct policy_taker);
    t->x = x;
    if (!read_taker(root, t)) {
        answer_json(x, 400);
        return;
    }
    x->on_resume = taker_resumed;
    x->timeout_at_ms = 0;
    if (!write_questions(p, t) && t->wait_ms) {
        x->data = t;
        if (policy_queue_park(p->queue, t))
            return;
        x->data = NULL;
        write_questions(p, t);
    }
    answer_json(x, 200);
}

static void answer(struct policy_point *p, const struct json *said)
{
    const struct json *reason = json_get(said, "reason"), *answered = json_get(said, "answered");
    const struct json *allowed = json_get(said, "allowed"), *approval = json_get(said, "requires_approval");
    struct policy_given given = {.source = POLICY_GIVEN,
                                 .allowed = allowed && allowed->type == JSON_TRUE,
                                 .requires_approval = approval && approval->type == JSON_TRUE,
                                 .reason = reason && reason->type == JSON_STRING ? reason->text : STR_ABSENT};
    int64_t id;
    if (read_int(said, "id", 1, INT64_MAX, &id))
        policy_queue_answer(p->queue, id,
                            answered && answered->type == JSON_TRUE ? POLICY_ANSWERED : POLICY_UNANSWERED,
                            &given);
}

bool policy_point_serve(struct policy_point *p, struct http_exchange *x)
{
    const struct json *root;
    struct err err;
    if (!p || !x->over_unix_socket || x->method != HTTP_POST)
        return false;
    bool takes = str_is(x->path, POLICY_TAKE_PATH);
    if (!takes && !str_is(x->path, POLICY_ANSWER_PATH))
        return false;
    if (json_parse(x->arena, x->body, &root, &err) != ERR_OK) {
        answer_json(x, 400);
        return true;
    }
    if (takes) {
        take(p, x, root);
        return true;
    }
    const struct json *list = json_get(root, "answers");
    for (const struct json *j = list && list->type == JSON_ARRAY ? list->child : NULL; j; j = j->next)
        answer(p, j);
    strbuf_add_text(&x->reply_body, "{}");
    answer_json(x, 200);
    return true;
}
