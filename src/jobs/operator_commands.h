/* jobs/operator_commands.h - what an operator does to a client: suspend, resume, purge its jobs, delete it.
 *
 * Each change is recorded in the transaction that makes it (`operator_actions`); a call that finds nothing
 * to change records nothing. Suspend and resume raise the generation of credentials as a revoked key does, so
 * the next request and every open stream see it. */
#ifndef WEIR_JOBS_OPERATOR_COMMANDS_H
#define WEIR_JOBS_OPERATOR_COMMANDS_H

#include "base/uuid.h"
#include "kernel/kernel.h"
#include "lifecycle/client_lifecycle.h"

enum { OPERATOR_IDS_MAX = 1000 }; /* jobs that one call cancels, keys that one call removes */

struct operator_command {
    struct command base;
    enum operator_action action;
    struct uuid client_id;
    struct str actor; /* the caller, for the record */
    /* purge-jobs: unfinished jobs of the client, delete: its API keys; as a read found them a moment ago. Ids
     * that are not the client's or no longer there are passed over. */
    const int64_t *ids;
    size_t id_count;
    /* answer */
    enum client_state state;
    int64_t changed; /* jobs canceled; keys and webhooks removed */
    bool moved;      /* the client's state is another one now */
};
extern const struct command_type operator_command_type;

#endif
