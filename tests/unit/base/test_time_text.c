#include <stdlib.h>
#include <time.h>

#include "case.h"

#include "base/must.h"
#include "base/time_text.h"

#include "base/banned.h"

TEST(known_instants_are_written_as_people_write_them)
{
    char out[TIME_TEXT_MAX];
    assert_true(str_is(time_text_ms(0, out), "1970-01-01T00:00:00.000Z"));
    assert_true(str_is(time_text_ms(951782399999, out), "2000-02-28T23:59:59.999Z"));
    assert_true(str_is(time_text_ms(951782400000, out), "2000-02-29T00:00:00.000Z"));
    assert_true(str_is(time_text_us(1000000000123456, out), "2001-09-09T01:46:40.123456Z"));
    assert_true(str_is(time_text_ms(253402300799999, out), "9999-12-31T23:59:59.999Z"));
    assert_true(str_is(time_text_ms(-5, out), "1970-01-01T00:00:00.000Z"));
}

TEST(reading_takes_utc_only_and_real_dates_only)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", true, 0},
        {"1970-01-01t00:00:00z", true, 0},
        {"1970-01-01T00:00:00+00:00", true, 0},
        {"1970-01-01T00:00:00.1Z", true, 100000},
        {"1970-01-01T00:00:00.123456789Z", true, 123456},
        {"2000-02-29T12:34:56.000001Z", true, 951827696000001},
        {"9999-12-31T23:59:59.999999Z", true, 253402300799999999},
        {"1970-01-01T00:00:00-00:00", false, 0},
        {"1970-01-01T00:00:00+01:00", false, 0},
        {"1970-01-01T00:00:00", false, 0},
        {"1970-01-01 00:00:00Z", false, 0},
        {"1970-01-01T00:00Z", false, 0},
        {"1970-01-01", false, 0},
        {"1969-12-31T23:59:59Z", false, 0},
        {"2001-02-29T00:00:00Z", false, 0},
        {"1900-02-29T00:00:00Z", false, 0},
        {"2100-02-29T00:00:00Z", false, 0},
        {"2000-04-31T00:00:00Z", false, 0},
        {"2000-00-01T00:00:00Z", false, 0},
        {"2000-13-01T00:00:00Z", false, 0},
        {"2000-01-00T00:00:00Z", false, 0},
        {"2000-01-32T00:00:00Z", false, 0},
        {"2000-01-01T24:00:00Z", false, 0},
        {"2000-01-01T23:60:00Z", false, 0},
        {"2016-12-31T23:59:60Z", false, 0},
        {"2000-01-01T00:00:00.Z", false, 0},
        {"2000-01-01T00:00:00.1234567890Z", false, 0},
        {"2000-01-01T00:00:00Zx", false, 0},
        {" 2000-01-01T00:00:00Z", false, 0},
        {"2000-1-01T00:00:00Z", false, 0},
        {"+2000-01-01T00:00:00Z", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        int64_t us = -1;
        if (time_parse_us(str_of(cases[i].text), &us) != cases[i].ok)
            fail_msg("%s", cases[i].text);
        if (cases[i].ok)
            assert_true(us == cases[i].us);
    }
    int64_t us;
    assert_false(time_parse_us((struct str){"1970-01-01\0"
                                            "00:00:00Z",
                                            20},
                               &us));
}

/* Every day from 1970 to 9999, against the C library. */
TEST(every_day_reads_back_and_agrees_with_the_c_library)
{
    for (int64_t day = 0; day < 2932897; day += day < 60000 ? 1 : 13) {
        char out[TIME_TEXT_MAX], wanted[TIME_TEXT_MAX];
        int64_t seconds = day * 86400 + day % 86400, us;
        struct str text = time_text_us(seconds * 1000000 + day % 1000000, out);
        assert_true(time_parse_us(text, &us));
        assert_true(us == seconds * 1000000 + day % 1000000);
        time_t t = (time_t)seconds;
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S", &tm);
        assert_memory_equal(text.ptr, wanted, 19);
    }
}
