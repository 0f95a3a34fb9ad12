/* The claims of a token of an outside issuer, by the issuer's paths. */
#include "base/must.h"
#include "tokens/claims_internal.h"
#include "tokens/issuers.h"

#include "base/banned.h"

static const struct json *member(const struct json *object, struct str name)
{
    if (object->type != JSON_OBJECT) /* elements of an array have no names, not empty ones */
        return NULL;
    for (const struct json *j = object->child; j; j = j->next)
        if (str_equal(j->key, name))
            return j;
    return NULL;
}

/* The longest name first: a claim may have dots in its name. Each step down takes a part of the path away, so
 * this ends; a path has at most 256 bytes, a token 8192. */
const struct json *claim_at(const struct json *payload, struct str path)
{
    for (size_t len = path.len; len > 0; len--) {
        if (len < path.len && path.ptr[len] != '.')
            continue;
        const struct json *found = member(payload, (struct str){path.ptr, len});
        if (found && len < path.len)
            found = claim_at(found, (struct str){path.ptr + len + 1, path.len - len - 1});
        if (found)
            return found;
    }
    return NULL;
}

static bool is_listed(struct str list, struct str name)
{
    while (list.len)
        if (str_equal(str_cut(&list, ','), name))
            return true;
    return false;
}

static void add_role(struct token_claims *c, struct str known, const struct json *j)
{
    if (j->type != JSON_STRING || c->role_count == TOKEN_ROLES_MAX)
        return;
    c->system_dropped = c->system_dropped || str_is(j->text, "System");
    if (!str_is(j->text, "System") && is_listed(known, j->text) && !claims_has_role(c, j->text))
        c->roles[c->role_count++] = j->text;
}

/* Roles that no rule of ours names have no meaning here, whatever a provider lists. */
static bool read_roles(struct arena *a, const struct json *j, struct str known, struct token_claims *c)
{
    c->roles = ARENA_ARRAY(a, struct str, TOKEN_ROLES_MAX);
    if (j->type == JSON_STRING)
        add_role(c, known, j);
    for (const struct json *item = j->type == JSON_ARRAY ? j->child : NULL; item; item = item->next)
        add_role(c, known, item);
    return j->type == JSON_STRING || j->type == JSON_ARRAY;
}

/* "*", a list, or one project as a name. */
static bool read_projects(struct arena *a, const struct json *j, struct token_claims *c)
{
    if (j->type != JSON_STRING || str_is(j->text, "*"))
        return claim_read(a, CLAIM_PROJECT_SCOPE, j, c);
    c->projects = ARENA_NEW(a, struct str);
    c->projects[0] = j->text;
    c->project_count = 1;
    return token_name_is_sound(j->text);
}

enum token_reason claims_read_outside(struct arena *a, const struct json *payload,
                                      const struct claim_paths *paths, struct str known_roles,
                                      struct token_claims *ret_claims, const char **ret_claim)
{
    enum {
        STANDARD = CLAIM_BIT(SUB) | CLAIM_BIT(ISS) | CLAIM_BIT(AUD) | CLAIM_BIT(EXP) | CLAIM_BIT(IAT) |
                   CLAIM_BIT(NBF) | CLAIM_BIT(JTI),
        MAY_MISS = CLAIM_BIT(NBF) | CLAIM_BIT(JTI)
    };
    *ret_claims = (struct token_claims){0};
    for (int i = 0; i < TOKEN_CLAIM_COUNT; i++) {
        if (!(STANDARD & 1U << i))
            continue;
        *ret_claim = token_claim_name((enum token_claim)i);
        const struct json *value = json_get(payload, *ret_claim);
        if (!value && !(MAY_MISS & 1U << i))
            return TOKEN_CLAIM_MISSING;
        if (value && !claim_read(a, (enum token_claim)i, value, ret_claims))
            return TOKEN_CLAIM_SHAPE;
    }
    const struct json *role = claim_at(payload, paths->role), *tenant = claim_at(payload, paths->tenant_id);
    const struct json *scope = claim_at(payload, paths->project_scope);
    *ret_claim = !role ? "role" : !tenant ? "tenant_id" : "project_scope";
    if (!role || !tenant || !scope)
        return TOKEN_CLAIM_MISSING;
    *ret_claim = "role";
    if (!read_roles(a, role, known_roles, ret_claims))
        return TOKEN_CLAIM_SHAPE;
    *ret_claim = "tenant_id";
    if (!claim_read(a, CLAIM_TENANT_ID, tenant, ret_claims))
        return TOKEN_CLAIM_SHAPE;
    *ret_claim = "project_scope";
    if (!read_projects(a, scope, ret_claims))
        return TOKEN_CLAIM_SHAPE;
    *ret_claim = NULL;
    return TOKEN_OK;
}
