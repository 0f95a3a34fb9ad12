#include "tokens/token_digest.h"

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

void token_digest_pair(struct str first, struct str second, uint8_t out[TOKEN_DIGEST_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned len = 0;
    pthread_once(&once, look_up);
    MUST(context && EVP_DigestInit_ex2(context, sha256, NULL) == 1 &&
         EVP_DigestUpdate(context, first.ptr, first.len) == 1 &&
         EVP_DigestUpdate(context, second.ptr, second.len) == 1 &&
         EVP_DigestFinal_ex(context, out, &len) == 1);
    MUST(len == TOKEN_DIGEST_BYTES);
    EVP_MD_CTX_free(context);
}

void token_digest(const char *label, struct str text, uint8_t out[TOKEN_DIGEST_BYTES])
{
    token_digest_pair((struct str){label, strlen(label) + 1}, text, out);
}
