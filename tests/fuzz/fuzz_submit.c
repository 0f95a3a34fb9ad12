/* Any bytes as a submit body: JSON, then the contract's schema, then the decider's value rules. An accepted
 * submit must be storable: known type and kind, numbers in range, a sound queue name, a future time. */
#include "api/jobs/submit.h"
#include "base/must.h"
#include "jobs/submit_values.h"
#include "schema/openapi.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct schema *submit_schema(void)
{
    static const struct schema *schema;
    if (!schema) {
        static struct openapi *c; /* lives as long as the schema */
        struct err err;
        MUST(openapi_load(openapi_embedded("jobs"), &c, &err) == ERR_OK);
        MUST(openapi_schema(c, "#/components/schemas/SubmitJob", &schema, &err) == ERR_OK);
    }
    return schema;
}

static void check_accepted(const struct settings *s, const struct submit_values *v, int64_t now_us)
{
    MUST(v->type < JOB_TYPE_COUNT && work_kind_is_known(v->kind) && v->retry < JOB_RETRY_COUNT);
    MUST(!v->kind_name.ptr || kind_name_is_valid(v->kind_name));
    MUST(v->priority >= 0 && v->priority <= JOB_PRIORITY_MAX);
    MUST(v->max_runtime_ms >= 1 &&
         v->max_runtime_ms <= settings_runtime_max_ms(s, v->kind != WORK_KIND_NONE));
    MUST(v->max_retries >= 0 && v->max_retries <= s->jobs_retry_max);
    MUST(queue_name_is_valid(v->queue));
    MUST((v->type == JOB_TYPE_DEFERRED) == (v->execution_ms != 0));
    MUST(!v->execution_ms || v->execution_ms * 1000 > now_us);
    MUST(v->definition.payload_size >= 0 && v->definition.payload_size <= WORK_PAYLOAD_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_us = INT64_C(1794787316255000);
    struct settings s;
    struct err err;
    struct arena *a = arena_new(4096);
    const struct json *body;
    struct schema_violation violation;
    settings_init(&s);
    if (json_parse(a, (struct str){(const char *)data, size}, &body, &err) == ERR_OK &&
        schema_check(submit_schema(), body, &violation)) {
        struct submit_item item;
        struct submit_values v;
        submit_decode(body, &item);
        struct submit_defaults d = submit_defaults(&s, submit_queue(&item));
        if (submit_check_values(&s, &d, &item, now_us, now_us / 1000, &v, &err) == ERR_OK)
            check_accepted(&s, &v, now_us);
        else
            MUST(err.code == ERR_JOB_VALIDATION_FAILED && err.detail[0]);
    }
    settings_free(&s);
    arena_free(a);
    return 0;
}
