/* http/tls.h - the certificate, key and client authorities that TLS connections begin with.
 *
 * TLS 1.2 and later as OpenSSL does it by default; ALPN http/1.1, and a client that offers only other
 * protocols is refused. No renegotiation, no early data; sessions are resumed by tickets, which end with a
 * reload. With `client_ca` a client must show a certificate that one of its authorities has signed.
 * Reload:  connections that exist keep what they began with; new ones begin with the new files. Files that
 *          cannot be used change nothing.
 * Threads: tls_reload, tls_look and tls_close from one thread; the rest from any.
 * Fails:   ERR_CONFIG_INVALID with one line that names the setting and the file. */
#ifndef WEIR_HTTP_TLS_H
#define WEIR_HTTP_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tls_files {         /* PEM */
    const char *cert;      /* the server's, then those between it and its authority */
    const char *key;       /* of the server's certificate; without a passphrase */
    const char *client_ca; /* NULL: clients show no certificate */
};

struct tls;

/* Copies the paths. */
MUST_CHECK enum err_code tls_open(const struct tls_files *files, struct tls **ret_tls, struct err *err);
MUST_CHECK enum err_code tls_reload(struct tls *t, struct err *err);
/* True once after the files have changed, when two looks in a row found them the same: a file that is being
 * written, and a key that follows its certificate, are not read half way. For a call every second or so. */
bool tls_look(struct tls *t);
int64_t tls_expires_at(const struct tls *t); /* of the server's certificate, in seconds since 1970 */
struct tls *tls_close(struct tls *t);        /* NULL is fine; connections live on */

#endif
