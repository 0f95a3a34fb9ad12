#include "jobs/submit_values.h"

#include "base/time_text.h"
#include "base/url.h"

#include "base/banned.h"

bool queue_name_is_valid(struct str name)
{
    if (!name.len || name.len > JOB_QUEUE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '_' && c != '.' && c != '-')))
            return false;
    }
    return true;
}

static bool type_is_allowed(const struct settings *s, struct str type)
{
    struct str rest = str_of(s->jobs_types);
    while (rest.len)
        if (str_equal(str_trim(str_cut(&rest, ',')), type))
            return true;
    return false;
}

static enum err_code check_type(const struct settings *s, const struct submit_item *item,
                                struct submit_values *v, struct err *err)
{
    if (!job_type_parse(item->type, &v->type))
        return err_set(err, ERR_JOB_VALIDATION_FAILED,
                       "type must be one of EXECUTE, DEFERRED, EMIT_EVENT, got \"%.*s\"",
                       STR_ARG(((struct str){item->type.ptr, item->type.len > 40 ? 40 : item->type.len})));
    if (!type_is_allowed(s, item->type))
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "type %s is switched off on this server (jobs.types)",
                       job_type_text(v->type));
    return ERR_OK;
}

static enum err_code check_schedule(const struct submit_item *item, int64_t now_us, struct submit_values *v,
                                    struct err *err)
{
    if (v->type != JOB_TYPE_DEFERRED) {
        if (item->execution_at.ptr)
            return err_set(err, ERR_JOB_VALIDATION_FAILED, "execution_at is only for type DEFERRED");
        return ERR_OK;
    }
    if (!item->execution_at.ptr)
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "execution_at is required for type DEFERRED");
    int64_t at_us;
    if (!time_parse_us(item->execution_at, &at_us))
        return err_set(err, ERR_JOB_VALIDATION_FAILED,
                       "execution_at must be an RFC 3339 time in UTC, such as 2030-01-31T08:00:00Z");
    if (at_us <= now_us)
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "execution_at must lie in the future");
    v->execution_ms = (at_us + 999) / 1000;
    return ERR_OK;
}

struct str submit_queue(const struct submit_item *item)
{
    return item->queue.ptr ? item->queue : STR(JOB_QUEUE_DEFAULT);
}

struct submit_defaults submit_defaults(const struct settings *s, struct str queue)
{
    return (struct submit_defaults){.retry =
                                        str_is(queue, JOB_QUEUE_DEFAULT) ? JOB_RETRY_MANUAL : JOB_RETRY_AUTO,
                                    .max_retries = s->jobs_retry_max};
}

/* Only the built-in runner knows the catalog; for other workers the caller names the work. */
static enum work_kind kind_of_unnamed(const struct settings *s, const struct submit_values *v,
                                      int64_t seed_ms)
{
    if (!str_is(v->queue, JOB_QUEUE_DEFAULT) || !s->runner_processes)
        return WORK_KIND_NONE;
    return v->type == JOB_TYPE_EMIT_EVENT ? WORK_SUCCESS_FAST
                                          : work_draw(seed_ms, s->jobs_failure_probability);
}

static enum err_code check_work_kind(const struct settings *s, const struct submit_item *item,
                                     int64_t seed_ms, struct submit_values *v, struct err *err)
{
    if (!item->work_kind.ptr)
        v->kind = kind_of_unnamed(s, v, seed_ms);
    else if (!work_kind_parse(item->work_kind, &v->kind))
        return err_set(err, ERR_JOB_VALIDATION_FAILED,
                       "work_kind is not in the catalog; a name of your own goes into kind");
    if (v->kind != WORK_KIND_NONE && work_kind_behaviour(v->kind) == BEHAVE_REJECT)
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "work_kind %s is always refused",
                       work_kind_text(v->kind));
    return ERR_OK;
}

bool kind_name_is_valid(struct str name)
{
    if (!name.len || name.len > JOB_KIND_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr("_.:/-", c)))
            return false;
    }
    return true;
}

