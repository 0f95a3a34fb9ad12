#include "http/tls_conn.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/must.h"

#include "base/banned.h"

enum {
    HANDSHAKE_BYTES_MAX = 64 * 1024, /* a chain of client certificates takes some of them */
    RECVS_MAX = 4,                   /* a call; a record that comes in more pieces waits for its turn */
};

/* ---- the socket, as OpenSSL sees it ----
 * A BIO of our own: it knows when the socket is empty, which spares a recv() per request, and counts. */

static int socket_read(BIO *bio, char *to, int size)
{
    struct tls_conn *t = BIO_get_data(bio);
    ssize_t n;
    BIO_clear_retry_flags(bio);
    if (t->recvs == RECVS_MAX) {
        BIO_set_retry_read(bio);
        return -1;
    }
    t->recvs++;
    do
        n = recv(t->fd, to, (size_t)size, 0);
    while (n < 0 && errno == EINTR);
    t->emptied = n < size;
    if (n < 0 && errno == EAGAIN)
        BIO_set_retry_read(bio);
    if (n == 0)
        t->ended = true;
    if (n > 0 && !t->established)
        t->handshake_bytes += (uint32_t)n;
    return (int)n;
}

static int socket_write(BIO *bio, const char *from, int size)
{
    struct tls_conn *t = BIO_get_data(bio);
    ssize_t n;
    BIO_clear_retry_flags(bio);
    do
        n = send(t->fd, from, (size_t)size, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        BIO_set_retry_write(bio);
    return (int)n;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_conn *t = BIO_get_data(bio);
    (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : command == BIO_CTRL_EOF ? t->ended : 0;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir socket");
    MUST(method && BIO_meth_set_read(method, socket_read) && BIO_meth_set_write(method, socket_write) &&
         BIO_meth_set_ctrl(method, socket_control));
}

/* ---- a connection ---- */

struct tls_conn *tls_conn_new(struct tls *server, int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    struct tls_conn *t = must_alloc(sizeof *t);
    SSL_CTX *context = tls_context(server);
    BIO *bio = BIO_new(method);
    t->ssl = SSL_new(context);
    SSL_CTX_free(context);
    t->fd = fd;
    if (!t->ssl || !bio) {
        BIO_free(bio);
        return tls_conn_free(t);
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_accept_state(t->ssl);
    return t;
}

struct tls_conn *tls_conn_free(struct tls_conn *t)
{
    if (t) {
        SSL_free(t->ssl);
        free(t);
    }
    return NULL;
}

/* Before every call: an error left behind by another connection of this thread would be taken for its own. */
static void begin(struct tls_conn *t)
{
    ERR_clear_error();
    t->recvs = 0;
    t->cut = false;
}

/* The meaning of a call that gave no bytes: 0, or -1 with errno. */
static ssize_t judge(struct tls_conn *t, int result)
{
    int saved = errno;
    switch (SSL_get_error(t->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        t->cut = t->recvs == RECVS_MAX && !t->emptied;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        t->broken = true;
        errno = saved ? saved : ECONNRESET;
        return -1;
    default: /* the client broke the rules; OpenSSL has sent the alert */
        t->broken = true;
        errno = EPROTO;
        return -1;
    }
}

enum tls_step tls_handshake(struct tls_conn *t)
{
    begin(t);
    int result = SSL_do_handshake(t->ssl);
    if (result == 1) {
        t->established = true;
        return TLS_DONE;
    }
    bool waits = judge(t, result) < 0 && errno == EAGAIN;
    if (!waits || t->handshake_bytes > HANDSHAKE_BYTES_MAX) {
        t->broken = true;
        return TLS_REFUSED;
    }
    return TLS_WAITS;
}

ssize_t tls_recv(struct tls_conn *t, void *to, size_t size)
{
    begin(t);
    size_t n;
    int result = SSL_read_ex(t->ssl, to, size, &n);
    return result == 1 ? (ssize_t)n : judge(t, result);
}

/* A small answer is one record: its head and body are put together. */
static size_t gather(char to[TLS_RECORD_BYTES_MAX], const struct iovec *iov, int count)
{
    size_t n = 0;
    for (int i = 0; i < count && n < TLS_RECORD_BYTES_MAX; i++) {
        size_t room = TLS_RECORD_BYTES_MAX - n;
        size_t some = iov[i].iov_len < room ? iov[i].iov_len : room;
        memcpy(to + n, iov[i].iov_base, some);
        n += some;
    }
    return n;
}

ssize_t tls_send(struct tls_conn *t, const struct iovec *iov, int count, char record[TLS_RECORD_BYTES_MAX])
{
    if (count > 1 && !iov[0].iov_len)
        iov++, count--;
    const void *from = iov[0].iov_base;
    size_t n, size = iov[0].iov_len;
    begin(t);
    if (count > 1 && size < TLS_RECORD_BYTES_MAX) {
        size = gather(record, iov, count);
        from = record;
    }
    int result = SSL_write_ex(t->ssl, from, size, &n);
    return result == 1 ? (ssize_t)n : judge(t, result);
}

bool tls_has_more(const struct tls_conn *t, ssize_t received)
{
    return received > 0 ? !t->emptied || SSL_has_pending(t->ssl) : t->cut;
}

bool tls_holds_part(const struct tls_conn *t)
{
    return SSL_has_pending(t->ssl);
}

bool tls_end(struct tls_conn *t)
{
    if (!t->established || t->broken)
        return true;
    begin(t);
    int result = SSL_shutdown(t->ssl);
    return result >= 0 || judge(t, result) == 0 || errno != EAGAIN;
}
