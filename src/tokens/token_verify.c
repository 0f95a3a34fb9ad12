#include "tokens/token_verify.h"

#include "base/must.h"
#include "tokens/base64url.h"

#include "base/banned.h"

struct check {
    const struct token_verifier *v;
    struct str token;
    int64_t now;
    struct arena *a;
    struct jws jws;
    const struct issuer *issuer; /* NULL: our own */
    const struct json *payload;  /* NULL: the token is known */
    struct known_token facts;    /* all but the claims from the second check on, they from the third */
    struct token_verdict *verdict;
};

static void begin(struct check *c, enum token_step step)
{
    MUST(c->verdict->step_count < TOKEN_STEP_COUNT);
    c->verdict->steps[c->verdict->step_count++] = step;
}

static struct block_question question_of_payload(const struct json *payload)
{
    struct block_question q = {0};
    for (int kind = 0; kind < BLOCK_KIND_COUNT; kind++) {
        const struct json *name = json_get(payload, block_kind_claim((enum block_kind)kind));
        if (name && name->type == JSON_STRING)
            q.names[kind] = name->text;
    }
    const struct json *issued_at = json_get(payload, "iat");
    q.has_issued_at = issued_at && issued_at->type == JSON_NUMBER && json_to_int(issued_at, &q.issued_at);
    return q;
}

static struct block_question question_of_claims(const struct token_claims *c)
{
    return (struct block_question){
        .names = {[BLOCK_JTI] = c->jti, [BLOCK_SUBJECT] = c->subject, [BLOCK_SESSION] = c->session_id},
        .has_issued_at = true,
        .issued_at = c->issued_at};
}

static enum token_reason check_blocklist(struct check *c)
{
    begin(c, TOKEN_STEP_BLOCKLIST);
    struct block_question q =
        c->payload ? question_of_payload(c->payload) : question_of_claims(&c->facts.claims);
    return blocklist_hits(c->v->blocklist, &q, c->now) ? TOKEN_BLOCKED : TOKEN_OK;
}

static enum token_reason verify_signature(struct check *c, const struct token_key *key)
{
    struct str signature;
    if (!base64url_decode(c->a, c->jws.signature, &signature))
        return TOKEN_SHAPE;
    memcpy(c->facts.key_print, token_key_print(key), TOKEN_KEY_PRINT_BYTES);
    token_digest("token", c->token, c->facts.digest);
    return token_key_verify(key, c->jws.signed_part, signature) ? TOKEN_OK : TOKEN_SIGNATURE;
}

/* The allowed list and the key's own algorithm come first: without them nothing can be verified safely
 * (AMB-17). Of a known token that is done, with a key that may not be the kid's any more. */
static enum token_reason check_signature(struct check *c)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct jws_header header = {.kid = c->facts.kid, .alg = c->facts.alg};
    enum token_reason reason = c->payload ? jws_read_header(c->a, c->jws.header, &header) : TOKEN_OK;
    if (reason != TOKEN_OK)
        return reason;
    c->verdict->kid = c->facts.kid = header.kid;
    c->verdict->alg = c->facts.alg = header.alg;
    reason = c->issuer ? issuer_keys_find(c->v->outside, c->issuer, header.kid, c->now, &key)
                       : key_ring_find(c->v->keys, header.kid, c->now, &key);
    if (reason != TOKEN_OK)
        return reason;
    if (header.alg != key.alg)
        return TOKEN_ALG_OF_KEY;
    begin(c, TOKEN_STEP_SIGNATURE);
    if (c->payload)
        return verify_signature(c, &key);
    return memcmp(c->facts.key_print, token_key_print(&key), TOKEN_KEY_PRINT_BYTES) == 0 ? TOKEN_OK
                                                                                         : TOKEN_SIGNATURE;
}

