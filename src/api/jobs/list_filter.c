#include "api/jobs/list_filter.h"

#include "base/time_text.h"
#include "lifecycle/key_power.h"

#include "base/banned.h"

enum { CURSOR_DIGITS = 15 };

static enum err_code bad(const char *name, const char *want, struct err *err)
{
    return err_set(err, ERR_REQUEST_MALFORMED, "%s must be %s", name, want);
}

/* Ids begin with their creation time, so a time bound is an id bound. */
static enum err_code parse_times(const struct list_query_texts *q, struct list_filter *f, struct err *err)
{
    int64_t us;
    f->below_id = INT64_MAX;
    if (q->created_after.ptr) {
        if (!time_parse_us(q->created_after, &us))
            return bad("created_after", "an RFC 3339 time in UTC", err);
        f->from_id = (us / 1000 + 1) << 12;
    }
    if (q->created_before.ptr) {
        if (!time_parse_us(q->created_before, &us))
            return bad("created_before", "an RFC 3339 time in UTC", err);
        f->below_id = (us + 999) / 1000 << 12;
    }
    return ERR_OK;
}

static enum err_code parse_cursor(struct str cursor, struct list_filter *f, struct err *err)
{
    int64_t id = 0;
    if (!cursor.ptr)
        return ERR_OK;
    bool ok = cursor.len == 1 + CURSOR_DIGITS && cursor.ptr[0] == 'c';
    for (size_t i = 1; ok && i < cursor.len; i++) {
        char c = cursor.ptr[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        ok = digit >= 0;
        id = id << 4 | (digit & 15);
    }
    if (!ok)
        return bad("cursor", "a next_cursor this server gave", err);
    if (id < f->below_id)
        f->below_id = id;
    return ERR_OK;
}

static enum err_code parse_state(const struct list_query_texts *q, struct list_filter *f, struct err *err)
{
    enum job_state outcome;
    if (q->state.ptr) {
        if (!job_state_parse(q->state, &f->state))
            return bad("state", "a job state such as QUEUED", err);
        f->has_state = true;
    }
    if (!q->outcome.ptr)
        return ERR_OK;
    if (!job_outcome_parse(q->outcome, &outcome))
        return bad("outcome", "SUCCESS, FAILED or CANCELED", err);
    f->nothing = f->has_state && f->state != outcome;
    f->state = outcome;
    f->has_state = true;
    return ERR_OK;
}

enum err_code list_limit_parse(struct str text, int64_t fallback, int64_t max, int64_t *ret_limit,
                               struct err *err)
{
    int64_t limit = fallback;
    if (text.ptr && !str_to_int(text, 1, max, &limit))
        return err_set(err, ERR_REQUEST_MALFORMED, "limit must be from 1 to %lld", (long long)max);
    *ret_limit = limit;
    return ERR_OK;
}

enum err_code list_filter_parse(const struct list_query_texts *q, struct list_filter *ret, struct err *err)
{
    *ret = (struct list_filter){.queue = q->queue, .kind = q->kind};
    if (parse_state(q, ret, err) != ERR_OK || parse_times(q, ret, err) != ERR_OK ||
        parse_cursor(q->cursor, ret, err) != ERR_OK)
        return err->code;
    if (q->type.ptr && !job_type_parse(q->type, &ret->type))
        return bad("type", "EXECUTE, DEFERRED or EMIT_EVENT", err);
    if (q->work_kind.ptr && !work_kind_parse(q->work_kind, &ret->work_kind))
        return bad("work_kind", "a kind of the catalog; names of your own are in kind", err);
    ret->has_type = q->type.ptr != NULL;
    ret->has_work_kind = q->work_kind.ptr != NULL;
    return list_limit_parse(q->limit, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, &ret->limit, err);
}

bool list_filter_matches(const struct list_filter *f, const struct job_view *v)
{
    return (!f->has_state || v->state == f->state) && (!f->has_type || v->job.type == (int64_t)f->type) &&
           (!f->has_work_kind || v->job.kind == (int64_t)f->work_kind) &&
           (!f->kind.ptr || str_equal(f->kind, v->job.kind_name)) &&
           (!f->queue.ptr || str_equal(f->queue, v->job.queue)) && key_queues_have(f->queues, v->job.queue);
}

struct str list_cursor_text(struct arena *a, int64_t id)
{
    return arena_printf(a, "c%0*llx", CURSOR_DIGITS, (unsigned long long)id);
}
