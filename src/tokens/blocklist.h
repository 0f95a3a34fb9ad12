/* tokens/blocklist.h - tokens that are refused before any signature is checked (AMB-16).
 *
 * By jti: one token. By subject or session: every token issued up to a moment, for suspensions and lost
 * roles; later tokens of the same subject are good again. A hit refuses, a miss proves nothing.
 * Entries live as long as a token they refuse could; the owner keeps the lasting list and adds from it
 * after a start. Threads: any; one lock, held for a look-up. */
#ifndef WEIR_TOKENS_BLOCKLIST_H
#define WEIR_TOKENS_BLOCKLIST_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* X(name, claim) */
#define BLOCK_KINDS(X)                                                                                       \
    X(JTI, "jti")                                                                                            \
    X(SUBJECT, "sub")                                                                                        \
    X(SESSION, "session_id")

#define X(name, claim) BLOCK_##name,
enum block_kind { BLOCK_KINDS(X) BLOCK_KIND_COUNT };
#undef X

enum { BLOCKLIST_MAX = 100000 }; /* about 20 MB */

struct blocklist;

/* The identity that a token states, unverified. */
struct block_question {
    struct str names[BLOCK_KIND_COUNT]; /* absent: not there */
    bool has_issued_at;
    int64_t issued_at;
};

struct blocklist *blocklist_new(size_t max);
struct blocklist *blocklist_free(struct blocklist *b); /* NULL is fine; always returns NULL */
/* A jti: refused until `expires_at`. A subject or session: tokens issued at `issued_until` or before.
 * Adding again widens. ERR_EXEC_QUEUE_FULL when nothing can be forgotten: the revocation does not hold. */
MUST_CHECK enum err_code blocklist_add(struct blocklist *b, enum block_kind kind, struct str name,
                                       int64_t issued_until, int64_t expires_at, int64_t now,
                                       struct err *err);
/* A subject's token that hides its iat is refused: it could be any. */
bool blocklist_hits(struct blocklist *b, const struct block_question *q, int64_t now);

const char *block_kind_claim(enum block_kind kind);

#endif
