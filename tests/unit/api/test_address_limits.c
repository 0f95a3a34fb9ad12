/* Callers without credentials, by their address: requests and lines of the log in a minute. */
#include "case.h"

#include "api/address_limits.h"
#include "log_lines.h"

#include "base/banned.h"

enum { MINUTE_MS = 60000, TICKS = 16 /* each looks at a part of the table */ };

static struct settings settings;
static int64_t now_ms;
static struct address_limits *limits;

static int64_t mono_ms(void *self)
{
    (void)self;
    return now_ms;
}
static const struct clock hands = {NULL, mono_ms, NULL, NULL};

static int set_up(void **state)
{
    (void)state;
    settings_init(&settings);
    settings.unauthenticated_per_minute = 3;
    settings.clients_per_address_minute = 2;
    now_ms = 5000;
    limits = address_limits_new(&settings, &hands);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    limits = address_limits_free(limits);
    settings_free(&settings);
    return 0;
}

static struct http_address address(uint8_t last)
{
    struct http_address a = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = last}};
    return a;
}

/* 0: taken; else the seconds to wait. */
static int take(uint8_t from, enum address_budget budget)
{
    const struct http_address a = address(from);
    struct err err;
    return address_limits_take(limits, &a, budget, &err) == ERR_OK ? 0 : err.retry_after_s;
}

static int logged_of(uint8_t from, int requests)
{
    const struct http_address a = address(from);
    int logged = 0;
    for (int i = 0; i < requests; i++)
        logged += address_limits_may_log(limits, &a);
    return logged;
}

static void tick(void)
{
    for (int i = 0; i < TICKS; i++)
        address_limits_tick(limits);
}

#define ADDRESS_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

ADDRESS_TEST(an_address_has_so_many_requests_of_each_kind_in_its_minute)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(1, ADDRESS_ANONYMOUS), 0);
    now_ms += 20001;
    assert_int_equal(take(1, ADDRESS_ANONYMOUS), 40);
    assert_int_equal(take(1, ADDRESS_PROBES), 0);
    assert_int_equal(take(1, ADDRESS_CLIENTS), 0);
    assert_int_equal(take(2, ADDRESS_ANONYMOUS), 0);
    now_ms += 39998;
    assert_int_equal(take(1, ADDRESS_ANONYMOUS), 1);
    now_ms++;
    assert_int_equal(take(1, ADDRESS_ANONYMOUS), 0);
    settings.unauthenticated_per_minute = 0;
    for (int i = 0; i < 100; i++)
        assert_int_equal(take(1, ADDRESS_ANONYMOUS), 0);
}

ADDRESS_TEST(lines_that_are_left_out_are_told_by_one_when_the_minute_is_over)
{
    assert_int_equal(logged_of(1, 80), ADDRESS_LINES_MAX);
    assert_int_equal(logged_of(2, ADDRESS_LINES_MAX), ADDRESS_LINES_MAX);
    log_listen();
    now_ms += MINUTE_MS - 1;
    tick();
    assert_int_equal(log_lines_with("requests_not_logged", NULL, NULL), 0);
    now_ms++;
    tick();
    tick();
    assert_int_equal(log_lines_with("requests_not_logged", NULL, NULL), 1);
    assert_int_equal(log_lines_with("requests_not_logged", "\"192.0.2.1\"", "\"requests\":50"), 1);
    log_stop_listening();
    assert_int_equal(logged_of(1, 80), ADDRESS_LINES_MAX);
}

ADDRESS_TEST(all_addresses_together_have_so_many_lines)
{
    int logged = 0;
    for (uint8_t from = 0; from < 100; from++)
        logged += logged_of(from, ADDRESS_LINES_MAX);
    assert_int_equal(logged, ADDRESS_ALL_LINES_MAX);
}
