#include "sample_contract/notes_contract.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/json_members.h"
#include "base/must.h"
#include "sample_contract/note_rules.h"
#include "sample_contract/notes.h"

#include "base/banned.h"

/* Entries into each state, since the process began. */
struct notes_api {
    _Atomic uint64_t entered[NOTE_STATE_COUNT];
};

static enum err_code notes_open(struct api *a, void **ret_self, struct err *err)
{
    (void)a;
    (void)err;
    *ret_self = must_alloc(sizeof(struct notes_api));
    return ERR_OK;
}

static void notes_close(void *self)
{
    free(self);
}

static void committed(void *self, const struct unit *u)
{
    struct notes_api *n = self;
    for (size_t i = 0; i < u->notices.count; i++) {
        const struct note_notice *told = notice_row(&u->notices.list[i], &note_notices);
        if (told)
            atomic_fetch_add(&n->entered[told->state], 1);
    }
}

static void write_metrics(void *self, struct call *c, const struct kernel_stats *k)
{
    static const char *const name = "sample_notes_total";
    const struct notes_api *n = self;
    (void)k;
    metrics_head(&c->x->reply_body, name, "counter", "Notes by the state that they came to");
    for (int s = 0; s < NOTE_STATE_COUNT; s++) {
        char labels[32];
        snprintf(labels, sizeof labels, "state=\"%s\"", note_state_text((enum note_state)s));
        metrics_sample(&c->x->reply_body, name, labels, atomic_load(&n->entered[s]));
    }
}

static bool encode_task(struct call *c, struct json_writer *w, struct reader *r, const struct claimed_task *t,
                        struct err *err)
{
    struct note_row note = {.id = t->subject};
    char token[24];
    bool found;
    if (r->ops->reader_row(r, &table_note_row, &note, c->x->arena, &found, err) != ERR_OK)
        return false;
    if (!found)
        return true;
    jw_object(w);
    encode_uuid_v7(w, "task_id", t->id, t->low);
    encode_str(w, "token", token_text(t->token, token));
    encode_text(w, "kind", "note");
    encode_uuid_v7(w, "note_id", note.id, (uint64_t)note.low);
    encode_str(w, "queue", NOTE_QUEUE);
    encode_int(w, "attempt", t->attempt);
    encode_time_ms(w, "lease_expires_at", t->lease_expires_ms);
    jw_key(w, "definition");
    jw_object(w);
    encode_str(w, "text", note.text);
    jw_object_end(w);
    jw_object_end(w);
    return true;
}

static const struct table *const note_tables[] = {&table_note_row, NULL};
static const struct contract_task note_tasks[] = {{&note_task_owner, encode_task}, {.owner = NULL}};
static const struct timer_kind *const note_timers[] = {&note_deadline, NULL};
static const char *const note_openapi[] = {"notes", NULL};

const struct contract notes_contract = {
    .name = "notes",
    .tables = note_tables,
    .verify = &verify_notes,
    .tasks = note_tasks,
    .timers = note_timers,
    .openapi = note_openapi,
    .open = notes_open,
    .close = notes_close,
    .committed = committed,
    .write_metrics = write_metrics,
};
