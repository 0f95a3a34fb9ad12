/* What an outside issuer sends, and the file that names it. The first byte chooses what the rest is:
 *
 *   j  a JWK Set: what is taken has keys of use under kids that stand once, and no private part
 *   i  the file of issuers: what is taken names each issuer once, with an audience and one place of keys
 *   c  a path, a line end and a payload: what is found is a part of the payload
 *   p  a payload: what is read as claims has every one that is asked for, and System never */
#include <stdlib.h>

#include "base/must.h"
#include "tokens/issuer_keys.h"

#include "base/banned.h"

static void check_jwks(struct str text)
{
    struct jwks s;
    struct err err;
    if (jwks_read(text, &s, &err) != ERR_OK) {
        MUST(!s.count && err.detail[0]);
        return;
    }
    MUST(s.count >= 1 && s.count <= JWKS_KEYS_MAX);
    for (size_t i = 0; i < s.count; i++)
        MUST(jwks_find(&s, str_of(s.keys[i].kid)) == &s.keys[i].key && s.keys[i].key.pkey);
    jwks_free(&s);
}

static void check_file(struct str text)
{
    struct issuers s;
    struct err err;
    if (issuers_read(text, "/etc/weir/issuers.json", STR("weir-dev"), &s, &err) != ERR_OK)
        return;
    MUST(s.count >= 1 && s.count <= ISSUERS_MAX && !issuers_find(&s, STR("weir-dev")));
    for (size_t i = 0; i < s.count; i++) {
        const struct issuer *one = &s.list[i];
        MUST(issuers_find(&s, one->name) == one && one->audiences.len && !one->jwks_file == !!one->jwks_url);
        MUST(!one->jwks_file || str_starts(str_of(one->jwks_file), "/etc/weir/"));
        MUST(one->paths.role.len && one->paths.tenant_id.len && one->paths.project_scope.len);
    }
    issuers_free(&s);
}

static void check_path(struct str text, struct arena *a)
{
    struct str path = str_cut(&text, '\n');
    const struct json *payload;
    struct err err;
    if (path.len > CLAIM_PATH_BYTES_MAX || json_parse(a, text, &payload, &err) != ERR_OK)
        return;
    const struct json *found = claim_at(payload, path);
    MUST(!found || (found != payload && found->source.ptr >= text.ptr &&
                    found->source.ptr + found->source.len <= text.ptr + text.len));
}

static void check_payload(struct str text, struct arena *a)
{
    static const struct claim_paths paths = {{"a.roles", 7}, {"tenant_id", 9}, {"project_scope", 13}};
    struct token_claims c;
    const struct json *payload;
    const char *claim;
    struct err err;
    if (json_parse(a, text, &payload, &err) != ERR_OK)
        return;
    enum token_reason reason = claims_read_outside(a, payload, &paths, STR("Admin,System"), &c, &claim);
    MUST((reason == TOKEN_OK) == (claim == NULL));
    if (reason == TOKEN_OK)
        MUST(c.subject.len && c.issuer.len && c.tenant_id.len && c.audience_count &&
             !claims_has_role(&c, STR("System")) && c.role_count <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *a = arena_new(4096);
    struct str rest = {(const char *)data + 1, size - 1};
    switch (data[0]) {
    case 'j':
        check_jwks(rest);
        break;
    case 'i':
        check_file(rest);
        break;
    case 'c':
        check_path(rest, a);
        break;
    case 'p':
        check_payload(rest, a);
        break;
    }
    arena_free(a);
    return 0;
}
