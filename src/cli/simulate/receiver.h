/* cli/simulate/receiver.h - where callbacks arrive: small HTTP servers on loopback ports of their own.
 *
 * One port for each behaviour, so that to the sender they are different endpoints and a slow one may
 * never delay another. One epoll descriptor for all of them, watched by the simulator's loop: no thread.
 * Bounded: RECEIVER_CONNECTIONS_MAX connections, RECEIVER_REQUEST_BYTES_MAX a request; what is larger or
 * malformed is answered 400 and closed. */
#ifndef WEIR_SIMULATE_RECEIVER_H
#define WEIR_SIMULATE_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cli/simulate/signature.h"

enum {
    RECEIVER_CONNECTIONS_MAX = 2048,
    RECEIVER_REQUEST_BYTES_MAX = 1024 * 1024,
    RECEIVER_SLOW_MS = 250,
};

/* X(name, what it does with the attempts of one message) */
#define RECEIVER_BEHAVIOURS(X)                                                                               \
    X(OK, "200")                                                                                             \
    X(HANGS, "no answer to the first attempt, then 200")                                                     \
    X(FAILS_ONCE, "500 to the first attempt, then 200")                                                      \
    X(FAILS, "500, always")                                                                                  \
    X(SLOW, "200 after RECEIVER_SLOW_MS")
#define X(name, words) RECEIVER_##name,
enum receiver_behaviour { RECEIVER_BEHAVIOURS(X) RECEIVER_BEHAVIOUR_COUNT };
#undef X

struct receiver_message {
    enum receiver_behaviour behaviour;
    struct str path; /* "/17": what the URL of the callback ended in */
    struct signed_message signed_message;
};
/* Called for each whole request; gives how many attempts of this message (webhook-id) came before it. */
typedef int receiver_fn(void *self, const struct receiver_message *m);

struct receiver;

/* NULL with errno set when no port could be had. */
struct receiver *receiver_new(receiver_fn *arrived, void *self);
struct receiver *receiver_free(struct receiver *r); /* NULL is fine; always returns NULL */
int receiver_fd(const struct receiver *r);          /* readable when receiver_work has something to do */
int receiver_port(const struct receiver *r, enum receiver_behaviour behaviour);
void receiver_work(struct receiver *r, int64_t now_ms); /* never blocks */

#endif
