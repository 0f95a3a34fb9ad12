/* jobs/client_state.h - where a client stands: its state, and whether it ever had a key. Rows that the
 * deciders of clients, keys and operators share. */
#ifndef WEIR_JOBS_CLIENT_STATE_H
#define WEIR_JOBS_CLIENT_STATE_H

#include "kernel/unit.h"
#include "lifecycle/client_lifecycle.h"

/* Read now, unless the batch knows it. */
enum client_state client_state_of(struct unit *u, int64_t client);
/* Writes it; credentials are looked up anew before the answer goes out. */
void client_state_set(struct unit *u, int64_t client, enum client_state state);

void client_number_insert(struct unit *u, const struct client_row *client, bool keyless);
/* The client has a key now, and is kept. */
void client_number_has_key(struct unit *u, const struct client_row *client);

/* Housekeeping: clients that never got a key leave with all their rows, a bounded part of them; true when
 * there may be more. One that has jobs, is the tenant of runs, or that an operator has touched stays. */
bool drop_keyless_clients(struct unit *u);

#endif
