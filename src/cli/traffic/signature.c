#include "cli/traffic/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/banned.h"

enum { SECRET_BYTES_MAX = 128, DIGEST_BYTES = 32, DIGEST_BASE64_BYTES = 44 };

/* The secret's bytes; 0 when it is no secret. */
static int secret_bytes(struct str secret, unsigned char out[SECRET_BYTES_MAX])
{
    if (!str_starts(secret, "whsec_"))
        return 0;
    struct str text = {secret.ptr + 6, secret.len - 6};
    if (!text.len || text.len % 4 || text.len / 4 * 3 > SECRET_BYTES_MAX)
        return 0;
    int padding = text.ptr[text.len - 1] == '=' ? 1 + (text.ptr[text.len - 2] == '=') : 0;
    int len = EVP_DecodeBlock(out, (const unsigned char *)text.ptr, (int)text.len);
    return len > padding ? len - padding : 0;
}

static bool any_matches(struct str header, const char *wanted)
{
    bool found = false;
    while (header.len) {
        struct str one = str_cut(&header, ' ');
        found |= str_starts(one, "v1,") && one.len == 3 + DIGEST_BASE64_BYTES &&
                 CRYPTO_memcmp(one.ptr + 3, wanted, DIGEST_BASE64_BYTES) == 0;
    }
    return found;
}

const char *signature_fault(const struct signed_message *m, struct str secret, int64_t now_s)
{
    unsigned char key[SECRET_BYTES_MAX], digest[EVP_MAX_MD_SIZE], wanted[DIGEST_BASE64_BYTES + 1];
    unsigned digest_len = 0;
    int64_t sent_s;
    if (!m->id.len || !m->timestamp.len || !m->signature.len)
        return "webhook-id, webhook-timestamp or webhook-signature is missing";
    if (!str_to_int(m->timestamp, 0, INT64_MAX / 2, &sent_s))
        return "webhook-timestamp is no number";
    if (sent_s < now_s - SIGNATURE_AGE_S_MAX || sent_s > now_s + SIGNATURE_AGE_S_MAX)
        return "webhook-timestamp is more than five minutes away";
    int key_len = secret_bytes(secret, key);
    if (!key_len)
        return "the client's webhook_secret is not whsec_ and base64";
    struct strbuf text = {0};
    strbuf_addf(&text, "%.*s.%.*s.", STR_ARG(m->id), STR_ARG(m->timestamp));
    strbuf_add_str(&text, m->body);
    bool made = HMAC(EVP_sha256(), key, key_len, (const unsigned char *)text.ptr, text.len, digest,
                     &digest_len) != NULL;
    strbuf_free(&text);
    if (!made || digest_len != DIGEST_BYTES)
        return "the signature could not be computed";
    EVP_EncodeBlock(wanted, digest, DIGEST_BYTES);
    return any_matches(m->signature, (const char *)wanted) ? NULL : "webhook-signature does not match";
}
