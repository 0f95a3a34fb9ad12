/* http/unsent.h - answers and streams that their clients do not read, over all loops, and which of them
 * close.
 *
 * Counted:  memory of an exchange (arena, buffers of the answer) from when its socket takes no more until the
 *           answer is out, a stream's until the socket takes some again.
 * Bound:    a quarter of limits.bodies_max_bytes, beside the room for requests (held.h): clients that do not
 *           read keep no others from sending. Beyond the bound the connection of this loop that has been
 *           stuck longest closes, but never the last stuck one: an answer larger than the bound is sent, too.
 *           All together take the bound and one answer a loop.
 * Of one:   a connection has one answer. Its next request is begun, and its socket read, when the kernel has
 *           the last byte of that answer; write_ms ends the wait.
 * Exempt:   the Unix socket, whose readers are our own processes.
 * Threads:  each loop counts and closes its own; the counts are added up when one gets stuck. */
#ifndef WEIR_HTTP_UNSENT_H
#define WEIR_HTTP_UNSENT_H

#include <stddef.h>

struct exchange;
struct http_conn;

struct unsent_place { /* of an exchange */
    size_t bytes;     /* counted; 0: it does not wait for its client */
    struct exchange *next, *prev;
};
struct unsent { /* of a loop: stuck longest first */
    struct exchange *first, *last;
};

void unsent_waits(struct http_conn *c); /* its socket takes no more; may close others, never c */
void unsent_ends(struct exchange *ex);  /* no-op when it does not wait */

#endif
