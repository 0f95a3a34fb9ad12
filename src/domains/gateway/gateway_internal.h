/* domains/gateway/gateway_internal.h - a delivery's way through the gateway, while its task runs:
 *
 *   WAITING ─► OUT ─► its result is reported
 *      └────────┴───► given back, when its partition fails
 *
 * A claim starts what it gives; it waits in its partition's mailbox (runtime/actor.h) only until the loop
 * comes round. OUT ones stand in their partition's list. */
#ifndef WEIR_GATEWAY_INTERNAL_H
#define WEIR_GATEWAY_INTERNAL_H

#include "domains/gateway/gateway.h"
#include "domains/gateway/key_fetcher.h"
#include "domains/gateway/policy_asker.h"
#include "domains/gateway/request_owner.h"
#include "domains/gateway/span_export.h"
#include "domains/skeleton/domain.h"
#include "runtime/actor.h"

enum {
    CLAIM_LOOPS_MIN = 4, /* long polls: one per partition, and none for more slots than a claim may name */
    CLAIM_MAX = 128,
    QUEUE_NAME_MAX = 16, /* jobs/deliver.h: DELIVERY_QUEUE_MAX */
    EGRESS_CONNECTIONS_MAX = 4000,
    EGRESS_LOOKUPS_MAX = 64,
    EGRESS_BYTES_MAX = 256 << 20,
    CONNECT_TIMEOUT_MS_MAX = 10000,
    PARTITION_ROOM_MIN = 4, /* deliveries, however many partitions share gateway.in_flight */
    STUCK_MS = 10000,       /* beyond its time: a request that has no end by then is a failure of ours */
};

struct sending {
    struct domain_task task;
    struct request_owner owner;
    TAILQ_ENTRY(sending) out; /* in its partition's list, while its request is out */
    struct outbound *partition;
    int64_t attempt, begun_ms;
    /* the request */
    struct str url, body, about, delivery_id;
    struct str *headers;
    size_t header_count;
    /* the result */
    bool success, retryable;
    bool poison; /* it cannot be sent by any process */
    int status;
    int64_t duration_ms, retry_after_ms;
    char error_code[40], error_message[256];
    struct arena *arena; /* holds all of it */
};

struct claim_loop {
    struct domain_claim claim;
    struct str queues[PARTITION_SLOTS / CLAIM_LOOPS_MIN];
    char names[PARTITION_SLOTS / CLAIM_LOOPS_MIN][QUEUE_NAME_MAX];
};

/* One partition: the deliveries of its keys, and nobody else's. */
struct outbound {
    struct domain_room room;
    struct gateway *gateway;
    uint32_t number;
    TAILQ_HEAD(, sending) out; /* oldest first */
    bool stopping;             /* its requests are being given up */
    int64_t told_at_ms;        /* failures it may tell of (outbound_told.c) ... */
    uint32_t tells_left;       /* ... until a second after that */
};

struct gateway {
    const struct gateway_role *role;
    const struct process_start *process;
    struct egress_policy guard;
    struct domain_limits limits; /* restarts of partitions */
    struct domain *domain;
    struct egress *egress;
    struct span_export *spans;   /* NULL: no collector */
    struct policy_asker *policy; /* NULL: no policy decision point */
    struct key_fetcher *keys;    /* NULL: no outside issuers */
    struct actors *actors;       /* one a partition */
    struct outbound *partitions;
    uint32_t partition_count;
    struct claim_loop *loops;
};

/* sending.c */
struct sending *sending_new(const struct worker_task *task);
/* Its request goes out, or it is done at once. ERR_EXEC_QUEUE_FULL: not now, nothing has changed.
 * ERR_INTERNAL: its partition is not sound. */
enum err_code sending_begin(struct gateway *g, struct sending *s, int64_t now_ms, struct err *err);
void sending_over(struct request_owner *owner, const struct egress_result *result);
struct worker_finish sending_report(const struct sending *s, struct arena *a);

/* outbound.c: the partitions */
uint32_t outbound_open(struct gateway *g, int64_t now_ms); /* how many deliveries at a time that makes */
void outbound_close(struct gateway *g);
void outbound_take(struct gateway *g, struct sending *s);
void outbound_run(struct gateway *g, int64_t now_ms); /* begins waiting ones; those without an end fail */
void outbound_room(struct gateway *g);                /* a request is over: partitions without room may try */
void outbound_cancel(struct gateway *g);              /* told as failed attempts: each is tried again */

/* outbound_told.c */
void outbound_tell_result(struct gateway *g, struct sending *s, int64_t now_ms);
void outbound_tell_failed_actor(void *gateway, const struct actor_failure *failure);

#endif
