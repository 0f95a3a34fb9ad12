/* engine/run_notices.h - what runs tell those who watch (kernel/notice.h). */
#ifndef WEIR_ENGINE_RUN_NOTICES_H
#define WEIR_ENGINE_RUN_NOTICES_H

#include "kernel/unit.h"

/* An event of a run. Rows: struct run_event_row. */
extern const struct notice_kind run_event_notices;
/* A decision about a signal was made, or settled after it was held for approval. Rows: decision_row. */
extern const struct notice_kind decision_notices;
/* Rows: struct alert_row. */
extern const struct notice_kind alert_notices;

#endif
