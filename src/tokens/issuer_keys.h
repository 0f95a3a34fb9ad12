/* tokens/issuer_keys.h - the keys of outside issuers as verifiers see them: always in memory.
 *
 * A file is looked at once a second at most, when a token of its issuer comes: a change counts within a
 * second, or at once when issuer_keys_read() asks. The keys of a URL are fetched by the gateway (core
 * does not connect out): issuer_keys_due() says what to fetch, issuer_keys_put() takes what came. Fetched
 * every `refresh_seconds`; sooner, but not more often than a tenth of that (at most 30 s), when a kid is
 * not known or the last try failed: a flood of invented kids costs the provider no more than that. Keys
 * outlive a provider that does not answer, for `max_age_seconds`; then every token of it is refused
 * (keys_unreadable). They also outlive a restart, in DATA/issuers. A kid belongs to its issuer: equal
 * kids of two are two keys. A set that is refused (tokens/jwks.h) changes nothing. Threads: any; one
 * lock. */
#ifndef WEIR_TOKENS_ISSUER_KEYS_H
#define WEIR_TOKENS_ISSUER_KEYS_H

#include "tokens/issuers.h"
#include "tokens/jwks.h"

enum { ISSUER_FETCH_SECONDS = 15, ISSUER_PATH_MAX = 4096 };

struct issuer_rules {
    const char *data_dir; /* copied */
    int64_t refresh_seconds, max_age_seconds;
};

struct issuer_state {
    struct str issuer;
    bool from_url;
    size_t key_count;
    int64_t age_seconds; /* of the keys; -1: there are none */
    bool fresh;          /* they may be used */
    uint64_t fetches, failures;
};

struct issuer_keys;

/* Takes the issuers over, also when it fails: ERR_CONFIG_INVALID names a jwks_file that holds no keys. */
MUST_CHECK enum err_code issuer_keys_new(struct issuers *issuers, const struct issuer_rules *rules,
                                         int64_t now, struct issuer_keys **ret_keys, struct err *err);
/* The same from the file at `path`; without one there are none, and *ret_keys is NULL. */
MUST_CHECK enum err_code issuer_keys_open(const char *path, struct str own, const struct issuer_rules *rules,
                                          int64_t now, struct issuer_keys **ret_keys, struct err *err);
struct issuer_keys *issuer_keys_free(struct issuer_keys *k); /* NULL is fine; always returns NULL */

/* NULL: no issuer of this name. */
const struct issuer *issuer_keys_issuer(const struct issuer_keys *k, struct str name);
/* The key, shared; free it. TOKEN_OK, KEY_UNKNOWN or KEYS_UNREADABLE. */
enum token_reason issuer_keys_find(struct issuer_keys *k, const struct issuer *issuer, struct str kid,
                                   int64_t now, struct token_key *ret_key);

/* The next fetch that is due; it counts as under way for ISSUER_FETCH_SECONDS. False: none is due. */
bool issuer_keys_due(struct issuer_keys *k, int64_t now, size_t *ret_index, const char **ret_url);
/* The result of a fetch: a body, or absent and `why`. ERR_OK: its keys count. `ret_told`: the result is
 * another than the last one, so it is worth a line in the log. */
MUST_CHECK enum err_code issuer_keys_put(struct issuer_keys *k, size_t index, struct str body, struct str why,
                                         int64_t now, bool *ret_told, struct err *err);

/* An operator asks for it: a file is read, whether it looks changed or not, and a URL is due. `ret_read` is
 * false for a URL. ERR_CONFIG_INVALID: the file holds no keys; the former ones stay. */
MUST_CHECK enum err_code issuer_keys_read(struct issuer_keys *k, size_t index, int64_t now, bool *ret_read,
                                          struct err *err);

size_t issuer_keys_count(const struct issuer_keys *k); /* of issuers; NULL: 0 */
void issuer_keys_state(struct issuer_keys *k, size_t index, int64_t now, struct issuer_state *ret);

#endif
