/* base/err.h - every way a call can fail: one list with its wire code, HTTP status and advice.
 *
 * Library code fills a struct err and never logs; the edge logs once and answers once.
 * To add an error: one line in ERR_LIST. `docs/errors.md` is generated from it (tools/generate_docs.py).
 * The wire code is stable forever; the text may improve. */
#ifndef WEIR_BASE_ERR_H
#define WEIR_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* X(name, wire code, HTTP status, title, what to do next) */
#define ERR_LIST(X)                                                                                          \
    X(OK, "OK", 200, "OK", "")                                                                               \
    X(REQUEST_MALFORMED, "RFA_REQUEST_MALFORMED", 400, "Malformed request",                                  \
      "fix the request; /openapi/jobs.yaml, worker.yaml, engine.yaml and ops.yaml are the contracts")        \
    X(REQUEST_UNSUPPORTED_MEDIA_TYPE, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE", 415, "Unsupported media type",   \
      "send Content-Type: application/json")                                                                 \
    X(REQUEST_METHOD_NOT_ALLOWED, "RFA_REQUEST_METHOD_NOT_ALLOWED", 405, "Method not allowed",               \
      "use a method listed in the Allow header")                                                             \
    X(REQUEST_NOT_ACCEPTABLE, "RFA_REQUEST_NOT_ACCEPTABLE", 406, "Not acceptable",                           \
      "accept application/json")                                                                             \
    X(REQUEST_PAYLOAD_TOO_LARGE, "RFA_REQUEST_PAYLOAD_TOO_LARGE", 413, "Payload too large",                  \
      "send a smaller body or raise server.body_max_bytes")                                                  \
    X(REQUEST_RATE_LIMITED, "RFA_REQUEST_RATE_LIMITED", 429, "Too many requests",                            \
      "wait for Retry-After seconds, then retry")                                                            \
    X(REQUEST_ROUTE_NOT_FOUND, "RFA_REQUEST_ROUTE_NOT_FOUND", 404, "No such route",                          \
      "see /openapi/jobs.yaml, worker.yaml, engine.yaml and ops.yaml for the routes")                        \
    X(REQUEST_HOST_UNKNOWN, "RFA_REQUEST_HOST_UNKNOWN", 421, "Not a name of this server",                    \
      "use localhost or the address, or add the name to server.hosts")                                       \
    X(AUTH_INVALID_CREDENTIALS, "RFA_AUTH_INVALID_CREDENTIALS", 401, "Missing or invalid credentials",       \
      "send Authorization: Bearer <api_key>")                                                                \
    X(AUTH_TOKEN_EXPIRED, "RFA_AUTH_TOKEN_EXPIRED", 401, "Credentials expired",                              \
      "renew the key before it expires, or ask the operator for a new one")                                  \
    X(AUTH_FORBIDDEN, "RFA_AUTH_FORBIDDEN", 403, "Forbidden",                                                \
      "use a key of the owner, with the scope and for the queue that the detail names")                      \
    X(AUTH_API_KEY_DISABLED, "RFA_AUTH_API_KEY_DISABLED", 403, "API key disabled or revoked",                \
      "use another key")                                                                                     \
    X(AUTH_CLIENT_SUSPENDED, "RFA_AUTH_CLIENT_SUSPENDED", 403, "Client suspended",                           \
      "ask the operator to resume the client")                                                               \
    X(AUTH_KEY_NOT_FOUND, "RFA_AUTH_KEY_NOT_FOUND", 404, "No such API key", "check the key_id")              \
    X(AUTH_KEY_CONFLICT, "RFA_AUTH_KEY_CONFLICT", 409, "API key conflict",                                   \
      "create a key first, or read the keys again")                                                          \
    X(CLIENT_NOT_FOUND, "RFA_CLIENT_NOT_FOUND", 404, "No such client", "check the client_id")                \
    X(CLIENT_CONFLICT, "RFA_CLIENT_CONFLICT", 409, "Client has unfinished jobs", "purge its jobs first")     \
    X(JOB_VALIDATION_FAILED, "RFA_JOB_VALIDATION_FAILED", 400, "Job validation failed",                      \
      "fix the field named in detail")                                                                       \
    X(JOB_NOT_FOUND, "RFA_JOB_NOT_FOUND", 404, "No such job", "check the job_id")                            \
    X(JOB_REPORT_NOT_FOUND, "RFA_JOB_REPORT_NOT_FOUND", 404, "No report",                                    \
      "a report exists once the job is final")                                                               \
    X(JOB_CONFLICT, "RFA_JOB_CONFLICT", 409, "Job state conflict", "read the job again")                     \
    X(QUEUE_NOT_FOUND, "RFA_QUEUE_NOT_FOUND", 404, "No such queue", "names match [a-z0-9][a-z0-9_.-]{0,63}") \
    X(WEBHOOK_NOT_FOUND, "RFA_WEBHOOK_NOT_FOUND", 404, "No such webhook", "check the webhook_id")            \
    X(WEBHOOK_CONFLICT, "RFA_WEBHOOK_CONFLICT", 409, "Webhook conflict",                                     \
      "delete another one first, or change url or events")                                                   \
    X(EXEC_QUEUE_FULL, "RFA_EXEC_QUEUE_FULL", 503, "Queue full", "retry later")                              \
    X(EXEC_CLIENT_LIMIT, "RFA_EXEC_CLIENT_LIMIT", 429, "Client has its share",                               \
      "wait until jobs of this client end, or cancel some")                                                  \
    X(EXEC_TIMEOUT, "RFA_EXEC_TIMEOUT", 504, "Operation timed out", "retry later")                           \
    X(EXEC_IDEMPOTENCY_CONFLICT, "RFA_EXEC_IDEMPOTENCY_CONFLICT", 409,                                       \
      "Idempotency key reused with another body", "send the first body again or use a new key")              \
    X(EXEC_WORKER_UNAVAILABLE, "RFA_EXEC_WORKER_UNAVAILABLE", 503, "No workers available", "start a worker") \
    X(STORAGE_DB_ERROR, "RFA_STORAGE_DB_ERROR", 503, "Database error", "retry later")                        \
    X(STORAGE_UNAVAILABLE, "RFA_STORAGE_UNAVAILABLE", 503, "Storage unavailable", "retry later")             \
    X(DEPENDENCY_TIMEOUT, "RFA_DEPENDENCY_TIMEOUT", 504, "Dependency timed out", "retry later")              \
    X(CONFIG_INVALID, "RFA_CONFIG_INVALID", 503, "Server misconfigured", "fix the configuration")            \
    X(INTERNAL, "RFA_INTERNAL", 500, "Internal error", "retry later; report it if it persists")              \
    X(LEASE_LOST, "lease_lost", 409, "Lease lost", "stop work; another worker may have it")                  \
    X(NOT_RELEASABLE, "not_releasable", 409, "Not releasable", "finish it instead")                          \
    X(ITEM_MALFORMED, "malformed", 400, "Malformed item", "fix what the item's detail names; send it again") \
    X(EVENT_INVALID, "EVENT_INVALID", 400, "Invalid run event", "fix the field named in the detail")         \
    X(IDEMPOTENCY_KEY_MISMATCH, "IDEMPOTENCY_KEY_MISMATCH", 422, "Idempotency key does not fit the event",   \
      "derive it as section 3.1 of the contract says")                                                       \
    X(EVENT_ID_CONFLICT, "EVENT_ID_CONFLICT", 409, "Event id used before",                                   \
      "use a new UUID for each event, or ask event-ids for the one it has")                                  \
    X(ENVELOPE_MISMATCH, "ENVELOPE_MISMATCH", 409, "Event of another run",                                   \
      "tenantId, projectId and environmentId are those of the run's first event")                            \
    X(INVALID_TRANSITION, "INVALID_TRANSITION", 409, "Invalid transition",                                   \
      "look at the run's state; this event stays refused")                                                   \
    X(PLAN_INVALID, "PLAN_INVALID", 400, "Invalid plan", "fix what the detail names")                        \
    X(PLAN_CONFLICT, "PLAN_CONFLICT", 409, "Plan version used before", "put it as a new planVersion")        \
    X(PLAN_NOT_FOUND, "PLAN_NOT_FOUND", 404, "Plan not found", "put the plan first")                         \
    X(RUN_INVALID, "RUN_INVALID", 400, "Invalid run", "fix what the detail names")                           \
    X(RUN_CONFLICT, "RUN_CONFLICT", 409, "Run id used before", "use another runId, or none")                 \
    X(RUN_NOT_FOUND, "RUN_NOT_FOUND", 404, "Run not found", "check the run id")                              \
    X(RUN_NOT_EXTERNAL, "RUN_NOT_EXTERNAL", 409, "Weir executes this run", "only its own engine appends")    \
    X(AUTHZ_DENIED, "AUTHZ_DENIED", 403, "Not allowed", "ask for a role that may do this")                   \
    X(RUN_HIDDEN, "AUTHZ_DENIED", 404, "Not found, or not yours", "check the run id")                        \
    X(AUTHZ_REASON_REQUIRED, "AUTHZ_REASON_REQUIRED", 403, "Reason required", "say why in audit.reason")     \
    X(AUTHZ_TENANT_FORBIDDEN, "AUTHZ_TENANT_FORBIDDEN", 403, "Another tenant's",                             \
      "use a token of the tenant")                                                                           \
    X(SIGNAL_DUPLICATE, "SIGNAL_DUPLICATE", 409, "Signal id used before", "use a new signalId")              \
    X(SIGNAL_NOT_FOUND, "SIGNAL_NOT_FOUND", 404, "Decision not found", "check the id")                       \
    X(SIGNAL_INVALID_PAYLOAD, "SIGNAL_INVALID_PAYLOAD", 400, "Invalid signal", "fix what the detail names")  \
    X(RUN_TERMINAL, "RUN_TERMINAL", 409, "Run has ended", "start another run, or RETRY_RUN")                 \
    X(STEP_NOT_TERMINAL, "STEP_NOT_TERMINAL", 409, "Step has not ended", "wait until it has")                \
    X(STEP_TERMINAL, "STEP_TERMINAL", 409, "Step has ended", "only a step that has not ended can change")    \
    X(STORE_CORRUPT, "RFA_STORAGE_CORRUPT", 503, "Stored row refused", "run weir verify")                    \
    X(STORE_FSYNC, "RFA_STORAGE_FSYNC", 503, "Disk refused to sync", "core restarts by itself")              \
    X(STORE_LOST, "RFA_STORAGE_LOST", 503, "Database lost", "an operator has to restore it")

#define X(name, wire, http, title, advice) ERR_##name,
enum err_code { ERR_LIST(X) ERR_CODE_COUNT };
#undef X

struct err {
    enum err_code code;
    int retry_after_s; /* 0: none; else sent as Retry-After */
    bool conflict;     /* of a shared store: others were faster; load and decide again */
    bool no_room;      /* the disk is full: it may be tried again when there is room */
    bool for_log; /* detail may name hosts and users behind us: for the log, not for answers (err_told) */
    char detail[256];
};

#define MUST_CHECK  __attribute__((warn_unused_result))
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Fills *err and gives the code back, so a caller writes: return err_set(err, ERR_X, "..."). */
enum err_code err_set(struct err *err, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The text for the caller: the detail, or a hint that the log has it; the title when there is none. */
const char *err_told(const struct err *err);

const char *err_wire(enum err_code code);   /* "RFA_..." */
const char *err_title(enum err_code code);  /* short, same for the same code */
const char *err_advice(enum err_code code); /* advice for the caller */
int err_http_status(enum err_code code);

#endif
