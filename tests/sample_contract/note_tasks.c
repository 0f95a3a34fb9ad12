/* The task of an open note and its deadline, and what their ends mean for it. */
#include "sample_contract/notes.h"

#include "base/banned.h"

enum {
    SHOW_MS_MAX = 60000,
    SHOW_AGAIN_MS = 1000, /* after a worker that failed or was lost */
    PRIORITY = 4,
};

/* --- making and ending ----------------------------------------------------------------------------- */

int64_t note_task_add(struct unit *u, const struct note_row *note)
{
    struct task_row row = {.id = (int64_t)(TASK_ID_OF_OTHERS | (uint64_t)unit_id(u)),
                           .low = unit_uuid_tail(u),
                           .client = note->client,
                           .owner = NOTE_TASK_OWNER,
                           .priority = PRIORITY,
                           .created_ms = u->now_ms,
                           .max_runtime_ms = SHOW_MS_MAX,
                           .subject = note->id,
                           .queue = NOTE_QUEUE,
                           .state = TASK_WAITING,
                           .job_state = JOB_NO_STATE,
                           .attempt = 1,
                           .refs = STR("")};
    struct task *t = unit_task_add(u, &row);
    unit_task_move(u, t, TASK_ON_DUE);
    unit_task_place(u, t);
    return t->row.id;
}

void note_task_prefetch(struct unit *u, const struct note_row *note)
{
    if (note && note->task)
        unit_prefetch_task(u, note->task);
}

void note_task_end(struct unit *u, struct note_row *note)
{
    struct task *t = note->task ? unit_task(u, note->task) : NULL;
    note->task = 0;
    if (!t)
        return;
    if (t->phase == TASK_LEASED || t->phase == TASK_RUNNING)
        lease_remember_ended(u, t, LEASE_CUT);
    unit_task_end(u, t);
}

/* --- the owner's side ------------------------------------------------------------------------------ */

static struct note_row *note_by_id(struct unit *u, int64_t id)
{
    return unit_fetch(u, &table_note_row, &(struct note_row){.id = id});
}

static void load_note(struct unit *u, int64_t id)
{
    note_task_prefetch(u, unit_prefetch(u, &table_note_row, &(struct note_row){.id = id}));
}

static void load(struct unit *u, struct task *t)
{
    load_note(u, t->row.subject);
}

static void released(struct unit *u, struct task *t, const struct task_return *r)
{
    t->row.due_ms = r->delay_ms ? u->now_ms + r->delay_ms : 0;
}

static void show_again(struct unit *u, struct task *t)
{
    unit_task_return(u, t, &(struct task_return){.delay_ms = SHOW_AGAIN_MS});
}

static void lost(struct unit *u, struct task *t, enum task_loss how)
{
    if (how == TASK_TIMED_OUT)
        lease_remember_ended(u, t, LEASE_CUT);
    show_again(u, t);
}

static void finished(struct unit *u, struct task *t, const struct task_outcome *o)
{
    struct note_row *note = note_by_id(u, t->row.subject);
    if (!o->success) {
        show_again(u, t);
        return;
    }
    struct str worker = arena_str(u->arena, t->row.worker);
    unit_task_end(u, t);
    if (!note)
        return;
    note->task = 0;
    note->shown_by = worker;
    (void)note_change(u, note, NOTE_ON_SHOW); /* refused: it is damaged, for its last move ends this task */
}

static int64_t head(const struct task *t)
{
    return t->row.subject;
}

const struct task_owner note_task_owner = {
    .number = NOTE_TASK_OWNER,
    .name = "note",
    .load = load,
    .remembers_finishes = true,
    .head = head,
    .finished = finished,
    .lost = lost,
    .released = released,
};

/* --- the deadline ---------------------------------------------------------------------------------- */

static void fire(struct unit *u, int64_t id)
{
    struct note_row *note = note_by_id(u, id);
    if (note)
        (void)note_change(u, note, NOTE_ON_DEADLINE);
}

const struct timer_kind note_deadline = {.number = TIMER_KINDS_MAX - 1,
                                         .name = "note_deadline",
                                         .owner_kind = TIMER_OF_NOTE,
                                         .load = load_note,
                                         .fire = fire};
