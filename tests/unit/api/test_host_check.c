/* Which Host a caller on this machine may name in dev. */
#include "case.h"

#include "api/host_check.h"

#include "base/banned.h"

static bool knows(const struct settings *s, const char *host)
{
    return host_is_known(s, str_of(host));
}

TEST(addresses_and_localhost_are_known)
{
    struct settings s = {.listen = "127.0.0.1:8080"};
    assert_true(knows(&s, "127.0.0.1:8080"));
    assert_true(knows(&s, "[::1]:8080"));
    assert_true(knows(&s, "LOCALHOST."));
    assert_true(knows(&s, "weir.localhost:1"));
    assert_false(knows(&s, "notlocalhost"));
    assert_false(knows(&s, "evil.example:8080"));
    assert_false(knows(&s, ""));
}

TEST(the_hosts_of_both_listeners_are_known)
{
    struct settings s = {.listen = "plain.example:8080", .tls_listen = "sure.example:8443"};
    assert_true(knows(&s, "plain.example:8080"));
    assert_true(knows(&s, "Sure.Example:8443"));
    assert_false(knows(&s, "evil.example"));
    s.listen = "off";
    assert_true(knows(&s, "sure.example"));
    assert_false(knows(&s, "plain.example"));
    s.listen = "plain.example:8080";
    s.tls_listen = NULL;
    assert_false(knows(&s, "sure.example"));
}

TEST(names_of_the_setting_are_known)
{
    struct settings s = {.listen = "127.0.0.1:8080", .hosts = "one.example, two.example"};
    assert_true(knows(&s, "two.example:80"));
    assert_false(knows(&s, "three.example"));
}
