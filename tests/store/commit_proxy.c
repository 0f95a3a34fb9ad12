#include "store/commit_proxy.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

enum { PAIRS_MAX = 64, NAMES_MAX = 8, NAME_MAX_BYTES = 64, TURN_MS = 20, NO_ENCRYPTION = 'N' };
enum { REQUEST_SSL = 80877103, REQUEST_GSS = 80877104 };

struct pair {
    struct commit_proxy *proxy;
    int client, server;
    pthread_t up, down;
    char commits[NAMES_MAX][NAME_MAX_BYTES]; /* names of prepared statements that are COMMIT */
    bool named[NAMES_MAX];
    bool portal_commits; /* the portal bound last runs COMMIT */
    atomic_bool holds;   /* the answer to COMMIT is to be thrown away */
};

struct commit_proxy {
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_int fault;
    atomic_bool stopping;
    atomic_uint cuts;
    pthread_mutex_t lock;
    struct pair *pairs[PAIRS_MAX];
    size_t pair_count;
};

/* --- bytes ------------------------------------------------------------------------------------------- */

static uint32_t number_at(const char *p)
{
    uint32_t n;
    memcpy(&n, p, sizeof n);
    return ntohl(n);
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Appends what comes next; false at the end. While the proxy hangs, nothing is taken. */
static bool receive(struct pair *x, int fd, struct strbuf *b)
{
    char bytes[16384];
    for (;;) {
        if (atomic_load(&x->proxy->stopping))
            return false;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (atomic_load(&x->proxy->fault) == PROXY_HANGS) {
            usleep(TURN_MS * 1000);
            continue;
        }
        if (poll(&p, 1, TURN_MS) > 0 && atomic_load(&x->proxy->fault) != PROXY_HANGS)
            break;
    }
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        return false;
    strbuf_add(b, bytes, (size_t)n);
    return true;
}

static void drop_front(struct strbuf *b, size_t len)
{
    memmove(b->ptr, b->ptr + len, b->len - len);
    b->len -= len;
}

/* Length of the whole message at `at`, its letter included; 0 when it is not whole yet. */
static size_t whole_message(const struct strbuf *b, size_t at)
{
    if (b->len - at < 5)
        return 0;
    size_t len = 1 + (size_t)number_at(b->ptr + at + 1);
    return b->len - at < len ? 0 : len;
}

static void cut_pair(struct pair *x)
{
    shutdown(x->client, SHUT_RDWR);
    shutdown(x->server, SHUT_RDWR);
}

/* --- client to server -------------------------------------------------------------------------------- */

static void note_parse(struct pair *x, const char *name, const char *text)
{
    size_t free_at = NAMES_MAX;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (x->named[i] && strcmp(x->commits[i], name) == 0)
            x->named[i] = false;
        if (!x->named[i])
            free_at = i;
    }
    if (!str_equal_nocase(str_of(text), STR("COMMIT")))
        return;
    MUST(free_at < NAMES_MAX && strlen(name) < NAME_MAX_BYTES);
    memcpy(x->commits[free_at], name, strlen(name) + 1);
    x->named[free_at] = true;
}

/* Is this message the one that runs COMMIT? `body` begins behind the length. */
static bool runs_commit(struct pair *x, char letter, const char *body)
{
    if (letter == 'P')
        note_parse(x, body, body + strlen(body) + 1);
    if (letter == 'B') {
        const char *statement = body + strlen(body) + 1;
        x->portal_commits = false;
        for (size_t i = 0; i < NAMES_MAX; i++)
            x->portal_commits |= x->named[i] && strcmp(x->commits[i], statement) == 0;
    }
    return (letter == 'E' && x->portal_commits) ||
           (letter == 'Q' && str_equal_nocase(str_of(body), STR("COMMIT")));
}

/* The COMMIT at `at` has come. False: the connection is cut, and everything is done. */
static bool pass_commit(struct pair *x, struct strbuf *b, size_t at)
{
    int fault = atomic_load(&x->proxy->fault);
    if (fault == PROXY_CUTS_AFTER)
        atomic_store(&x->holds, true);
    if (fault != PROXY_CUTS_BEFORE && fault != PROXY_CUTS_LATE)
        return true;
    atomic_store(&x->proxy->fault, PROXY_PASSES);
    send_all(x->server, b->ptr, at);
    if (fault == PROXY_CUTS_LATE) {
        shutdown(x->client, SHUT_RDWR);
        usleep(PROXY_LATE_MS * 1000);
        send_all(x->server, b->ptr + at, b->len - at);
    }
    atomic_fetch_add(&x->proxy->cuts, 1);
    return false;
}

