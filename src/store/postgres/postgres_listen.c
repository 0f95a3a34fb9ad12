#include "store/postgres/postgres_listen.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/must.h"
#include "base/random.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum {
    LISTEN_RETRY_MS = 200,
    LISTEN_RETRY_MAX_MS = 5000,
    LOOK_MS = 10000,
    HINT_ALL = HINT_READY | HINT_KEYS | HINT_EVENTS | HINT_TIMER | HINT_INBOX,
    JOINED = HINT_ALL + 1 /* said by a node that listens from now on */
};

struct postgres_listener {
    struct pg_link link;
    pthread_t thread;
    int stop; /* eventfd */
    struct store_listening hear;
    int64_t failures; /* to connect, in a row */
    bool was_open;
    bool greets; /* another node has joined, and is to be answered */
};

/* "<what>:<node>"; hints of this node itself are passed over. */
static void heard(struct postgres_listener *l, const char *payload)
{
    struct str rest = str_of(payload), first = str_cut(&rest, ':');
    int64_t what, node;
    if (!str_to_int(first, 1, JOINED, &what) || !str_to_int(rest, 1, INT64_MAX, &node) ||
        node == postgres_node())
        return;
    if (what == JOINED) {
        postgres_met_node();
        l->greets = true;
    } else {
        l->hear.hint(l->hear.self, (unsigned)what);
    }
}

static bool is_stopped(struct postgres_listener *l, int wait_ms)
{
    struct pollfd p = {.fd = l->stop, .events = POLLIN};
    return poll(&p, 1, wait_ms) > 0;
}

static void tell_link(struct postgres_listener *l, bool works, const char *why)
{
    if (l->hear.link)
        l->hear.link(l->hear.self, works, why);
    l->failures = works ? 0 : l->failures + 1;
    l->was_open = works;
}

static int retry_ms(const struct postgres_listener *l)
{
    int64_t pause = backoff_ms(LISTEN_RETRY_MS, l->failures - 1, LISTEN_RETRY_MAX_MS);
    return (int)(pause - (int64_t)(random_u64() % (uint64_t)(pause / 2 + 1)));
}

/* A node that joins says so, and each node that hears it answers with a hint of everything. A commit before
 * the answer is seen by the look that the answer causes; each later one is told, since the node that answers
 * knows the other one by then. A failure closes the connection, and the next one begins anew. */
static bool say(struct postgres_listener *l, unsigned what)
{
    struct err ignored;
    char payload[POSTGRES_HINT_BYTES];
    postgres_hint_text(what, payload);
    params_text(link_params(&l->link), str_of(payload));
    link_send_sql(&l->link, "SELECT pg_notify('weir',$1)");
    bool said = link_run(&l->link, "listening", &ignored) == ERR_OK;
    link_clear(&l->link);
    if (!said)
        link_close(&l->link);
    return said;
}

/* The database's own words may name hosts and users; the lanes tell what is wrong with it. */
static bool listen_now(struct postgres_listener *l)
{
    struct err ignored;
    if (link_is_open(&l->link))
        return true;
    if (l->was_open) {
        tell_link(l, false, "connection lost");
        if (is_stopped(l, retry_ms(l)))
            return false;
    }
    if (link_open(&l->link, &ignored) != ERR_OK) {
        tell_link(l, false, "no connection");
        return false;
    }
    link_params(&l->link);
    link_send_sql(&l->link, "LISTEN weir");
    if (link_run(&l->link, "listening", &ignored) != ERR_OK) {
        link_close(&l->link); /* or it would be taken for one that listens */
        tell_link(l, false, "LISTEN refused");
        return false;
    }
    link_clear(&l->link);
    if (!say(l, JOINED)) {
        tell_link(l, false, "connection lost");
        return false;
    }
    tell_link(l, true, "");
    l->hear.hint(l->hear.self, HINT_ALL); /* the hints that came meanwhile */
    return true;
}

/* A connection that died without a word is found by asking now and then. */
static void look(struct postgres_listener *l)
{
    struct err ignored;
    link_params(&l->link);
    link_send_sql(&l->link, "SELECT 1");
    (void)!link_run(&l->link, "listening", &ignored);
    link_clear(&l->link);
}

/* Notifications also come with the answer to something else, so they are looked for before each wait. */
static void take_notifications(struct postgres_listener *l)
{
    PGnotify *notify;
    while ((notify = PQnotifies(l->link.conn))) {
        heard(l, notify->extra);
        PQfreemem(notify);
    }
}

static void hear(struct postgres_listener *l)
{
    take_notifications(l);
    while (l->greets) {
        if (!say(l, HINT_ALL))
            return; /* the next connection does */
        l->greets = false;
        take_notifications(l);
    }
    struct pollfd p[] = {{.fd = l->stop, .events = POLLIN}, {.fd = PQsocket(l->link.conn), .events = POLLIN}};
    int n = poll(p, LENGTH_OF(p), LOOK_MS);
    if (n == 0)
        look(l);
    if (link_is_open(&l->link) && n > 0 && p[1].revents && !PQconsumeInput(l->link.conn))
        link_close(&l->link);
}

static void *listen_on(void *arg)
{
    struct postgres_listener *l = arg;
    while (!is_stopped(l, 0)) {
        if (listen_now(l))
            hear(l);
        else if (is_stopped(l, l->failures ? retry_ms(l) : 0))
            break;
    }
    return NULL;
}

enum err_code postgres_listener_start(const struct postgres_options *o, const struct store_listening *hear,
                                      struct postgres_listener **ret_listener, struct err *err)
{
    struct postgres_listener *l = must_alloc(sizeof *l);
    link_init(&l->link, o);
    l->hear = *hear;
    l->stop = eventfd(0, EFD_CLOEXEC);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
    bool started = l->stop >= 0 && pthread_create(&l->thread, NULL, listen_on, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        if (l->stop >= 0)
            close(l->stop);
        link_free(&l->link);
        free(l);
        return err_set(err, ERR_INTERNAL, "no thread for the listener");
    }
    *ret_listener = l;
    return ERR_OK;
}

struct postgres_listener *postgres_listener_stop(struct postgres_listener *l)
{
    if (!l)
        return NULL;
    uint64_t one = 1;
    (void)!write(l->stop, &one, sizeof one);
    pthread_join(l->thread, NULL);
    close(l->stop);
    link_free(&l->link);
    free(l);
    return NULL;
}
