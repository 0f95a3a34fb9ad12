/* runtime/notify.h - root tells the service manager how it does (sd_notify's protocol).
 *
 * The manager names a datagram socket in NOTIFY_SOCKET, a path or, with a leading '@', an abstract name,
 * and in WATCHDOG_USEC how long it waits for a sign of life. Without them nothing here does anything.
 * Both variables are taken out of the environment, and the socket is root's alone: the manager trusts only
 * the main process (NotifyAccess=main).
 *
 * Nothing blocks. When the manager's queue is full, READY and STOPPING stay owed and are sent with the
 * next call that is due; a sign of life or a status is dropped, a newer one comes. */
#ifndef WEIR_RUNTIME_NOTIFY_H
#define WEIR_RUNTIME_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NOTIFY_STATUS_MAX = 200,
    NOTIFY_AGAIN_MS = 100, /* between two tries of what is owed */
};

/* X(id, what is sent) */
#define NOTIFY_PHASES(X)                                                                                     \
    X(STARTING, "")                                                                                          \
    X(READY, "READY=1")                                                                                      \
    X(STOPPING, "STOPPING=1")

#define X(id, text) NOTIFY_##id,
enum notify_phase { NOTIFY_PHASES(X) NOTIFY_PHASE_COUNT };
#undef X

struct notify {
    int fd;              /* -1: there is no manager to tell */
    int64_t interval_ms; /* between two signs of life: half of what the manager waits; 0: it does not */
    int64_t beat_at_ms;  /* the next is due; INT64_MAX: none */
    int64_t again_at_ms; /* the next try of what is owed; INT64_MAX: nothing is */
    enum notify_phase phase;
    int64_t stop_ms; /* with STOPPING: how long it may take */
    char status[NOTIFY_STATUS_MAX];
};

void notify_open(struct notify *n, int64_t now_ms);
void notify_close(struct notify *n);

/* The service is ready, once; it stops, within stop_ms, which the manager is asked to wait. */
void notify_ready(struct notify *n, int64_t now_ms);
void notify_stopping(struct notify *n, int64_t stop_ms, int64_t now_ms);
/* A line for people; sent when it differs from the last one. */
void notify_status(struct notify *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For root's loop, in every round: sends what is due. A sign of life goes out only while all_loops_beat; when
 * they have not beaten for as long as the manager waits, it ends and restarts the service. */
void notify_watchdog(struct notify *n, bool all_loops_beat, int64_t now_ms);
/* When notify_watchdog() has something to do; INT64_MAX: never. */
int64_t notify_next_ms(const struct notify *n);

#endif
