/* domains/gateway/gateway_internal.h - a delivery's way through the gateway:
 *
 *   WAITING ─► OUT ─► DONE ─► REPORTING ─► (gone)          BACK ─► GIVING_BACK ─► (gone)
 *      │        │       ▲────────┘ no answer                 ▲────────┘ no answer
 *      └────────┴───► BACK, when its partition fails
 *
 * A claim starts what it gives; it waits in its partition's mailbox (runtime/actor.h) only until the loop
 * comes round. OUT ones stand in their partition's list, DONE and BACK ones in the gateway's, the others are
 * in the batch in flight. */
#ifndef WEIR_GATEWAY_INTERNAL_H
#define WEIR_GATEWAY_INTERNAL_H

#include <sys/queue.h>

#include "domains/gateway/gateway.h"
#include "domains/gateway/key_fetcher.h"
#include "domains/gateway/policy_asker.h"
#include "domains/gateway/span_export.h"
#include "egress/sender.h"
#include "runtime/actor.h"
#include "runtime/link_watch.h"
#include "runtime/partition.h"
#include "runtime/pressure.h"
#include "worker_client/worker_client.h"

enum {
    CLAIM_LOOPS_MIN = 4, /* long polls: one per partition, and none for more slots than a claim may name */
    CLAIM_WAIT_MS = 20000,
    CLAIM_MAX = 128,
    QUEUE_NAME_MAX = 16, /* jobs/deliver.h: DELIVERY_QUEUE_MAX */
    CALL_TIMEOUT_MS = 10000,
    EMPTY_PAUSE_MS = 100,
    WORKER_ID_MAX = 64,
    EGRESS_CONNECTIONS_MAX = 4000,
    EGRESS_LOOKUPS_MAX = 64,
    EGRESS_BYTES_MAX = 256 << 20,
    CONNECT_TIMEOUT_MS_MAX = 10000,
    PARTITION_ROOM_MIN = 4, /* deliveries, however many partitions share gateway.in_flight */
    STUCK_MS = 10000,       /* beyond its time: a request that has no end by then is a failure of ours */
};

enum sending_phase {
    SENDING_WAITING,
    SENDING_OUT,
    SENDING_DONE,
    SENDING_REPORTING,
    SENDING_BACK,
    SENDING_GIVING_BACK
};

struct sending {
    TAILQ_ENTRY(sending) link;
    enum sending_phase phase;
    struct outbound *partition;
    struct worker_task_ref ref;
    int64_t attempt, begun_ms;
    int64_t beaten_ms; /* named by a heartbeat then; at first, when it began */
    bool beating;      /* named by the heartbeat in flight */
    bool gone;         /* core no longer wants it: nothing is reported */
    /* the request */
    struct str url, body, about, delivery_id;
    struct str *headers;
    size_t header_count;
    /* what came of it */
    bool success, retryable;
    bool poison; /* nothing that could be sent: whoever carries it fails on it */
    int status;
    int64_t duration_ms, retry_after_ms;
    char error_code[40], error_message[256];
    struct arena *arena; /* holds all of it */
};

TAILQ_HEAD(sending_list, sending);

struct gateway_batch {
    struct worker_call *call; /* NULL: none in flight */
    size_t count;
    struct sending *items[WORKER_BATCH_MAX];
};

struct claim_loop {
    struct outbound *partition;
    struct worker_call *call;
    struct str queues[PARTITION_SLOTS / CLAIM_LOOPS_MIN];
    char names[PARTITION_SLOTS / CLAIM_LOOPS_MIN][QUEUE_NAME_MAX];
    size_t queue_count;
    char worker_id[WORKER_ID_MAX];
    int64_t claim_after_ms;
    uint32_t asked; /* room taken by the claim in flight */
};

/* One partition: the deliveries of its keys, and nobody else's. */
struct outbound {
    struct gateway *gateway;
    uint32_t number;
    uint32_t count;            /* its deliveries here, until core took the word of them; and room asked for */
    uint32_t asked;            /* of that: room asked for */
    struct sending_list out;   /* oldest first */
    bool stopping;             /* its requests are being given up */
    enum pressure_level level; /* as core was told, or is about to be */
    int64_t told_at_ms;        /* failures it may tell of (outbound_told.c) ... */
    uint32_t tells_left;       /* ... until a second after that */
};

struct gateway {
    const struct gateway_config *config;
    const struct clock *clock;
    struct worker_client *client;
    struct egress *egress;
    struct span_export *spans;   /* NULL: no collector */
    struct policy_asker *policy; /* NULL: no policy decision point */
    struct key_fetcher *keys;    /* NULL: no outside issuers */
    struct actors *actors;       /* one a partition */
    struct outbound *partitions;
    uint32_t partition_count, partition_room;
    struct claim_loop *loops;
    uint32_t loop_count, loop_share; /* of a partition's room that one claim may take */
    struct sending_list done, back;
    struct gateway_batch heartbeat, finish, release;
    uint32_t count; /* as of all partitions */
    int64_t beat_at_ms, drain_until_ms;
    bool draining;
    int exit_code;
    /* what core is told of all this (gateway_report.c) */
    char name[24];   /* "gateway 1" */
    int64_t busy_ms; /* when it last had a delivery */
    struct worker_call *report;
    int64_t report_at_ms;
    bool report_tells_return;    /* the one in flight */
    struct link_watch link;      /* to core */
    struct link_return returned; /* core has not heard yet; attempts 0: nothing to tell */
};

/* sending.c */
struct sending *sending_new(const struct worker_task *task);
void sending_free(struct gateway *g, struct sending *s);
/* Its request goes out, or it is done at once. ERR_EXEC_QUEUE_FULL: not now, nothing has changed.
 * ERR_INTERNAL: its partition is not sound. */
enum err_code sending_begin(struct gateway *g, struct sending *s, int64_t now_ms, struct err *err);
void sending_over(void *gateway, const struct egress_result *result); /* egress's answer */
struct worker_finish sending_report(struct sending *s);
void sending_give_back(struct gateway *g, struct sending *s); /* as if its sender had been lost */

/* outbound.c: the partitions and their claims */
void outbound_open(struct gateway *g, int64_t now_ms);
void outbound_run(struct gateway *g, int64_t now_ms); /* what waits is begun */
void outbound_room(struct gateway *g);                /* a request is over: who found none left may try */
void outbound_claim(struct gateway *g, int64_t now_ms);
void outbound_watch(struct gateway *g, int64_t now_ms); /* fails partitions with a request without end */
void outbound_cancel(struct gateway *g);                /* told as failed attempts: each is tried again */
void outbound_abandon_claims(struct gateway *g);
bool outbound_has_work(const struct gateway *g); /* a delivery is here, and core has not its word yet */
int64_t outbound_next_at_ms(const struct gateway *g, int64_t now_ms);

/* outbound_told.c */
void outbound_tell_result(struct gateway *g, struct sending *s, int64_t now_ms);
void outbound_tell_failed_actor(void *gateway, const struct actor_failure *failure);

/* gateway_report.c */
void gateway_report(struct gateway *g, int64_t now_ms);
worker_link_fn gateway_link;

/* gateway_calls.c: sends core whatever waits, takes the answers */
void gateway_pump(struct gateway *g, int64_t now_ms);
int64_t gateway_next_at_ms(const struct gateway *g, int64_t now_ms); /* INT64_MAX: only an answer matters */

#endif
