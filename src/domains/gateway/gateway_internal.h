/* domains/gateway/gateway_internal.h - a delivery's way through the gateway:
 *
 *   OUT ─► DONE ─► REPORTING ─► (gone)
 *           ▲────────┘ no answer
 *
 * A claim starts what it gives, so a claimed delivery is sent at once. OUT and DONE ones stand in the list of
 * their phase; the others are in the batch in flight. */
#ifndef WEIR_GATEWAY_INTERNAL_H
#define WEIR_GATEWAY_INTERNAL_H

#include <sys/queue.h>

#include "domains/gateway/gateway.h"
#include "domains/gateway/policy_asker.h"
#include "domains/gateway/span_export.h"
#include "egress/sender.h"
#include "worker_client/worker_client.h"

enum {
    IN_FLIGHT_MAX = 4000, /* requests, 17 KiB each */
    CLAIM_LOOPS = 8,      /* long polls, each on its share of the queues */
    CLAIM_WAIT_MS = 20000,
    CLAIM_MAX = 128,
    QUEUES = 64, /* core's DELIVERY_PARTITIONS */
    QUEUE_NAME_MAX = 16,
    CALL_TIMEOUT_MS = 10000,
    EMPTY_PAUSE_MS = 100,
    WORKER_ID_MAX = 64,
    EGRESS_CONNECTIONS_MAX = 4000,
    EGRESS_LOOKUPS_MAX = 64,
    EGRESS_BYTES_MAX = 256 << 20,
    CONNECT_TIMEOUT_MS_MAX = 10000,
};

enum sending_phase { SENDING_OUT, SENDING_DONE, SENDING_REPORTING };

struct sending {
    TAILQ_ENTRY(sending) link;
    enum sending_phase phase;
    struct worker_task_ref ref;
    int64_t attempt, begun_ms;
    int64_t beaten_ms; /* named by a heartbeat then; at first, when it began */
    bool beating;      /* named by the heartbeat in flight */
    bool gone;         /* core no longer wants it: nothing is reported */
    /* the request */
    struct str url, body, about;
    struct str *headers;
    size_t header_count;
    /* what came of it */
    bool success, retryable;
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
    struct gateway *gateway;
    struct worker_call *call;
    struct str queues[QUEUES / CLAIM_LOOPS];
    char names[QUEUES / CLAIM_LOOPS][QUEUE_NAME_MAX];
    char worker_id[WORKER_ID_MAX];
    int64_t claim_after_ms;
    uint32_t asked; /* room taken by the claim in flight */
};

struct gateway {
    const struct gateway_config *config;
    const struct clock *clock;
    struct worker_client *client;
    struct egress *egress;
    struct span_export *spans;   /* NULL: no collector */
    struct policy_asker *policy; /* NULL: no policy decision point */
    struct claim_loop loops[CLAIM_LOOPS];
    struct sending_list out, done;
    struct gateway_batch heartbeat, finish;
    uint32_t count; /* deliveries here, and room asked for */
    int64_t beat_at_ms, drain_until_ms;
    bool draining;
};

/* sending.c */
struct sending *sending_new(const struct worker_task *task);
void sending_free(struct gateway *g, struct sending *s);
void sending_begin(struct gateway *g, struct sending *s, int64_t now_ms); /* its request goes out */
void sending_over(void *gateway, const struct egress_result *result);     /* egress's answer */
struct worker_finish sending_report(struct sending *s);

/* gateway_calls.c: sends core whatever waits, takes the answers */
void gateway_pump(struct gateway *g, int64_t now_ms);
void gateway_abandon_claims(struct gateway *g);
int64_t gateway_next_at_ms(const struct gateway *g, int64_t now_ms); /* INT64_MAX: only an answer matters */

#endif
