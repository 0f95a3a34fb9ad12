/* The routes of notes: decode, command or read, encode. */
#include "base/json_members.h"
#include "base/time_text.h"
#include "sample_contract/notes.h"
#include "sample_handlers.h"

#include "base/banned.h"

static void send_answer(struct call *c, int status, const struct note_answer *a)
{
    struct json_writer w;
    call_json(c, status, &w);
    jw_object(&w);
    encode_uuid_v7(&w, "note_id", a->id, a->low);
    encode_text(&w, "state", note_state_text(a->state));
    jw_object_end(&w);
    call_send(c);
}

static void send_note(struct call *c, const struct note_row *note)
{
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_uuid_v7(&w, "note_id", note->id, (uint64_t)note->low);
    encode_text(&w, "state", note_state_text((enum note_state)note->state));
    encode_str(&w, "text", note->text);
    encode_time_ms(&w, "due_at", note->due_ms);
    encode_str(&w, "shown_by", note->shown_by.len ? note->shown_by : STR_ABSENT);
    jw_object_end(&w);
    call_send(c);
}

/* The id of the path. False: answered. */
static bool note_id(struct call *c, int64_t *ret_id, uint64_t *ret_low)
{
    struct uuid id;
    if (call_uuid_param(c, "note_id", &id) && uuid_split_v7(&id, ret_id, ret_low))
        return true;
    call_fail(c, ERR_REQUEST_ROUTE_NOT_FOUND, "no note has this id");
    return false;
}

static void created(struct call *c)
{
    send_answer(c, 201, &((const struct create_note_command *)c->command)->answer);
}

void handle_create_note(struct call *c)
{
    struct create_note_command *command = ARENA_NEW(c->x->arena, struct create_note_command);
    const struct json *text = json_get(c->body, "text");
    int64_t due_us;
    if (!time_parse_us(json_get(c->body, "due_at")->text, &due_us)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "due_at is no time");
        return;
    }
    command->client = c->who.client;
    command->due_ms = due_us / 1000;
    command->text = text ? text->text : STR_ABSENT;
    call_post(c, &command->base, &create_note_command_type, 0, created);
}

void handle_get_note(struct call *c)
{
    struct note_row note = {.id = 0};
    uint64_t low;
    struct err err;
    bool found;
    if (!note_id(c, &note.id, &low))
        return;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_note_row, &note, c->x->arena, &found, &err) != ERR_OK)
        call_problem(c, &err);
    else if (!found || note.client != c->who.client || note.low != (int64_t)low)
        call_fail(c, ERR_REQUEST_ROUTE_NOT_FOUND, "no note has this id");
    else
        send_note(c, &note);
}

static void closed(struct call *c)
{
    send_answer(c, 200, &((const struct close_note_command *)c->command)->answer);
}

void handle_close_note(struct call *c)
{
    struct close_note_command *command = ARENA_NEW(c->x->arena, struct close_note_command);
    command->client = c->who.client;
    command->base.for_first_lane = true; /* which changes its tasks, too: lanes would wait for each other */
    if (note_id(c, &command->id, &command->low))
        call_post(c, &command->base, &close_note_command_type, 0, closed);
}
