/* api/engine/policy_point.h - the policy decision point that the operator may have named (engine.policy_url):
 * asked about signals before they are decided, by way of a gateway, for core does not connect out.
 *
 * Asked:    POST URL {"input":{"actor":{"userId","roles","tenantId"},"signal":{"type","payload"},"tenantId",
 *           "runId","audit":{"reason"}}}; the answers it understands are in domains/gateway/policy_answer.h.
 *           Not asked: about what the point has no say in (engine/policy.h), about a signalId that was
 *           decided before, and about signals of the System itself.
 * No answer: within engine.policy_timeout_ms, or none of use, or no gateway, or too many questions at once
 *           (policy_queue.h): engine.policy_fallback says. `deny` refuses and records it; `allow_with_flag`
 *           allows it; `builtin` lets the table of roles decide. The record says so, an alert asks for review
 *           (POLICY_REVIEW), and the failure is told as degraded (runtime/failure_modes.h).
 * Waiting:  the request is parked; no thread waits. */
#ifndef WEIR_API_ENGINE_POLICY_POINT_H
#define WEIR_API_ENGINE_POLICY_POINT_H

#include "api/api.h"
#include "engine/signal_commands.h"

struct policy_point;

struct policy_point *policy_point_new(struct api *a);           /* NULL: none is named */
struct policy_point *policy_point_free(struct policy_point *p); /* NULL is fine; always returns NULL */
/* Answers every parked request: the server ends. To be called before the HTTP threads end. NULL is fine. */
void policy_point_stop(struct policy_point *p);
/* How many questions are open, and how many can be; NULL: zeroes. */
void policy_point_depth(struct policy_point *p, int64_t *ret_depth, int64_t *ret_capacity);
/* How many questions were asked, and how many the fallback answered. NULL: zeroes. */
void policy_point_counts(struct policy_point *p, uint64_t *ret_asked, uint64_t *ret_unanswered);

/* Goes on with `then` on the call's thread, now or once command->given is there; or answers the call. */
void policy_point_ask(struct call *c, struct signal_command *command,
                      void (*then)(struct call *c, struct signal_command *command));

/* The gateway's side, over the Unix socket and in no contract: it is between processes of one program.
 * POST .../policy:take {"instance","birth","max","wait_ms"} gives {"questions":[{"id","timeout_ms","body"}]};
 * POST .../policy:answer {"answers":[{"id","answered","allowed","requires_approval","reason"}]} gives {}.
 * False: the request is neither. */
#define POLICY_TAKE_PATH   "/internal/v1/policy:take"
#define POLICY_ANSWER_PATH "/internal/v1/policy:answer"
bool policy_point_serve(struct policy_point *p, struct http_exchange *x);

#endif
