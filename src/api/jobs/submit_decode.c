#include "api/jobs/submit.h"

#include "base/banned.h"

static struct str text_of(const struct json *body, const char *key)
{
    const struct json *j = json_get(body, key);
    return j && j->type == JSON_STRING ? (struct str){j->text.ptr ? j->text.ptr : "", j->text.len}
                                       : STR_ABSENT;
}

/* An integer beyond int64 is far out of every range: -1 makes the value check say so. */
static bool number_of(const struct json *body, const char *key, int64_t *ret)
{
    const struct json *j = json_get(body, key);
    if (!j || j->type != JSON_NUMBER)
        return false;
    if (!json_to_int(j, ret))
        *ret = -1;
    return true;
}

void submit_decode(const struct json *body, struct submit_item *item)
{
    *item = (struct submit_item){.type = text_of(body, "type"),
                                 .kind = text_of(body, "kind"),
                                 .work_kind = text_of(body, "work_kind"),
                                 .retry = text_of(body, "retry"),
                                 .execution_at = text_of(body, "execution_at"),
                                 .callback = text_of(body, "callback"),
                                 .queue = text_of(body, "queue"),
                                 .idem_key = text_of(body, "idempotency_key")};
    item->has_priority = number_of(body, "priority", &item->priority);
    item->has_max_runtime = number_of(body, "max_runtime_ms", &item->max_runtime_ms);
    item->has_max_retries = number_of(body, "max_retries", &item->max_retries);
    item->has_queue_ttl = number_of(body, "queue_ttl_seconds", &item->queue_ttl_seconds);
    const struct json *payload = json_get(body, "payload");
    item->payload = payload && payload->type == JSON_OBJECT ? payload->source : STR_ABSENT;
}
