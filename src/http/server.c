#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/tls_conn.h"

#include "base/banned.h"

enum { THREADS_MAX = 64 };

static void default_limits(struct http_limits *limits)
{
    if (!limits->connections_max)
        limits->connections_max = 20000;
    if (!limits->connections_per_address)
        limits->connections_per_address = 1024;
    if (!limits->unix_max)
        limits->unix_max = 1024;
    if (!limits->head_bytes_max)
        limits->head_bytes_max = 16 * 1024;
    if (!limits->headers_max)
        limits->headers_max = 100;
    if (!limits->body_bytes_max)
        limits->body_bytes_max = 1024 * 1024;
    if (!limits->bodies_max_bytes)
        limits->bodies_max_bytes = 256 * 1024 * 1024;
    if (!limits->request_read_ms)
        limits->request_read_ms = 5000;
    if (!limits->idle_ms)
        limits->idle_ms = 75000;
    if (!limits->write_ms)
        limits->write_ms = 10000;
    if (!limits->handshake_ms)
        limits->handshake_ms = 5000;
    if (!limits->handshakes_max)
        limits->handshakes_max = 512;
}

static enum err_code open_loop(struct http_server *s, uint32_t i, struct err *err)
{
    struct http_loop *l = &s->loops[i];
    l->server = s;
    l->number = i;
    l->date_second = -1;
    pthread_mutex_init(&l->own, NULL);
    l->now_ms = clock_mono_ms(s->config.clock);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->spare_fd = fcntl(l->wake_fd, F_DUPFD_CLOEXEC, 0);
    l->scratch = must_alloc(READ_BYTES);
    l->record = s->config.tls ? must_alloc(TLS_RECORD_BYTES_MAX) : NULL;
    l->events = must_alloc(EVENTS_PER_ROUND * sizeof *l->events);
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = l};
    if (l->epoll_fd < 0 || l->wake_fd < 0 || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &ev) < 0)
        return err_set(err, ERR_INTERNAL, "cannot open an event loop: %s", strerror(errno));
    char name[HEART_NAME_MAX];
    snprintf(name, sizeof name, "http-%u", i);
    l->heart = heart_open(name);
    return ERR_OK;
}

/* Signals belong to the program's main thread. */
static enum err_code start_threads(struct http_server *s, struct err *err)
{
    sigset_t all, before;
    int problem = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; i <= s->loop_count && !problem; i++) {
        struct server_thread *t = &s->threads[i];
        *t = (struct server_thread){.server = s, .loop = i < s->loop_count ? &s->loops[i] : NULL};
        problem = pthread_create(&t->id, NULL, server_thread_main, t);
        s->thread_count += !problem;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem ? err_set(err, ERR_INTERNAL, "cannot start a thread: %s", strerror(problem)) : ERR_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static struct http_server *server_free(struct http_server *s)
{
    for (uint32_t i = 0; i < s->loop_count; i++) {
        listen_close(&s->loops[i]);
        close_fd(s->loops[i].epoll_fd);
        close_fd(s->loops[i].wake_fd);
        close_fd(s->loops[i].spare_fd);
        pthread_mutex_destroy(&s->loops[i].own);
        free(s->loops[i].scratch);
        free(s->loops[i].record);
        free(s->loops[i].events);
    }
    loop_takeover_destroy(&s->loop_takeover);
    free(s->threads);
    peers_free(s->peers);
    close_fd(s->unix_fd);
    listen_unlink(s);
    free(s->unix_path);
    free(s->loops);
    free(s);
    return NULL;
}

static enum err_code open_all(struct http_server *s, struct err *err)
{
    enum err_code code = ERR_OK;
    for (uint32_t i = 0; i < s->loop_count && code == ERR_OK; i++)
        code = open_loop(s, i, err);
    return code == ERR_OK ? listen_open(s, err) : code;
}

enum err_code http_server_start(const struct http_config *config, struct http_server **ret_server,
                                struct err *err)
{
    MUST(config->on_request && config->clock && (!config->tls_host || config->tls));
    struct http_server *s = must_alloc(sizeof *s);
    s->config = *config;
    default_limits(&s->config.limits);
    s->unix_fd = -1;
    s->loop_count = config->threads < 1 ? 1 : config->threads > THREADS_MAX ? THREADS_MAX : config->threads;
    s->loops = aligned_alloc(64, s->loop_count * sizeof *s->loops);
    MUST(s->loops);
    memset(s->loops, 0, s->loop_count * sizeof *s->loops);
    for (uint32_t i = 0; i < s->loop_count; i++)
        s->loops[i].epoll_fd = s->loops[i].wake_fd = s->loops[i].spare_fd = -1;
    s->peers = peers_new(s->config.limits.connections_max, s->config.limits.connections_per_address);
    s->threads = must_alloc((s->loop_count + 1) * sizeof *s->threads);
    loop_takeover_init(&s->loop_takeover);
    if (open_all(s, err) != ERR_OK || start_threads(s, err) != ERR_OK) {
        http_server_stop(s);
        return err->code;
    }
    *ret_server = s;
    return ERR_OK;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

uint16_t http_server_tls_port(const struct http_server *s)
{
    return s->tls_port;
}

void http_server_drain(struct http_server *s)
{
    atomic_store(&s->draining, true);
    if (s->unix_fd >= 0)
        (void)shutdown(s->unix_fd, SHUT_RD); /* new connects are refused at once */
    for (uint32_t i = 0; i < s->loop_count; i++)
        loop_wake(&s->loops[i]);
}

uint32_t http_server_busy(const struct http_server *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->loop_count; i++)
        n += atomic_load_explicit(&s->loops[i].busy_count, memory_order_relaxed);
    return n;
}

uint32_t http_server_connections_over(const struct http_server *s, bool unix_socket)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->loop_count; i++)
        n += atomic_load_explicit(&s->loops[i].conn_counts[unix_socket], memory_order_relaxed);
    return n;
}

