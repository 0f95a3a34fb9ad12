#include "api/engine/handlers.h"
#include "base/must.h"

#include "base/banned.h"

/* A table reads best as a table. */
/* clang-format off */
const struct route engine_routes[] = {
    ROUTE(POST, "/engine/v1/plans",                                          putPlan,         AUTH_ENGINEER, 0, "put_plan",         ACCEPT_JSON, false, handle_put_plan)
    ROUTE(GET,  "/engine/v1/plans",                                          listPlans,       AUTH_TOKEN,    0, "list_plans",       ACCEPT_JSON, false, handle_list_plans)
    ROUTE(GET,  "/engine/v1/plans/{plan_id}/versions/{plan_version}",        getPlan,         AUTH_TOKEN,    0, "get_plan",         ACCEPT_JSON, false, handle_get_plan)
    ROUTE(POST, "/engine/v1/runs",                                           startRun,        AUTH_ENGINEER, 0, "start_run",        ACCEPT_JSON, false, handle_start_run)
    ROUTE(GET,  "/engine/v1/runs",                                           listRuns,        AUTH_TOKEN,    0, "list_runs",        ACCEPT_JSON, false, handle_list_runs)
    ROUTE(GET,  "/engine/v1/runs/{run_id}",                                  getRun,          AUTH_TOKEN,    0, "get_run",          ACCEPT_JSON, false, handle_get_run)
    ROUTE(POST, "/engine/v1/runs/{run_id}/events",                           appendRunEvents, AUTH_ENGINE,   0, "append",           ACCEPT_JSON, false, handle_append_events)
    ROUTE(GET,  "/engine/v1/runs/{run_id}/events",                           getRunEvents,    AUTH_TOKEN,    0, "run_events",       ACCEPT_JSON | ACCEPT_EVENTS, false, handle_run_events)
    ROUTE(POST, "/engine/v1/runs/{run_id}/event-ids",                        registerEventId, AUTH_ENGINE,   0, "event_id",         ACCEPT_JSON, false, handle_event_id)
    ROUTE(POST, "/engine/v1/runs/{run_id}/signals",                          sendSignal,      AUTH_SIGNAL,   0, "signal",           ACCEPT_JSON, false, handle_send_signal)
    ROUTE(GET,  "/engine/v1/runs/{run_id}/signals",                          listSignals,     AUTH_TOKEN,    0, "list_signals",     ACCEPT_JSON, false, handle_list_signals)
    ROUTE(GET,  "/engine/v1/runs/{run_id}/signals/{signal_id}",              getSignal,       AUTH_TOKEN,    0, "get_signal",       ACCEPT_JSON, false, handle_get_signal)
    ROUTE(POST, "/engine/v1/runs/{run_id}/signals/{signal_id}:processed",    signalProcessed, AUTH_ENGINE,   0, "signal_processed", ACCEPT_JSON, false, handle_signal_processed)
    ROUTE(GET,  "/engine/v1/signal-decisions/{policy_decision_id}",          getDecision,     AUTH_TOKEN,    0, "get_decision",     ACCEPT_JSON, false, handle_get_decision)
    ROUTE(POST, "/engine/v1/signal-decisions/{policy_decision_id}:approve",  approveSignal,   AUTH_ADMIN,    0, "approve_signal",   ACCEPT_JSON, false, handle_approve)
    ROUTE(POST, "/engine/v1/signal-decisions/{policy_decision_id}:reject",   rejectSignal,    AUTH_ADMIN,    0, "reject_signal",    ACCEPT_JSON, false, handle_reject)
    ROUTE(GET,  "/engine/v1/alerts",                                         listAlerts,      AUTH_TOKEN,    0, "list_alerts",      ACCEPT_JSON, false, handle_list_alerts)
};
/* clang-format on */
const size_t engine_route_count = LENGTH_OF(engine_routes);
