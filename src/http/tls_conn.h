/* http/tls_conn.h - one TLS connection over a non-blocking socket, for the files of this folder only.
 *
 * It behaves as a socket does: tls_recv and tls_send return bytes, 0 at the end of input, or -1 with errno,
 * EAGAIN when the socket has nothing or no room. So callers treat it like a socket.
 * Two things differ. A short read does not mean that the socket is empty: tls_has_more() says it. And a
 * reading may wait for room to write (an answer to a key update), so every event is a reason to read again.
 * Bounds:  a handshake that has sent HANDSHAKE_BYTES_MAX is refused; one call takes at most RECVS_MAX pieces
 *          off the socket, also when none of them holds data.
 * Memory:  OpenSSL's buffers of 16 KB exist only while a record is under way. */
#ifndef WEIR_HTTP_TLS_CONN_H
#define WEIR_HTTP_TLS_CONN_H

#include <openssl/ssl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "http/tls.h"

enum { TLS_RECORD_BYTES_MAX = 16 * 1024 };

enum tls_step { TLS_DONE, TLS_WAITS, TLS_REFUSED };

struct http_conn;

struct tls_conn {
    SSL *ssl;
    int fd; /* borrowed */
    uint32_t handshake_bytes;
    uint8_t recvs;                /* of this call */
    bool established;             /* the handshake is over */
    bool emptied;                 /* the last recv() left nothing in the socket */
    bool cut;                     /* the last call ended at RECVS_MAX */
    bool ended;                   /* the client sends no more */
    bool broken;                  /* nothing may be sent, not even the end */
    struct tls_conn *next, *prev; /* handshake.c: among those of the loop that are under way */
    struct http_conn *conn;       /* likewise */
};

struct tls_conn *tls_conn_new(struct tls *t, int fd); /* NULL: out of memory */
enum tls_step tls_handshake(struct tls_conn *t);
ssize_t tls_recv(struct tls_conn *t, void *to, size_t size);
/* Bytes that did not fit are offered first the next time, with or without more behind them. `record` is room
 * to put the parts of a small answer together. */
ssize_t tls_send(struct tls_conn *t, const struct iovec *iov, int count, char record[TLS_RECORD_BYTES_MAX]);
/* After tls_recv: another one may find something without a further event. */
bool tls_has_more(const struct tls_conn *t, ssize_t received);
bool tls_holds_part(const struct tls_conn *t); /* of a record whose rest has not come */
/* Says that nothing of ours follows. False: no room for that yet. */
bool tls_end(struct tls_conn *t);
struct tls_conn *tls_conn_free(struct tls_conn *t); /* NULL is fine; the socket stays open */

/* tls.c. The context that connections begin with now; the caller's reference. */
SSL_CTX *tls_context(struct tls *t);

#endif
