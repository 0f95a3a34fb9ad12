#include "base/store_url.h"

#include "base/banned.h"

#define SQLITE_PREFIX "sqlite:"

static bool is_postgres(struct str url)
{
    return str_starts(url, "postgres://") || str_starts(url, "postgresql://");
}

bool store_url_kind(struct str url, enum store_kind *ret_kind)
{
    *ret_kind = is_postgres(url) ? STORE_POSTGRES : STORE_SQLITE;
    return is_postgres(url) || store_url_file(url).len > 0;
}

struct str store_url_file(struct str url)
{
    size_t skip = strlen(SQLITE_PREFIX);
    return str_starts(url, SQLITE_PREFIX) ? (struct str){url.ptr + skip, url.len - skip} : STR_ABSENT;
}

/* One parameter of the query, "name=value". Names may be written with %-escapes, so every name that is not
 * plainly a harmless one counts as secret. True: it is the login's password, or may be. */
static bool show_parameter(struct str parameter, struct strbuf *out)
{
    struct str value = parameter;
    struct str name = str_cut(&value, '=');
    strbuf_add_str(out, name);
    if (name.len == parameter.len)
        return false;
    bool password = memchr(name.ptr, '%', name.len) || str_is(name, "password");
    strbuf_add_char(out, '=');
    strbuf_add_str(out, password || str_is(name, "sslpassword") ? STR("***") : value);
    return password;
}

static bool show_query(struct str query, struct strbuf *out)
{
    bool password = false;
    while (query.len) {
        password = show_parameter(str_cut(&query, '&'), out) || password;
        if (query.len)
            strbuf_add_char(out, '&');
    }
    return password;
}

/* "user:password"; a part that does not look like a name is hidden. */
static bool show_user(struct str user, struct strbuf *out)
{
    size_t name = 0;
    while (name < user.len && !strchr(":/?@", user.ptr[name]))
        name++;
    strbuf_add(out, user.ptr, name);
    if (name < user.len)
        strbuf_add_text(out, ":***");
    return name < user.len;
}

/* Length of the part that can hold user and host: up to the '?' that follows the first '/'. */
static size_t front_length(struct str rest)
{
    const char *slash = memchr(rest.ptr, '/', rest.len);
    const char *query = slash ? memchr(slash, '?', rest.len - (size_t)(slash - rest.ptr)) : NULL;
    return query ? (size_t)(query - rest.ptr) : rest.len;
}

/* For libpq the first '@' ends the user, and a password with an '@' has to be written with %40. A password
 * written wrongly must not show in a message either, so the last '@' counts here: rather too much is hidden
 * than too little. */
static bool show_url(struct str url, struct strbuf *out)
{
    bool password = false;
    if (!is_postgres(url)) {
        strbuf_add_str(out, url);
        return false;
    }
    size_t scheme = (size_t)((const char *)memchr(url.ptr, '/', url.len) - url.ptr) + 2;
    strbuf_add(out, url.ptr, scheme);
    struct str rest = {url.ptr + scheme, url.len - scheme};
    const char *at = memrchr(rest.ptr, '@', front_length(rest));
    if (at) {
        struct str user = {rest.ptr, (size_t)(at - rest.ptr)};
        password = show_user(user, out);
        strbuf_add_char(out, '@');
        rest = (struct str){at + 1, rest.len - user.len - 1};
    }
    struct str query = rest;
    struct str place = str_cut(&query, '?');
    strbuf_add_str(out, place);
    if (place.len < rest.len) {
        strbuf_add_char(out, '?');
        password = show_query(query, out) || password;
    }
    return password;
}

void store_url_show(struct str url, struct strbuf *out)
{
    show_url(url, out);
}

bool store_url_has_password(struct str url)
{
    struct strbuf shown = {0};
    bool password = show_url(url, &shown);
    strbuf_free(&shown);
    return password;
}

bool store_url_add_password(char *url, size_t size, struct str password)
{
    static const char hex[] = "0123456789ABCDEF";
    if (!password.ptr)
        return true;
    if (strlen(url) + strlen("?password=") + 3 * password.len >= size)
        return false;
    char *rest = strstr(url, "://") + 3; /* a '?' before '@' belongs to the user's name */
    char *at = memchr(rest, '@', strcspn(rest, "/"));
    char *end = url + strlen(url);
    *end = strchr(at ? at : rest, '?') ? '&' : '?';
    end = stpcpy(end + 1, "password=");
    for (size_t i = 0; i < password.len; i++) {
        unsigned char byte = (unsigned char)password.ptr[i];
        *end++ = '%';
        *end++ = hex[byte >> 4];
        *end++ = hex[byte & 15];
    }
    *end = 0;
    return true;
}
