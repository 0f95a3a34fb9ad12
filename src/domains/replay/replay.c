/* Sends dead letters again: deliveries that were given up, or that somebody wants sent once more
 * (POST .../deliveries/{id}:redeliver).
 *
 * Process:   `weir: replay`, the program of domains/gateway over queues of its own ("~replay.SLOT", the slot
 *            by hash(dead_letter_id)) and in a failure domain of its own. Nothing of it is shared with live
 *            deliveries: neither process nor partitions, room, claims, nor slots at a receiver. So a replay
 *            that crashes or hangs, and one of a hundred thousand letters, is nothing that live traffic
 *            notices.
 * Life:      on demand (runtime/process_list.h): root starts it when core has work for it; it ends when it is
 *            idle. On a shared store it runs all the time. */
#include "domains/gateway/gateway.h"

#include "base/banned.h"

int replay_main(const struct process_start *start)
{
    return gateway_run(start, &(struct gateway_role){.queue = "~replay",
                                                     .partitions = PARTITION_OF_REPLAY,
                                                     .in_flight = start->settings->replay_in_flight});
}
