/* schema/openapi.h - the OpenAPI files of contracts/, embedded in the binary and read at start, for the
 * schemas in them. What else they say of an operation is in the route table (tools/generate_routes.py).
 *
 * The files are ours, so a fault in one is a fault of the build: ERR_CONFIG_INVALID says where. */
#ifndef WEIR_SCHEMA_OPENAPI_H
#define WEIR_SCHEMA_OPENAPI_H

#include "schema/schema.h"

struct openapi;

/* YAML text (JSON is YAML too) into a JSON tree in the arena. Anchors, tags, duplicate keys and
 * more than one document are refused; depth at most JSON_DEPTH_MAX. A plain scalar is a number,
 * true, false or null exactly when JSON would read it so (~ and nothing are null too), else a
 * string: `no` and `1_000` are text. ERR_CONFIG_INVALID tells line and column. `source` of the
 * values is not set. */
MUST_CHECK enum err_code yaml_to_json(struct arena *a, struct str yaml, const struct json **ret_root,
                                      struct err *err);

/* From JSON, which has to live as long as the file, or from YAML, of which nothing is kept. */
MUST_CHECK enum err_code openapi_load(struct str text, struct openapi **ret_openapi, struct err *err);
struct openapi *openapi_free(struct openapi *c);
/* The schema at "#/components/schemas/SubmitJob"; lives as long as the file. */
MUST_CHECK enum err_code openapi_schema(struct openapi *c, const char *pointer,
                                        const struct schema **ret_schema, struct err *err);
const struct json *openapi_document(const struct openapi *c); /* the whole file */

/* The embedded file: name "jobs" gives the text of contracts/openapi/jobs.yaml; absent when
 * unknown. */
struct str openapi_embedded(const char *name);

#endif
