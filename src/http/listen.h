/* http/listen.h - the sockets that a loop accepts from. Part of a loop (http_internal.h). */
#ifndef WEIR_HTTP_LISTEN_H
#define WEIR_HTTP_LISTEN_H

#include <stdbool.h>

#include <sys/socket.h>

#include "base/err.h"
#include "http/server.h"

struct http_conn;
struct http_loop;
struct http_server;

struct listener {
    int fd;
    bool is_unix, is_tls;
};

MUST_CHECK enum err_code listen_open(struct http_server *s, struct err *err);
bool listen_accept(struct http_loop *l, const struct listener *from); /* true: there may be more */
void listen_refuse(struct http_conn *c);                              /* 503: one too many */
void listen_start(struct http_loop *l);
void listen_pause(struct http_loop *l);
void listen_close(struct http_loop *l);
void listen_unlink(struct http_server *s);

/* address.c */
struct http_address address_of(const struct sockaddr_storage *peer);
bool address_is_loopback(const struct http_address *a);

#endif
