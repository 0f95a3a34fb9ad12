/* base/heart.h - the page on which a process shows root that it lives: one slot a loop, and counters.
 *
 * Each loop of a process (core's HTTP loops, commit threads and main thread, the loop of a runner or gateway)
 * opens a slot and beats each time it comes round; it never sleeps longer than heart_interval_ms(). Root
 * reads the page and replaces a process with a loop that has been silent too long (runtime/heartbeat.h). A
 * loop about to wait for something that may take long and is not its fault (a disk, a database) says so,
 * and is not counted as silent meanwhile: a restart would wait for the same disk.
 *
 * Process:   the page is shared memory made by root before the fork; a process that has none (a command, a
 *            test) writes on one of its own. A slot is written by the thread that serves its loop.
 * Bounded:   HEART_SLOTS loops; a loop beyond them is not watched. Beating is two stores, no system call.
 * Counters:  HEART_COUNTERS of them, meaning given by runtime/failure_modes.h.
 * Topics:    the signal bus (base/bus.h). */
#ifndef WEIR_BASE_HEART_H
#define WEIR_BASE_HEART_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bus.h"

enum {
    HEART_SLOTS = 64,
    HEART_NAME_MAX = 16,
    HEART_COUNTERS = 16,
    HEART_INTERVAL_MS = 60000, /* where no root watches */
};

struct heart {
    _Atomic int64_t beat_ms;        /* monotonic; 0: no such loop (any more) */
    _Atomic int64_t waits_since_ms; /* 0: it does not wait for a disk or a database */
    _Atomic int32_t thread_id;      /* which served it last */
    char name[HEART_NAME_MAX];
};

/* Alone on its memory pages, so that each process can write its own only. */
struct heart_page {
    _Alignas(4096) struct heart slots[HEART_SLOTS];
    _Atomic uint32_t slot_count;
    _Atomic uint64_t counters[HEART_COUNTERS];
    struct bus_slot topics[BUS_TOPIC_COUNT];
};

/* This process writes on pages[own] from now on; before any loop opens a slot. The others it may read. */
void heart_use(struct heart_page *pages, size_t page_count, size_t own, int64_t interval_ms);
int64_t heart_interval_ms(void); /* the longest a loop may sleep */
/* `wait_ms` < 0 is without end: gives what a loop may sleep when it has nothing to do for so long. */
int heart_sleep_ms(int64_t wait_ms);

struct heart *heart_open(const char *loop); /* NULL when there is no slot left; all below take NULL */
void heart_beat(struct heart *h);
void heart_waits(struct heart *h, bool waits);
/* The same for the loop that this thread serves, if it does: for code that does not know the loop. Gives
 * how it was before, to be set again. */
bool heart_waits_here(bool waits);
void heart_close(struct heart *h); /* the loop ends; it no longer has to beat */

void heart_add_count(unsigned counter);
uint64_t heart_count(unsigned counter);     /* of this process */
uint64_t heart_count_all(unsigned counter); /* of all processes of this root since it began */

/* For base/bus.h. */
struct heart_page *heart_own_page(void);
const struct heart_page *heart_all_pages(size_t *ret_count);

#endif
