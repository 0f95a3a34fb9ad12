/* The file of outside issuers. */
#include "tokens/issuers.h"

#include <errno.h>
#include <stdio.h>

#include "base/must.h"
#include "base/url.h"

#include "base/banned.h"

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

enum err_code issuer_file_read(const char *path, size_t max, struct strbuf *out, struct err *err)
{
    FILE *f CLEANUP(file_close) = fopen(path, "re");
    char chunk[4096];
    if (!f)
        return err_set(err, ERR_CONFIG_INVALID, "%.160s: %s", path, strerror(errno));
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        strbuf_add(out, chunk, n);
        if (out->len > max)
            return err_set(err, ERR_CONFIG_INVALID, "%.160s: larger than %zu bytes", path, max);
    }
    if (ferror(f))
        return err_set(err, ERR_CONFIG_INVALID, "%.160s: %s", path, strerror(errno));
    if (!out->ptr)
        return err_set(err, ERR_CONFIG_INVALID, "%.160s: it is empty", path);
    return ERR_OK;
}

static bool is_name(const struct json *j)
{
    return j && j->type == JSON_STRING && token_name_is_sound(j->text) &&
           !memchr(j->text.ptr, ',', j->text.len);
}

/* a,b,c; NULL: the list is none. */
static const char *read_audiences(struct arena *a, const struct json *list, struct str *ret)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    if (!list || list->type != JSON_ARRAY || !list->count || list->count > ISSUER_AUDIENCES_MAX)
        return "audience must be a list of names";
    for (const struct json *j = list->child; j; j = j->next) {
        if (!is_name(j))
            return "audience must be a list of names without commas";
        if (text.len)
            strbuf_add_char(&text, ',');
        strbuf_add_str(&text, j->text);
    }
    *ret = arena_str(a, strbuf_str(&text));
    return NULL;
}

