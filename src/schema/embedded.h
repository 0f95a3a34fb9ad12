/* schema/embedded.h - what tools/embed.py generates: the files of contracts/ as constants. */
#ifndef WEIR_SCHEMA_EMBEDDED_H
#define WEIR_SCHEMA_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
    const char *name; /* file name without its ending */
    const char *text;
    size_t len;
};

extern const struct embedded_file embedded_contracts[];      /* ends with a NULL name */
extern const char *const embedded_contract_names[];          /* NULL-terminated, same order */
extern const struct embedded_file embedded_signal_schemas[]; /* "Pause.v1"; ends with a NULL name */

#endif
