/* schema/contract.h - the OpenAPI files of contracts/, embedded in the binary and read at start.
 *
 * Owns the list of operations: method, path, operationId and the compiled schema of its JSON body.
 * The files are ours, so a fault in one is a fault of the build: ERR_CONFIG_INVALID says where. */
#ifndef WEIR_SCHEMA_CONTRACT_H
#define WEIR_SCHEMA_CONTRACT_H

#include "schema/schema.h"

struct contract_operation {
    const char *operation_id;
    const char *method;                /* "POST" */
    const char *path;                  /* "/v1/jobs/{job_id}/cancel", server base path included */
    const struct schema *request_body; /* NULL: takes no body (an empty one or {} is fine) */
    /* What a body has to fit before its handler sees it: x-weir-check beside the schema of the body, for
     * bodies that a handler judges by itself, item by item or with codes of its own; else request_body. */
    const struct schema *checked_body;
    bool body_required;
    const char **query; /* names of its query parameters */
    size_t query_count;
    /* A GET called list..., or one with several query parameters: it refuses parameters it does not know, for
     * a filter with a wrong name would give too much. */
    bool is_list;
};

struct contract;

/* YAML text (JSON is YAML too) into a JSON tree in the arena. Anchors, tags, duplicate keys and
 * more than one document are refused; depth at most JSON_DEPTH_MAX. A plain scalar is a number,
 * true, false or null exactly when JSON would read it so (~ and nothing are null too), else a
 * string: `no` and `1_000` are text. ERR_CONFIG_INVALID tells line and column. `source` of the
 * values is not set. */
MUST_CHECK enum err_code yaml_to_json(struct arena *a, struct str yaml, const struct json **ret_root,
                                      struct err *err);

/* Keeps nothing of `yaml`. */
MUST_CHECK enum err_code contract_load(struct str yaml, struct contract **ret_contract, struct err *err);
struct contract *contract_free(struct contract *c);
const struct contract_operation *contract_operations(const struct contract *c, size_t *ret_count);
const struct contract_operation *contract_find(const struct contract *c, const char *operation_id);
/* "SubmitJob" of components/schemas, compiled; NULL when there is none. For bodies whose parts are
 * checked one by one. */
const struct schema *contract_component(const struct contract *c, const char *name);
const struct json *contract_document(const struct contract *c); /* the whole file */

/* The embedded files: name "jobs" gives the text of contracts/openapi/jobs.yaml; absent when
 * unknown. */
struct str contract_embedded(const char *name);
const char *const *contract_names(void); /* NULL-terminated */

#endif
