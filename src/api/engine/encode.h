/* api/engine/encode.h - runs, steps, events, decisions and alerts as JSON: the one place their fields are
 * written; and what handlers of the engine API share. */
#ifndef WEIR_API_ENGINE_ENCODE_H
#define WEIR_API_ENGINE_ENCODE_H

#include "api/api.h"
#include "base/json_members.h"
#include "engine/append.h"

void encode_run_event(struct json_writer *w, const struct run_row *run, const struct run_event_row *e);
void encode_run_summary(struct json_writer *w, const struct run_row *run); /* members, into an open object */
void encode_step(struct json_writer *w, struct str name, enum step_status status, int64_t attempt,
                 const struct run_step_row *row); /* row NULL: as of an earlier time */
void encode_decision(struct json_writer *w, const struct run_row *run, const struct decision_row *d);
void encode_alert(struct json_writer *w, const struct run_row *run, const struct alert_row *a);
/* A UUID from bytes of a row; null when absent. */
void encode_uuid_bytes(struct json_writer *w, const char *key, struct str bytes);

/* The run of the path, of the caller's tenant and projects, and the reader in whose snapshot it was read.
 * False: answered (404 for what is not the caller's). */
bool call_read_run(struct call *c, struct reader **ret_reader, struct run_row *ret_run);
/* May the caller touch this project? False: answered. */
bool call_project(struct call *c, struct str project);
/* The same of the run of the path, if there is one: a run's project never changes, so it can be read before
 * the command. Costs nothing for a caller of all projects. False: answered. */
bool call_project_of_run(struct call *c);
/* `limit`, and `cursor` as the number below which to go on (INT64_MAX: from the newest). False: answered. */
bool call_page(struct call *c, int64_t *ret_limit, int64_t *ret_below);
/* "nextCursor" at the end of a page. */
void encode_next(struct call *c, struct json_writer *w, bool more, int64_t last);
bool call_query(struct call *c, const char *name, struct str *ret); /* false: answered */

#endif
