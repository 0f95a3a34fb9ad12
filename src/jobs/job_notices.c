#include "jobs/job_notices.h"

#include "base/banned.h"

static int64_t job_of_event(const void *row)
{
    return ((const struct job_notice *)row)->event.job;
}

static int64_t job_of_progress(const void *row)
{
    return ((const struct progress_notice *)row)->job;
}

const struct notice_kind job_notices = {"job event", HINT_EVENTS, job_of_event};
const struct notice_kind progress_notices = {"progress", HINT_EVENTS, job_of_progress};
const struct notice_kind attempt_notices = {.name = "attempt to deliver"};
const struct notice_kind delivery_end_notices = {.name = "end of a delivery"};
const struct notice_kind disabled_webhook_notices = {.name = "disabled webhook"};
const struct notice_kind key_change_notices = {.name = "change of keys", .hints = HINT_KEYS};
