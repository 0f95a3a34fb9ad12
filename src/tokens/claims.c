#include "tokens/claims.h"

#include "base/must.h"
#include "tokens/claims_internal.h"

#include "base/banned.h"

static const int64_t time_max = INT64_C(253402300799); /* the end of 9999 */

static const char *const claim_names[] = {
#define X(name, text) [CLAIM_##name] = text,
    TOKEN_CLAIMS(X)
#undef X
};

const char *token_claim_name(enum token_claim claim)
{
    return claim_names[claim];
}

bool token_name_is_sound(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((uint8_t)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f)
            return false;
    return name.len >= 1 && name.len <= TOKEN_NAME_BYTES_MAX;
}

static bool read_name(const struct json *j, struct str *ret_name)
{
    *ret_name = j->text;
    return j->type == JSON_STRING && token_name_is_sound(j->text);
}

/* Digits only: a time that has to be rounded is a time that two readers may take for two. */
static bool read_time(const struct json *j, int64_t *ret_time)
{
    return j->type == JSON_NUMBER && j->text.ptr[0] != '-' && str_to_int(j->text, 0, time_max, ret_time);
}

/* A name alone is a list of one. */
static bool read_one(struct arena *a, const struct json *j, struct str **ret_names, size_t *ret_count)
{
    *ret_names = ARENA_NEW(a, struct str);
    *ret_count = 1;
    return read_name(j, *ret_names);
}

static bool read_names(struct arena *a, const struct json *j, size_t max, struct str **ret_names,
                       size_t *ret_count)
{
    if (j->type != JSON_ARRAY || j->count > max)
        return false;
    struct str *name = *ret_names = ARENA_ARRAY(a, struct str, j->count);
    *ret_count = j->count;
    for (const struct json *item = j->child; item; item = item->next)
        if (!read_name(item, name++))
            return false;
    return true;
}

static bool read_audience(struct arena *a, const struct json *j, struct token_claims *c)
{
    if (j->type == JSON_STRING)
        return read_one(a, j, &c->audiences, &c->audience_count);
    return read_names(a, j, TOKEN_AUDIENCES_MAX, &c->audiences, &c->audience_count) && c->audience_count;
}

/* "*", or a list, which may hold "*" (AMB-21). */
static bool read_scope(struct arena *a, const struct json *j, struct token_claims *c)
{
    if (j->type == JSON_STRING) {
        c->every_project = str_is(j->text, "*");
        return c->every_project;
    }
    if (!read_names(a, j, TOKEN_PROJECTS_MAX, &c->projects, &c->project_count))
        return false;
    for (size_t i = 0; i < c->project_count; i++)
        c->every_project = c->every_project || str_is(c->projects[i], "*");
    return true;
}

/* `role` was read before; beside it, `roles` has to hold it, or the token says two things. */
static bool read_roles(struct arena *a, const struct json *j, struct token_claims *c)
{
    struct str role = c->role_count ? c->roles[0] : STR_ABSENT;
    return read_names(a, j, TOKEN_ROLES_MAX, &c->roles, &c->role_count) &&
           (!role.ptr || claims_has_role(c, role));
}

bool claim_read(struct arena *a, enum token_claim claim, const struct json *j, struct token_claims *c)
{
    switch (claim) {
    case CLAIM_SUB:
        return read_name(j, &c->subject);
    case CLAIM_ROLE:
        return read_one(a, j, &c->roles, &c->role_count);
    case CLAIM_ROLES:
        return read_roles(a, j, c);
    case CLAIM_PROJECT_SCOPE:
        return read_scope(a, j, c);
    case CLAIM_SESSION_ID:
        return read_name(j, &c->session_id);
    case CLAIM_TENANT_ID:
        return read_name(j, &c->tenant_id);
    case CLAIM_ISS:
        return read_name(j, &c->issuer);
    case CLAIM_AUD:
        return read_audience(a, j, c);
    case CLAIM_EXP:
        return read_time(j, &c->expires_at);
    case CLAIM_IAT:
        return read_time(j, &c->issued_at);
    case CLAIM_NBF:
        return read_time(j, &c->not_before);
    case CLAIM_JTI:
        return read_name(j, &c->jti);
    case TOKEN_CLAIM_COUNT:
        break;
    }
    MUST(claim < TOKEN_CLAIM_COUNT);
    return false;
}

/* The role System is for callers inside only; a token from outside that claims it is used without it (AS-06).
 * */
static void drop_system(struct token_claims *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->role_count; i++)
        if (!str_is(c->roles[i], "System"))
            c->roles[kept++] = c->roles[i];
    c->system_dropped = kept < c->role_count;
    c->role_count = kept;
}

