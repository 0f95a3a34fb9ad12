#include "case.h"

#include "egress/retry_after.h"

#include "base/banned.h"

enum { HOUR_MS = 3600000 }; /* more is not waited for: docs/webhooks.md */

/* Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110. */
static const int64_t EXAMPLE_MS = INT64_C(784111777) * 1000;

TEST(seconds_are_read)
{
    static const struct {
        const char *value;
        int64_t ms;
    } rows[] = {
        {"0", 0},
        {"1", 1000},
        {"120", 120000},
        {" 120\t", 120000},
        {"007", 7000},
        {"3599", 3599000},
        {"3600", HOUR_MS},
        {"3601", HOUR_MS},
        {"604800", HOUR_MS},
        {"99999999999999999999999999999999", HOUR_MS},
        {"", -1},
        {" ", -1},
        {"-1", -1},
        {"+1", -1},
        {"1.5", -1},
        {"1s", -1},
        {"1 2", -1},
        {"1e3", -1},
        {"0x10", -1},
        {"soon", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (retry_after_ms(str_of(rows[i].value), EXAMPLE_MS) != rows[i].ms)
            fail_msg("\"%s\": %lld", rows[i].value,
                     (long long)retry_after_ms(str_of(rows[i].value), EXAMPLE_MS));
}

/* Each is the same instant, or none. */
TEST(dates_are_read_in_all_three_forms)
{
    static const struct {
        const char *value;
        bool is_date;
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", true},
        {"Sunday, 06-Nov-94 08:49:37 GMT", true},
        {"Sun Nov  6 08:49:37 1994", true},
        {" Sun, 06 Nov 1994 08:49:37 GMT ", true},
        {"Sun, 06 Nov 1994 08:49:37 UTC", false},
        {"Sun, 06 Nov 1994 08:49:37", false},
        {"Sun, 6 Nov 1994 08:49:37 GMT", false},
        {"sun, 06 nov 1994 08:49:37 gmt", false},
        {"Sun, 31 Feb 1994 08:49:37 GMT", false},
        {"Sun, 06 Nov 1994 24:49:37 GMT", false},
        {"Sun, 06 Nov 1994 08:49:3 GMT", false},
        {"Sun, 06 Nov 94 08:49:37 GMT", false},
        {"Sun, 06-Nov-94 08:49:37 GMT", false},
        {"Sunday, 06 Nov 1994 08:49:37 GMT", false},
        {"Sun, 06 Nov 1994 08:49:37 GMT x", false},
        {"Sun,06 Nov 1994 08:49:37 GMT", false},
        {"Sun Nov 6 08:49:37 94", false},
        {"Sun, -6 Nov 1994 08:49:37 GMT", false},
        {"1994-11-06T08:49:37Z", false},
        {"Sun, 06 Nov 1969 08:49:37 GMT", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (retry_after_ms(str_of(rows[i].value), EXAMPLE_MS - 90500) != (rows[i].is_date ? 90500 : -1))
            fail_msg("\"%s\"", rows[i].value);
}

/* The week and the months of 1995, from one instant to the next. */
TEST(every_day_and_month_has_its_names)
{
    static const struct {
        const char *value;
        int64_t days;
    } rows[] = {
        {"Mon, 07 Nov 1994 08:49:37 GMT", 1},     {"Tue, 08 Nov 1994 08:49:37 GMT", 2},
        {"Wed, 09 Nov 1994 08:49:37 GMT", 3},     {"Thu, 10 Nov 1994 08:49:37 GMT", 4},
        {"Fri, 11 Nov 1994 08:49:37 GMT", 5},     {"Sat, 12 Nov 1994 08:49:37 GMT", 6},
        {"Monday, 07-Nov-94 08:49:37 GMT", 1},    {"Tuesday, 08-Nov-94 08:49:37 GMT", 2},
        {"Wednesday, 09-Nov-94 08:49:37 GMT", 3}, {"Thursday, 10-Nov-94 08:49:37 GMT", 4},
        {"Friday, 11-Nov-94 08:49:37 GMT", 5},    {"Saturday, 12-Nov-94 08:49:37 GMT", 6},
        {"Mon Nov  7 08:49:37 1994", 1},          {"Thu Nov 10 08:49:37 1994", 4},
        {"Tue, 06 Dec 1994 08:49:37 GMT", 30},    {"Fri, 06 Jan 1995 08:49:37 GMT", 61},
        {"Mon, 06 Feb 1995 08:49:37 GMT", 92},    {"Mon, 06 Mar 1995 08:49:37 GMT", 120},
        {"Thu, 06 Apr 1995 08:49:37 GMT", 151},   {"Sat, 06 May 1995 08:49:37 GMT", 181},
        {"Tue, 06 Jun 1995 08:49:37 GMT", 212},   {"Thu, 06 Jul 1995 08:49:37 GMT", 242},
        {"Sun, 06 Aug 1995 08:49:37 GMT", 273},   {"Wed, 06 Sep 1995 08:49:37 GMT", 304},
        {"Fri, 06 Oct 1995 08:49:37 GMT", 334},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(retry_after_ms(str_of(rows[i].value), EXAMPLE_MS + rows[i].days * 86400000 - 90500),
                         90500);
}

TEST(dates_are_measured_from_now)
{
    struct str date = STR("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(retry_after_ms(date, EXAMPLE_MS), 0);
    assert_int_equal(retry_after_ms(date, EXAMPLE_MS + 1), 0); /* past */
    assert_int_equal(retry_after_ms(date, EXAMPLE_MS - 1), 1);
    assert_int_equal(retry_after_ms(date, 0), HOUR_MS);
    /* Two digits: the century in which it is at most 50 years ahead. In 2026, 76 is 2076 and 77 is 1977. */
    int64_t in_2026_ms = INT64_C(1780000000) * 1000;
    assert_int_equal(retry_after_ms(STR("Sunday, 06-Nov-76 08:49:37 GMT"), in_2026_ms), HOUR_MS);
    assert_int_equal(retry_after_ms(STR("Sunday, 06-Nov-77 08:49:37 GMT"), in_2026_ms), 0);
    int64_t in_2010_ms = INT64_C(1289033377) * 1000;
    assert_int_equal(retry_after_ms(STR("Saturday, 06-Nov-10 08:49:37 GMT"), in_2010_ms - 90500), 90500);
}
