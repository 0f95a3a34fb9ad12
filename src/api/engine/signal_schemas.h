/* api/engine/signal_schemas.h - what the payload of each signal has to look like: contracts/schemas/signal,
 * compiled once at start. Not written again, so all threads may ask at once. */
#ifndef WEIR_API_ENGINE_SIGNAL_SCHEMAS_H
#define WEIR_API_ENGINE_SIGNAL_SCHEMAS_H

#include "base/json.h"
#include "lifecycle/signals.h"
#include "schema/embedded.h"

enum { SIGNAL_FAULT_MAX = 160 };

struct signal_schemas;

/* `files` ends with a NULL name and has a "Pause.v1" for each signal_schema(); its texts are borrowed for
 * good. ERR_CONFIG_INVALID: one is missing or broken, and which. */
MUST_CHECK enum err_code signal_schemas_new(const struct embedded_file *files,
                                            struct signal_schemas **ret_schemas, struct err *err);
struct signal_schemas *signal_schemas_free(struct signal_schemas *s); /* NULL is fine; always returns NULL */
/* False: `ret_fault` says what is wrong with which member, as "stepId is required". */
bool signal_schema_fits(const struct signal_schemas *s, enum signal_type t, const struct json *payload,
                        char ret_fault[SIGNAL_FAULT_MAX]);

#endif