enum token_reason claims_read(struct arena *a, const struct json *payload, unsigned required,
                              struct token_claims *ret_claims, const char **ret_claim)
{
    *ret_claims = (struct token_claims){0};
    for (int i = 0; i < TOKEN_CLAIM_COUNT; i++) {
        const struct json *value = json_get(payload, claim_names[i]);
        *ret_claim = claim_names[i];
        if (!value && (required & 1U << i))
            return TOKEN_CLAIM_MISSING;
        if (value && !claim_read(a, (enum token_claim)i, value, ret_claims))
            return TOKEN_CLAIM_SHAPE;
    }
    if (!json_get(payload, "role") && !json_get(payload, "roles")) {
        *ret_claim = "role";
        return TOKEN_CLAIM_MISSING;
    }
    *ret_claim = NULL;
    drop_system(ret_claims);
    return TOKEN_OK;
}

static struct str *copy_names(struct arena *a, const struct str *names, size_t count)
{
    struct str *copy = ARENA_ARRAY(a, struct str, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_str(a, names[i]);
    return copy;
}

struct token_claims claims_copy(struct arena *a, const struct token_claims *c)
{
    struct token_claims copy = *c;
    struct str *const texts[] = {&copy.subject,    &copy.issuer,    &copy.jti,
                                 &copy.session_id, &copy.tenant_id, &copy.audience};
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        if (texts[i]->ptr)
            *texts[i] = arena_str(a, *texts[i]);
    copy.audiences = copy_names(a, c->audiences, c->audience_count);
    copy.roles = copy_names(a, c->roles, c->role_count);
    copy.projects = copy_names(a, c->projects, c->project_count);
    return copy;
}

static bool audience_matches(struct token_claims *c, struct str allowed)
{
    while (allowed.len) {
        struct str one = str_cut(&allowed, ',');
        for (size_t i = 0; i < c->audience_count; i++)
            if (str_equal(c->audiences[i], one)) {
                c->audience = one;
                return true;
            }
    }
    return false;
}

int64_t claims_ttl_max(const struct token_claims *c, const struct token_policy *p)
{
    int64_t max = p->ttl_seconds_max;
    for (size_t i = 0; i < p->agent_count; i++)
        if (p->agents[i].ttl_seconds_max < max && claims_has_role(c, p->agents[i].role))
            max = p->agents[i].ttl_seconds_max;
    return max;
}

enum token_reason claims_check(struct token_claims *c, const struct token_policy *p, int64_t now)
{
    int64_t nbf_skew =
        p->skew_seconds < TOKEN_NBF_SKEW_SECONDS_MAX ? p->skew_seconds : TOKEN_NBF_SKEW_SECONDS_MAX;
    if (!str_equal(c->issuer, p->issuer))
        return TOKEN_ISSUER;
    if (!audience_matches(c, p->audiences))
        return TOKEN_AUDIENCE;
    if (now >= c->expires_at)
        return TOKEN_EXPIRED;
    if (c->issued_at > now + p->skew_seconds)
        return TOKEN_ISSUED_LATER;
    if (c->not_before > now + nbf_skew)
        return TOKEN_NOT_YET;
    int64_t life = c->expires_at - c->issued_at;
    return life <= 0 || life > claims_ttl_max(c, p) ? TOKEN_LIFETIME : TOKEN_OK;
}

bool claims_has_role(const struct token_claims *c, struct str role)
{
    for (size_t i = 0; i < c->role_count; i++)
        if (str_equal(c->roles[i], role))
            return true;
    return false;
}

enum token_reason claims_admit(const struct token_claims *c, struct str tenant, struct str project)
{
    if (tenant.ptr && (!c->tenant_id.ptr || !str_equal(c->tenant_id, tenant)))
        return TOKEN_TENANT;
    if (!project.ptr || c->every_project)
        return TOKEN_OK;
    for (size_t i = 0; i < c->project_count; i++)
        if (str_equal(c->projects[i], project))
            return TOKEN_OK;
    return TOKEN_PROJECT;
}

enum err_code token_agents_parse(struct str text, struct token_policy *p, struct err *err)
{
    p->agent_count = 0;
    while (text.len) {
        struct str item = str_cut(&text, ',');
        struct token_agent_role agent = {str_cut(&item, '='), TOKEN_AGENT_TTL_SECONDS_MAX};
        if (item.len && !str_to_int(item, 1, TOKEN_AGENT_TTL_SECONDS_MAX, &agent.ttl_seconds_max))
            return err_set(err, ERR_CONFIG_INVALID,
                           "agent role %.*s: a lifetime is 1 to %d seconds, 4 hours at most",
                           STR_ARG(agent.role), TOKEN_AGENT_TTL_SECONDS_MAX);
        if (!token_name_is_sound(agent.role) || p->agent_count == TOKEN_AGENT_ROLES_MAX)
            return err_set(err, ERR_CONFIG_INVALID, "agent roles: at most %d names", TOKEN_AGENT_ROLES_MAX);
        p->agents[p->agent_count++] = agent;
    }
    return ERR_OK;
}
