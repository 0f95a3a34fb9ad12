/* A bare server for measuring: http_echo PORT {inline|park} [THREADS]
 * inline: answers in on_request. park: a second thread takes whatever waits as one batch and resumes
 * it, as the commit loop does. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/server.h"

#include "base/banned.h"

static struct http_server *server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static struct http_exchange *waiting;

static void answer(struct http_exchange *x)
{
    static const char body[] =
        "{\"id\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxx\"}";
    x->status = 200;
    x->content_type = "application/json";
    strbuf_add(&x->reply_body, body, sizeof body - 1);
    http_answer(x);
}

static void park(struct http_exchange *x)
{
    x->on_resume = answer;
    pthread_mutex_lock(&lock);
    x->data = waiting;
    waiting = x;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&lock);
}

static void *resume_all(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!waiting)
            pthread_cond_wait(&some, &lock);
        struct http_exchange *first = waiting;
        waiting = NULL;
        pthread_mutex_unlock(&lock);
        while (first) {
            struct http_exchange *next = first->data;
            http_resume(first);
            first = next;
        }
        http_wake(server);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int64_t port = 0, threads = 1;
    if (argc < 3 || !str_to_int(str_of(argv[1]), 0, 65535, &port) ||
        (argc > 3 && !str_to_int(str_of(argv[3]), 1, 64, &threads))) {
        fprintf(stderr, "usage: http_echo PORT {inline|park} [THREADS]\n");
        return 2;
    }
    bool parks = str_is(str_of(argv[2]), "park");
    struct http_config config = {.listen_host = "127.0.0.1",
                                 .listen_port = (uint16_t)port,
                                 .threads = (uint32_t)threads,
                                 .clock = &clock_system,
                                 .on_request = parks ? park : answer};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    struct err err;
    if (http_server_start(&config, &server, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.detail);
        return 1;
    }
    pthread_t resumer;
    if (parks && pthread_create(&resumer, NULL, resume_all, NULL) != 0)
        return 1;
    printf("port %u\n", http_server_port(server));
    fflush(stdout);
    int signal_number;
    sigwait(&stop, &signal_number);
    return 0;
}
