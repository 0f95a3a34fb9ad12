/* jobs/queue_commands.h - what a client does to one of its queues (pause, resume, set defaults), and to
 * many of its jobs at once (cancel, retry).
 *
 * A paused queue hands out nothing of its client; submits go on, and so does what runs. Each command is one
 * transaction. A bulk call of the API is several bulk commands, one after the other: each is all or nothing,
 * the call as a whole is not. */
#ifndef WEIR_JOBS_QUEUE_COMMANDS_H
#define WEIR_JOBS_QUEUE_COMMANDS_H

#include "kernel/kernel.h"
#include "lifecycle/job_lifecycle.h"

enum queue_action { QUEUE_PAUSE, QUEUE_RESUME, QUEUE_SET };

/* The defaults for jobs of the queue; -1: not set. */
struct queue_defaults {
    int64_t retry; /* enum job_retry */
    int64_t max_retries, queue_ttl_seconds, retention_seconds;
};

struct queue_command {
    struct command base;
    int64_t client;
    struct str queue; /* a valid name */
    enum queue_action action;
    struct queue_defaults defaults; /* QUEUE_SET: the new ones, as a whole. Answer: those that hold now */
    /* answer */
    bool paused, changed;
};
extern const struct command_type queue_command_type;

struct queue_defaults queue_defaults_of(const struct queue_row *row); /* NULL: none are set */

enum bulk_action { BULK_CANCEL, BULK_RETRY };
enum { BULK_IDS_MAX = 500 }; /* of one command: later commands do not wait long */

struct bulk_command {
    struct command base;
    enum bulk_action action;
    int64_t client;
    struct str queues;  /* that the caller is limited to; absent: none (lifecycle/key_power.h) */
    int64_t only_state; /* cancel: those that are still in it; -1: unfinished ones */
    const char *reason; /* cancel: in the event; NULL: none */
    /* Jobs that a read found a moment ago. Those that are not the client's or have moved on are passed over.
     * */
    const int64_t *ids;
    size_t id_count;
    /* answer */
    int64_t changed;
    size_t handled; /* ids that were looked at: all, unless is_full */
    bool is_full;   /* retry: the queue took no more */
};
extern const struct command_type bulk_command_type;

#endif