static enum err_code check_kind(const struct submit_item *item, struct submit_values *v, struct err *err)
{
    v->kind_name = item->kind;
    if (item->kind.ptr && !kind_name_is_valid(item->kind))
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "kind must be 1 to %d of [A-Za-z0-9_.:/-]",
                       JOB_KIND_NAME_MAX);
    return ERR_OK;
}

static enum err_code check_retry(const struct submit_defaults *d, const struct submit_item *item,
                                 struct submit_values *v, struct err *err)
{
    v->retry = d->retry;
    if (item->retry.ptr && !job_retry_parse(item->retry, &v->retry))
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "retry must be auto or manual");
    return ERR_OK;
}

static enum err_code check_range(const char *field, bool given, int64_t value, int64_t min, int64_t max,
                                 int64_t fallback, int64_t *ret, struct err *err)
{
    if (given && (value < min || value > max))
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "%s must be from %lld to %lld", field, (long long)min,
                       (long long)max);
    *ret = given ? value : fallback;
    return ERR_OK;
}

static enum err_code check_runtime(const struct settings *s, const struct submit_item *item,
                                   struct submit_values *v, struct err *err)
{
    bool is_own = v->kind == WORK_KIND_NONE;
    int64_t max_ms = settings_runtime_max_ms(s, !is_own);
    int64_t usual_ms = is_own && max_ms > JOB_OWN_RUNTIME_MS_DEFAULT ? JOB_OWN_RUNTIME_MS_DEFAULT : max_ms;
    return check_range("max_runtime_ms", item->has_max_runtime, item->max_runtime_ms, 1, max_ms, usual_ms,
                       &v->max_runtime_ms, err);
}

static enum err_code check_numbers(const struct settings *s, const struct submit_defaults *d,
                                   const struct submit_item *item, struct submit_values *v, struct err *err)
{
    int64_t ttl_seconds = 0;
    if (check_range("priority", item->has_priority, item->priority, 0, JOB_PRIORITY_MAX, JOB_PRIORITY_DEFAULT,
                    &v->priority, err) != ERR_OK ||
        check_runtime(s, item, v, err) != ERR_OK ||
        check_range("max_retries", item->has_max_retries, item->max_retries, 0, s->jobs_retry_max,
                    d->max_retries, &v->max_retries, err) != ERR_OK ||
        check_range("queue_ttl_seconds", item->has_queue_ttl, item->queue_ttl_seconds, 1,
                    JOB_QUEUE_TTL_SECONDS_MAX, 0, &ttl_seconds, err) != ERR_OK)
        return err->code;
    v->queue_ttl_ms = ttl_seconds ? ttl_seconds * 1000 : d->queue_ttl_ms;
    return ERR_OK;
}

static enum err_code check_texts(const struct settings *s, const struct submit_item *item,
                                 struct submit_values *v, struct err *err)
{
    if (!queue_name_is_valid(v->queue))
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "queue must match [a-z0-9][a-z0-9_.-]{0,63}");
    struct url url;
    const char *fault = item->callback.ptr ? url_parse(item->callback, &url) : NULL;
    if (fault)
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "callback %s", fault);
    if (item->payload.ptr && (int64_t)item->payload.len > s->jobs_payload_max_bytes)
        return err_set(err, ERR_JOB_VALIDATION_FAILED, "payload is %zu bytes, at most %lld are allowed",
                       item->payload.len, (long long)s->jobs_payload_max_bytes);
    return ERR_OK;
}

enum err_code submit_check_values(const struct settings *s, const struct submit_defaults *d,
                                  const struct submit_item *item, int64_t now_us, int64_t seed_ms,
                                  struct submit_values *ret, struct err *err)
{
    *ret = (struct submit_values){.queue = submit_queue(item)};
    if (check_type(s, item, ret, err) != ERR_OK || check_schedule(item, now_us, ret, err) != ERR_OK ||
        check_work_kind(s, item, seed_ms, ret, err) != ERR_OK || check_kind(item, ret, err) != ERR_OK ||
        check_retry(d, item, ret, err) != ERR_OK || check_numbers(s, d, item, ret, err) != ERR_OK ||
        check_texts(s, item, ret, err) != ERR_OK)
        return err->code;
    work_define(ret->kind, ret->max_runtime_ms, &ret->definition);
    return ERR_OK;
}
