#include "api/token_auth.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

struct token_auth {
    struct token_verifier verifier;
    char issuer[SETTINGS_ISSUER_MAX];
    struct strbuf known_roles;
};

/* The agents' have one: a shorter life. */
static void add_agent_roles(struct token_auth *a)
{
    strbuf_add_text(&a->known_roles, TOKEN_KNOWN_ROLES);
    for (size_t i = 0; i < a->verifier.policy.agent_count; i++) {
        strbuf_add_char(&a->known_roles, ',');
        strbuf_add_str(&a->known_roles, a->verifier.policy.agents[i].role);
    }
    a->verifier.known_roles = strbuf_str(&a->known_roles);
}

static enum err_code open_issuers(struct token_auth *a, const struct settings *s, int64_t now,
                                  struct err *err)
{
    struct issuer_rules rules = {.data_dir = s->data_dir,
                                 .refresh_seconds = s->tokens_jwks_refresh_seconds,
                                 .max_age_seconds = s->tokens_jwks_max_age_seconds};
    a->verifier.outside_jtis = jti_table_new(JTI_TABLE_MAX);
    return issuer_keys_open(s->tokens_issuers, str_of(a->issuer), &rules, now, &a->verifier.outside, err);
}

struct issuer_keys *token_auth_issuers(struct token_auth *a)
{
    return a->verifier.outside;
}

enum err_code token_auth_new(const struct settings *s, struct key_ring *keys, int64_t now_ms,
                             struct token_auth **ret_auth, struct err *err)
{
    struct token_auth *a = must_alloc(sizeof *a);
    settings_tokens_issuer(s, a->issuer);
    a->verifier = (struct token_verifier){
        .keys = keys,
        .blocklist = blocklist_new(BLOCKLIST_MAX),
        .jtis = jti_table_new(JTI_TABLE_MAX),
        .known = known_tokens_new(),
        .policy = {.issuer = str_of(a->issuer),
                   .audiences = str_of(s->tokens_audience),
                   .required = TOKEN_FOR_ANY,
                   .skew_seconds = s->tokens_skew_seconds,
                   .ttl_seconds_max = s->tokens_max_ttl_seconds},
    };
    if (token_agents_parse(str_of(s->tokens_agent_roles), &a->verifier.policy, err) != ERR_OK ||
        open_issuers(a, s, now_ms / 1000, err) != ERR_OK) {
        token_auth_free(a);
        return err->code;
    }
    add_agent_roles(a);
    *ret_auth = a;
    return ERR_OK;
}

struct token_auth *token_auth_free(struct token_auth *a)
{
    if (!a)
        return NULL;
    blocklist_free(a->verifier.blocklist);
    jti_table_free(a->verifier.jtis);
    known_tokens_free(a->verifier.known);
    issuer_keys_free(a->verifier.outside);
    jti_table_free(a->verifier.outside_jtis);
    strbuf_free(&a->known_roles);
    free(a);
    return NULL;
}

static struct str bearer(struct str header)
{
    struct str rest = header;
    struct str scheme = str_cut(&rest, ' ');
    return str_equal_nocase(scheme, STR("Bearer")) ? str_trim(rest) : STR_ABSENT;
}

bool token_auth_is_token(struct str header)
{
    struct str token = bearer(header);
    size_t dots = 0;
    for (size_t i = 0; i < token.len; i++)
        dots += token.ptr[i] == '.';
    return dots == 2;
}

enum err_code token_auth_check(struct token_auth *a, struct str header, int64_t now_ms, struct arena *arena,
                               bool needs_tenant, const struct token_claims **ret_claims, struct err *err)
{
    struct token_verdict *v = ARENA_NEW(arena, struct token_verdict);
    struct str token = header.ptr ? bearer(header) : STR_ABSENT;
    if (!token.len)
        return err_set(err, ERR_AUTH_INVALID_CREDENTIALS, "this call needs a token; see `weir token mint`");
    enum token_reason reason = token_verify(&a->verifier, token, now_ms / 1000, arena, v);
    if (reason == TOKEN_OK && needs_tenant && !v->claims.tenant_id.ptr)
        reason = TOKEN_CLAIM_MISSING;
    if (reason == TOKEN_OK) {
        *ret_claims = &v->claims;
        return ERR_OK;
    }
    if (reason == TOKEN_EXPIRED)
        return err_set(err, ERR_AUTH_TOKEN_EXPIRED, "the token has expired");
    return err_set(err, ERR_AUTH_INVALID_CREDENTIALS, "the token is not accepted: %s",
                   token_reason_text(reason));
}