static enum token_reason read_claims(struct check *c)
{
    const char **claim = &c->verdict->claim;
    if (c->issuer)
        return claims_read_outside(c->a, c->payload, &c->issuer->paths, c->v->known_roles, &c->facts.claims,
                                   claim);
    return claims_read(c->a, c->payload, c->v->policy.required, &c->facts.claims, claim);
}

/* Times are checked the same way for all issuers; the expected issuer and audience differ. */
static enum token_reason check_policy(struct check *c)
{
    if (!c->issuer)
        return claims_check(&c->verdict->claims, &c->v->policy, c->now);
    struct token_policy theirs = c->v->policy;
    theirs.issuer = c->issuer->name;
    theirs.audiences = c->issuer->audiences;
    return claims_check(&c->verdict->claims, &theirs, c->now);
}

static enum token_reason check_claims(struct check *c)
{
    begin(c, TOKEN_STEP_CLAIMS);
    enum token_reason reason = c->payload ? read_claims(c) : TOKEN_OK;
    c->verdict->claims = c->facts.claims;
    return reason == TOKEN_OK ? check_policy(c) : reason;
}

static enum token_reason check_jti(struct check *c)
{
    const struct token_claims *claims = &c->verdict->claims;
    begin(c, TOKEN_STEP_JTI);
    int64_t until = claims->expires_at + c->v->policy.skew_seconds;
    if (!c->issuer)
        return jti_table_bind(c->v->jtis, claims->jti, c->facts.digest, until, c->now);
    if (!claims->jti.ptr)
        return TOKEN_OK; /* not every provider gives one */
    /* Two issuers may use the same; a name has no line end in it, so the pair is one text. */
    size_t len = c->issuer->name.len + 1 + claims->jti.len;
    char *both = arena_alloc(c->a, len);
    memcpy(both, c->issuer->name.ptr, c->issuer->name.len);
    both[c->issuer->name.len] = '\n';
    memcpy(both + c->issuer->name.len + 1, claims->jti.ptr, claims->jti.len);
    return jti_table_bind(c->v->outside_jtis, (struct str){both, len}, c->facts.digest, until, c->now);
}

static const struct issuer *outside_issuer(const struct check *c)
{
    if (!c->v->outside)
        return NULL;
    const struct json *name = c->payload ? json_get(c->payload, "iss") : NULL;
    if (!c->payload)
        return issuer_keys_issuer(c->v->outside, c->facts.claims.issuer);
    return name && name->type == JSON_STRING ? issuer_keys_issuer(c->v->outside, name->text) : NULL;
}

static enum token_reason run(struct check *c)
{
    static enum token_reason (*const checks[])(struct check *) = {check_blocklist, check_signature,
                                                                  check_claims, check_jti};
    enum token_reason reason = jws_split(c->token, &c->jws);
    if (reason != TOKEN_OK)
        return reason;
    bool known = c->v->known && known_tokens_find(c->v->known, c->token, c->a, &c->facts);
    if (!known)
        c->payload = jws_object(c->a, c->jws.payload, TOKEN_PAYLOAD, &reason);
    c->issuer = reason == TOKEN_OK ? outside_issuer(c) : NULL;
    for (size_t i = 0; i < LENGTH_OF(checks) && reason == TOKEN_OK; i++)
        reason = checks[i](c);
    if (reason == TOKEN_OK && c->v->known && !known)
        known_tokens_keep(c->v->known, c->token, &c->facts);
    return reason;
}

enum token_reason token_verify(const struct token_verifier *v, struct str token, int64_t now, struct arena *a,
                               struct token_verdict *ret_verdict)
{
    *ret_verdict = (struct token_verdict){0};
    MUST(v->policy.required & CLAIM_BIT(JTI) && v->policy.required & CLAIM_BIT(EXP) && v->policy.issuer.ptr);
    struct check c = {.v = v, .token = token, .now = now, .a = a, .verdict = ret_verdict};
    ret_verdict->reason = run(&c);
    return ret_verdict->reason;
}
