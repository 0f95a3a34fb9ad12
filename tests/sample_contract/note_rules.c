/* A new note has a task, an open one a deadline; and the tasks and timers are those of notes. */
#include "sample_contract/note_rules.h"

#include "base/hash.h"
#include "sample_contract/notes.h"

#include "base/banned.h"

/* Sums of a hash of each: equal when the same tasks, and the same timers, were met. */
struct note_check {
    uint64_t tasks_named, tasks_met, timers_needed, timers_met;
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
    c->tasks_met += hash_of(t->id, t->subject);
    return true;
}

static bool check_note(const void *row, void *arg)
{
    const struct note_row *note = row;
    struct verify *v = arg;
    struct note_check *c = verify_self(v, &verify_notes);
    verify_seen(v);
    if ((note->state == NOTE_NEW) != (note->task != 0))
        verify_say(v, "note %lld: a task shows it exactly while it is new", (long long)note->id);
    if (note->task)
        c->tasks_named += hash_of(note->task, note->id);
    if (!note_state_is_final((enum note_state)note->state))
        c->timers_needed += hash_of(note->due_ms, note->id);
    return true;
}

static bool check_timer(struct verify *v, const struct timer_row *t)
{
    struct note_check *c = verify_self(v, &verify_notes);
    if (t->owner_kind != (int64_t)TIMER_OF_NOTE)
        return false;
    c->timers_met += hash_of(t->due_ms, t->owner);
    return true;
}

static enum err_code check_rows(struct verify *v, struct err *err)
{
    return verify_scan(v, &table_note_row, check_note, v, err);
}

static enum err_code check_last(struct verify *v, struct err *err)
{
    const struct note_check *c = verify_self(v, &verify_notes);
    (void)err;
    if (c->tasks_named != c->tasks_met)
        verify_say(v, "the tasks of notes are not those that the notes name");
    if (c->timers_needed != c->timers_met)
        verify_say(v, "the deadlines of open notes are not those that are set");
    return ERR_OK;
}

const struct verify_rules verify_notes = {.name = "notes",
                                          .bytes = sizeof(struct note_check),
                                          .task = check_task,
                                          .rows = check_rows,
                                          .timer = check_timer,
                                          .last = check_last};
