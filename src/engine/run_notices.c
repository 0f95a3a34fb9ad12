#include "engine/run_notices.h"

#include "base/banned.h"

static int64_t run_of_event(const void *row)
{
    return ((const struct run_event_row *)row)->run;
}

const struct notice_kind run_event_notices = {"run event", HINT_EVENTS, run_of_event};
const struct notice_kind decision_notices = {.name = "decision"};
const struct notice_kind alert_notices = {.name = "alert"};
