#include "egress/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/must.h"

#include "base/banned.h"

enum grade { GRADE_PUBLIC, GRADE_PRIVATE, GRADE_NEVER };

/* A row's address may carry an IPv4 address of its own. */
enum wrap {
    WRAP_NONE,
    WRAP_SAME,   /* the last 4 bytes are where it goes: judge them instead */
    WRAP_TUNNEL, /* the 4 bytes at `at` are where it may come out: the row's grade or theirs, the stricter */
    WRAP_TEREDO, /* as a tunnel, twice: the server, and the client with its bits turned over */
};

struct range {
    struct egress_network network;
    enum grade grade;
    enum wrap wrap;
    uint8_t at;
    const char *name;
};

#define V4(bits, grade, name, ...)                                                                           \
    {                                                                                                        \
        {false, bits, {__VA_ARGS__}}, GRADE_##grade, WRAP_NONE, 0, name                                      \
    }
#define V6(bits, grade, name, ...)                                                                           \
    {                                                                                                        \
        {true, bits, {__VA_ARGS__}}, GRADE_##grade, WRAP_NONE, 0, name                                       \
    }
#define V6_WRAP(bits, wrap, at, name, ...)                                                                   \
    {                                                                                                        \
        {true, bits, {__VA_ARGS__}}, GRADE_PRIVATE, WRAP_##wrap, at, name                                    \
    }

/* The first row that holds an address decides. IANA's special-purpose registries of 2024, and what is
 * not handed out to anybody. */
