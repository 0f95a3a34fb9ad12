/* Which addresses may be connected to. The table of cases is tests/egress/ssrf_addresses.tsv. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

#include "case.h"

#include "egress/address.h"
#include "vectors.h"

#include "base/banned.h"

static struct egress_policy policy_of(const char *networks, bool allow_private)
{
    struct egress_policy policy;
    struct err err;
    assert_int_equal(egress_policy_parse(str_of(networks), allow_private, &policy, &err), ERR_OK);
    return policy;
}

/* Through a sockaddr, as the sender does, and as text: both must say the same. */
static bool allowed(const struct egress_policy *policy, const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    const struct sockaddr *address = (const struct sockaddr *)&v6;
    const char *reason = NULL, *again = NULL;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        address = (const struct sockaddr *)&v4;
    else
        assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    bool verdict = egress_address_allowed(policy, address, &reason);
    assert_int_equal(egress_address_text_allowed(policy, text, &again), verdict);
    assert_ptr_equal(reason, again);
    assert_true(verdict == !reason);
    return verdict;
}

static void check_row(const struct str columns[VECTOR_COLUMNS_MAX], void *self)
{
    char text[64];
    (void)self;
    snprintf(text, sizeof text, "%.*s", STR_ARG(columns[0]));
    struct egress_policy strict = policy_of("", false), open = policy_of("", true),
                         listed = policy_of("0.0.0.0/0,::/0", false);
    bool is_public = str_is(columns[1], "public"), is_never = str_is(columns[1], "never");
    assert_true(is_public || is_never || str_is(columns[1], "private"));
    if (allowed(&strict, text) != is_public || allowed(&open, text) == is_never ||
        allowed(&listed, text) == is_never)
        fail_msg("%s is not %.*s", text, STR_ARG(columns[1]));
}

/* Strict, with allow_private, and with everything on the allow-list. */
TEST(every_address_of_the_table_has_its_grade)
{
    assert_true(vectors_each("ssrf_addresses.tsv", check_row, NULL) > 130);
}

TEST(the_allow_list_opens_its_networks_and_no_others)
{
    struct egress_policy p = policy_of("10.1.0.0/16, 192.168.7.9 ,fd00:1::/32,127.0.0.128/25", false);
    static const struct {
        const char *address;
        bool open;
    } rows[] = {
        {"10.1.0.0", true},          {"10.1.255.255", true},    {"10.0.255.255", false},
        {"10.2.0.0", false},         {"192.168.7.9", true},     {"192.168.7.8", false},
        {"fd00:1::1", true},         {"fd00:2::1", false},      {"127.0.0.128", true},
        {"127.0.0.127", false},      {"::ffff:10.1.2.3", true}, {"::ffff:10.2.0.1", false},
        {"64:ff9b::10.1.2.3", true}, {"2002:a01:203::", false}, {"8.8.8.8", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (allowed(&p, rows[i].address) != rows[i].open)
            fail_msg("%s", rows[i].address);
}

TEST(other_families_and_texts_are_denied)
{
    struct egress_policy p = policy_of("", true);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const char *reason = NULL;
    assert_false(egress_address_allowed(&p, (const struct sockaddr *)&local, &reason));
    assert_string_equal(reason, "not an IP address");
    reason = NULL;
    assert_false(egress_address_text_allowed(&p, "", &reason));
    assert_string_equal(reason, "not an IP address");
    assert_false(egress_address_text_allowed(&p, "/run/x.sock", &reason));
    assert_false(egress_address_text_allowed(&p, "127.1", &reason));
}

TEST(a_wrong_network_is_named)
{
#define TEN "1234567890"
    static const struct {
        const char *list, *says;
    } rows[] = {
        {"10.0.0.0/8,banana", "\"banana\" is no network"},
        {"10.0.0.0/8,", "\"\" is no network"},
        {",", "\"\" is no network"},
        {"10.0.0/8", "\"10.0.0/8\" is no network"},
        {"10.0.0.0/33", "must be 0 to 32"},
        {"10.0.0.0/-1", "must be 0 to 32"},
        {"10.0.0.0/", "must be 0 to 32"},
        {"fd00::/129", "must be 0 to 128"},
        {"fd00::/8/8", "must be 0 to 128"},
        {"10.1.2.3/8", "bits behind its prefix"},
        {"fd00::1/64", "bits behind its prefix"},
        {"fe80::1%eth0/128", "is no network"},
        {"example.com", "is no network"},
        {TEN TEN TEN TEN TEN TEN "1", "\"" TEN TEN TEN TEN TEN TEN "\" is no network"}, /* cut */
    };
#undef TEN
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct egress_policy p = {.network_count = 7};
        struct err err;
        assert_int_equal(egress_policy_parse(str_of(rows[i].list), false, &p, &err), ERR_CONFIG_INVALID);
        if (!strstr(err.detail, rows[i].says))
            fail_msg("%s: %s", rows[i].list, err.detail);
        assert_int_equal(p.network_count, 7); /* untouched */
    }
}

TEST(the_allow_list_is_bounded)
{
    struct strbuf list = {0};
    struct egress_policy p;
    struct err err;
    for (int i = 0; i < EGRESS_NETWORKS_MAX; i++)
        strbuf_addf(&list, "%s10.0.%d.0/24", i ? "," : "", i);
    assert_int_equal(egress_policy_parse(strbuf_str(&list), false, &p, &err), ERR_OK);
    assert_int_equal(p.network_count, EGRESS_NETWORKS_MAX);
    strbuf_add_text(&list, ",10.1.0.0/24");
    assert_int_equal(egress_policy_parse(strbuf_str(&list), false, &p, &err), ERR_CONFIG_INVALID);
    strbuf_free(&list);
}
