/* cli/traffic/calls.h - many HTTP calls at once in one thread, and patience with the server.
 *
 * A call ends with an answer that means something. 429 and 503 are waited out (Retry-After) and asked
 * again, and so is a connection that broke: everything sent here is safe to repeat. When the server has
 * been away for TRAFFIC_AWAY_MS_MAX, traffic_calls_away says so and nothing more is called back. At most
 * TRAFFIC_CALLS_MAX are under way; streams are counted apart. Callbacks may send; they run inside
 * traffic_calls_work. */
#ifndef WEIR_TRAFFIC_CALLS_H
#define WEIR_TRAFFIC_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "cli/http_call.h"

enum {
    TRAFFIC_CALLS_MAX = 64,
    TRAFFIC_STREAMS_MAX = 512,
    TRAFFIC_AWAY_MS_MAX = 60000,
    TRAFFIC_RETRY_AFTER_S_MAX = 120, /* longer is a quota of the day, which is not waited for */
    TRAFFIC_ANSWER_BYTES_MAX = 64 * 1024 * 1024,
};

/* The owner of a key, and how long the server asked it to wait. */
struct traffic_caller {
    char key[256];
    const char *token; /* sent instead of the key, unless NULL; borrowed */
    int64_t blocked_until_ms;
    int64_t refusals; /* 429 so far */
};

struct traffic_answer {
    long status;
    const struct json *json; /* NULL when there is none; lives as long as the callback */
    bool replayed;           /* Idempotency-Replayed: true */
};
typedef void traffic_answer_fn(void *self, const struct traffic_answer *answer);
typedef bool traffic_event_fn(void *self, const struct json *event); /* false: heard enough */

struct traffic_request {
    struct traffic_caller *caller;
    const char *method;      /* static text */
    struct str path;         /* copied */
    struct str body;         /* copied; absent: none */
    traffic_event_fn *event; /* NULL: no stream; else text/event-stream is asked for */
    traffic_answer_fn *done; /* once, also behind the last event */
    void *self;
};

struct traffic_calls;

struct traffic_calls *traffic_calls_new(const char *base_url, struct http_trust trust);
struct traffic_calls *
traffic_calls_free(struct traffic_calls *c); /* NULL is fine; no callback runs any more */
void traffic_calls_send(struct traffic_calls *c, const struct traffic_request *r);
/* The same without a body. */
void traffic_calls_ask(struct traffic_calls *c, struct traffic_caller *caller, const char *method,
                       struct str path, traffic_answer_fn *done, void *self);
/* Sends, receives, calls back; waits at most timeout_ms for something to happen there or on `fd`. */
void traffic_calls_work(struct traffic_calls *c, int fd, int timeout_ms);
bool traffic_calls_away(
    const struct traffic_calls *c); /* the server has been away for too long: calls are lost */

/* Why no call has succeeded for longer_than_ms, while some failed; NULL: all is well. */
const char *traffic_calls_fault(const struct traffic_calls *c, int64_t longer_than_ms);

struct traffic_calls_count {
    uint64_t answered, refused_429, refused_503, broken;
};
struct traffic_calls_count traffic_calls_count(const struct traffic_calls *c);

#endif