static bool host_is_here(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

static const char *read_url(struct arena *a, const struct json *j, const char **ret)
{
    struct url url;
    if (j->type != JSON_STRING || url_parse(j->text, &url) != NULL)
        return "jwks_url must be a URL without user name or fragment";
    if (!url.tls && !host_is_here(url.host))
        return "jwks_url must be https: whoever changes the keys on their way can sign";
    *ret = arena_str(a, j->text).ptr;
    return NULL;
}

/* Core may read the folder of the issuers' file and what is below it, no more (runtime/sandbox_paths.c). */
static const char *read_file_name(struct arena *a, const struct json *j, const char *path, const char **ret)
{
    struct strbuf full CLEANUP(strbuf_free) = {0};
    const char *slash = strrchr(path, '/');
    struct str folder = slash ? (struct str){path, (size_t)(slash - path) + 1} : STR("./");
    if (j->type != JSON_STRING || !j->text.len || j->text.len > 1024 || memchr(j->text.ptr, 0, j->text.len))
        return "jwks_file must be the name of a file";
    strbuf_add_str(&full, j->text);
    bool below = j->text.ptr[0] != '/' || (slash && str_starts(j->text, arena_str(a, folder).ptr));
    if (!below || strstr(full.ptr, ".."))
        return "jwks_file must be in the folder of this file, or below it";
    if (j->text.ptr[0] != '/') {
        strbuf_clear(&full);
        strbuf_add_str(&full, folder);
        strbuf_add_str(&full, j->text);
    }
    *ret = arena_str(a, strbuf_str(&full)).ptr;
    return NULL;
}

static bool is_path(struct str path)
{
    if (!path.len || path.len > CLAIM_PATH_BYTES_MAX || path.ptr[0] == '.' || path.ptr[path.len - 1] == '.')
        return false;
    return token_name_is_sound(path);
}

static const char *read_paths(struct arena *a, const struct json *claims, struct claim_paths *ret)
{
    size_t known = 0;
    const struct json *j;
    if (claims && claims->type != JSON_OBJECT)
        return "claims must be an object";
#define X(field, member, path)                                                                               \
    j = json_get(claims, member);                                                                            \
    if (j && (j->type != JSON_STRING || !is_path(j->text)))                                                  \
        return "claims." member " must be a path such as realm_access.roles";                                \
    ret->field = j ? arena_str(a, j->text) : STR(path);                                                      \
    known += j != NULL;
    ISSUER_PATHS(X)
#undef X
    return claims && known < claims->count
               ? "claims has an unknown member; it takes role, tenant_id, project_scope"
               : NULL;
}

static const char *read_issuer(struct arena *a, const struct json *j, const char *path, struct issuer *ret)
{
    const struct json *name = json_get(j, "issuer"), *url = json_get(j, "jwks_url");
    const struct json *file = json_get(j, "jwks_file"), *claims = json_get(j, "claims");
    const struct json *const members[] = {name, url, file, claims, json_get(j, "audience")};
    size_t known = 0;
    for (size_t i = 0; i < LENGTH_OF(members); i++)
        known += members[i] != NULL;
    if (j->type != JSON_OBJECT || known < j->count)
        return "it must be an object of issuer, jwks_file or jwks_url, audience and claims";
    if (!is_name(name))
        return "issuer must be a name without commas";
    if (!url == !file)
        return "it needs either jwks_file or jwks_url";
    ret->name = arena_str(a, name->text);
    const char *fault =
        url ? read_url(a, url, &ret->jwks_url) : read_file_name(a, file, path, &ret->jwks_file);
    if (!fault)
        fault = read_audiences(a, json_get(j, "audience"), &ret->audiences);
    return fault ? fault : read_paths(a, claims, &ret->paths);
}

static enum err_code read_list(const struct json *list, const char *path, struct str own, struct issuers *s,
                               struct err *err)
{
    if (list->type != JSON_ARRAY || !list->count || list->count > ISSUERS_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "it must be a list of 1 to %d issuers", ISSUERS_MAX);
    for (const struct json *j = list->child; j; j = j->next) {
        struct issuer one = {0};
        const char *fault = read_issuer(s->arena, j, path, &one);
        if (!fault && (str_equal(one.name, own) || issuers_find(s, one.name)))
            fault = "an issuer stands once, and is not our own (tokens.issuer)";
        if (fault)
            return err_set(err, ERR_CONFIG_INVALID, "issuer %zu: %s", s->count + 1, fault);
        s->list[s->count++] = one;
    }
    return ERR_OK;
}

enum err_code issuers_read(struct str text, const char *path, struct str own, struct issuers *ret_issuers,
                           struct err *err)
{
    const struct json *root;
    struct issuers s = {.arena = arena_new(4096)};
    struct arena *parsing = arena_new(16384);
    enum err_code code = text.len > ISSUERS_FILE_BYTES_MAX || json_parse(parsing, text, &root, err) != ERR_OK
                             ? err_set(err, ERR_CONFIG_INVALID, "it is no JSON")
                             : read_list(root, path, own, &s, err);
    arena_free(parsing);
    if (code == ERR_OK)
        *ret_issuers = s;
    else
        issuers_free(&s);
    return code;
}

enum err_code issuers_load(const char *path, struct str own, struct issuers *ret_issuers, struct err *err)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct err why;
    if (issuer_file_read(path, ISSUERS_FILE_BYTES_MAX, &text, &why) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "tokens.issuers: %.220s", why.detail);
    if (issuers_read(strbuf_str(&text), path, own, ret_issuers, &why) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "tokens.issuers: %.100s: %.120s", path, why.detail);
    return ERR_OK;
}

void issuers_free(struct issuers *s)
{
    if (s->arena)
        arena_free(s->arena);
    *s = (struct issuers){0};
}

const struct issuer *issuers_find(const struct issuers *s, struct str name)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_equal(s->list[i].name, name))
            return &s->list[i];
    return NULL;
}
