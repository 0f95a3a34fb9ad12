/* tokens/base64url.h - base64url as JOSE wants it: no padding, no spaces, one text for one value.
 *
 * A decoder that is lenient gives one token many spellings, and then a list of refused tokens has holes. */
#ifndef WEIR_TOKENS_BASE64URL_H
#define WEIR_TOKENS_BASE64URL_H

#include "base/arena.h"

/* Adds the text of these bytes to `out`. */
void base64url_add(struct strbuf *out, const void *bytes, size_t len);
/* False on any other byte, '=', a length that no bytes have, or unused bits that are not zero. An empty
 * text is no bytes. The result is in the arena. */
bool base64url_decode(struct arena *a, struct str text, struct str *ret_bytes);

#endif
