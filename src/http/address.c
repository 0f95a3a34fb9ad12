#include <arpa/inet.h>
#include <netinet/in.h>

#include "http/http_internal.h"

#include "base/banned.h"

enum { MAPPED_BYTES = 12, NETWORK_BYTES = 8 };

static bool is_mapped(const struct http_address *a)
{
    static const uint8_t prefix[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->bytes, prefix, sizeof prefix) == 0;
}

struct http_address address_of(const struct sockaddr_storage *peer)
{
    struct http_address a = {{0}};
    if (peer->ss_family == AF_INET) {
        a.bytes[10] = a.bytes[11] = 0xff;
        memcpy(a.bytes + MAPPED_BYTES, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer->ss_family == AF_INET6) {
        memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr, sizeof a.bytes);
    }
    return a;
}

bool address_is_loopback(const struct http_address *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return is_mapped(a) ? a->bytes[MAPPED_BYTES] == 127 : memcmp(a->bytes, one, sizeof one) == 0;
}

struct http_address http_address_network(const struct http_address *a)
{
    struct http_address network = *a;
    if (!is_mapped(a))
        memset(network.bytes + NETWORK_BYTES, 0, sizeof network.bytes - NETWORK_BYTES);
    return network;
}

struct str http_address_text(const struct http_address *a, char out[HTTP_ADDRESS_TEXT_MAX])
{
    bool v4 = is_mapped(a);
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->bytes + MAPPED_BYTES : a->bytes, out,
                   HTTP_ADDRESS_TEXT_MAX))
        return STR_ABSENT;
    return str_of(out);
}

struct str http_peer(struct http_exchange *x)
{
    char text[HTTP_ADDRESS_TEXT_MAX];
    if (x->over_unix_socket)
        return STR_ABSENT;
    return arena_str(x->arena, http_address_text(&x->peer, text));
}
