/* load/secure.h - TLS for the load generator: a connection that sends and receives as a socket does.
 *
 * Certificates are not looked at: the server is one that the benchmark has started. */
#ifndef WEIR_BENCH_SECURE_H
#define WEIR_BENCH_SECURE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/types.h>

/* The common part of the connections of a loop. `resume`: all but the first go on with an earlier session. */
struct secure {
    SSL_CTX *context; /* NULL: plain */
    SSL_SESSION *session;
    bool resume;
};

void secure_open(struct secure *s);
void secure_close(struct secure *s);
/* fd becomes non-blocking; the handshake comes with the first bytes. */
SSL *secure_begin(struct secure *s, int fd);
void secure_settle(SSL *ssl, int fd); /* waits for the handshake */
SSL *secure_end(SSL *ssl);            /* before the fd is closed; NULL is fine */
/* As send() and recv(): -1 with EAGAIN when the socket has no room or nothing. */
ssize_t secure_send(SSL *ssl, const void *bytes, size_t len);
ssize_t secure_recv(SSL *ssl, void *to, size_t size);

#endif
