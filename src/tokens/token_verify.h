/* tokens/token_verify.h - is this token good? The one order of checks, for every API (seed 000, section 4):
 *
 *   cut, payload ─► 1 blocklist ─► header, key of kid, alg of key, 2 signature ─► 3 claims ─► 4 jti
 *
 * What is read before the signature is used to refuse only. The header's alg is compared with the key's and
 * never chooses anything. `iss` names the one issuer whose keys, audience and claims count; a token that
 * names none that is trusted is judged by our own keys, and refused. A token that is known by its bytes is
 * not read again: its key, if it is still the one that signed it, and everything else are looked at as for
 * any other. A reason is for logs; callers outside get its class (token_reason.h). Threads: any; the
 * verifier is shared, the arena and the verdict are the caller's. */
#ifndef WEIR_TOKENS_TOKEN_VERIFY_H
#define WEIR_TOKENS_TOKEN_VERIFY_H

#include "tokens/blocklist.h"
#include "tokens/claims.h"
#include "tokens/issuer_keys.h"
#include "tokens/jti_table.h"
#include "tokens/jws.h"
#include "tokens/key_ring.h"
#include "tokens/known_tokens.h"

struct token_verifier {
    struct key_ring *keys;
    struct blocklist *blocklist;
    struct jti_table *jtis;
    struct known_tokens *known;  /* NULL: every token is read and its signature verified every time */
    struct token_policy policy;  /* of our own issuer; times and agents hold for outside ones, too */
    struct issuer_keys *outside; /* other issuers that count; NULL: none does */
    struct jti_table
        *outside_jtis;      /* of them, where they have any: no outside issuer fills the table of ours */
    struct str known_roles; /* a,b,c: of a role claim from outside only these count */
};

#define TOKEN_STEPS(X) X(BLOCKLIST, "blocklist") X(SIGNATURE, "signature") X(CLAIMS, "claims") X(JTI, "jti")
#define X(name, text)  TOKEN_STEP_##name,
enum token_step { TOKEN_STEPS(X) TOKEN_STEP_COUNT };
#undef X

struct token_verdict {
    enum token_reason reason;
    const char *claim; /* the claim at fault, of CLAIM_MISSING and CLAIM_SHAPE; else NULL */
    struct str kid;    /* absent: the header was not read */
    enum token_alg alg;
    struct token_claims claims; /* when the reason is TOKEN_OK */
    enum token_step steps[TOKEN_STEP_COUNT];
    size_t step_count; /* how many were begun, in this order */
};

/* `now` in seconds. Texts of the verdict live as long as the arena. */
enum token_reason token_verify(const struct token_verifier *v, struct str token, int64_t now, struct arena *a,
                               struct token_verdict *ret_verdict);

#endif
