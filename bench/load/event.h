/* load/event.h - run events as an engine outside writes them: endless, each valid after those before it,
 * with an id of its own and the key computed from its parts.
 *
 * A source is one producer of one run. Its steps are its own, so several may write to the same run at once
 * and all of what they write is valid: a step starts, fails, and is tried again when all others had their
 * turn. */
#ifndef WEIR_BENCH_EVENT_H
#define WEIR_BENCH_EVENT_H

#include <stdint.h>

#include "base/str.h"

enum { EVENT_STEPS = 1000 }; /* of a source */

struct event_source {
    uint32_t run, producer; /* numbers in their names */
    uint64_t next;
};

/* The common part of all events of a measurement. */
struct event_form {
    char prefix[24]; /* of the runs' names, new each time */
    char emitted[32];
    struct strbuf payload;
};

void event_form_make(struct event_form *f, uint32_t payload_bytes);
void event_form_free(struct event_form *f);
void event_run_id(struct strbuf *out, const struct event_form *f, uint32_t run); /* added */
/* The events that open a run, for whoever is first; then event_add. Both are added to out. */
void event_add_opening(struct strbuf *out, const struct event_form *f, uint32_t run);
void event_add(struct strbuf *out, const struct event_form *f, struct event_source *s);

#endif
