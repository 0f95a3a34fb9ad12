#include "tokens/token_mint.h"

#include "base/json_members.h"
#include "base/must.h"
#include "base/random.h"
#include "base/uuid.h"
#include "tokens/jws.h"

#include "base/banned.h"

enum { TTL_SECONDS_DEFAULT = 3600 };

static void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}

static void write_member(struct json_writer *w, const char *name, struct str text)
{
    encode_str(w, name, text);
}

static void write_list(struct json_writer *w, const char *name, struct str list)
{
    jw_key(w, name);
    jw_array(w);
    while (list.len)
        jw_str(w, str_cut(&list, ','));
    jw_array_end(w);
}

static void write_new_uuid(struct json_writer *w, const char *name)
{
    char text[UUID_TEXT_LEN + 1];
    struct uuid id = uuid_v4();
    uuid_text(&id, text);
    write_member(w, name, (struct str){text, UUID_TEXT_LEN});
}

static void write_claims(const struct token_order *o, const struct token_policy *p, int64_t now, int64_t ttl,
                         struct strbuf *out)
{
    struct json_writer w;
    struct str first = p->audiences, roles = o->roles;
    jw_start(&w, out);
    jw_object(&w);
    write_member(&w, "iss", p->issuer);
    write_member(&w, "sub", o->subject);
    write_member(&w, "aud", o->audience.ptr ? o->audience : str_cut(&first, ','));
    encode_int(&w, "iat", now);
    encode_int(&w, "exp", now + ttl);
    write_new_uuid(&w, "jti");
    if (o->session_id.ptr)
        write_member(&w, "session_id", o->session_id);
    else
        write_new_uuid(&w, "session_id");
    write_member(&w, "role", str_cut(&roles, ','));
    write_list(&w, "roles", o->roles);
    if (o->tenant.ptr)
        write_member(&w, "tenant_id", o->tenant);
    if (o->projects.ptr && !str_is(o->projects, "*"))
        write_list(&w, "project_scope", o->projects);
    else
        write_member(&w, "project_scope", STR("*"));
    jw_object_end(&w);
}

/* The verdict of the verifier. */
static enum err_code check_claims(struct str payload, const struct token_policy *p, int64_t now,
                                  struct err *err)
{
    struct arena *a CLEANUP(arena_drop) = arena_new(4096);
    struct token_claims claims;
    const struct json *root;
    const char *claim = NULL;
    MUST(json_parse(a, payload, &root, err) == ERR_OK);
    enum token_reason reason = claims_read(a, root, p->required, &claims, &claim);
    if (reason == TOKEN_OK && claims.system_dropped)
        return err_set(err, ERR_REQUEST_MALFORMED, "no token gives the role System");
    if (reason == TOKEN_OK)
        reason = claims_check(&claims, p, now);
    if (reason == TOKEN_LIFETIME)
        return err_set(err, ERR_REQUEST_MALFORMED, "a token with these roles lives %lld seconds at most",
                       (long long)claims_ttl_max(&claims, p));
    if (reason != TOKEN_OK)
        return err_set(err, ERR_REQUEST_MALFORMED, "%s%s%s", token_reason_text(reason), claim ? ": " : "",
                       claim ? claim : "");
    return ERR_OK;
}

/* The writer would put something else in the place of bytes that are no text. */
static bool is_text(const struct token_order *o)
{
    const struct str texts[] = {o->subject, o->roles, o->tenant, o->projects, o->session_id, o->audience};
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        if (!str_is_utf8(texts[i]))
            return false;
    return true;
}

static int64_t default_ttl(struct str roles, const struct token_policy *p)
{
    struct str list[TOKEN_ROLES_MAX];
    struct token_claims claims = {.roles = list};
    while (roles.len && claims.role_count < TOKEN_ROLES_MAX)
        list[claims.role_count++] = str_cut(&roles, ',');
    int64_t max = claims_ttl_max(&claims, p);
    return max < TTL_SECONDS_DEFAULT ? max : TTL_SECONDS_DEFAULT;
}

enum err_code token_mint(const struct token_order *order, const struct token_policy *p, struct str kid,
                         const struct token_key *key, int64_t now, struct strbuf *out, struct err *err)
{
    struct strbuf payload CLEANUP(strbuf_free) = {0};
    size_t start = out->len;
    int64_t ttl = order->ttl_seconds ? order->ttl_seconds : default_ttl(order->roles, p);
    if (!is_text(order))
        return err_set(err, ERR_REQUEST_MALFORMED, "names are UTF-8");
    write_claims(order, p, now, ttl, &payload);
    if (check_claims(strbuf_str(&payload), p, now, err) != ERR_OK)
        return err->code;
    if (!jws_sign(key, kid, strbuf_str(&payload), out))
        return err_set(err, ERR_INTERNAL, "OpenSSL did not sign");
    if (out->len - start > TOKEN_BYTES_MAX) {
        out->len = start;
        return err_set(err, ERR_REQUEST_MALFORMED, "the token would have more than %d bytes",
                       TOKEN_BYTES_MAX);
    }
    return ERR_OK;
}
