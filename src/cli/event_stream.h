/* cli/event_stream.h - text/event-stream, cut into events (the parts of it that Weir sends). Pure.
 *
 * Bytes may come in any pieces. A line ends by LF, CR or CRLF; an empty line ends an event; lines of
 * data are joined by LF; comments and unknown fields are passed over. */
#ifndef WEIR_CLI_EVENT_STREAM_H
#define WEIR_CLI_EVENT_STREAM_H

#include "base/str.h"

enum { EVENT_STREAM_BYTES_MAX = 4 * 1024 * 1024 }; /* of one event */

struct event_stream {
    struct strbuf line, data, last_id;
    bool after_cr;
    bool broken; /* an event is larger than the bound */
};

/* Calls fn for each event that is complete; false from it stops, and is given back. */
typedef bool event_stream_fn(void *self, struct str id, struct str data);
bool event_stream_feed(struct event_stream *s, struct str bytes, event_stream_fn *fn, void *self);
void event_stream_reset(struct event_stream *s); /* before another connection; keeps last_id */
void event_stream_free(struct event_stream *s);

#endif
