/* api/auth.h - who is calling. API keys: `weir_<16 hex: key number>_<43 base64url: 256 random bits>`;
 * stored is the SHA-256 of the secret part, compared in constant time.
 *
 * Every HTTP thread caches keys it has seen; a commit that changes a key that exists raises the generation,
 * and stale caches are dropped before the next request is looked at: a revocation holds from its answer on.
 * Calls that last look again, too (api/credential.h). */
#ifndef WEIR_API_AUTH_H
#define WEIR_API_AUTH_H

#include "api/key_uses.h"
#include "api/reads.h"
#include "jobs/client_commands.h"
#include "store/store.h"

enum { API_KEY_TEXT_MAX = 80 };

struct auth;
struct auth *auth_new(const struct settings *s, struct key_uses *uses); /* borrowed */
struct auth *auth_free(struct auth *a);
void auth_keys_changed(struct auth *a); /* commit thread, before answers go out */
/* Rises whenever a key that exists was changed; never 0. Any thread. */
uint64_t auth_generation(const struct auth *a);

struct new_key {
    uint8_t secret[32];
    uint8_t hash[KEY_HASH_BYTES];
};
void auth_make_key(struct new_key *ret);
struct str auth_key_text(const struct new_key *key, int64_t key_id, char out[API_KEY_TEXT_MAX]);
/* Splits the text form; false unless it has exactly our form. (Fuzzed.) */
bool auth_key_parse(struct str text, int64_t *ret_key_id, uint8_t ret_secret[32]);
/* "whsec_" + base64 */
struct str webhook_secret_text(struct arena *a, struct str secret);

/* Is it the operator token? Needs no store. */
bool auth_is_operator(const struct auth *a, struct str header);
/* `header` is the Authorization value (absent: none sent). PRINCIPAL_NONE with ERR_OK when none was sent. */
MUST_CHECK enum err_code auth_check(struct auth *a, struct reads *reads, struct arena *arena,
                                    struct str header, int64_t now_ms, struct principal *ret_who,
                                    struct err *err);

#endif
