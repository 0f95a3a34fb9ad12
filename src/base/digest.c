#include "base/digest.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

static EVP_MD *sha256;
static pthread_key_t ends; /* of a thread: its context goes with it */
static _Thread_local EVP_MD_CTX *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_context(void *context)
{
    EVP_MD_CTX_free(context);
}

static void release(void)
{
    EVP_MD_CTX_free(own); /* the last thread ends with the process, without a call of this */
    own = NULL;
    EVP_MD_free(sha256);
    sha256 = NULL;
}

static void look_up(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    MUST(sha256 && pthread_key_create(&ends, free_context) == 0);
    MUST(atexit(release) == 0);
}

/* Ready for the bytes. */
static EVP_MD_CTX *begin(void)
{
    if (!own) {
        pthread_once(&once, look_up);
        own = EVP_MD_CTX_new();
        MUST(own && pthread_setspecific(ends, own) == 0);
    }
    MUST(EVP_DigestInit_ex2(own, sha256, NULL) == 1);
    return own;
}

static void finish(EVP_MD_CTX *context, uint8_t out[DIGEST_BYTES])
{
    unsigned n = 0;
    MUST(EVP_DigestFinal_ex(context, out, &n) == 1 && n == DIGEST_BYTES);
}

void digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_BYTES])
{
    EVP_MD_CTX *context = begin();
    MUST(EVP_DigestUpdate(context, bytes, len) == 1);
    finish(context, out);
}

void digest_sha256_pair(struct str first, struct str second, uint8_t out[DIGEST_BYTES])
{
    EVP_MD_CTX *context = begin();
    MUST(EVP_DigestUpdate(context, first.ptr, first.len) == 1 &&
         EVP_DigestUpdate(context, second.ptr, second.len) == 1);
    finish(context, out);
}
