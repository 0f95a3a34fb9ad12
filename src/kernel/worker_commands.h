/* kernel/worker_commands.h - what workers ask: claim, start, heartbeat, finish, release; and what is asked
 * for a worker that hung up before it heard of its claim: give_back.
 *
 * Each command is a batch of items; an item's refusal is its own (`code`), never the batch's. Every item
 * but a claim carries the task's current token; a stale one gives LEASE_LOST and changes nothing: the check
 * and the change are one transaction. `client` 0 is a built-in domain, which may hold any task.
 *
 * A finish that comes again, with the same token and outcome, is ok again and changes nothing: a worker that
 * did not get the answer cannot know that there was one. Of a job its rows tell, on any node; of a step the
 * node that took the first finish remembers it until the lease would have ended. */
#ifndef WEIR_KERNEL_WORKER_COMMANDS_H
#define WEIR_KERNEL_WORKER_COMMANDS_H

#include "kernel/kernel.h"
#include "kernel/task_owner.h"

enum { CLAIM_MAX = 256, WORKER_ITEMS_MAX = 1000, PROGRESS_NOTE_BYTES_MAX = 256 };

/* A queue whose name begins like this is a process's of our own; no client may name it. */
enum { QUEUE_OF_DOMAIN = '~' };
static inline bool queue_is_of_domain(struct str name)
{
    return name.len && name.ptr[0] == QUEUE_OF_DOMAIN;
}

struct claimed_task {
    int64_t id, token, client, attempt, lease_expires_ms;
    uint64_t low;
    const struct task_owner *owner;
    int64_t head;    /* the work: the job, the delivery a stream sends next, the step's index */
    int64_t subject; /* as the task's row has it: the run of a step */
};

struct claim_command {
    struct command base;
    struct str worker_id;
    const struct str *queues;
    size_t queue_count;
    int64_t client;
    uint32_t max;
    bool start; /* claimed tasks count as started at once */
    int64_t wait_ms;
    int64_t wait_until_ms;      /* set at the first decide */
    struct claimed_task *tasks; /* room for max */
    uint32_t task_count;
};
extern const struct command_type claim_command_type;

struct worker_item {
    int64_t id, token;
    uint64_t low;
    struct task_outcome outcome;   /* finish only */
    struct task_return release;    /* release only */
    struct task_progress progress; /* heartbeat only, and only with has_progress */
    bool has_progress;
    bool is_bad; /* it could not be read: refused already, by `code` */
    /* answer */
    enum err_code code;
    struct str detail; /* what is wrong with the item; absent: the code says it all */
    bool cancel;
    int64_t lease_expires_ms;
};

struct worker_command {
    struct command base;
    int64_t client;
    struct str queues; /* that the caller is limited to; absent: none. A task of another is not its own */
    struct worker_item *items;
    size_t item_count;
};
extern const struct command_type start_command_type, heartbeat_command_type, finish_command_type,
    release_command_type, give_back_command_type;

/* Text form of a token: opaque to workers. */
struct str token_text(int64_t token, char out[24]);
bool token_parse(struct str text, int64_t *ret_token);

#endif
