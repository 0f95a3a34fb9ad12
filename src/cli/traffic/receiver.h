/* cli/traffic/receiver.h - where callbacks arrive: a small HTTP server for each job, on loopback.
 *
 * Every job has an address of its own in 127.0.0.0/8, so that to the sender each is another endpoint: one
 * that hangs or fails delays no other, and each is tried at its own pace. One epoll descriptor for all
 * of them, watched by the generator's loop: no thread. Bounded: one listener for each case in flight,
 * RECEIVER_CONNECTIONS_MAX connections, RECEIVER_REQUEST_BYTES_MAX a request; what is larger or malformed
 * is answered 400 and closed. */
#ifndef WEIR_TRAFFIC_RECEIVER_H
#define WEIR_TRAFFIC_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cli/traffic/signature.h"

enum {
    RECEIVER_CONNECTIONS_MAX = 2048,
    RECEIVER_REQUEST_BYTES_MAX = 1024 * 1024,
    RECEIVER_SLOW_MS = 250,
    RECEIVER_URL_MAX = 48,
};

/* X(name, what it does with the attempts of one message) */
#define RECEIVER_BEHAVIOURS(X)                                                                               \
    X(OK, "200")                                                                                             \
    X(HANGS, "no answer to the first attempt, then 200")                                                     \
    X(FAILS_ONCE, "500 to the first attempt, then 200")                                                      \
    X(FAILS, "500 to every attempt of the first message, 200 to the others: what is given up blocks none")   \
    X(SLOW, "200 after RECEIVER_SLOW_MS")
#define X(name, words) RECEIVER_##name,
enum receiver_behaviour { RECEIVER_BEHAVIOURS(X) RECEIVER_BEHAVIOUR_COUNT };
#undef X

/* The requests before this one: the attempts of its message (webhook-id), and whether that message was the
 * first. */
struct receiver_history {
    int attempts;
    bool first_message;
};
/* Called for each whole request; `owner` is the owner of the address. It may not close an address. */
typedef struct receiver_history receiver_fn(void *owner, const struct signed_message *m);

struct receiver;
struct receiver_port;

struct receiver *receiver_new(receiver_fn *arrived);
struct receiver *receiver_free(struct receiver *r); /* closes what is open; NULL is fine; returns NULL */
int receiver_fd(const struct receiver *r);          /* readable when receiver_work has something to do */
void receiver_work(struct receiver *r);             /* never blocks */

/* An address of its own by `number` (numbers that lie close have different ones). NULL with errno set. */
struct receiver_port *receiver_open(struct receiver *r, uint64_t number, enum receiver_behaviour behaviour,
                                    void *owner);
struct receiver_port *receiver_close(struct receiver_port *p); /* and its connections; returns NULL */
const char *receiver_url(const struct receiver_port *p);       /* "http://127.9.8.7:43210/" */

#endif
