/* jobs/client_commands.h - clients, their API keys, callback secrets and webhooks.
 *
 * Secrets are made by the caller (randomness is not a decider's business) and passed in: API keys only as
 * SHA-256. A client has at most KEYS_ACTIVE_MAX keys that work. Rotating or renewing makes a new one and lets
 * the replaced one end keys.overlap_seconds later, in the same transaction. No key makes or renews a key with
 * more power than its own. */
#ifndef WEIR_JOBS_CLIENT_COMMANDS_H
#define WEIR_JOBS_CLIENT_COMMANDS_H

#include "base/uuid.h"
#include "kernel/kernel.h"
#include "lifecycle/key_power.h"

enum { KEY_HASH_BYTES = 32, WEBHOOK_SECRET_BYTES = 32, CREATE_NAME_MAX = 255 };

/* The caller. */
enum principal_kind { PRINCIPAL_NONE, PRINCIPAL_KEY, PRINCIPAL_OPERATOR, PRINCIPAL_DOMAIN };
struct principal {
    enum principal_kind kind;
    int64_t client; /* number; PRINCIPAL_KEY only */
    int64_t key;    /* 0: a token */
    struct uuid client_id;
    struct key_power power; /* PRINCIPAL_KEY only */
    int64_t ends_ms;        /* of a key: when it expires, or is revoked, if that is known by now */
};

/* Idempotency-Key of a create: absent name means none. */
struct create_once {
    struct str name;
    uint8_t fingerprint[16];
};

struct create_client_command {
    struct command base;
    bool by_operator;
    struct create_once once; /* for the operator only: other callers' keys are not used */
    struct uuid client_id;   /* proposed; replaced by the first one's on a replay */
    uint8_t webhook_secret[WEBHOOK_SECRET_BYTES];
    bool replayed;
    int64_t created_ms;
};
extern const struct command_type create_client_command_type;

enum key_action { KEY_CREATE, KEY_RENEW, KEY_REVOKE };
/* The properties of a new key. Those not given come from the key that it replaces, or are the default: no
 * name, every scope, every queue, keys.ttl_seconds. */
struct key_wish {
    bool has_name, has_scopes, has_queues;
    struct str name; /* absent: none */
    struct key_power power;
    int64_t life_seconds; /* 0: not given */
};
struct key_command {
    struct command base;
    enum key_action action;
    struct principal who;
    struct uuid client_id;
    bool rotate; /* create: replaces the presented key; for the operator, the one it would repeat */
    struct create_once once; /* create */
    struct key_wish wish;    /* create, renew */
    bool names_key;          /* renew: the one of named_id; else the presented one, or the newest */
    int64_t named_id;
    uint64_t named_low;
    int64_t key_id; /* revoke: which; else the answer */
    uint64_t key_low;
    uint8_t new_hash[KEY_HASH_BYTES]; /* create, renew */
    /* answer */
    int64_t created_ms, expires_ms;
    bool fresh; /* the new secret was stored: show it */
    bool replayed;
};
extern const struct command_type key_command_type;

struct rotate_secret_command {
    struct command base;
    struct principal who;
    struct uuid client_id;
    uint8_t secret[WEBHOOK_SECRET_BYTES];
};
extern const struct command_type rotate_secret_command_type;

struct create_webhook_command {
    struct command base;
    int64_t client;
    struct create_once once;
    struct str url;
    struct str events;       /* sorted, comma-separated */
    uint8_t fingerprint[16]; /* of url and events */
    uint8_t secret[WEBHOOK_SECRET_BYTES];
    int64_t id, created_ms;
    uint64_t low;
    bool replayed;
};
extern const struct command_type create_webhook_command_type;

/* Further actions on an existing webhook. */
enum webhook_action { WEBHOOK_TEST, WEBHOOK_ENABLE, WEBHOOK_ROTATE, WEBHOOK_REDELIVER };
struct webhook_command {
    struct command base;
    enum webhook_action action;
    int64_t client, id;
    uint64_t low;
    int64_t delivery_id; /* redeliver: which; test: the answer */
    uint64_t delivery_low;
    uint8_t secret[WEBHOOK_SECRET_BYTES]; /* rotate: the new one */
};
extern const struct command_type webhook_command_type;

struct delete_webhook_command {
    struct command base;
    int64_t client, id;
    uint64_t low;
};
extern const struct command_type delete_webhook_command_type;

#endif
