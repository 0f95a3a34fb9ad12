/* http/stand_in.h - the threads of the server, of which one stands by (stand_in.c). */
#ifndef WEIR_HTTP_STAND_IN_H
#define WEIR_HTTP_STAND_IN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct http_loop;
struct http_server;

/* One more than there are loops: the one that serves none stands by. */
struct server_thread {
    struct http_server *server;
    struct http_loop *loop; /* at the start */
    pthread_t id;
};

struct stand_in {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic int looks; /* so many more before it sleeps until it is called */
};

void stand_in_init(struct stand_in *x);
void stand_in_destroy(struct stand_in *x);
/* Every thread of the server begins here. */
void *server_thread_main(void *thread);
/* Loop thread, after a round's end: is the loop still its own? */
bool stand_in_is_not_needed(struct http_loop *l);
/* The loop this thread serves; NULL when it is not a loop's. */
const struct http_loop *stand_in_serves(void);
void stand_in_call(struct http_server *s); /* look now: something waits, or the server stops */

#endif