uint32_t http_server_connections_max(const struct http_server *s)
{
    return s->config.limits.connections_max;
}

int64_t http_server_held_bytes(const struct http_server *s)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < s->loop_count; i++)
        n += atomic_load_explicit(&s->loops[i].held_bytes, memory_order_relaxed);
    return n;
}

int64_t http_server_unsent_bytes(const struct http_server *s)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < s->loop_count; i++)
        n += atomic_load_explicit(&s->loops[i].unsent_bytes, memory_order_relaxed);
    return n;
}

uint32_t http_server_connections(const struct http_server *s)
{
    return http_server_connections_over(s, false) + http_server_connections_over(s, true);
}

const struct tls *http_server_tls(const struct http_server *s)
{
    return s->config.tls_host ? s->config.tls : NULL;
}

uint64_t http_server_handshakes(const struct http_server *s, enum http_handshake_end end)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->loop_count; i++)
        n += atomic_load_explicit(&s->loops[i].handshake_ends[end], memory_order_relaxed);
    return n;
}

struct http_server *http_server_stop(struct http_server *s)
{
    if (!s)
        return NULL;
    atomic_store(&s->stopping, true);
    for (uint32_t i = 0; i < s->loop_count; i++)
        loop_wake(&s->loops[i]);
    loop_takeover_call(s);
    for (uint32_t i = 0; i < s->thread_count; i++)
        pthread_join(s->threads[i].id, NULL);
    return server_free(s);
}

void http_wake(struct http_server *s)
{
    for (uint32_t i = 0; i < s->loop_count; i++)
        if (atomic_load(&s->loops[i].resumed))
            loop_wake(&s->loops[i]);
}

void http_answer_resumed(struct http_server *s)
{
    const struct http_loop *mine = loop_takeover_served();
    for (int own = 0; own <= 1; own++) /* others wait longer: theirs first */
        for (uint32_t i = 0; i < s->loop_count; i++) {
            struct http_loop *l = &s->loops[i];
            if ((l == mine) == own && atomic_load(&l->resumed) && !loop_answer_for(l))
                loop_wake(l);
        }
}

void http_server_tick(struct http_server *s)
{
    for (uint32_t i = 0; i < s->loop_count; i++) {
        struct http_loop *l = &s->loops[i];
        if (!atomic_load(&l->stream_count)) /* pairs with http_stream_begin */
            continue;
        atomic_store(&l->ticked, true);
        loop_wake(l);
    }
}
