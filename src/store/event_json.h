/* store/event_json.h - an event of the log as JSON: the one place its fields are written, for answers,
 * streams, deliveries and `weir store events`. */
#ifndef WEIR_STORE_EVENT_JSON_H
#define WEIR_STORE_EVENT_JSON_H

#include "base/json.h"
#include "store/log.h"
#include "store/rows.h"

/* The job's row gives the lower half of its id, and its kind. */
void encode_event(struct json_writer *w, const struct event *e, const struct job_row *job);
/* The same without its braces: something may follow. */
void encode_event_members(struct json_writer *w, const struct event *e, const struct job_row *job);

#endif
