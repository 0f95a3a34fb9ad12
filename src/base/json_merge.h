/* base/json_merge.h - JSON Merge Patch (RFC 7396): members of the patch are set, members that are null in it
 * are removed, all others stay as they were, byte by byte. */
#ifndef WEIR_BASE_JSON_MERGE_H
#define WEIR_BASE_JSON_MERGE_H

#include "base/json.h"

/* `target` NULL: there was nothing. */
void json_merge(const struct json *target, const struct json *patch, struct json_writer *out);

#endif
