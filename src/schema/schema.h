/* schema/schema.h - JSON Schema 2020-12, the keywords our contracts use.
 *
 * A schema is compiled once into a tree; a keyword we do not support is refused at compile time,
 * never ignored. Validation reports the first violation with the JSON Pointer of the value and the
 * keyword; it takes no memory but, for uniqueItems, a scratch buffer it gives back.
 *
 * Supported: type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
 *   maxLength (code points) items prefixItems contains minContains maxContains minItems maxItems
 *   uniqueItems properties required additionalProperties propertyNames minProperties maxProperties
 *   dependentRequired dependentSchemas allOf anyOf oneOf not if then else $ref $defs, true and
 * false. Accepted as notes: title description examples default format deprecated readOnly writeOnly
 * $comment $schema discriminator x-*, and $id in the root of the document. Bounds: $ref may be recursive
 * through values (their depth is JSON_DEPTH_MAX), never in a circle on one value; at most SCHEMA_CHAIN_MAX
 * schemas may apply to one value through one another.
 *
 * x-weir-values in a schema: its values are judged elsewhere, with a code of their own. enum, const and
 * bounds then tell people and generators what is good and are not checked here; the type is. */
#ifndef WEIR_SCHEMA_SCHEMA_H
#define WEIR_SCHEMA_SCHEMA_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum { SCHEMA_CHAIN_MAX = 32 };

struct schema;

/* `root` is the document that holds `node` and resolves "#/..." references (local $ref only).
 * Everything lives in `a`, which must outlive the schema; root too. ERR_CONFIG_INVALID names the
 * keyword refused. */
MUST_CHECK enum err_code schema_compile(struct arena *a, const struct json *root, const struct json *node,
                                        const struct schema **ret_schema, struct err *err);

/* The same of the node that a pointer such as "#/components/schemas/Claim" leads to. */
MUST_CHECK enum err_code schema_compile_at(struct arena *a, const struct json *root, const char *pointer,
                                           const struct schema **ret_schema, struct err *err);

struct schema_violation {
    char pointer[128];   /* "/jobs/3/priority"; "" is the whole value */
    const char *keyword; /* "type", "required", "enum", ... */
    char text[160];      /* "priority must be at most 9" - names the field, says what is wanted */
};
/* True when valid. `ret_violation` may be NULL. */
bool schema_check(const struct schema *s, const struct json *value, struct schema_violation *ret_violation);

/* null for an optional member is as if it were absent: takes such members out of `value`, in its whole depth
 * and for every form the schema allows. Members that the schema does not name, and required ones, stay;
 * `source` of the objects around stays as it came. */
void schema_drop_nulls(const struct schema *s, const struct json *value);

#endif
