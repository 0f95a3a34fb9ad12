/* Which Host a caller on this machine may name in dev. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "api/host_check.h"

#include "base/banned.h"

static bool knows(const struct settings *s, const char *host)
{
    return host_is_known(s, str_of(host));
}

static void addresses_and_localhost_are_known(void **state)
{
    struct settings s = {.listen = "127.0.0.1:8080"};
    (void)state;
    assert_true(knows(&s, "127.0.0.1:8080"));
    assert_true(knows(&s, "[::1]:8080"));
    assert_true(knows(&s, "LOCALHOST."));
    assert_true(knows(&s, "weir.localhost:1"));
    assert_false(knows(&s, "notlocalhost"));
    assert_false(knows(&s, "evil.example:8080"));
    assert_false(knows(&s, ""));
}

static void the_hosts_of_both_listeners_are_known(void **state)
{
    struct settings s = {.listen = "plain.example:8080", .tls_listen = "sure.example:8443"};
    (void)state;
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

static void names_of_the_setting_are_known(void **state)
{
    struct settings s = {.listen = "127.0.0.1:8080", .hosts = "one.example, two.example"};
    (void)state;
    assert_true(knows(&s, "two.example:80"));
    assert_false(knows(&s, "three.example"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_and_localhost_are_known),
        cmocka_unit_test(the_hosts_of_both_listeners_are_known),
        cmocka_unit_test(names_of_the_setting_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
