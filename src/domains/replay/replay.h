/* domains/replay/replay.h - sends dead letters again: deliveries that were given up, or that somebody wants
 * sent once more (POST .../deliveries/{id}:redeliver).
 *
 * Process:   `weir: replay`, the program of domains/gateway over queues of its own ("~replay.SLOT", the slot
 *            by hash(dead_letter_id)) and in a failure domain of its own. Nothing of it is shared with live
 *            deliveries: neither process nor partitions, room, claims, nor slots at a receiver. So a replay
 *            that crashes or hangs, and one of a hundred thousand letters, is nothing that live traffic
 *            notices.
 * Life:      it rests until core has something for it, and ends when it has had nothing for REPLAY_IDLE_MS
 *            (runtime/process_table.h). On a shared store it runs all the time. */
#ifndef WEIR_DOMAINS_REPLAY_H
#define WEIR_DOMAINS_REPLAY_H

#include "domains/gateway/gateway.h"

enum { REPLAY_IDLE_MS = 10000 };

extern const struct gateway_role replay_role;

#endif
