/* lifecycle/key_power.h - what an API key may do: its scopes, and the queues it is limited to.
 *
 * Pure. Which call needs which scope is said by x-weir-scope in contracts/openapi, nowhere else. A list of
 * queues is a text: names in byte order, each once, with commas between them; absent means every queue. */
#ifndef WEIR_LIFECYCLE_KEY_POWER_H
#define WEIR_LIFECYCLE_KEY_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

/* X(name, wire) */
#define KEY_SCOPES(X)                                                                                        \
    X(SUBMIT, "submit") /* submit, cancel and retry jobs, purge queues */                                    \
    X(WORK, "work")     /* the worker API */                                                                 \
    X(READ, "read")     /* jobs, reports, events, deliveries, queues */                                      \
    X(ADMIN, "admin")   /* keys, webhooks, secrets, pause and defaults of queues */

#define X(name, wire) KEY_SCOPE_##name,
enum key_scope { KEY_SCOPES(X) KEY_SCOPE_COUNT };
#undef X
#define X(name, wire) SCOPE_##name = 1 << KEY_SCOPE_##name,
enum key_scope_bits { KEY_SCOPES(X) SCOPE_ALL = (1 << KEY_SCOPE_COUNT) - 1 };
#undef X

enum {
    KEY_QUEUES_MAX = 32,
    KEY_NAME_BYTES_MAX = 64,
    KEYS_ACTIVE_MAX = 32,         /* of a client, those in their overlap included */
    KEYS_LISTED_MAX = 64,         /* those, and as many that ended last as there is room for */
    KEY_WARN_SECONDS = 14 * 86400 /* a key that ends sooner is warned about */
};

struct key_power {
    unsigned scopes;   /* enum key_scope_bits */
    struct str queues; /* absent: all */
};

const char *key_scope_text(enum key_scope s);
bool key_scope_parse(struct str text, enum key_scope *ret_scope);

/* Stored as 0 when the key has all of them, so that it has those to come, too. */
int64_t key_scopes_stored(unsigned scopes);
unsigned key_scopes_of_stored(int64_t stored);

/* Sorts `names` and leaves out what is there twice. */
struct str key_queues_of(struct arena *a, struct str *names, size_t count);
bool key_queues_have(struct str queues, struct str queue);
bool key_queues_are_sound(struct str queues);
/* "the scope work", "the queue mail", "every queue": something of `wanted` that `holder` has not. False: the
 * holder may give it all. */
bool key_power_lacks(const struct key_power *holder, const struct key_power *wanted, const char **ret_what,
                     struct str *ret_name);

#endif
