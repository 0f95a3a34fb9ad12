/* schema/embedded.h - what tools/embed.py generates: the files of contracts/ as constants. */
#ifndef WEIR_SCHEMA_EMBEDDED_H
#define WEIR_SCHEMA_EMBEDDED_H

#include "base/str.h"

struct embedded_file {
    const char *name; /* file name without its ending */
    struct str text;
    struct str json; /* what it says, but for what is written for people: description, summary, examples */
};

extern const struct embedded_file embedded_contracts[];      /* ends with a NULL name */
extern const struct embedded_file embedded_signal_schemas[]; /* "Pause.v1"; ends with a NULL name */

/* Absent when no file has the name. */
struct str embedded_text(const struct embedded_file *files, const char *name);

#endif
