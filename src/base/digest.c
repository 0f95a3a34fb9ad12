#include "base/digest.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

static EVP_MD *sha256;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release(void)
{
    EVP_MD_free(sha256);
    sha256 = NULL;
}

static void look_up(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    MUST(sha256);
    MUST(atexit(release) == 0);
}

void digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_BYTES])
{
    unsigned n = 0;
    pthread_once(&once, look_up);
    MUST(EVP_Digest(bytes, len, out, &n, sha256, NULL) == 1 && n == DIGEST_BYTES);
}
