/* tokens/verified_table.h - signatures that were found good, so that a token in use is not verified anew with
 * every request: ECDSA costs a tenth of a millisecond and more, a look here two microseconds.
 *
 * An entry is a digest of the whole token and of the key, nothing else: other bytes or another key are
 * another entry. It says that the signature is good, never that the token is; key state, claims, blocklist
 * and jti are looked at every time. A fixed number of places; a newer token takes the place of an older
 * one, which then is verified again. Threads: any; one lock. */
#ifndef WEIR_TOKENS_VERIFIED_TABLE_H
#define WEIR_TOKENS_VERIFIED_TABLE_H

#include "tokens/token_digest.h"
#include "tokens/token_key.h"

struct verified_table;

struct verified_table *verified_table_new(void);                      /* 256 KiB */
struct verified_table *verified_table_free(struct verified_table *t); /* NULL is fine; always returns NULL */
/* As token_key_verify for the token's parts, remembered by `token`, the digest of the whole of it. */
bool verified_table_check(struct verified_table *t, const struct token_key *key,
                          const uint8_t token[TOKEN_DIGEST_BYTES], struct str signed_part,
                          struct str signature);
uint64_t verified_table_hits(struct verified_table *t);

#endif
