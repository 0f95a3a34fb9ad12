/* store/store_open.h - a store by its URL (base/store_url.h): the one place that knows all backends.
 *
 * Callers: core, and commands that read a store.
 * Fails:   CONFIG_INVALID (no such URL, a newer schema, a copy that is not finished), and as the backend. */
#ifndef WEIR_STORE_STORE_OPEN_H
#define WEIR_STORE_STORE_OPEN_H

#include "store/store.h"

struct store_options {
    const char *url;
    int64_t timeout_ms; /* longest wait for a lock, and for an answer */
    int64_t wall_ms;    /* now, to place timers of the tasks read back */
    /* SQLite only, see struct sqlite_options. */
    int64_t wal_ahead_bytes;
    bool checkpoint_thread;
    enum high_water_mode high_water;
};

/* To serve from it: refused while a copy into it is not finished (store/copy.h). */
MUST_CHECK enum err_code store_open(const struct store_options *o, struct store **ret_store, struct err *err);
/* The same without that rule, for the copy itself. */
MUST_CHECK enum err_code store_open_unfinished(const struct store_options *o, struct store **ret_store,
                                               struct err *err);
/* Hears of what other nodes of a shared store wrote (store.h: hint), on a thread of its own; of other stores
 * there is nothing to hear, and *ret_listener is NULL. */
struct postgres_listener;
MUST_CHECK enum err_code store_listen(const struct store_options *o, const struct store_listening *hear,
                                      struct postgres_listener **ret_listener, struct err *err);
void store_listen_end(struct postgres_listener *l); /* NULL is fine */
/* Without taking part in writing, also beside running servers. */
MUST_CHECK enum err_code store_open_reader(const struct store_options *o, struct reader **ret_reader,
                                           struct err *err);

#endif
