/* An open note has a deadline, a closed one has no task; and the tasks are those that the notes name. */
#include "sample_contract/note_rules.h"

#include "base/hash.h"
#include "sample_contract/notes.h"

#include "base/banned.h"

/* Sums of a hash of each: equal when the same tasks were met. */
struct note_check {
    uint64_t named, met;
};

static uint64_t hash_of(int64_t task, int64_t note)
{
    return hash_mix(hash_mix((uint64_t)task) + (uint64_t)note);
}

static bool check_task(struct verify *v, const struct task_row *t)
{
    struct note_check *c = verify_self(v, &verify_notes);
    if (t->owner != NOTE_TASK_OWNER)
        return false;
    c->met += hash_of(t->id, t->subject);
    return true;
}

static bool check_note(const void *row, void *arg)
{
    const struct note_row *note = row;
    struct verify *v = arg;
    struct note_check *c = verify_self(v, &verify_notes);
    bool is_open = !note_state_is_final((enum note_state)note->state);
    verify_seen(v);
    if (is_open != (note->timer != 0) || (note->state == NOTE_NEW) != (note->task != 0))
        verify_say(v, "note %lld: is %s, which its tasks are not", (long long)note->id,
                   is_open ? "open" : "closed");
    if (note->task)
        c->named += hash_of(note->task, note->id);
    if (note->timer)
        c->named += hash_of(note->timer, note->id);
    return true;
}

static enum err_code check_rows(struct verify *v, struct err *err)
{
    const struct note_check *c = verify_self(v, &verify_notes);
    if (verify_scan(v, &table_note_row, check_note, v, err) != ERR_OK)
        return err->code;
    if (c->named != c->met)
        verify_say(v, "the tasks of notes are not those that the notes name");
    return ERR_OK;
}

const struct verify_rules verify_notes = {
    .name = "notes", .bytes = sizeof(struct note_check), .task = check_task, .rows = check_rows};
