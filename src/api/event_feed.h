/* api/event_feed.h - a history of events, of a job or of a run, that is followed live (text/event-stream).
 *
 * The feed waits for news, pings, looks again after an error, and ends. Its reader (below) supplies the
 * events. It ends, with an event `end` that gives the reason, when the caller's key or token does
 * (api/credential.h). Belongs to a call that has become a stream, and to the thread of its loop. */
#ifndef WEIR_API_EVENT_FEED_H
#define WEIR_API_EVENT_FEED_H

#include "api/api.h"
#include "api/followers.h"

struct event_feed;

/* Enough for one write: a long history is told in parts, the next when the client has the one before. */
enum { EVENT_FEED_PART_BYTES = 128 * 1024 };

/* Adds the events behind `sent` to `out`, and moves `sent`; stops behind EVENT_FEED_PART_BYTES, with `more`
 * set when there are more. *ret_ends: no event will ever follow. An error is no end: the added events are
 * sent, and the rest is tried again. */
typedef enum err_code event_feed_fn(struct event_feed *f, struct reader *r, bool *ret_ends, struct err *err);

struct event_feed {
    event_feed_fn *read;
    int64_t number;        /* of the job or run, as followers_join has it */
    int64_t sent;          /* the last that the client has */
    struct arena *scratch; /* emptied before each read */
    struct strbuf out;
    bool more; /* it has stopped before the end */

    /* its own */
    struct followed *followed;
    uint64_t news, elsewhere; /* of what it follows and of other nodes, when it last looked */
    int64_t ping_at_ms;
    bool started; /* the first tick sends what there is */
};

/* `read`, `number` and `sent` are set; it lies in the call's arena, perhaps within something larger. */
void event_feed_start(struct call *c, struct event_feed *f);

#endif
