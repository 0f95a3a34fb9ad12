#include "api/credential.h"

#include "api/api.h"

#include "base/banned.h"

enum { LOOK_AGAIN_MS = 1000 };

void credential_note(struct call *c)
{
    c->credential.generation = auth_generation(c->api->auth);
}

void credential_begin(struct call *c)
{
    c->credential.look_at_ms = c->claims                      ? c->claims->expires_at * 1000
                               : c->who.kind == PRINCIPAL_KEY ? c->who.ends_ms
                                                              : INT64_MAX;
}

bool credential_is_stale(const struct call *c)
{
    return c->credential.generation != auth_generation(c->api->auth) && c->who.kind != PRINCIPAL_DOMAIN;
}

bool credential_is_due(const struct call *c, int64_t wall_ms)
{
    return credential_is_stale(c) || wall_ms >= c->credential.look_at_ms;
}

static bool is_about_caller(enum err_code code)
{
    return code != ERR_OK && err_http_status(code) < 500;
}

enum err_code credential_check(struct call *c, struct arena *scratch, int64_t wall_ms, struct err *err)
{
    struct api *a = c->api;
    struct str header = http_header(c->x, "Authorization");
    uint64_t generation = auth_generation(a->auth); /* before the look: it may be newer, never older */
    enum err_code code = ERR_OK;
    int64_t ends_ms = INT64_MAX;
    if (c->claims) {
        const struct token_claims *claims;
        code = token_auth_check(a->token_auth, header, wall_ms, scratch, false, &claims, err);
        ends_ms = c->claims->expires_at * 1000;
    } else if (c->who.kind == PRINCIPAL_KEY) {
        struct principal who;
        code = auth_check(a->auth, a->reads, scratch, header, wall_ms, &who, err);
        ends_ms = code == ERR_OK ? who.ends_ms : wall_ms;
    }
    if (is_about_caller(code))
        return code;
    *err = (struct err){.code = ERR_OK};
    /* One that could not be looked at, or whose time has come and that holds nevertheless, is soon again. */
    c->credential.look_at_ms = ends_ms > wall_ms ? ends_ms : wall_ms + LOOK_AGAIN_MS;
    c->credential.generation = generation;
    return ERR_OK;
}
