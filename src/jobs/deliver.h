/* jobs/deliver.h - an event becomes a message for each receiver, in the write that makes it.
 *
 * Receivers of a job's events: its callback, and the enabled webhooks of its client that want events of that
 * name. Each (receiver, job) is a stream: a task of owner DELIVERY whose refs are deliveries in order. One of
 * them is sent at a time, so a receiver gets the events of a job in their order. The result of an attempt is
 * decided in delivery_owner.c.
 *
 * A finished delivery that is sent again is a dead letter: a stream of its own, in a queue of its own
 * ("~replay.N", by the hash of its id), so that it neither waits for live deliveries nor delays them.
 *
 * A stream's id is made of its key, so it is found without an index; its 60th bit is set, which no id that is
 * a time has until the year 4000. */
#ifndef WEIR_JOBS_DELIVER_H
#define WEIR_JOBS_DELIVER_H

#include "kernel/task_owner.h"
#include "lifecycle/delivery_lifecycle.h"

enum {
    DELIVERY_SLOTS = 128,      /* queues "~deliver.0" to "~deliver.127": PARTITION_SLOTS, by stream */
    DELIVERY_QUEUE_MAX = 16,   /* bytes of such a name */
    DELIVERY_MARGIN_MS = 5000, /* beyond webhooks.timeout_ms, until a sender counts as stuck */
};

extern const struct task_owner delivery_task_owner;

/* A job with a callback, new or taken up again: a stream waits for its events. Before its first event. */
void deliver_open_callback(struct unit *u, const struct job_row *job, struct task *t);
/* An event of a live job was appended to the log. */
void deliver_event(struct unit *u, struct task *t, const struct event *e);

/* The client's other webhooks that want to know hear that this one was disabled. */
void deliver_disabled(struct unit *u, const struct webhook_row *webhook);

/* Puts a delivery at the end of the stream of (webhook, job); either may be 0. The row is the caller's. */
void deliver_append(struct unit *u, const struct delivery_row *d);
/* One that was sent before, as a dead letter: under pressure it waits as a retry does. */
void deliver_append_again(struct unit *u, const struct delivery_row *d);
/* A new delivery to a webhook, or to a job's callback: event number `event` of a job; or, without a job, that
 * webhook number `event` was disabled, or a test (0). In the arena. */
struct delivery_row *deliver_new(struct unit *u, int64_t client, int64_t webhook, int64_t job, int64_t event);

int64_t deliver_stream_id(int64_t webhook, int64_t job);
int64_t deliver_replay_id(int64_t delivery);            /* of the stream of a dead letter */
int64_t deliver_webhook(const struct task_row *stream); /* 0: a callback's */
struct task *deliver_find_stream(struct unit *u, int64_t webhook, int64_t job); /* NULL: none */
/* When a stream that could be sent at `at_ms` may be: not before the pause of a closed receiver is over.
 * Every one has its time then, so that there is always somebody to try. */
int64_t deliver_not_before_ms(struct unit *u, const struct task *s, int64_t at_ms);
/* Nothing is left to send, and there may be more later: it waits for no time. */
void deliver_drained(struct unit *u, struct task *s);
int64_t delivery_backoff_ms(const struct settings *s, int64_t delivery, int64_t attempt);

#endif
