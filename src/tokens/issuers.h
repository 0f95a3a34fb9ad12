/* tokens/issuers.h - outside issuers whose tokens are taken beside our own: the file that tokens.issuers
 * names.
 *
 *   [{"issuer": "https://sso.example.com/realms/acme",
 *     "jwks_url": "https://sso.example.com/realms/acme/certs",    or "jwks_file": "acme.json"
 *     "audience": ["weir"],
 *     "claims": {"role": "realm_access.roles", "tenant_id": "org", "project_scope": "weir_projects"}}]
 *
 * Each issuer has its own keys, audience and claims; nothing of one counts for another. A path leads through
 * objects by dots; a name with dots in it ("https://example.com/roles") is found, too: the longest name that
 * is there wins. `jwks_file` lies in the folder of this file, or below it. `jwks_url` is https, or http to
 * this machine. Our own issuer cannot be listed. Read once, when a process starts; constant from then on.
 * Threads: any. */
#ifndef WEIR_TOKENS_ISSUERS_H
#define WEIR_TOKENS_ISSUERS_H

#include "tokens/claims.h"

enum {
    ISSUERS_MAX = 16,
    ISSUERS_FILE_BYTES_MAX = 256 * 1024,
    ISSUER_AUDIENCES_MAX = 32,
    CLAIM_PATH_BYTES_MAX = 256,
};

/* Every role that a rule of ours names. A provider's own role names have no meaning here. */
#define TOKEN_KNOWN_ROLES "Viewer,Operator,Engineer,Admin,Engine,Worker,owner"

/* X(field, member of "claims", path where none is given) */
#define ISSUER_PATHS(X)                                                                                      \
    X(role, "role", "role")                                                                                  \
    X(tenant_id, "tenant_id", "tenant_id")                                                                   \
    X(project_scope, "project_scope", "project_scope")

struct claim_paths {
#define X(field, member, path) struct str field;
    ISSUER_PATHS(X)
#undef X
};

struct issuer {
    struct str name;                  /* `iss`, compared byte by byte */
    struct str audiences;             /* a,b,c */
    const char *jwks_file, *jwks_url; /* one of them; the file with its folder */
    struct claim_paths paths;
};

struct issuers {
    struct arena *arena; /* holds all texts */
    struct issuer list[ISSUERS_MAX];
    size_t count;
};

/* ERR_CONFIG_INVALID with a sentence. `path` is the file's, `own` our own issuer. */
MUST_CHECK enum err_code issuers_read(struct str text, const char *path, struct str own,
                                      struct issuers *ret_issuers, struct err *err);
/* The same for a file; the message names it. */
MUST_CHECK enum err_code issuers_load(const char *path, struct str own, struct issuers *ret_issuers,
                                      struct err *err);
void issuers_free(struct issuers *s);

/* NULL: no known issuer. */
const struct issuer *issuers_find(const struct issuers *s, struct str name);
/* A whole file into `out`, at most `max` bytes; ERR_CONFIG_INVALID names it. */
MUST_CHECK enum err_code issuer_file_read(const char *path, size_t max, struct strbuf *out, struct err *err);

/* The value at a path; NULL: none. */
const struct json *claim_at(const struct json *payload, struct str path);
/* As claims_read(), with role, tenant and projects where the issuer has them. Of a role claim, a name or a
 * list, only those in `known_roles` (a,b,c) count, and System never does. jti may be missing. */
enum token_reason claims_read_outside(struct arena *a, const struct json *payload,
                                      const struct claim_paths *paths, struct str known_roles,
                                      struct token_claims *ret_claims, const char **ret_claim);

#endif
