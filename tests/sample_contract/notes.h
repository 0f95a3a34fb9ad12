/* sample_contract/notes.h - notes: the commands about them, their tasks, what others hear of them.
 *
 * A note is shown once, by a worker, and closed by its client. One that is not closed when its time has come
 * is late. Behind an open note stand a task, which a worker claims to show it, and the timer of the deadline.
 * Deciders are pure: they see rows and the time through the unit. */
#ifndef WEIR_SAMPLE_NOTES_H
#define WEIR_SAMPLE_NOTES_H

#include "kernel/kernel.h"
#include "kernel/task_owner.h"
#include "kernel/timer_kind.h"
#include "sample_contract/note_tables.h"

/* A copy: the rows of a batch are gone when its answers are written. */
struct note_answer {
    int64_t id;
    uint64_t low;
    enum note_state state;
};

struct create_note_command {
    struct command base;
    int64_t client, due_ms;
    struct str text;
    struct note_answer answer;
};
extern const struct command_type create_note_command_type;

struct close_note_command {
    struct command base;
    int64_t client, id;
    uint64_t low;
    struct note_answer answer;
};
extern const struct command_type close_note_command_type;

/* A note changed, or is new. Rows: struct note_notice. */
struct note_notice {
    int64_t id;
    enum note_state state;
};
extern const struct notice_kind note_notices;

/* Moves a note, and ends its task and timer when that was the last move. False: there is no such move. */
bool note_change(struct unit *u, struct note_row *note, enum note_trigger on);
void note_tell(struct unit *u, const struct note_row *note);

/* --- note_tasks.c --------------------------------------------------------------------------------- */

enum { NOTE_TASK_OWNER = 31 }; /* in tasks.owner: for ever its own */
#define TIMER_OF_NOTE ((enum timer_owner)(TIMER_OWNERS_MAX - 1))
#define NOTE_QUEUE    STR("~notes")

extern const struct task_owner note_task_owner;
extern const struct timer_kind note_deadline;
int64_t note_task_add(struct unit *u, const struct note_row *note);
void note_task_prefetch(struct unit *u, const struct note_row *note); /* NULL: it is still to come */
void note_task_end(struct unit *u, struct note_row *note);            /* if it lives */

#endif
