/* The two tasks of an open note, and what their ends mean for it: the owner's side. */
#include "sample_contract/notes.h"

#include "base/banned.h"

enum {
    SHOW_MS_MAX = 60000,
    SHOW_AGAIN_MS = 1000, /* after a worker that failed or was lost */
    PRIORITY = 4,
};

/* --- making and ending ----------------------------------------------------------------------------- */

static struct task *add(struct unit *u, const struct note_row *note, int64_t due_ms)
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
                           .due_ms = due_ms,
                           .refs = STR("")};
    return unit_task_add(u, &row);
}

int64_t note_task_add(struct unit *u, const struct note_row *note)
{
    struct task *t = add(u, note, 0);
    unit_task_move(u, t, TASK_ON_DUE);
    unit_task_place(u, t);
    return t->row.id;
}

int64_t note_timer_add(struct unit *u, const struct note_row *note)
{
    struct task *t = add(u, note, note->due_ms);
    unit_task_place(u, t);
    return t->row.id;
}

void note_tasks_prefetch(struct unit *u, const struct note_row *note)
{
    if (note && note->task)
        unit_prefetch_task(u, note->task);
    if (note && note->timer)
        unit_prefetch_task(u, note->timer);
}

static void end(struct unit *u, int64_t id)
{
    struct task *t = id ? unit_task(u, id) : NULL;
    if (!t)
        return;
    if (t->phase == TASK_LEASED || t->phase == TASK_RUNNING)
        lease_remember_ended(u, t, LEASE_CUT);
    unit_task_end(u, t);
}

void note_tasks_end(struct unit *u, struct note_row *note)
{
    end(u, note->task);
    end(u, note->timer);
    note->task = note->timer = 0;
}

/* --- the owner's side ------------------------------------------------------------------------------ */

static struct note_row *note_of(struct unit *u, const struct task *t)
{
    return unit_fetch(u, &table_note_row, &(struct note_row){.id = t->row.subject});
}

static void load(struct unit *u, struct task *t)
{
    note_tasks_prefetch(u, unit_prefetch(u, &table_note_row, &(struct note_row){.id = t->row.subject}));
}

/* Only the task of a deadline waits for a time. */
static void due(struct unit *u, struct task *t)
{
    struct note_row *note = note_of(u, t);
    t->row.due_ms = u->now_ms + 1; /* it goes on no more */
    if (!note || !note_change(u, note, NOTE_ON_DEADLINE))
        unit_task_end(u, t);
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
    struct note_row *note = note_of(u, t);
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
    .due = due,
    .finished = finished,
    .lost = lost,
    .released = released,
};
