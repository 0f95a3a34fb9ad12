/* cli/simulate/calls.h - many HTTP calls at once in one thread, and patience with the server.
 *
 * A call ends with an answer that means something. 429 and 503 are waited out (Retry-After) and asked
 * again, and so is a connection that broke: everything sent here is safe to repeat. When the server has
 * been away for SIM_AWAY_MS_MAX, sim_calls_away says so and nothing more is called back. At most
 * SIM_CALLS_MAX are under way; streams are counted apart. Callbacks may send; they run inside
 * sim_calls_work. */
#ifndef WEIR_SIMULATE_CALLS_H
#define WEIR_SIMULATE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "cli/http_call.h"

enum {
    SIM_CALLS_MAX = 64,
    SIM_STREAMS_MAX = 512,
    SIM_AWAY_MS_MAX = 60000,
    SIM_RETRY_AFTER_S_MAX = 120, /* longer is a quota of the day: nobody waits for that */
    SIM_ANSWER_BYTES_MAX = 64 * 1024 * 1024,
};

/* Whose key it is, and how long the server asked it to wait. */
struct sim_caller {
    char key[256];
    const char *token; /* sent instead of the key, unless NULL; borrowed */
    int64_t blocked_until_ms;
    int64_t refusals; /* 429 so far */
};

struct sim_answer {
    long status;
    const struct json *json; /* NULL when there is none; lives as long as the callback */
    bool replayed;           /* Idempotency-Replayed: true */
};
typedef void sim_answer_fn(void *self, const struct sim_answer *answer);
typedef bool sim_event_fn(void *self, const struct json *event); /* false: heard enough */

struct sim_request {
    struct sim_caller *caller;
    const char *method;  /* static text */
    struct str path;     /* copied */
    struct str body;     /* copied; absent: none */
    sim_event_fn *event; /* NULL: no stream; else text/event-stream is asked for */
    sim_answer_fn *done; /* once, also behind the last event */
    void *self;
};

struct sim_calls;

struct sim_calls *sim_calls_new(const char *base_url, struct http_trust trust);
struct sim_calls *sim_calls_free(struct sim_calls *c); /* NULL is fine; no callback runs any more */
void sim_calls_send(struct sim_calls *c, const struct sim_request *r);
/* Sends, receives, calls back; waits at most timeout_ms for something to happen there or on `fd`. */
void sim_calls_work(struct sim_calls *c, int fd, int timeout_ms);
bool sim_calls_away(const struct sim_calls *c); /* the server has been away for too long: calls are lost */

/* Why no call has succeeded for longer_than_ms, while some failed; NULL: all is well. */
const char *sim_calls_fault(const struct sim_calls *c, int64_t longer_than_ms);

struct sim_calls_count {
    uint64_t answered, refused_429, refused_503, broken;
};
struct sim_calls_count sim_calls_count(const struct sim_calls *c);

#endif
