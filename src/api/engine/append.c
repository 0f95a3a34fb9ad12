/* Events of engines outside, and the ids they shall have. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "base/must.h"
#include "base/random.h"
#include "engine/engine_commands.h"
#include "http/hex.h"
#include "runs/run_event.h"

#include "base/banned.h"

/* Lower case alone: two spellings of one key would be two keys where texts are compared. */
static bool key_bytes(struct str hex, uint8_t out[DIGEST_BYTES])
{
    if (hex.len != 2 * DIGEST_BYTES)
        return false;
    for (size_t i = 0; i < hex.len; i++)
        if (hex.ptr[i] >= 'A' && hex.ptr[i] <= 'F')
            return false;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        int high = hex_digit(hex.ptr[2 * i]), low = hex_digit(hex.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The path names the run: an event that says otherwise is not for here. Of its tenant the run has a word. */
static enum err_code check_addressee(struct call *c, const struct run_event *e, struct err *err)
{
    if (!str_equal(e->run_id, route_param(&c->match, "run_id")))
        return err_set(err, ERR_EVENT_INVALID, "runId is not the one of the path");
    if (claims_admit(c->claims, STR_ABSENT, e->project_id) != TOKEN_OK)
        return err_set(err, ERR_AUTHZ_DENIED, "projectId is not in the token's project_scope");
    return ERR_OK;
}

static enum err_code decode_item(struct call *c, const struct json *j, struct append_item *item)
{
    struct run_event e;
    if (run_event_decode(j, &e, &item->err) != ERR_OK || check_addressee(c, &e, &item->err) != ERR_OK)
        return item->err.code;
    item->tenant = e.tenant_id;
    item->project = e.project_id;
    item->environment = e.environment_id;
    item->write = (struct run_write){.type = e.type,
                                     .name = e.event_type,
                                     .step = e.step_id,
                                     .step_idx = -1,
                                     .attempt = e.logical_attempt,
                                     .engine_attempt = e.engine_attempt,
                                     .emitted = e.emitted_at,
                                     .plan = e.plan_id,
                                     .version = e.plan_version,
                                     .payload = e.payload};
    MUST(key_bytes(e.key, item->write.key) && uuid_parse(e.event_id, &item->write.event_id));
    append_hash(&item->write);
    return ERR_OK;
}

static void encode_place(struct json_writer *w, const struct run_place *p)
{
    jw_object(w);
    encode_uuid_bytes(w, "eventId", uuid_str(&p->event_id));
    encode_int(w, "runSeq", p->seq);
    encode_time_ms(w, "persistedAt", p->persisted_ms);
    encode_bool(w, "duplicate", p->duplicate);
    jw_object_end(w);
}

static void appended_one(struct call *c)
{
    const struct append_item *item = ((const struct append_command *)c->command)->items;
    struct json_writer w;
    if (item->err.code != ERR_OK) {
        call_problem(c, &item->err);
        return;
    }
    call_json(c, item->place.duplicate ? 200 : 201, &w);
    encode_place(&w, &item->place);
    call_send(c);
}

static void appended_many(struct call *c)
{
    const struct append_command *command = (const struct append_command *)c->command;
    struct json_writer w;
    call_object(c, 200, &w);
    jw_key(&w, "results");
    jw_array(&w);
    for (size_t i = 0; i < command->item_count; i++) {
        const struct append_item *item = &command->items[i];
        if (item->err.code == ERR_OK)
            encode_place(&w, &item->place);
        else
            call_write_refusal(c, &item->err, &w);
    }
    jw_array_end(&w);
    call_send_object(c, &w);
}

static struct append_command *new_command(struct call *c, size_t count)
{
    struct append_command *command = ARENA_NEW(c->x->arena, struct append_command);
    command->tenant = c->claims->tenant_id;
    command->run_id = route_param(&c->match, "run_id");
    command->items = ARENA_ARRAY(c->x->arena, struct append_item, count);
    memset(command->items, 0, count * sizeof *command->items);
    command->item_count = count;
    command->base.weight = (int64_t)count;
    c->ingests = true;
    return command;
}

static void append_many(struct call *c, const struct json *events)
{
    if (c->body->count != 1 || events->type != JSON_ARRAY || !events->count ||
        events->count > APPEND_EVENTS_MAX) {
        call_fail(c, ERR_EVENT_INVALID, "events has to be a list of 1 to %d events, and stand alone",
                  APPEND_EVENTS_MAX);
        return;
    }
    struct append_command *command = new_command(c, events->count);
    struct append_item *item = command->items;
    for (const struct json *j = events->child; j; j = j->next)
        (void)!decode_item(c, j, item++);
    call_post(c, &command->base, &append_command_type, 0, appended_many);
}

void handle_append_run_events(struct call *c)
{
    const struct json *events = json_get(c->body, "events");
    if (events) {
        append_many(c, events);
        return;
    }
    struct append_command *command = new_command(c, 1);
    if (decode_item(c, c->body, command->items) != ERR_OK)
        call_problem(c, &command->items[0].err);
    else
        call_post(c, &command->base, &append_command_type, 0, appended_one);
}

/* --- event ids --------------------------------------------------------------------------------------- */

static void event_id_known(struct call *c)
{
    const struct event_id_command *command = (const struct event_id_command *)c->command;
    struct json_writer w;
    call_object(c, 200, &w);
    encode_uuid_bytes(&w, "eventId", uuid_str(&command->event_id));
    call_send_object(c, &w);
}

void handle_register_event_id(struct call *c)
{
    struct event_id_command *command = ARENA_NEW(c->x->arena, struct event_id_command);
    command->tenant = c->claims->tenant_id;
    command->run_id = route_param(&c->match, "run_id");
    command->event_id = uuid_v4();
    if (!command->run_id.len || command->run_id.len > RUN_ID_MAX ||
        !key_bytes(json_get(c->body, "idempotencyKey")->text, command->key)) {
        call_fail(c, ERR_EVENT_INVALID, "idempotencyKey has to be 64 digits of lower-case hex");
        return;
    }
    if (call_project_of_run(c))
        call_post(c, &command->base, &event_id_command_type, 0, event_id_known);
}
