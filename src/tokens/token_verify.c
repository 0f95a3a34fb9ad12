#include "tokens/token_verify.h"

#include "base/must.h"
#include "tokens/base64url.h"

#include "base/banned.h"

struct check {
    const struct token_verifier *v;
    struct str token;
    uint8_t digest[TOKEN_DIGEST_BYTES]; /* of the token, from the second check on */
    int64_t now;
    struct arena *a;
    struct jws jws;
    const struct json *payload;
    struct token_verdict *verdict;
};

static void begin(struct check *c, enum token_step step)
{
    MUST(c->verdict->step_count < TOKEN_STEP_COUNT);
    c->verdict->steps[c->verdict->step_count++] = step;
}

static enum token_reason check_blocklist(struct check *c)
{
    struct block_question q = {0};
    begin(c, TOKEN_STEP_BLOCKLIST);
    for (int kind = 0; kind < BLOCK_KIND_COUNT; kind++) {
        const struct json *name = json_get(c->payload, block_kind_claim((enum block_kind)kind));
        if (name && name->type == JSON_STRING)
            q.names[kind] = name->text;
    }
    const struct json *issued_at = json_get(c->payload, "iat");
    q.has_issued_at = issued_at && issued_at->type == JSON_NUMBER && json_to_int(issued_at, &q.issued_at);
    return blocklist_hits(c->v->blocklist, &q, c->now) ? TOKEN_BLOCKED : TOKEN_OK;
}

/* The allowed list and the key's own algorithm come first: without them nothing can be verified safely
 * (AMB-17). */
static enum token_reason check_signature(struct check *c)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct jws_header header;
    struct str signature;
    enum token_reason reason = jws_read_header(c->a, c->jws.header, &header);
    if (reason != TOKEN_OK)
        return reason;
    c->verdict->kid = header.kid;
    c->verdict->alg = header.alg;
    reason = key_ring_find(c->v->keys, header.kid, c->now, &key);
    if (reason != TOKEN_OK)
        return reason;
    if (header.alg != key.alg)
        return TOKEN_ALG_OF_KEY;
    begin(c, TOKEN_STEP_SIGNATURE);
    if (!base64url_decode(c->a, c->jws.signature, &signature))
        return TOKEN_SHAPE;
    struct verified_table *seen = c->v->verified;
    token_digest("token", c->token, c->digest);
    bool good = seen ? verified_table_check(seen, &key, c->digest, c->jws.signed_part, signature)
                     : token_key_verify(&key, c->jws.signed_part, signature);
    return good ? TOKEN_OK : TOKEN_SIGNATURE;
}

static enum token_reason check_claims(struct check *c)
{
    struct token_verdict *verdict = c->verdict;
    begin(c, TOKEN_STEP_CLAIMS);
    enum token_reason reason =
        claims_read(c->payload, c->v->policy.required, &verdict->claims, &verdict->claim);
    return reason == TOKEN_OK ? claims_check(&verdict->claims, &c->v->policy, c->now) : reason;
}

static enum token_reason check_jti(struct check *c)
{
    const struct token_claims *claims = &c->verdict->claims;
    begin(c, TOKEN_STEP_JTI);
    return jti_table_bind(c->v->jtis, claims->jti, c->digest, claims->expires_at + c->v->policy.skew_seconds,
                          c->now);
}

static enum token_reason run(struct check *c)
{
    static enum token_reason (*const checks[])(struct check *) = {check_blocklist, check_signature,
                                                                  check_claims, check_jti};
    enum token_reason reason = jws_split(c->token, &c->jws);
    if (reason != TOKEN_OK)
        return reason;
    c->payload = jws_object(c->a, c->jws.payload, TOKEN_PAYLOAD, &reason);
    for (size_t i = 0; i < LENGTH_OF(checks) && reason == TOKEN_OK; i++)
        reason = checks[i](c);
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
