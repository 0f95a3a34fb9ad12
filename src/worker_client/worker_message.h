/* worker_client/worker_message.h - the bodies of the worker API: requests out, answers in.
 *
 * Pure text work, apart from the transport so that it can be tested and fuzzed alone. Answers come
 * from outside: anything malformed is an error, an item without its ids is left out. */
#ifndef WEIR_WORKER_MESSAGE_H
#define WEIR_WORKER_MESSAGE_H

#include "base/arena.h"
#include "base/err.h"
#include "worker_client/worker_client.h"

void worker_message_claim(const struct worker_claim *claim, struct strbuf *out);
void worker_message_refs(const struct worker_task_ref *tasks, size_t count, struct strbuf *out);
void worker_message_finish(const struct worker_finish *tasks, size_t count, struct strbuf *out);

/* Fill tasks (at most `max` of them) or results of *ret_answer, in the arena. */
MUST_CHECK enum err_code worker_message_read_tasks(struct arena *a, struct str body, size_t max,
                                                   struct worker_answer *ret_answer, struct err *err);
MUST_CHECK enum err_code worker_message_read_results(struct arena *a, struct str body,
                                                     struct worker_answer *ret_answer, struct err *err);

#endif
