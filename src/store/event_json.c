#include "store/event_json.h"

#include "base/json_members.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

void encode_event(struct json_writer *w, const struct event *e, const struct job_row *job)
{
    jw_object(w);
    encode_event_members(w, e, job);
    jw_object_end(w);
}

void encode_event_members(struct json_writer *w, const struct event *e, const struct job_row *job)
{
    char id[UUID_TEXT_LEN + 1];
    uuid_text(&e->id, id);
    jw_key(w, "event_id");
    jw_str(w, (struct str){id, UUID_TEXT_LEN});
    encode_uuid_v7(w, "job_id", e->job, (uint64_t)job->low);
    jw_key(w, "seq");
    jw_int(w, e->seq);
    jw_key(w, "event_name");
    jw_text(w, job_event_text(e->event));
    jw_key(w, "prev_state");
    jw_text(w, job_state_text(e->prev));
    jw_key(w, "next_state");
    jw_text(w, job_state_text(e->next));
    encode_time_us(w, "timestamp", e->at_us);
    jw_key(w, "payload");
    jw_object(w);
    jw_key(w, "scenario");
    jw_text(w, e->kind < WORK_KIND_COUNT ? work_kind_text((enum work_kind)e->kind) : NULL);
    if (job->kind_name.ptr) {
        jw_key(w, "kind");
        jw_str(w, job->kind_name);
    }
    jw_key(w, "attempt");
    jw_int(w, e->attempt);
    if (e->event == JOB_EVENT_RETRIES_EXHAUSTED) {
        jw_key(w, "transition");
        jw_bool(w, false);
    }
    if (e->extra.len > 2) /* a JSON object of ours: its members join this one */
        strbuf_addf(w->out, ",%.*s", (int)e->extra.len - 2, e->extra.ptr + 1);
    jw_object_end(w);
}