static const struct range ranges[] = {
    V4(8, NEVER, "this network", 0),
    V4(8, PRIVATE, "private", 10),
    V4(10, PRIVATE, "shared by carriers", 100, 64),
    V4(8, PRIVATE, "loopback", 127),
    V4(16, PRIVATE, "link-local", 169, 254),
    V4(12, PRIVATE, "private", 172, 16),
    V4(24, PRIVATE, "protocol assignments", 192, 0, 0),
    V4(24, PRIVATE, "documentation", 192, 0, 2),
    V4(24, PRIVATE, "6to4 relay", 192, 88, 99),
    V4(16, PRIVATE, "private", 192, 168),
    V4(15, PRIVATE, "benchmarking", 198, 18),
    V4(24, PRIVATE, "documentation", 198, 51, 100),
    V4(24, PRIVATE, "documentation", 203, 0, 113),
    V4(4, NEVER, "multicast", 224),
    V4(32, NEVER, "broadcast", 255, 255, 255, 255),
    V4(4, PRIVATE, "reserved", 240),

    V6(128, NEVER, "unspecified", 0),
    V6(128, PRIVATE, "loopback", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    V6_WRAP(96, SAME, 12, "IPv4-mapped", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
    V6_WRAP(96, TUNNEL, 12, "IPv4-compatible", 0),
    V6_WRAP(96, SAME, 12, "NAT64", 0, 0x64, 0xff, 0x9b),
    V6(48, PRIVATE, "local NAT64", 0, 0x64, 0xff, 0x9b, 0, 1),
    V6(64, PRIVATE, "discard", 1),
    V6_WRAP(32, TEREDO, 4, "Teredo tunnel", 0x20, 1),
    V6(23, PRIVATE, "protocol assignments", 0x20, 1),
    V6(32, PRIVATE, "documentation", 0x20, 1, 0x0d, 0xb8),
    V6_WRAP(16, TUNNEL, 2, "6to4 tunnel", 0x20, 2),
    V6(20, PRIVATE, "documentation", 0x3f, 0xff),
    V6(16, PRIVATE, "segment routing", 0x5f),
    V6(7, PRIVATE, "private", 0xfc),
    V6(10, PRIVATE, "link-local", 0xfe, 0x80),
    V6(10, PRIVATE, "site-local", 0xfe, 0xc0),
    V6(8, NEVER, "multicast", 0xff),
    V6(3, PRIVATE, "reserved", 0),
    V6(2, PRIVATE, "reserved", 0x40),
    V6(1, PRIVATE, "reserved", 0x80),
};

static bool network_holds(const struct egress_network *n, bool v6, const uint8_t *bytes)
{
    size_t whole = n->bits / 8, rest = n->bits % 8;
    if (n->v6 != v6 || memcmp(n->bytes, bytes, whole) != 0)
        return false;
    return !rest || ((n->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}

static bool is_listed(const struct egress_policy *policy, bool v6, const uint8_t *bytes)
{
    for (size_t i = 0; i < policy->network_count; i++)
        if (network_holds(&policy->networks[i], v6, bytes))
            return true;
    return false;
}

static const struct range *range_of(bool v6, const uint8_t *bytes)
{
    for (size_t i = 0; i < LENGTH_OF(ranges); i++)
        if (network_holds(&ranges[i].network, v6, bytes))
            return &ranges[i];
    return NULL;
}

static const struct range *range_of_tunnel_end(const struct range *tunnel, const uint8_t *v4)
{
    const struct range *end = range_of(false, v4);
    return end && end->grade == GRADE_NEVER ? end : tunnel;
}

static const struct range *range_of_teredo(const struct range *teredo, const uint8_t *v6)
{
    uint8_t client[4];
    for (size_t i = 0; i < sizeof client; i++)
        client[i] = (uint8_t)~v6[12 + i];
    const struct range *server = range_of_tunnel_end(teredo, v6 + teredo->at);
    return server->grade == GRADE_NEVER ? server : range_of_tunnel_end(teredo, client);
}

static bool bytes_allowed(const struct egress_policy *policy, bool v6, const uint8_t *bytes,
                          const char **ret_reason)
{
    const struct range *range = range_of(v6, bytes);
    bool listed = is_listed(policy, v6, bytes);
    if (range && range->wrap == WRAP_SAME) {
        bytes += range->at;
        range = range_of(false, bytes);
        listed = listed || is_listed(policy, false, bytes);
    } else if (range && range->wrap == WRAP_TUNNEL) {
        range = range_of_tunnel_end(range, bytes + range->at);
    } else if (range && range->wrap == WRAP_TEREDO) {
        range = range_of_teredo(range, bytes);
    }
    if (!range || (range->grade == GRADE_PRIVATE && (listed || policy->allow_private)))
        return true;
    *ret_reason = range->name;
    return false;
}

bool egress_address_allowed(const struct egress_policy *policy, const struct sockaddr *address,
                            const char **ret_reason)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return bytes_allowed(policy, false, (const uint8_t *)&v4.sin_addr, ret_reason);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        return bytes_allowed(policy, true, v6.sin6_addr.s6_addr, ret_reason);
    }
    *ret_reason = "not an IP address";
    return false;
}

bool egress_address_text_allowed(const struct egress_policy *policy, const char *address,
                                 const char **ret_reason)
{
    uint8_t bytes[16];
    if (inet_pton(AF_INET, address, bytes) == 1)
        return bytes_allowed(policy, false, bytes, ret_reason);
    if (inet_pton(AF_INET6, address, bytes) == 1)
        return bytes_allowed(policy, true, bytes, ret_reason);
    *ret_reason = "not an IP address";
    return false;
}

/* Bits behind the prefix: "10.1.2.3/8" is more likely a slip than meant as 10.0.0.0/8. */
static bool has_host_bits(const struct egress_network *n)
{
    for (size_t bit = n->bits; bit < (n->v6 ? 128u : 32u); bit++)
        if (n->bytes[bit / 8] & (0x80u >> bit % 8))
            return true;
    return false;
}

static enum err_code network_parse(struct str item, struct egress_network *ret, struct err *err)
{
    char text[INET6_ADDRSTRLEN];
    struct str bits_text = item, address = str_cut(&bits_text, '/');
    bool has_bits = address.len != item.len;
    struct str shown = {item.ptr, item.len < 60 ? item.len : 60};
    *ret = (struct egress_network){.v6 = address.len && memchr(address.ptr, ':', address.len)};
    snprintf(text, sizeof text, "%.*s", STR_ARG(address));
    if (address.len >= sizeof text || memchr(address.ptr, 0, address.len) ||
        inet_pton(ret->v6 ? AF_INET6 : AF_INET, text, ret->bytes) != 1)
        return err_set(err, ERR_CONFIG_INVALID, "\"%.*s\" is no network; write 10.1.0.0/16 or fd00::/8",
                       STR_ARG(shown));
    int64_t most = ret->v6 ? 128 : 32, bits = most;
    if (has_bits && !str_to_int(bits_text, 0, most, &bits))
        return err_set(err, ERR_CONFIG_INVALID, "\"%.*s\": the length behind / must be 0 to %d",
                       STR_ARG(shown), (int)most);
    ret->bits = (uint8_t)bits;
    if (has_host_bits(ret))
        return err_set(err, ERR_CONFIG_INVALID, "\"%.*s\" has bits behind its prefix; clear them or use /%d",
                       STR_ARG(shown), (int)most);
    return ERR_OK;
}

enum err_code egress_policy_parse(struct str list, bool allow_private, struct egress_policy *ret_policy,
                                  struct err *err)
{
    struct egress_policy policy = {.allow_private = allow_private};
    struct str rest = str_trim(list);
    bool more = rest.len > 0;
    while (more) {
        more = memchr(rest.ptr, ',', rest.len) != NULL; /* an item must follow a comma */
        if (policy.network_count == EGRESS_NETWORKS_MAX)
            return err_set(err, ERR_CONFIG_INVALID, "more than %d networks", EGRESS_NETWORKS_MAX);
        struct egress_network *network = &policy.networks[policy.network_count++];
        if (network_parse(str_trim(str_cut(&rest, ',')), network, err) != ERR_OK)
            return err->code;
    }
    *ret_policy = policy;
    return ERR_OK;
}
