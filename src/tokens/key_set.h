/* tokens/key_set.h - the keys of one environment: which signs, which still verify, which did once.
 *
 *   pending ──not_before──► signing ──a later key's not_before──► verifying ──retires_at──► retired
 *      └───────────────────────┴──────────── revoke ─────────────────┴──────► revoked
 *
 * A state is worked out from times, never stored. The newest key whose not_before has come signs. A rotation
 * gives the key before it a retires_at: its successor's not_before plus the overlap, which outlasts every
 * token it signed (AMB-20). A revoked key verifies nothing from that second on. Retired and revoked keys
 * stay listed for the history.
 *
 * Pure: no files, no clock. A set that was read has passed every rule of key_set_broken_rule. */
#ifndef WEIR_TOKENS_KEY_SET_H
#define WEIR_TOKENS_KEY_SET_H

#include "tokens/token_key.h"
#include "tokens/token_reason.h"

enum {
    KEY_ID_MAX = 64, /* letters, digits, '.', '_', '-': a file name, too */
    KEY_ACTOR_MAX = 64,
    KEY_REASON_MAX = 200,
    KEY_SET_MAX = 1000,
    KEY_SET_BYTES_MAX = 4 << 20,
    KEY_ENVIRONMENT_MAX = 16,
    KEY_PUBLISH_SECONDS = 60,          /* a new key is in the JWKS this long before it signs: caches */
    KEY_OVERLAP_SECONDS_MIN = 28920,   /* 8 h and 120 s */
    KEY_HISTORY_SECONDS_MIN = 7776000, /* 90 days */
};

/* X(name, name on the wire, verifies tokens and is in the JWKS) */
#define KEY_STATES(X)                                                                                        \
    X(PENDING, "pending", true)                                                                              \
    X(SIGNING, "signing", true)                                                                              \
    X(VERIFYING, "verifying", true)                                                                          \
    X(RETIRED, "retired", false)                                                                             \
    X(REVOKED, "revoked", false)
#define X(name, ...) KEY_##name,
enum key_state { KEY_STATES(X) KEY_STATE_COUNT };
#undef X

/* Times are seconds since 1970; 0: not set. */
struct key_record {
    char kid[KEY_ID_MAX + 1];
    struct token_key key; /* public part */
    int64_t created_at, not_before, retires_at, revoked_at;
    char created_by[KEY_ACTOR_MAX + 1];
    char revoked_by[KEY_ACTOR_MAX + 1], revoked_reason[KEY_REASON_MAX + 1];
};

struct key_set {
    char environment[KEY_ENVIRONMENT_MAX];
    struct key_record *keys; /* by not_before, oldest first */
    size_t count;
};

struct key_rules { /* of the settings */
    int64_t overlap_seconds, history_seconds;
};

void key_set_free(struct key_set *s);
struct key_record *key_set_find(const struct key_set *s, struct str kid); /* NULL: none */
const struct key_record *key_set_signer(const struct key_set *s, int64_t now);
enum key_state key_set_state(const struct key_set *s, const struct key_record *k, int64_t now);
const char *key_state_name(enum key_state state);
bool key_state_verifies(enum key_state state);
/* The key, shared, if tokens of it may pass now. TOKEN_OK, KEY_UNKNOWN, KEY_REVOKED or KEY_RETIRED. */
enum token_reason key_set_lookup(const struct key_set *s, struct str kid, int64_t now,
                                 struct token_key *ret_key);

/* Adds a key that was just made, and lets the one before it retire. The first signs at once; a later one
 * after KEY_PUBLISH_SECONDS, or at once when `at_once`. ERR_AUTH_KEY_CONFLICT when the set is full. */
MUST_CHECK enum err_code key_set_add(struct key_set *s, const struct token_key *key, struct str actor,
                                     const struct key_rules *rules, bool at_once, int64_t now,
                                     const struct key_record **ret_record, struct err *err);
/* False: the key is revoked already. */
bool key_set_revoke(struct key_record *k, struct str actor, struct str reason, int64_t now);
/* Drops what has been retired or revoked for longer than the history is kept. */
void key_set_forget(struct key_set *s, const struct key_rules *rules, int64_t now);

/* The list as a file: JSON with a checksum over all keys. */
void key_set_write(const struct key_set *s, struct strbuf *out);
/* ERR_CONFIG_INVALID with what is wrong: damage, another version, another environment (EVT-140). */
MUST_CHECK enum err_code key_set_read(struct str text, const char *environment, struct key_set *ret_set,
                                      struct err *err);
/* RFC 7517: the public part of what verifies now. */
void key_set_write_jwks(const struct key_set *s, int64_t now, struct strbuf *out);
/* NULL when sound, else the rule that is broken. */
const char *key_set_broken_rule(const struct key_set *s);
bool key_id_is_sound(struct str kid);

#endif
