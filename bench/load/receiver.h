/* load/receiver.h - the smallest webhook receiver that keeps up: one thread, epoll, keep-alive, 204 to all.
 *
 * A request counts when its body is whole. One without the three headers of a signed delivery counts as
 * unsigned too. Whatever is not such a request ends the program. */
#ifndef WEIR_BENCH_RECEIVER_H
#define WEIR_BENCH_RECEIVER_H

#include <stdint.h>

struct receiver;

struct receiver *receiver_start(void); /* on a free port of 127.0.0.1 */
void receiver_stop(struct receiver *r);
int receiver_port(const struct receiver *r);
/* Waits until so many came. */
int64_t receiver_await(struct receiver *r,
                       uint64_t count); /* the time of the last one; 0: they stopped coming */
uint64_t receiver_count(const struct receiver *r);
uint64_t receiver_unsigned(const struct receiver *r);

#endif
