/* base/digest.h - SHA-256, with the algorithm looked up once and one context a thread: OpenSSL 3's SHA256()
 * looks it up at every call and makes a context, which costs more than the hashing of a key. Threads: any. */
#ifndef WEIR_BASE_DIGEST_H
#define WEIR_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { DIGEST_BYTES = 32 };

void digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_BYTES]);
/* Of one behind the other. */
void digest_sha256_pair(struct str first, struct str second, uint8_t out[DIGEST_BYTES]);

#endif
