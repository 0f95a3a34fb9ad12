/* api/engine/policy_queue.h - questions to the policy decision point that wait for their answers, in memory.
 *
 * An exchange that asks is parked with its question; a gateway takes questions with a long poll, asks the
 * point (domains/gateway/policy_asker.h) and brings the answers. Each question is resumed exactly once: by
 * its answer, when its time is over, or at the end.
 *
 * Lost:    a gateway that died has its questions taken again by its next life, if their time allows; those
 *          of a core that died are gone with the requests that asked.
 * Bounded: POLICY_QUESTIONS_MAX questions, their bytes, POLICY_TAKERS_MAX long polls; in time by timeout_ms.
 * Threads: any; one lock, never held while anything waits. A thread of its own watches the time.
 * Nothing is durable: a question decides nothing, its answer travels in the command. */
#ifndef WEIR_API_ENGINE_POLICY_QUEUE_H
#define WEIR_API_ENGINE_POLICY_QUEUE_H

#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/map.h"
#include "engine/policy.h"
#include "http/server.h"

enum {
    POLICY_QUESTIONS_MAX = 1000,
    POLICY_QUESTION_BYTES_MAX = 1 << 20,
    POLICY_QUEUE_BYTES_MAX = 32 << 20,
    POLICY_TAKE_BYTES = 2 << 20, /* a take ends with the question that reaches it */
    POLICY_TAKERS_MAX = 64,
    POLICY_WAIT_MS_MAX = 30000,
};

enum policy_outcome {
    POLICY_OUTCOME_NONE,
    POLICY_ANSWERED,
    POLICY_UNANSWERED, /* the point said nothing of use, or nothing in time */
    POLICY_STOPPED,    /* the server ends */
};

/* Which gateway, and which of its lives. */
struct policy_gateway {
    int64_t instance, birth;
};

/* In the arena of the exchange that asks. The asking thread fills the first part; x->on_resume may read the
 * outcome. */
struct policy_question {
    struct http_exchange *x;
    struct str body; /* JSON: the question for the point */

    enum policy_outcome outcome;
    bool allowed, requires_approval; /* of POLICY_ANSWERED; and so the reason, absent if there was none */
    struct str reason;

    /* the queue's */
    TAILQ_ENTRY(policy_question) link, next_waiting;
    struct map_node node;
    int64_t id, until_ms;
    bool taken;
    struct policy_gateway taken_by;
    char words[POLICY_REASON_MAX];
};

/* A long poll, in its exchange's arena. */
struct policy_taker {
    struct http_exchange *x;
    struct policy_gateway gateway;
    int64_t max, wait_ms;

    TAILQ_ENTRY(policy_taker) link;
    int64_t until_ms;
};

struct policy_queue;

struct policy_queue_config {
    const struct clock *clock;
    int64_t timeout_ms;       /* of a question */
    void (*wake)(void *self); /* after some were resumed: http_wake(). Any thread */
    void *self;
};

struct policy_queue *policy_queue_new(const struct policy_queue_config *config);
struct policy_queue *policy_queue_free(struct policy_queue *q); /* NULL is fine; always returns NULL */
/* Ends all questions and long polls, and turns away later ones. Before the HTTP threads end. */
void policy_queue_stop(struct policy_queue *q);

/* True: x is parked, with on_resume set before. False: there is no room or no time any more, see outcome. */
bool policy_queue_ask(struct policy_queue *q, struct policy_question *question);
/* Writes what is waiting, for this gateway from now on, as elements of an open array:
 * {"id":N,"timeout_ms":MS,"body":{...}}. How many. */
size_t policy_queue_take(struct policy_queue *q, const struct policy_taker *t, struct json_writer *w);
/* True: x is parked until there may be something to take. False: there may be now, or none may wait. */
bool policy_queue_park(struct policy_queue *q, struct policy_taker *t);
/* The client of a resumed long poll is gone: the next one is resumed. */
void policy_queue_pass_on(struct policy_queue *q);
/* Questions that wait or are asked, POLICY_QUESTIONS_MAX at most. */
size_t policy_queue_depth(struct policy_queue *q);
/* Unknown ids are passed over: their time was over. */
void policy_queue_answer(struct policy_queue *q, int64_t id, enum policy_outcome outcome,
                         const struct policy_given *said);

#endif
