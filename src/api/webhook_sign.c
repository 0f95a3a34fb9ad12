#include "api/webhook_sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/must.h"

#include "base/banned.h"

static void add_signature(struct strbuf *out, struct str secret, struct str signed_text)
{
    unsigned char digest[EVP_MAX_MD_SIZE], text[EVP_MAX_MD_SIZE * 2];
    unsigned len = 0;
    MUST(HMAC(EVP_sha256(), secret.ptr, (int)secret.len, (const unsigned char *)signed_text.ptr,
              signed_text.len, digest, &len) != NULL);
    int n = EVP_EncodeBlock(text, digest, (int)len);
    strbuf_add_text(out, out->len ? " v1," : "v1,");
    strbuf_add(out, text, (size_t)n);
}

struct str webhook_signature(struct arena *a, const struct webhook_secrets *secrets, struct str id,
                             int64_t now_ms, struct str body)
{
    struct strbuf text = {0}, out = {0};
    strbuf_add_str(&text, id);
    strbuf_addf(&text, ".%lld.", (long long)(now_ms / 1000));
    strbuf_add_str(&text, body);
    add_signature(&out, secrets->now, strbuf_str(&text));
    if (secrets->former.ptr && now_ms - secrets->rotated_ms < WEBHOOK_ROTATION_MS)
        add_signature(&out, secrets->former, strbuf_str(&text));
    struct str signature = arena_str(a, strbuf_str(&out));
    strbuf_free(&text);
    strbuf_free(&out);
    return signature;
}
