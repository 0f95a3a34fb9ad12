/* cli/top_view.h - one frame of `weir top`: the difference of two looks at a server, as tables. Only draws.
 * */
#ifndef WEIR_CLI_TOP_VIEW_H
#define WEIR_CLI_TOP_VIEW_H

#include <stdio.h>

#include "base/json.h"
#include "cli/metrics_text.h"

/* The answers of the server at one moment. */
struct top_look {
    struct metrics_text metrics;
    const struct json *topology; /* GET /ops/v1/topology */
    const struct json *ready;    /* GET /readyz */
    int64_t mono_ms, wall_ms;
};

struct top_frame {
    const char *url;
    const struct top_look *before, *now; /* rates are of what lies between */
    size_t width;                        /* of the terminal; 0: as wide as it gets */
    bool colour;
};

void top_draw(const struct top_frame *f, FILE *out);
/* The same as one JSON object, for programs. */
void top_write_json(const struct top_frame *f, struct strbuf *out);

#endif
