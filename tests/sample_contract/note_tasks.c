/* The two tasks of an open note, and what their ends mean for it: the owner's side. */
#include "base/must.h"
#include "sample_contract/notes.h"

#include "base/banned.h"

enum {
    SHOW_MS_MAX = 60000,
    SHOW_AGAIN_MS = 1000, /* after a worker that failed or was lost */
    PRIORITY = 4,
    IS_SHOWING = 0, /* `type` of the tasks */
    IS_DEADLINE = 1,
};

static void move(struct task *t, enum task_trigger on)
{
    enum task_phase to;
    MUST(task_move((enum task_phase)t->row.state, on, &to));
    t->row.state = to;
}

/* --- making and ending ----------------------------------------------------------------------------- */

static struct task *add(struct unit *u, const struct note_row *note, int64_t type, int64_t due_ms)
{
    struct task_row row = {.id = (int64_t)(TASK_ID_OF_OTHERS | (uint64_t)unit_id(u)),
                           .low = unit_uuid_tail(u),
                           .client = note->client,
                           .owner = NOTE_TASK_OWNER,
                           .type = type,
                           .priority = PRIORITY,
                           .created_ms = u->now_ms,
                           .max_runtime_ms = SHOW_MS_MAX,
                           .subject = note->id,
                           .queue = NOTE_QUEUE,
                           .state = TASK_WAITING,
                           .attempt = 1,
                           .due_ms = due_ms,
                           .refs = STR("")};
    return unit_task_add(u, &row);
}

int64_t note_task_add(struct unit *u, const struct note_row *note)
{
    struct task *t = add(u, note, IS_SHOWING, 0);
    move(t, TASK_ON_DUE);
    unit_task_place(u, t);
    return t->row.id;
}

int64_t note_timer_add(struct unit *u, const struct note_row *note)
{
    struct task *t = add(u, note, IS_DEADLINE, note->due_ms);
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

/* The deadline. */
static void due(struct unit *u, struct task *t)
{
    struct note_row *note = note_of(u, t);
    t->row.due_ms = u->now_ms + 1; /* it goes on no more */
    if (!note || !note_change(u, note, NOTE_ON_DEADLINE))
        unit_task_end(u, t);
}

static void assigned(struct unit *u, struct task *t)
{
    (void)u;
    move(t, TASK_ON_CLAIM);
}

static void started(struct unit *u, struct task *t)
{
    t->row.started_ms = u->now_ms;
    move(t, TASK_ON_START);
}

static void give_back(struct unit *u, struct task *t, enum task_trigger on, int64_t delay_ms)
{
    t->row.lease_ms = t->row.started_ms = 0;
    t->row.due_ms = delay_ms ? u->now_ms + delay_ms : 0;
    t->row.token++; /* its former worker can do nothing with it any more */
    move(t, on);
    live_set_worker(u->store->live, t, STR_ABSENT, 0);
    unit_task_place(u, t);
}

static void released(struct unit *u, struct task *t, const struct task_return *r)
{
    give_back(u, t, TASK_ON_RETURN, r->delay_ms);
}

static void lost(struct unit *u, struct task *t, enum task_loss how)
{
    if (how == TASK_TIMED_OUT)
        lease_remember_ended(u, t, LEASE_CUT);
    give_back(u, t, TASK_ON_RETRY, SHOW_AGAIN_MS);
}

static void finished(struct unit *u, struct task *t, const struct task_outcome *o)
{
    struct note_row *note = note_of(u, t);
    if (!o->success) {
        give_back(u, t, TASK_ON_RETRY, SHOW_AGAIN_MS);
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
    .assigned = assigned,
    .started = started,
    .finished = finished,
    .lost = lost,
    .released = released,
};
