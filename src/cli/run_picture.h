/* cli/run_picture.h - a run as a few lines of text for a terminal: head, counts, its steps as a graph (or,
 * when that does not fit, as a list), and advice for the reader. Pure: text in, text out. */
#ifndef WEIR_CLI_RUN_PICTURE_H
#define WEIR_CLI_RUN_PICTURE_H

#include "base/arena.h"
#include "lifecycle/run_lifecycle.h"

struct picture_step {
    struct str id;
    enum step_status status;
    int64_t attempt;
    struct str note;              /* why it failed; absent: nothing to say */
    const uint32_t *dependencies; /* by number */
    size_t dependency_count;
    bool stuck; /* failed, and it is not tried again by itself */
};

struct picture {
    struct str run_id, plan, took;
    enum run_status status;
    const struct picture_step *steps;
    size_t count;
    bool graph; /* the dependencies are known */
};

/* Adds at most `rows` lines of at most `columns` columns, each with a line break; gives how many. */
size_t picture_write(struct arena *a, const struct picture *p, size_t rows, size_t columns, bool colour,
                     struct strbuf *out);

/* "12 SUCCESS, 3 RUNNING, 985 PENDING": only those that there are. */
void picture_summary(const struct picture *p, struct strbuf *out);

#endif
