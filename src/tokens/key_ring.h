/* tokens/key_ring.h - the key set as verifiers see it: always in memory, never older than the disk by more
 * than a second.
 *
 * A change of the manifest is seen at the next look-up a second later at most, so a revoked key is refused
 * everywhere on this machine by then (Q16 allows five). A manifest that cannot be read keeps the last good
 * one for KEY_RING_STALE_SECONDS; after that everything is refused until it can be read again. A data
 * directory that never had a key set is an empty set: no kid is known.
 * An unknown kid is looked for at once, at most KEY_RING_MORE_LOOKS_MAX times a second: a new key's
 * first token is good as soon as it is made.
 * Threads: any; one lock. One of them looks at the file, once a second at most, while the others go on. */
#ifndef WEIR_TOKENS_KEY_RING_H
#define WEIR_TOKENS_KEY_RING_H

#include "tokens/key_files.h"

enum { KEY_RING_STALE_SECONDS = 300, KEY_RING_MORE_LOOKS_MAX = 10 };

struct key_ring;

/* The place's texts are copied. Reads nothing yet. */
struct key_ring *key_ring_new(const struct key_place *p);
/* A ring of keys in memory only; takes the set over. */
struct key_ring *key_ring_of(struct key_set *s);
struct key_ring *key_ring_free(struct key_ring *r); /* NULL is fine; always returns NULL */

/* The key, shared; free it. As key_set_lookup, or KEYS_UNREADABLE. */
enum token_reason key_ring_find(struct key_ring *r, struct str kid, int64_t now, struct token_key *ret_key);
/* Looks at the disk. Rises with every change that was found since the ring was made. */
uint64_t key_ring_changes(struct key_ring *r, int64_t now);
/* The JWKS document. ERR_CONFIG_INVALID, ERR_STORAGE_UNAVAILABLE or ERR_AUTH_KEY_NOT_FOUND when the set has
 * been unreadable for too long. */
MUST_CHECK enum err_code key_ring_jwks(struct key_ring *r, int64_t now, struct strbuf *out, struct err *err);

#endif
