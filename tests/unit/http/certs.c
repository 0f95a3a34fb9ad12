#include "certs.h"

#include <dirent.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/must.h"

#include "base/banned.h"

void certs_open(struct certs *c)
{
    snprintf(c->dir, sizeof c->dir, "/tmp/weir-certs-XXXXXX");
    MUST(mkdtemp(c->dir));
}

void certs_close(struct certs *c)
{
    DIR *dir = opendir(c->dir);
    MUST(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (e->d_name[0] != '.')
            MUST(unlinkat(dirfd(dir), e->d_name, 0) == 0);
    closedir(dir);
    MUST(rmdir(c->dir) == 0);
}

const char *certs_path(struct certs *c, const char *name, const char *suffix)
{
    MUST(snprintf(c->path, sizeof c->path, "%s/%s%s", c->dir, name, suffix) < (int)sizeof c->path);
    return c->path;
}

static void add_extension(X509 *cert, X509 *issuer, int id, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    MUST(extension && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *build(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, int64_t seconds)
{
    static long serial;
    X509 *cert = X509_new();
    MUST(cert && X509_set_version(cert, 2) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), (long)seconds);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
    add_extension(cert, issuer ? issuer : cert, NID_basic_constraints,
                  issuer ? "CA:FALSE" : "critical,CA:TRUE");
    add_extension(cert, issuer ? issuer : cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    MUST(X509_sign(cert, issuer_key ? issuer_key : key, EVP_sha256()) > 0);
    return cert;
}

static FILE *open_file(struct certs *c, const char *name, const char *suffix, const char *mode)
{
    FILE *f = fopen(certs_path(c, name, suffix), mode);
    MUST(f);
    return f;
}

static void put(struct certs *c, const char *name, const char *suffix, X509 *cert, EVP_PKEY *key)
{
    char fresh[CERTS_PATH_MAX];
    FILE *f = open_file(c, name, ".new", "w");
    memcpy(fresh, c->path, sizeof fresh);
    MUST(cert ? PEM_write_X509(f, cert) : PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
    MUST(fclose(f) == 0 && rename(fresh, certs_path(c, name, suffix)) == 0);
}

void certs_make(struct certs *c, const char *name, const char *signer, int64_t seconds)
{
    X509 *issuer = NULL;
    EVP_PKEY *issuer_key = NULL, *key = EVP_EC_gen("P-256");
    MUST(key);
    if (signer) {
        FILE *f = open_file(c, signer, ".pem", "r");
        issuer = PEM_read_X509(f, NULL, NULL, NULL);
        fclose(f);
        f = open_file(c, signer, ".key", "r");
        issuer_key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
        fclose(f);
        MUST(issuer && issuer_key);
    }
    X509 *cert = build(name, key, issuer, issuer_key, seconds);
    put(c, name, ".pem", cert, NULL);
    put(c, name, ".key", NULL, key);
    X509_free(cert);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
}
