#include "http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "http/tls_conn.h"

#include "base/banned.h"

/* The part that is replaced when a file changes. */
struct file_version {
    int64_t modified_ns, bytes;
    uint64_t device, inode;
};

enum { FILE_COUNT = 3 };

struct tls {
    char *cert, *key, *client_ca; /* paths */
    pthread_mutex_t lock;         /* of `context` */
    SSL_CTX *context;
    _Atomic int64_t expires_at;
    struct file_version tried[FILE_COUNT], seen[FILE_COUNT]; /* by the last load, at the last look */
};

/* ---- one context ---- */

/* OpenSSL's word for what went wrong first. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "not usable";
}

static enum err_code refuse(const char *setting, const char *path, const char *why, struct err *err)
{
    return err_set(err, ERR_CONFIG_INVALID, "server.%s %s: %s", setting, path, why);
}

static enum err_code check_readable(const char *setting, const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(setting, path, strerror(errno), err);
    close(fd);
    return ERR_OK;
}

static int no_passphrase(char *to, int size, int writing, void *user)
{
    (void)to, (void)size, (void)writing, (void)user;
    return -1; /* instead of OpenSSL's question on the terminal */
}

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *offered, unsigned int len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl, (void)user;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof ours - 1, offered, len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol */
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static void set_rules(SSL_CTX *context)
{
    static const unsigned char session_context[] = "weir";
    MUST(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    /* An end without close_notify is an end: HTTP's own framing tells what is missing. */
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);                          /* a record by one recv() instead of two */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets lie with the client */
    MUST(SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1) == 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
}

static enum err_code use_key(SSL_CTX *context, const struct tls *t, struct err *err)
{
    if (check_readable("tls_key", t->key, err) != ERR_OK)
        return err->code;
    /* OpenSSL compares the two at once, and says so in its own words. */
    if (SSL_CTX_use_PrivateKey_file(context, t->key, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(context) == 1)
        return ERR_OK;
    unsigned long code = ERR_peek_last_error();
    bool other = ERR_GET_LIB(code) == ERR_LIB_X509 && (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
                                                       ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH);
    if (!other)
        return refuse("tls_key", t->key, reason(), err);
    return err_set(err, ERR_CONFIG_INVALID, "server.tls_key %s: is not the key of server.tls_cert %s", t->key,
                   t->cert);
}

static enum err_code use_client_ca(SSL_CTX *context, const char *path, struct err *err)
{
    if (check_readable("tls_client_ca", path, err) != ERR_OK)
        return err->code;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(path);
    if (!names || SSL_CTX_load_verify_file(context, path) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return refuse("tls_client_ca", path, reason(), err);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return ERR_OK;
}

static enum err_code load_files(SSL_CTX *context, const struct tls *t, struct err *err)
{
    if (check_readable("tls_cert", t->cert, err) != ERR_OK)
        return err->code;
    if (SSL_CTX_use_certificate_chain_file(context, t->cert) != 1)
        return refuse("tls_cert", t->cert, reason(), err);
    if (use_key(context, t, err) != ERR_OK)
        return err->code;
    return t->client_ca ? use_client_ca(context, t->client_ca, err) : ERR_OK;
}

static int64_t end_of_validity(const SSL_CTX *context)
{
    struct tm tm;
    const X509 *cert = SSL_CTX_get0_certificate(context);
    return cert && ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* ---- the files ---- */

static void look_at(const struct tls *t, struct file_version ret[FILE_COUNT])
{
    const char *paths[FILE_COUNT] = {t->cert, t->key, t->client_ca};
    for (size_t i = 0; i < FILE_COUNT; i++) {
        struct stat info;
        ret[i] = (struct file_version){0};
        if (paths[i] && stat(paths[i], &info) == 0)
            ret[i] = (struct file_version){.modified_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 +
                                                          info.st_mtim.tv_nsec,
                                           .bytes = info.st_size,
                                           .device = info.st_dev,
                                           .inode = info.st_ino};
    }
}

bool tls_look(struct tls *t)
{
    struct file_version now[FILE_COUNT];
    look_at(t, now);
    bool settled = memcmp(now, t->seen, sizeof now) == 0;
    memcpy(t->seen, now, sizeof now);
    return settled && memcmp(now, t->tried, sizeof now) != 0;
}

enum err_code tls_reload(struct tls *t, struct err *err)
{
    look_at(t, t->tried); /* taken before the files are read: the next look finds a change meanwhile */
    ERR_clear_error();
    SSL_CTX *fresh = SSL_CTX_new(TLS_server_method());
    MUST(fresh);
    set_rules(fresh);
    enum err_code code = load_files(fresh, t, err);
    ERR_clear_error();
    if (code != ERR_OK) {
        SSL_CTX_free(fresh);
        return code;
    }
    atomic_store(&t->expires_at, end_of_validity(fresh));
    pthread_mutex_lock(&t->lock);
    SSL_CTX *old = t->context;
    t->context = fresh;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old);
    return ERR_OK;
}

enum err_code tls_open(const struct tls_files *files, struct tls **ret_tls, struct err *err)
{
    struct tls *t = must_alloc(sizeof *t);
    t->cert = must_strdup(files->cert);
    t->key = must_strdup(files->key);
    t->client_ca = files->client_ca ? must_strdup(files->client_ca) : NULL;
    pthread_mutex_init(&t->lock, NULL);
    if (tls_reload(t, err) != ERR_OK) {
        tls_close(t);
        return err->code;
    }
    *ret_tls = t;
    return ERR_OK;
}

int64_t tls_expires_at(const struct tls *t)
{
    return atomic_load(&t->expires_at);
}

SSL_CTX *tls_context(struct tls *t)
{
    pthread_mutex_lock(&t->lock);
    SSL_CTX *context = t->context;
    SSL_CTX_up_ref(context);
    pthread_mutex_unlock(&t->lock);
    return context;
}

struct tls *tls_close(struct tls *t)
{
    if (!t)
        return NULL;
    SSL_CTX_free(t->context);
    pthread_mutex_destroy(&t->lock);
    free(t->cert);
    free(t->key);
    free(t->client_ca);
    free(t);
    return NULL;
}
