/* base/url.h - a URL to send to, checked as text: a URL that two readers could take for two hosts is refused.
 *
 * Taken: http or https, a host, an optional port, path and query; visible ASCII only, at most URL_BYTES_MAX
 *        bytes.
 * Refused: user names and passwords, fragments, backslashes, %-escapes and anything but letters, digits, '-',
 *          '_' and '.' in the host, a trailing dot, numbers that some libraries read as IPv4 (127.1,
 *          0x7f000001, 017700000001, 2130706433), IPv6 zones, empty or zero ports.
 *
 * Whether the host may be connected to is decided by its address (egress/address.h). "localhost" is a valid
 * host here and is denied when its address is. Pure; for all code that stores a URL, and the sender. */
#ifndef WEIR_BASE_URL_H
#define WEIR_BASE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
    URL_BYTES_MAX = 2048,
    URL_HOST_BYTES_MAX = 253,
    URL_ENDPOINT_BYTES = 272, /* "https://", "[" host "]", ":65535", NUL */
};

struct url {
    bool tls;
    bool is_address; /* the host is an IP address, not a name */
    uint16_t port;
    char host[URL_HOST_BYTES_MAX + 1]; /* lower case; an IPv6 address in its one short form, no brackets */
    char endpoint[URL_ENDPOINT_BYTES]; /* "https://example.com:443": equal for equal receivers */
};

/* NULL: it can be sent to. Else what is wrong with it, to be told behind its name: "must have a host". */
MUST_CHECK const char *url_parse(struct str text, struct url *ret_url);

#endif
