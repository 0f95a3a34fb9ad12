/* load/client.h - the smallest HTTP/1.1 client that can load a server: one thread, epoll, keep-alive.
 *
 * Requests are complete texts made beforehand; of an answer only the status and Content-Length are
 * read. A connection has one request under way; its callback may send the next one. Whatever the
 * client did not expect (a lost connection, silence, an answer it cannot read) ends the program:
 * a measurement with holes is none.
 *
 * Owner: the loop owns its connections; requests are the caller's until their answer is there. */
#ifndef WEIR_BENCH_CLIENT_H
#define WEIR_BENCH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct loop;
struct conn;

struct answer {
    int status;
    struct str body; /* until the callback returns */
    int64_t sent_ns; /* when the first byte was handed to the kernel */
    int64_t now_ns;  /* when the answer was complete */
};

typedef void (*answer_fn)(struct conn *c, const struct answer *a, void *self);

struct loop *loop_new(const char *url); /* http://IPV4:PORT or https; certificates are not looked at */
void loop_free(struct loop *l);
struct conn *loop_connect(struct loop *l, answer_fn on_answer, void *self);
void conn_send(struct conn *c, struct str request);
void conn_settle(struct conn *c); /* waits until its handshake is over; nothing to do when it is plain */
/* A new connection in place of this one, which has its answer; over TLS with a handshake of its own. */
void conn_renew(struct conn *c);
void loop_resume(struct loop *l);  /* from now on handshakes go on with an earlier session */
bool conn_resumed(struct conn *c); /* this one did */
void conn_hang_up(struct conn *c); /* it stays with the loop, but is never used again */
/* Serves answers until loop_stop(), or until `until_ns` when it is not 0. */
void loop_run(struct loop *l, int64_t until_ns);
void loop_stop(struct loop *l);
/* Calls fn once at that time; one wake-up at a time. */
void loop_wake_at(struct loop *l, int64_t at_ns, void (*fn)(void *self), void *self);

int64_t now_ns(void);
_Noreturn void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
