/* cli/stream_follow.h - an event stream of the server, followed until its subject has ended, across lost
 * connections: it goes on behind the last event seen and repeats none.
 *
 * It is the follower's own callbacks that say what an event means. All of them are called from within
 * stream_follow(), one at a time; they may make calls of their own. */
#ifndef WEIR_CLI_STREAM_FOLLOW_H
#define WEIR_CLI_STREAM_FOLLOW_H

#include "cli/event_stream.h"
#include "cli/server_call.h"

struct stream_follower {
    const struct invocation *in;
    const char *subject; /* "job": what ends, in messages */
    struct str path;     /* "/v1/jobs/ID/events" */
    const char *timeout; /* as typed; NULL: none */
    int64_t after;       /* go on behind this id; 0: from the beginning */
    server_advice_fn *advice;
    const char *(*bearer)(void *self); /* for each connection anew; NULL: none */
    void (*on_event)(void *self, const struct json *event, struct str source);
    void (*on_idle)(void *self);   /* about once a second, and behind each piece that came; may be NULL */
    bool (*has_ended)(void *self); /* by what on_event has seen */
    bool (*ask_ended)(void *self); /* after a connection ended without that; may be NULL */
    void *self;

    /* the follower's own */
    struct event_stream stream;
    int64_t deadline_ms, ended_since_ms, lost_since_ms;
    bool connected, heard;
};

/* CLI_OK: the subject has ended. CLI_TIMEOUT: the time is over. Else what went wrong; told. */
int stream_follow(struct stream_follower *f);

#endif
