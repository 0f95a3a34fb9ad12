/* http/transport.h - bytes of a connection, plain or TLS: one branch a call. For this folder's files only.
 *
 * Results are those of recv() and sendmsg() in both cases (tls_conn.h). */
#ifndef WEIR_HTTP_TRANSPORT_H
#define WEIR_HTTP_TRANSPORT_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "http/http_internal.h"
#include "http/tls_conn.h"

static inline ssize_t transport_recv(struct http_conn *c, void *to, size_t size)
{
    return c->tls ? tls_recv(c->tls, to, size) : recv(c->fd, to, size, 0);
}

static inline ssize_t transport_send(struct http_conn *c, struct iovec *iov, int count)
{
    if (c->tls)
        return tls_send(c->tls, iov, count, c->loop->record);
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    return sendmsg(c->fd, &message, MSG_NOSIGNAL);
}

/* Of a recv() of up to `size` bytes that gave `received`: may another one find more without a further event?
 * A short read has emptied a plain socket. */
static inline bool transport_has_more(const struct http_conn *c, ssize_t received, size_t size)
{
    return c->tls ? tls_has_more(c->tls, received) : received > 0 && (size_t)received == size;
}

/* handshake.c. Nothing of ours follows; conn_linger() tries again while TLS has no room to say so. False:
 * the socket is dead. */
bool transport_end(struct http_conn *c);

#endif
