#include "store/postgres/postgres_url.h"

#include <libpq-fe.h>
#include <stdint.h>
#include <string.h>

#include "base/banned.h"

/* One for all hosts, or one each; libpq finds out only when it connects, as if no host had answered. */
static bool are_ports(const char *text)
{
    struct str rest = str_of(text);
    int64_t port;
    while (rest.len) {
        struct str one = str_cut(&rest, ',');
        if (one.len && !str_to_int(one, 1, UINT16_MAX, &port))
            return false;
    }
    return true;
}

static bool is_read_by_libpq(const char *url)
{
    char *ignored = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &ignored);
    bool is_read = options || (!strchr(url, '=') && !strchr(url, ':')); /* else it is a database's name */
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, "port") == 0 && o->val)
            is_read = is_read && are_ports(o->val);
    PQconninfoFree(options);
    PQfreemem(ignored);
    return is_read;
}

/* For libpq user and password end at the first '@', unless a '/' comes before. The part of a password behind
 * its own '@' or '/' would be read as a host or a database, which messages name. A host may begin with '/': a
 * socket without a file. */
static bool has_stray_at(const char *url)
{
    const char *rest = strstr(url, "://");
    if (!rest)
        return false;
    rest += 3;
    rest += strcspn(rest, "@/");
    if (*rest == '@')
        rest += rest[1] == '@' ? 2 : 1;
    return memchr(rest, '@', strcspn(rest, "?")) != NULL;
}

enum err_code postgres_url_check(const char *url, struct err *err)
{
    if (has_stray_at(url))
        return err_set(
            err, ERR_CONFIG_INVALID,
            "store.url has an @ that may be part of the password; write it as %%40, and a / as %%2F");
    if (!is_read_by_libpq(url))
        return err_set(err, ERR_CONFIG_INVALID, "store.url is no URL or connection string of PostgreSQL");
    return ERR_OK;
}
