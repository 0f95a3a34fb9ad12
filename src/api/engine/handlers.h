/* api/engine/handlers.h - the handlers of the engine API; routes.c lists them, dispatch.c calls them. */
#ifndef WEIR_API_ENGINE_HANDLERS_H
#define WEIR_API_ENGINE_HANDLERS_H

#include "api/api.h"

void handle_put_plan(struct call *c);
void handle_list_plans(struct call *c);
void handle_get_plan(struct call *c);
void handle_start_run(struct call *c);
void handle_list_runs(struct call *c);
void handle_get_run(struct call *c);
void handle_append_events(struct call *c);
void handle_run_events(struct call *c);
void handle_event_id(struct call *c);
void handle_send_signal(struct call *c);
void handle_list_signals(struct call *c);
void handle_get_signal(struct call *c);
void handle_signal_processed(struct call *c);
void handle_get_decision(struct call *c);
void handle_approve(struct call *c);
void handle_reject(struct call *c);
void handle_list_alerts(struct call *c);

#endif
