#include "load/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>

#include "load/client.h"
#include "base/must.h"

#include "base/banned.h"

/* The first ticket is kept for all that follow. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct secure *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (s->session)
        return 0;
    s->session = session;
    return 1;
}

void secure_open(struct secure *s)
{
    s->context = SSL_CTX_new(TLS_client_method());
    MUST(s->context);
    SSL_CTX_set_mode(s->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(s->context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(s->context, keep_session);
    SSL_CTX_set_app_data(s->context, s);
}

void secure_close(struct secure *s)
{
    SSL_SESSION_free(s->session);
    SSL_CTX_free(s->context);
}

SSL *secure_begin(struct secure *s, int fd)
{
    MUST(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    SSL *ssl = SSL_new(s->context);
    MUST(ssl && SSL_set_fd(ssl, fd) == 1);
    if (s->resume && s->session) {
        SSL_SESSION *copy = SSL_SESSION_dup(s->session); /* OpenSSL uses a session of TLS 1.3 only once */
        MUST(copy && SSL_set_session(ssl, copy) == 1);
        SSL_SESSION_free(copy);
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

void secure_settle(SSL *ssl, int fd)
{
    int result;
    ERR_clear_error();
    while ((result = SSL_do_handshake(ssl)) != 1) {
        struct pollfd p = {fd, SSL_want_write(ssl) ? POLLOUT : POLLIN, 0};
        if (!SSL_want_read(ssl) && !SSL_want_write(ssl))
            give_up("a handshake failed");
        (void)poll(&p, 1, -1);
    }
}

SSL *secure_end(SSL *ssl)
{
    if (ssl) /* else OpenSSL takes the session for a broken one */
        SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    return NULL;
}

static ssize_t judge(SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

ssize_t secure_send(SSL *ssl, const void *bytes, size_t len)
{
    size_t n;
    ERR_clear_error();
    int result = SSL_write_ex(ssl, bytes, len, &n);
    return result == 1 ? (ssize_t)n : judge(ssl, result);
}

ssize_t secure_recv(SSL *ssl, void *to, size_t size)
{
    size_t n;
    ERR_clear_error();
    int result = SSL_read_ex(ssl, to, size, &n);
    return result == 1 ? (ssize_t)n : judge(ssl, result);
}
