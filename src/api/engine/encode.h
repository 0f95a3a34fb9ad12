/* api/engine/encode.h - runs, steps, events, decisions and alerts as JSON, by their field lists; and
 * what handlers of the engine API share. */
#ifndef WEIR_API_ENGINE_ENCODE_H
#define WEIR_API_ENGINE_ENCODE_H

#include "api/page.h"
#include "engine/append.h"
#include "fields/engine_fields.h"

void encode_run_event(struct json_writer *w, const struct run_row *run, const struct run_event_row *e);
void encode_step(struct json_writer *w, struct str name, enum step_status status, int64_t attempt,
                 const struct run_step_row *s); /* s NULL: as of an earlier time */
void encode_decision_members(struct json_writer *w, const struct run_row *run, const struct decision_row *d);
void encode_alert(struct json_writer *w, const struct run_row *run, const struct alert_row *a);

/* The run of the path, of the caller's tenant and projects, and the reader in whose snapshot it was read.
 * False: answered (404 for what is not the caller's). */
bool call_read_run(struct call *c, struct reader **ret_reader, struct run_row *ret_run);
/* May the caller touch this project? False: answered. */
bool call_project(struct call *c, struct str project);
/* The same of the run of the path, if there is one: a run's project never changes, so it can be read before
 * the command. Costs nothing for a caller of all projects. False: answered. */
bool call_project_of_run(struct call *c);
/* The number of the caller's tenant; not found: it never had a plan or a run. False: answered. */
bool call_tenant(struct call *c, struct reader *r, int64_t *ret_num, bool *ret_found);

#endif
