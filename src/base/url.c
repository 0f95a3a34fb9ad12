#include "base/url.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/banned.h"

enum { LABEL_BYTES_MAX = 63 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_label_char(char c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_';
}

static bool label_is_valid(struct str label)
{
    if (!label.len || label.len > LABEL_BYTES_MAX || label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!is_label_char(label.ptr[i]))
            return false;
    return true;
}

/* Decimal, octal or hexadecimal, as inet_aton() reads the parts of an IPv4 address. */
static bool label_is_number(struct str label)
{
    bool hex = label.len >= 2 && label.ptr[0] == '0' && lower(label.ptr[1]) == 'x';
    for (size_t i = hex ? 2 : 0; i < label.len; i++)
        if (!is_digit(label.ptr[i]) && !(hex && lower(label.ptr[i]) >= 'a' && lower(label.ptr[i]) <= 'f'))
            return false;
    return true;
}

/* A name whose last label is a number is an IPv4 address to some readers: it must be one in its only form. */
static const char *read_name(struct str host, struct url *url)
{
    if (!host.len)
        return "must have a host";
    if (host.len > URL_HOST_BYTES_MAX)
        return "has a host of more than 253 bytes";
    if (host.ptr[host.len - 1] == '.')
        return "has a host that ends in a dot";
    struct str rest = host, label = {0};
    while (rest.len) {
        label = str_cut(&rest, '.');
        if (!label_is_valid(label))
            return "has a host that is no name; international names are written as xn--...";
    }
    for (size_t i = 0; i < host.len; i++)
        url->host[i] = lower(host.ptr[i]);
    url->host[host.len] = 0;
    if (!label_is_number(label))
        return NULL;
    struct in_addr v4;
    url->is_address = true;
    /* inet_pton takes four decimal parts, none with a leading zero: one spelling for each address. */
    if (inet_pton(AF_INET, url->host, &v4) != 1)
        return "has a number for a host; write an IPv4 address as 192.0.2.1";
    return NULL;
}

static const char *read_v6(struct str host, struct url *url)
{
    struct in6_addr v6;
    if (host.len < INET6_ADDRSTRLEN && !memchr(host.ptr, 0, host.len)) {
        snprintf(url->host, sizeof url->host, "%.*s", STR_ARG(host));
        if (inet_pton(AF_INET6, url->host, &v6) == 1) {
            inet_ntop(AF_INET6, &v6, url->host, sizeof url->host);
            url->is_address = true;
            return NULL;
        }
    }
    return "has no IPv6 address between [ and ]";
}

static const char *read_port(struct str text, struct url *url)
{
    int64_t port = url->tls ? 443 : 80;
    if (text.len) {
        struct str digits = {text.ptr + 1, text.len - 1};
        if (text.ptr[0] != ':' || !digits.len || digits.ptr[0] == '0' || !str_to_int(digits, 1, 65535, &port))
            return "has a port that is not 1 to 65535";
    }
    url->port = (uint16_t)port;
    return NULL;
}

static const char *read_authority(struct str authority, struct url *url)
{
    if (memchr(authority.ptr, '@', authority.len))
        return "must not have a user name or password";
    struct str host = authority, port = STR("");
    const char *fault;
    if (authority.len && authority.ptr[0] == '[') {
        const char *end = memchr(authority.ptr, ']', authority.len);
        if (!end)
            return "has a [ without ]";
        host = (struct str){authority.ptr + 1, (size_t)(end - authority.ptr) - 1};
        port = (struct str){end + 1, authority.len - host.len - 2};
        fault = read_v6(host, url);
    } else {
        const char *colon = memchr(authority.ptr, ':', authority.len);
        if (colon) {
            host.len = (size_t)(colon - authority.ptr);
            port = (struct str){colon, authority.len - host.len};
        }
        fault = read_name(host, url);
    }
    return fault ? fault : read_port(port, url);
}

static const char *check_bytes(struct str text)
{
    if (text.len > URL_BYTES_MAX)
        return "is longer than 2048 bytes";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '\\')
            return "has a space, a control byte, a backslash or a byte beyond ASCII; escape it";
        if (c == '#')
            return "must not have a fragment (#)";
    }
    return NULL;
}

const char *url_parse(struct str text, struct url *ret_url)
{
    struct url url = {0};
    const char *fault = check_bytes(text);
    if (fault)
        return fault;
    url.tls = text.len >= 8 && str_equal_nocase((struct str){text.ptr, 8}, STR("https://"));
    bool plain = text.len >= 7 && str_equal_nocase((struct str){text.ptr, 7}, STR("http://"));
    if (!url.tls && !plain)
        return "must start with http:// or https://";
    size_t start = url.tls ? 8 : 7, end = start;
    while (end < text.len && text.ptr[end] != '/' && text.ptr[end] != '?')
        end++;
    fault = read_authority((struct str){text.ptr + start, end - start}, &url);
    if (fault)
        return fault;
    bool v6 = strchr(url.host, ':') != NULL;
    snprintf(url.endpoint, sizeof url.endpoint, "%s://%s%s%s:%u", url.tls ? "https" : "http", v6 ? "[" : "",
             url.host, v6 ? "]" : "", (unsigned)url.port);
    *ret_url = url;
    return NULL;
}
