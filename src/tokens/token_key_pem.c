/* Private keys as PKCS #8 PEM, in and out. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/must.h"
#include "tokens/token_key.h"

#include "base/banned.h"

/* Instead of OpenSSL's own, which would ask on the terminal. */
static int give_passphrase(char *buffer, int size, int writing, void *context)
{
    const struct str *passphrase = context;
    (void)writing;
    if (!passphrase->ptr || passphrase->len > (size_t)size)
        return -1;
    memcpy(buffer, passphrase->ptr, passphrase->len);
    return (int)passphrase->len;
}

void token_key_write_pem(const struct token_key *key, struct str passphrase, struct strbuf *out)
{
    BIO *memory = BIO_new(BIO_s_secmem());
    char *text = NULL;
    MUST(memory && PEM_write_bio_PKCS8PrivateKey(memory, key->pkey, passphrase.ptr ? EVP_aes_256_cbc() : NULL,
                                                 NULL, 0, give_passphrase, &passphrase) == 1);
    long len = BIO_get_mem_data(memory, &text);
    strbuf_add(out, text, (size_t)len);
    BIO_free(memory);
}

/* Is it a private key that this algorithm can sign with? */
static bool fits(EVP_PKEY *pkey, const struct token_alg_facts *facts)
{
    char group[64];
    size_t len;
    if (facts->kind == TOKEN_KEY_RSA)
        return EVP_PKEY_is_a(pkey, "RSA") && EVP_PKEY_get_bits(pkey) >= TOKEN_RSA_BITS_MIN &&
               EVP_PKEY_get_bits(pkey) <= TOKEN_RSA_BITS_MAX;
    return EVP_PKEY_is_a(pkey, "EC") && EVP_PKEY_get_group_name(pkey, group, sizeof group, &len) == 1 &&
           strcmp(group, facts->group) == 0;
}

enum err_code token_key_read_pem(struct str pem, struct str passphrase, enum token_alg alg,
                                 struct token_key *ret_key, struct err *err)
{
    BIO *memory = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    MUST(memory && pem.len <= TOKEN_PEM_BYTES_MAX);
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(memory, NULL, give_passphrase, &passphrase);
    BIO_free(memory);
    ERR_clear_error();
    if (!pkey)
        return err_set(err, ERR_CONFIG_INVALID,
                       "no private key can be read from it; is tokens.key_passphrase right?");
    if (!fits(pkey, &token_alg_facts[alg])) {
        EVP_PKEY_free(pkey);
        return err_set(err, ERR_CONFIG_INVALID, "it is no key for %s", token_alg_facts[alg].name);
    }
    *ret_key = token_key_own(alg, pkey);
    return ERR_OK;
}
