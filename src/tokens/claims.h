/* tokens/claims.h - what a token says, read strictly, and whether it may say so here and now.
 *
 * Pure: the policy and the time are given. Lists are bounded, names are 1 to 256 bytes without control
 * characters, times are whole seconds of the years 1970 to 9999. Unknown claims are ignored.
 *
 * Rules of time (AMB-19): no leeway on exp; iat may lead by the skew, inclusive; nbf likewise, at most 60 s;
 * exp - iat at most the cap, inclusive, and the lower cap when any role is an agent's. */
#ifndef WEIR_TOKENS_CLAIMS_H
#define WEIR_TOKENS_CLAIMS_H

#include <stdint.h>

#include "base/json.h"
#include "tokens/token_reason.h"

enum {
    TOKEN_NAME_BYTES_MAX = 256,
    TOKEN_ROLES_MAX = 32,
    TOKEN_PROJECTS_MAX = 256,
    TOKEN_AUDIENCES_MAX = 32,
    TOKEN_AGENT_ROLES_MAX = 32,
    TOKEN_SKEW_SECONDS_MAX = 120,
    TOKEN_NBF_SKEW_SECONDS_MAX = 60,
    TOKEN_TTL_SECONDS_MAX = 8 * 3600,
    TOKEN_AGENT_TTL_SECONDS_MAX = 4 * 3600,
};

/* X(name, claim). They are read in this order. */
#define TOKEN_CLAIMS(X)                                                                                      \
    X(SUB, "sub")                                                                                            \
    X(ROLE, "role")                                                                                          \
    X(ROLES, "roles")                                                                                        \
    X(PROJECT_SCOPE, "project_scope")                                                                        \
    X(SESSION_ID, "session_id")                                                                              \
    X(TENANT_ID, "tenant_id")                                                                                \
    X(ISS, "iss")                                                                                            \
    X(AUD, "aud")                                                                                            \
    X(EXP, "exp")                                                                                            \
    X(IAT, "iat")                                                                                            \
    X(NBF, "nbf")                                                                                            \
    X(JTI, "jti")

#define X(name, text) CLAIM_##name,
enum token_claim { TOKEN_CLAIMS(X) TOKEN_CLAIM_COUNT };
#undef X
#define CLAIM_BIT(name) (1U << CLAIM_##name)

/* The claims that each API requires; `role` or `roles` is always required. */
enum {
    TOKEN_FOR_ANY = CLAIM_BIT(SUB) | CLAIM_BIT(PROJECT_SCOPE) | CLAIM_BIT(ISS) | CLAIM_BIT(AUD) |
                    CLAIM_BIT(EXP) | CLAIM_BIT(IAT) | CLAIM_BIT(JTI),
    TOKEN_FOR_ENGINE = TOKEN_FOR_ANY | CLAIM_BIT(TENANT_ID),
    TOKEN_FOR_CONTROL = TOKEN_FOR_ANY | CLAIM_BIT(ROLE) | CLAIM_BIT(SESSION_ID),
};

struct token_agent_role {
    struct str role;
    int64_t ttl_seconds_max;
};

struct token_policy {
    struct str issuer;    /* compared byte by byte */
    struct str audiences; /* a,b,c: one of them is enough */
    unsigned required;    /* TOKEN_FOR_... */
    int64_t skew_seconds, ttl_seconds_max;
    struct token_agent_role agents[TOKEN_AGENT_ROLES_MAX];
    size_t agent_count;
};

struct token_claims {
    struct str subject, issuer, jti, session_id, tenant_id; /* absent: not there */
    struct str audience;                                    /* of the policy's, the one that matched */
    struct str *audiences, *roles, *projects;
    size_t audience_count, role_count, project_count;
    bool system_dropped; /* it claimed to be System, which no caller from outside is */
    bool every_project;
    int64_t issued_at, expires_at, not_before; /* seconds; not_before 0: none */
};

/* "agent,helper=3600": roles with their own cap, 4 h unless said. ERR_CONFIG_INVALID beyond 4 h. Borrows. */
MUST_CHECK enum err_code token_agents_parse(struct str text, struct token_policy *p, struct err *err);

/* TOKEN_OK, CLAIM_MISSING or CLAIM_SHAPE with the claim's name. Lists live in the arena, texts are borrowed
 * from the payload. */
enum token_reason claims_read(struct arena *a, const struct json *payload, unsigned required,
                              struct token_claims *ret_claims, const char **ret_claim);
/* With everything it points to. */
struct token_claims claims_copy(struct arena *a, const struct token_claims *c);
enum token_reason claims_check(struct token_claims *c, const struct token_policy *p, int64_t now);
/* The longest life of a token with these roles. */
int64_t claims_ttl_max(const struct token_claims *c, const struct token_policy *p);

/* May the bearer touch this? Absent: not asked. TOKEN_OK, TENANT or PROJECT. */
enum token_reason claims_admit(const struct token_claims *c, struct str tenant, struct str project);
bool claims_has_role(const struct token_claims *c, struct str role);
bool token_name_is_sound(struct str name); /* 1 to 256 bytes, no control characters */

const char *token_claim_name(enum token_claim claim);

#endif
