/* The rules of notes. */
#include "sample_contract/notes.h"

#include "base/banned.h"

static int64_t note_of(const void *row)
{
    return ((const struct note_notice *)row)->id;
}

const struct notice_kind note_notices = {"note", HINT_EVENTS, note_of};

void note_tell(struct unit *u, const struct note_row *note)
{
    struct note_notice *n = ARENA_NEW(u->arena, struct note_notice);
    *n = (struct note_notice){note->id, (enum note_state)note->state};
    unit_notify(u, &note_notices, n);
}

static void end(struct unit *u, struct note_row *note)
{
    note_task_end(u, note);
    unit_timer_cancel(u, &note_deadline, note->id);
}

bool note_change(struct unit *u, struct note_row *note, enum note_trigger on)
{
    enum note_state to;
    if (!note_move((enum note_state)note->state, on, &to))
        return false;
    note->state = to;
    if (note_state_is_final(to))
        end(u, note);
    unit_update(u, &table_note_row, note);
    note_tell(u, note);
    return true;
}

static struct note_answer answer_of(const struct note_row *note)
{
    return (struct note_answer){note->id, (uint64_t)note->low, (enum note_state)note->state};
}

/* --- create ---------------------------------------------------------------------------------------- */

static enum err_code decide_create(struct unit *u, struct command *base, struct err *err)
{
    struct create_note_command *c = (struct create_note_command *)base;
    if (c->due_ms <= u->now_ms)
        return err_set(err, ERR_REQUEST_MALFORMED, "due_at must be in the future");
    struct note_row *note = ARENA_NEW(u->arena, struct note_row);
    *note = (struct note_row){.id = unit_id(u),
                              .client = c->client,
                              .low = unit_uuid_tail(u),
                              .text = arena_str(u->arena, c->text),
                              .due_ms = c->due_ms,
                              .state = NOTE_NEW,
                              .shown_by = STR("")};
    note->task = note_task_add(u, note);
    unit_timer_set(u, &note_deadline, note->id, note->due_ms);
    unit_insert(u, &table_note_row, note);
    note_tell(u, note);
    c->answer = answer_of(note);
    return ERR_OK;
}

const struct command_type create_note_command_type = {
    .name = "create_note", .decide = decide_create, COMMAND_ANSWER(struct create_note_command, answer)};

/* --- close ----------------------------------------------------------------------------------------- */

static void load_close(struct unit *u, struct command *base)
{
    const struct close_note_command *c = (const struct close_note_command *)base;
    note_task_prefetch(u, unit_prefetch(u, &table_note_row, &(struct note_row){.id = c->id}));
}

static enum err_code decide_close(struct unit *u, struct command *base, struct err *err)
{
    struct close_note_command *c = (struct close_note_command *)base;
    struct note_row *note = unit_row(u, &table_note_row, &(struct note_row){.id = c->id});
    if (!note || note->client != c->client || note->low != (int64_t)c->low)
        return err_set(err, ERR_REQUEST_ROUTE_NOT_FOUND, "no note has this id");
    if (!note_change(u, note, NOTE_ON_CLOSE))
        return err_set(err, ERR_INVALID_TRANSITION, "the note is %s already",
                       note_state_text((enum note_state)note->state));
    c->answer = answer_of(note);
    return ERR_OK;
}

const struct command_type close_note_command_type = {.name = "close_note",
                                                     .load = load_close,
                                                     .decide = decide_close,
                                                     COMMAND_ANSWER(struct close_note_command, answer)};
