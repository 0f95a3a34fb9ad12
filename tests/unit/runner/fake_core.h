/* A small core for tests: the worker API over a Unix socket, one thread, faults on demand.
 *
 * It keeps tasks in memory, checks tokens as core does, and notes everything a test may ask about.
 * Tests read it through snapshots and wait for facts, never for time. */
#ifndef WEIR_TEST_FAKE_CORE_H
#define WEIR_TEST_FAKE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_verb { FAKE_CLAIM, FAKE_START, FAKE_HEARTBEAT, FAKE_FINISH, FAKE_RELEASE, FAKE_REPORT, FAKE_VERBS };
enum fake_state { FAKE_QUEUED, FAKE_ASSIGNED, FAKE_RUNNING, FAKE_FINISHED, FAKE_CANCELLED };

struct fake_task {
    enum fake_state state;
    int token;            /* rises with every claim */
    char worker_id[64];   /* of the last claim */
    char definition[256]; /* "" : none */
    int64_t attempt, max_runtime_ms;
    int64_t started_at_ms, finished_at_ms; /* mono */
    int starts, heartbeats, finishes, releases, refusals;
    bool success, retryable;
    char error_code[32];
    char *result; /* JSON text, or NULL; owned by the fake */
};

struct fake_counts {
    int calls[FAKE_VERBS];
    int claims_waiting, claims_waiting_max; /* long polls at one time */
    int claim_max_asked;                    /* the largest "max" */
    int held_max;                           /* most tasks one worker held at one time */
    int workers;                            /* different worker ids seen */
    int finished, heartbeat_tasks_max;      /* the most tasks in one heartbeat */
    size_t finish_bytes_max;                /* the largest finish body */
    int reconnects;                         /* that it was told of; of the last one: */
    int64_t reconnect_ms, reconnect_attempts;
    char reporter[32];
    int connections;
};

struct fake_core;

/* Listens at once; answers after fake_core_run. */
struct fake_core *fake_core_new(const char *socket_path);
void fake_core_run(struct fake_core *f);
void fake_core_stop(struct fake_core *f); /* the socket file and all connections go; tasks stay */
void fake_core_free(struct fake_core *f);

/* Index of the new task; ids are "task-<index>" and "job-<index>". */
int fake_core_add(struct fake_core *f, const char *definition, int64_t max_runtime_ms, int64_t attempt);
struct fake_task fake_core_task(struct fake_core *f, int index);
struct fake_counts fake_core_counts(struct fake_core *f);
void fake_core_cancel(struct fake_core *f, int index);     /* heartbeats answer cancel:true */
void fake_core_lose_lease(struct fake_core *f, int index); /* back to QUEUED under a new token */

/* The next `times` calls of the verb are answered with this status and change nothing. */
void fake_core_refuse(struct fake_core *f, enum fake_verb verb, int status, int times);
/* The next `times` calls are carried out, then the connection is cut instead of an answer. */
void fake_core_cut_answer(struct fake_core *f, enum fake_verb verb, int times);
/* Calls of the verb are not answered until the hold is taken off. */
void fake_core_hold(struct fake_core *f, enum fake_verb verb, bool hold);
/* A finish body above this is refused with 413. */
void fake_core_body_limit(struct fake_core *f, size_t bytes);

typedef bool fake_fact(struct fake_core *f, void *self);
/* Waits until the fact holds; looked at again after every call. False after timeout_ms. */
bool fake_core_await(struct fake_core *f, fake_fact *fact, void *self, int64_t timeout_ms);

#endif
