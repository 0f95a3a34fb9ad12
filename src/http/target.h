/* http/target.h - percent-decoding of paths and query parameters. Pure; decoded text lives in the arena.
 *
 * Nothing is normalised: `//`, `/./` and `/../` stay as they are and simply match no route. Refused:
 * broken escapes, NUL, an encoded slash in a path (it would move a segment border), and anything that
 * is not UTF-8 after decoding. */
#ifndef WEIR_HTTP_TARGET_H
#define WEIR_HTTP_TARGET_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

MUST_CHECK enum err_code target_decode_path(struct arena *a, struct str raw, struct str *ret_path,
                                            struct err *err);
/* Is this the name of a parameter, as it stands in a query? One that cannot be decoded is no name. */
bool target_name_is(struct arena *a, struct str raw, struct str name);
/* Value of the first parameter of that name, plus- and percent-decoded; absent when there is none. */
MUST_CHECK enum err_code target_query(struct arena *a, struct str query, struct str name,
                                      struct str *ret_value, struct err *err);

#endif
