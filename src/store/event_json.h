/* store/event_json.h - an event of the log as JSON: the one place its fields are written, for answers,
 * streams, deliveries and `weir store events`. */
#ifndef WEIR_STORE_EVENT_JSON_H
#define WEIR_STORE_EVENT_JSON_H

#include "base/json.h"
#include "store/log.h"

/* `low`: the lower half of the job's id, from its row. */
void encode_event(struct json_writer *w, const struct event *e, uint64_t low);

#endif
