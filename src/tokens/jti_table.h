/* tokens/jti_table.h - each jti belongs to the one token that used it first (AMB-18).
 *
 * The same token may come again; other bytes with the same jti are refused, until exp + skew. Kept in
 * memory: after a restart the first token that shows up owns its jti again. All tokens of a table come
 * from issuers that are trusted, and are verified before they are bound, so no caller can fill it with
 * inventions. Threads: any; one lock, held for a look-up. */
#ifndef WEIR_TOKENS_JTI_TABLE_H
#define WEIR_TOKENS_JTI_TABLE_H

#include <stdint.h>

#include "tokens/token_digest.h"
#include "tokens/token_reason.h"

enum { JTI_TABLE_MAX = 100000 }; /* about 20 MB; tokens in use at a time */

struct jti_table;

struct jti_table *jti_table_new(size_t max);
struct jti_table *jti_table_free(struct jti_table *t); /* NULL is fine; always returns NULL */
/* `token` is its digest. TOKEN_OK, JTI_REUSED, or JTI_FULL: then a token not seen before cannot be judged and
 * must not pass. */
enum token_reason jti_table_bind(struct jti_table *t, struct str jti, const uint8_t token[TOKEN_DIGEST_BYTES],
                                 int64_t expires_at, int64_t now);

#endif
