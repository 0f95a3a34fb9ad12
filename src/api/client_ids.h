/* api/client_ids.h - the ids of clients that called lately, by their number: for log lines of the commit
 * thread, which knows clients by number and may not read.
 *
 * Filled by HTTP threads when a caller is known, asked by the commit thread. A client whose place is taken by
 * another, or that has not called since the start, is unknown: its lines carry the number alone. */
#ifndef WEIR_API_CLIENT_IDS_H
#define WEIR_API_CLIENT_IDS_H

#include "base/uuid.h"

struct client_ids;

struct client_ids *client_ids_new(void);
struct client_ids *client_ids_free(struct client_ids *c); /* NULL is fine; always returns NULL */
void client_ids_note(struct client_ids *c, int64_t client, const struct uuid *id); /* one load when known */
bool client_ids_find(struct client_ids *c, int64_t client, struct uuid *ret_id);

#endif
