/* store/postgres/postgres_listen.h - receives the hints of other nodes (store.h: hint).
 *
 * Thread:  one of its own with a connection of its own; the functions it calls must be quick.
 * Lost:    a hint can be lost, above all while it reconnects; after each reconnect everything is hinted once.
 *          Between tries it waits 200 ms, twice as long each time, 5 s at most, half of it at random; each
 *          failed try and the first success after it are logged. */
#ifndef WEIR_STORE_POSTGRES_LISTEN_H
#define WEIR_STORE_POSTGRES_LISTEN_H

#include "store/store.h"

struct postgres_listener;

MUST_CHECK enum err_code postgres_listener_start(const struct postgres_options *o,
                                                 const struct store_listening *hear,
                                                 struct postgres_listener **ret_listener, struct err *err);
struct postgres_listener *
postgres_listener_stop(struct postgres_listener *l); /* NULL is fine; returns NULL */

#endif
