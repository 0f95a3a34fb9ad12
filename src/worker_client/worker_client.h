/* worker_client/worker_client.h - speaks the worker API to core: claim, start, heartbeat, finish,
 * release. HTTP/1.1 over core's Unix socket.
 *
 * Owner:   one thread. The caller owns the event loop: it waits for worker_client_fd() to become
 *          readable or for worker_client_deadline_ms() to pass, then calls worker_client_work().
 *          Answers arrive through callbacks, only ever from inside worker_client_work().
 * Bounded: at most `calls_max` calls are in flight; an answer larger than its call can explain is
 *          cut off. Connections are kept alive and reused.
 * Away:    when core gives no answer (it restarts, or sheds load) the client backs off by itself:
 *          worker_client_can_call() is false until worker_client_ready_at_ms(). A call without an
 *          answer may have been carried out; repeating it with the same token is always safe.
 * Fails:   through the callback; never logs, never exits. */
#ifndef WEIR_WORKER_CLIENT_H
#define WEIR_WORKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

enum {
    WORKER_CLAIM_MAX = 256,       /* tasks in one claim, by contract */
    WORKER_WAIT_MS_MAX = 30000,   /* longest long poll, by contract */
    WORKER_BATCH_MAX = 1000,      /* tasks in any other call */
    WORKER_BACKOFF_MS_MIN = 50,   /* first wait while core is away; doubles ... */
    WORKER_BACKOFF_MS_MAX = 2000, /* ... up to this */
};

struct worker_client;
struct worker_call; /* one call in flight; dies when its callback returns */

/* Whether core could be reached; from inside worker_client_work(). Calls that fail together count once. */
typedef void worker_link_fn(void *self, bool works, const char *why);

struct worker_client_config {
    const char *socket_path; /* core's Unix socket */
    int64_t timeout_ms;      /* of one call; a claim gets its wait on top */
    uint32_t calls_max;
    const struct clock *clock;
    worker_link_fn *link; /* told of each counted failure to reach core, and of the first answer after one */
    void *link_self;
};

struct worker_claim {
    struct str worker_id;
    const struct str *queues;
    size_t queue_count;
    uint32_t max;    /* 1 to WORKER_CLAIM_MAX */
    int64_t wait_ms; /* 0 to WORKER_WAIT_MS_MAX */
    bool start;      /* claimed tasks count as started */
};

struct worker_task_ref {
    struct str task_id, token;
};

struct worker_finish {
    struct worker_task_ref ref;
    bool success;
    struct str result;                    /* a JSON object; absent: none */
    struct str error_code, error_message; /* of a failure */
    bool retryable;
};

/* A claimed task. Texts and JSON are borrowed: they die when the callback returns. */
struct worker_task {
    struct worker_task_ref ref;
    bool is_step;
    struct str job_id, run_id, step_id, queue, traceparent; /* absent where not given */
    int64_t attempt;
    int64_t max_runtime_ms;        /* 0: no limit given */
    const struct json *definition; /* NULL when absent */
    const struct json *payload;    /* NULL when absent */
};

struct worker_result {
    struct str task_id;
    bool ok;
    struct str code; /* of a refusal: "lease_lost", "not_releasable", ... */
    bool cancel;     /* stop working on it, report nothing */
};

enum worker_answer_kind {
    WORKER_ANSWERED, /* tasks or results are filled */
    WORKER_REFUSED,  /* core answered another status than 200: nothing was done */
    WORKER_AWAY,     /* no usable answer: the call may or may not have had its effect */
};

struct worker_answer {
    enum worker_answer_kind kind;
    int http_status;                 /* 0 when there was none */
    const char *detail;              /* for people; "" when answered */
    const struct worker_task *tasks; /* of a claim: at most what it asked for */
    size_t task_count;
    const struct worker_result *results; /* of the other calls, in core's order */
    size_t result_count;
    const struct json *root; /* of worker_client_post(): all of it; NULL unless answered */
};

/* A call that is in no contract: between processes of one program, over the Unix socket. */
struct worker_post {
    const char *path;
    struct str body;         /* JSON */
    int64_t wait_ms;         /* core may take so long to answer, besides the time of any call */
    size_t answer_bytes_max; /* a longer answer counts as none */
};

typedef void worker_answer_fn(void *self, const struct worker_answer *answer);

struct worker_client *worker_client_new(const struct worker_client_config *config);
/* Drops calls in flight without their callbacks. NULL is fine; always returns NULL. */
struct worker_client *worker_client_free(struct worker_client *c);

int worker_client_fd(const struct worker_client *c);
int64_t worker_client_deadline_ms(const struct worker_client *c); /* mono; INT64_MAX: none */
void worker_client_work(struct worker_client *c);

bool worker_client_can_call(const struct worker_client *c);
int64_t worker_client_ready_at_ms(const struct worker_client *c); /* mono; 0: core is not away */

/* Each may be called only while worker_client_can_call(). Everything handed in is copied. */
struct worker_call *worker_client_claim(struct worker_client *c, const struct worker_claim *claim,
                                        worker_answer_fn *answered, void *self);
struct worker_call *worker_client_start(struct worker_client *c, const struct worker_task_ref *tasks,
                                        size_t count, worker_answer_fn *answered, void *self);
struct worker_call *worker_client_heartbeat(struct worker_client *c, const struct worker_task_ref *tasks,
                                            size_t count, worker_answer_fn *answered, void *self);
struct worker_call *worker_client_finish(struct worker_client *c, const struct worker_finish *tasks,
                                         size_t count, worker_answer_fn *answered, void *self);
struct worker_call *worker_client_release(struct worker_client *c, const struct worker_task_ref *tasks,
                                          size_t count, worker_answer_fn *answered, void *self);
struct worker_call *worker_client_post(struct worker_client *c, const struct worker_post *post,
                                       worker_answer_fn *answered, void *self);
/* Gives the call up: its connection is closed and its callback never comes. */
void worker_client_abandon(struct worker_client *c, struct worker_call *call);

#endif
