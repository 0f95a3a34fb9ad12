/* base/json_merge.h - JSON Merge Patch (RFC 7396): what is named is set, what is named null goes away, the
 * rest stays as it was, byte by byte. */
#ifndef WEIR_BASE_JSON_MERGE_H
#define WEIR_BASE_JSON_MERGE_H

#include "base/json.h"

/* `target` NULL: there was nothing. */
void json_merge(const struct json *target, const struct json *patch, struct json_writer *out);

#endif
