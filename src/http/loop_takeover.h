/* http/loop_takeover.h - the threads of the server, of which one stands by (loop_takeover.c). */
#ifndef WEIR_HTTP_LOOP_TAKEOVER_H
#define WEIR_HTTP_LOOP_TAKEOVER_H

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

struct loop_takeover {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic int looks; /* so many more before it sleeps until it is called */
};

void loop_takeover_init(struct loop_takeover *x);
void loop_takeover_destroy(struct loop_takeover *x);
/* Every thread of the server begins here. */
void *server_thread_main(void *thread);
/* Loop thread, after a round: ends its wait. False: another thread has taken the loop over. */
bool loop_takeover_end(struct http_loop *l);
/* The loop this thread serves; NULL when it is not a loop's. */
const struct http_loop *loop_takeover_served(void);
void loop_takeover_call(struct http_server *s); /* look now: something waits, or the server stops */

#endif