/* Encryption is refused, so that messages can be read; the start-up packet is passed on. */
static bool start_up(struct pair *x, struct strbuf *b)
{
    for (;;) {
        while (b->len < 8 || b->len < number_at(b->ptr))
            if (!receive(x, x->client, b))
                return false;
        size_t len = number_at(b->ptr);
        uint32_t code = number_at(b->ptr + 4);
        bool refused = code == REQUEST_SSL || code == REQUEST_GSS;
        if (!(refused ? send_all(x->client, &(char){NO_ENCRYPTION}, 1) : send_all(x->server, b->ptr, len)))
            return false;
        drop_front(b, len);
        if (!refused)
            return true;
    }
}

static void *go_up(void *arg)
{
    struct pair *x = arg;
    struct strbuf b = {0};
    bool on = start_up(x, &b);
    while (on) {
        size_t at = 0;
        for (size_t len; on && (len = whole_message(&b, at)); at += on ? len : 0)
            if (runs_commit(x, b.ptr[at], b.ptr + at + 5))
                on = pass_commit(x, &b, at);
        on = on && send_all(x->server, b.ptr, at);
        drop_front(&b, on ? at : 0);
        on = on && receive(x, x->client, &b);
    }
    cut_pair(x);
    strbuf_free(&b);
    return NULL;
}

/* --- server to client -------------------------------------------------------------------------------- */

static void *go_down(void *arg)
{
    struct pair *x = arg;
    struct strbuf b = {0};
    bool on = true;
    while (on && receive(x, x->server, &b)) {
        size_t at = 0;
        for (size_t len; on && (len = whole_message(&b, at)); at += on ? len : 0)
            on = !(b.ptr[at] == 'C' && atomic_load(&x->holds) && strcmp(b.ptr + at + 5, "COMMIT") == 0);
        bool sent = send_all(x->client, b.ptr, at);
        if (!on) {
            atomic_store(&x->proxy->fault, PROXY_PASSES);
            atomic_fetch_add(&x->proxy->cuts, 1);
        }
        on = on && sent;
        drop_front(&b, at);
    }
    cut_pair(x);
    strbuf_free(&b);
    return NULL;
}

/* --- the proxy --------------------------------------------------------------------------------------- */

static void accept_one(struct commit_proxy *p, int client)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(p->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct pair *x = must_alloc(sizeof *x);
    x->proxy = p;
    x->client = client;
    x->server = socket(AF_INET, SOCK_STREAM, 0);
    MUST(x->server >= 0);
    if (connect(x->server, (struct sockaddr *)&to, sizeof to) != 0) {
        close(x->server);
        close(client);
        free(x);
        return;
    }
    int yes = 1;
    setsockopt(x->client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(x->server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    pthread_mutex_lock(&p->lock);
    MUST(p->pair_count < PAIRS_MAX);
    p->pairs[p->pair_count++] = x;
    MUST(pthread_create(&x->up, NULL, go_up, x) == 0);
    MUST(pthread_create(&x->down, NULL, go_down, x) == 0);
    pthread_mutex_unlock(&p->lock);
}

static void *accept_on(void *arg)
{
    struct commit_proxy *p = arg;
    while (!atomic_load(&p->stopping)) {
        struct pollfd look = {.fd = p->listener, .events = POLLIN};
        if (poll(&look, 1, TURN_MS) <= 0)
            continue;
        int client = accept(p->listener, NULL, NULL);
        if (client < 0)
            continue;
        if (atomic_load(&p->fault) == PROXY_REFUSES)
            close(client);
        else
            accept_one(p, client);
    }
    return NULL;
}

struct commit_proxy *commit_proxy_start(uint16_t port)
{
    struct commit_proxy *p = must_alloc(sizeof *p);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->port = port;
    pthread_mutex_init(&p->lock, NULL);
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(p->listener >= 0);
    MUST(bind(p->listener, (struct sockaddr *)&at, sizeof at) == 0);
    MUST(listen(p->listener, PAIRS_MAX) == 0);
    MUST(pthread_create(&p->thread, NULL, accept_on, p) == 0);
    return p;
}

uint16_t commit_proxy_port(const struct commit_proxy *p)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    MUST(getsockname(p->listener, (struct sockaddr *)&at, &size) == 0);
    return ntohs(at.sin_port);
}

void commit_proxy_set(struct commit_proxy *p, enum proxy_fault fault)
{
    atomic_store(&p->fault, (int)fault);
    if (fault != PROXY_REFUSES)
        return;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->pair_count; i++)
        cut_pair(p->pairs[i]);
    pthread_mutex_unlock(&p->lock);
}

unsigned commit_proxy_cuts(struct commit_proxy *p)
{
    return atomic_load(&p->cuts);
}

struct commit_proxy *commit_proxy_stop(struct commit_proxy *p)
{
    atomic_store(&p->stopping, true);
    pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->pair_count; i++) {
        struct pair *x = p->pairs[i];
        cut_pair(x);
        pthread_join(x->up, NULL);
        pthread_join(x->down, NULL);
        close(x->client);
        close(x->server);
        free(x);
    }
    close(p->listener);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}
