/* egress/url.h - a URL to send to, checked as text: what two readers could take for two hosts is refused.
 *
 * Taken: http or https, a host, an optional port, path and query; visible ASCII only, at most
 * EGRESS_URL_BYTES_MAX bytes. Refused: user names and passwords, fragments, backslashes, %-escapes and
 * anything but letters, digits, '-', '_' and '.' in the host, a trailing dot, numbers that some libraries
 * read as IPv4 (127.1, 0x7f000001, 017700000001, 2130706433), IPv6 zones, empty or zero ports.
 *
 * It does not say whether the host may be connected to: only the address can (egress/address.h). "localhost"
 * is a fine host here and is denied when its address is. Pure; for whoever stores a URL, and the sender. */
#ifndef WEIR_EGRESS_URL_H
#define WEIR_EGRESS_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
    EGRESS_URL_BYTES_MAX = 2048,
    EGRESS_HOST_BYTES_MAX = 253,
    EGRESS_ENDPOINT_BYTES = 272, /* "https://", "[" host "]", ":65535", NUL */
};

struct egress_url {
    bool tls;
    bool is_address; /* the host is an IP address, not a name */
    uint16_t port;
    char host[EGRESS_HOST_BYTES_MAX + 1]; /* lower case; an IPv6 address in its one short form, no brackets */
    char endpoint[EGRESS_ENDPOINT_BYTES]; /* "https://example.com:443": equal for equal receivers */
};

/* ERR_REQUEST_MALFORMED says what is wrong, beginning with "url". */
MUST_CHECK enum err_code egress_url_parse(struct str text, struct egress_url *ret_url, struct err *err);

#endif
