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

void digest_sha256_pair(struct str first, struct str second, uint8_t out[DIGEST_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned n = 0;
    pthread_once(&once, look_up);
    MUST(context && EVP_DigestInit_ex2(context, sha256, NULL) == 1 &&
         EVP_DigestUpdate(context, first.ptr, first.len) == 1 &&
         EVP_DigestUpdate(context, second.ptr, second.len) == 1 &&
         EVP_DigestFinal_ex(context, out, &n) == 1 && n == DIGEST_BYTES);
    EVP_MD_CTX_free(context);
}
