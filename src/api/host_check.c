#include "api/host_check.h"

#include <arpa/inet.h>

#include "base/banned.h"

/* Without port and brackets, and without the dot that a full name may end with. */
static struct str name_of(struct str host)
{
    if (host.len && host.ptr[0] == '[') {
        struct str rest = {host.ptr + 1, host.len - 1};
        return str_cut(&rest, ']');
    }
    struct str name = str_cut(&host, ':');
    if (name.len && name.ptr[name.len - 1] == '.')
        name.len--;
    return name;
}

static bool is_address(struct str name)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    return inet_pton(AF_INET, text, &ignored) == 1 || inet_pton(AF_INET6, text, &ignored) == 1;
}

static bool is_localhost(struct str name)
{
    struct str last = STR("localhost");
    if (name.len > last.len && name.ptr[name.len - last.len - 1] == '.')
        name = (struct str){name.ptr + name.len - last.len, last.len};
    return str_equal_nocase(name, last);
}

bool host_is_known(const struct settings *s, struct str host)
{
    char listen[SETTINGS_HOST_MAX];
    uint16_t port;
    struct str name = name_of(host), more = str_of(s->hosts);
    if (!name.len)
        return false;
    if (is_localhost(name) || is_address(name))
        return true;
    while (more.len)
        if (str_equal_nocase(name, str_trim(str_cut(&more, ','))))
            return true;
    if (settings_listen_parts(s, listen, sizeof listen, &port) && str_equal_nocase(name, str_of(listen)))
        return true;
    return settings_tls_listen_parts(s, listen, sizeof listen, &port) &&
           str_equal_nocase(name, str_of(listen));
}
