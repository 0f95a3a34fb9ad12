#include "egress/retry_after.h"

#include <stdio.h>

#include "base/backoff.h"
#include "base/must.h"
#include "base/time_text.h"

#include "base/banned.h"

static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const char *const long_days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};

static int index_of(const char *const *names, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, names[i]))
            return (int)i;
    return -1;
}

struct date {
    struct str day, month, year, time; /* "06", "Nov", "1994", "08:49:37" */
};

/* RFC 9110: a year of two digits that seems more than 50 years away is of the century before. */
static int64_t full_year(int64_t year, int64_t now_wall_ms)
{
    char now[TIME_TEXT_MAX];
    int64_t this_year = 1970;
    str_to_int((struct str){time_text_ms(now_wall_ms, now).ptr, 4}, 0, 9999, &this_year);
    year += this_year / 100 * 100;
    return year > this_year + 50 ? year - 100 : year;
}

/* By way of the RFC 3339 reader, which knows calendars. */
static bool date_to_ms(const struct date *d, int64_t now_wall_ms, int64_t *ret_ms)
{
    char text[TIME_TEXT_MAX];
    int64_t day, year, us;
    int month = index_of(months, LENGTH_OF(months), d->month);
    if (month < 0 || !str_to_int(d->day, 1, 31, &day) || !str_to_int(d->year, 0, 9999, &year) ||
        d->time.len != 8)
        return false;
    if (d->year.len == 2)
        year = full_year(year, now_wall_ms);
    else if (d->year.len != 4)
        return false;
    snprintf(text, sizeof text, "%04d-%02d-%02dT%.8sZ", (int)year, month + 1, (int)day, d->time.ptr);
    if (!time_parse_us(str_of(text), &us))
        return false;
    *ret_ms = us / 1000;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" and "Sunday, 06-Nov-94 08:49:37 GMT" */
static bool read_gmt_date(struct str value, int64_t now_wall_ms, int64_t *ret_ms)
{
    struct str rest = value, day = str_cut(&rest, ',');
    bool is_long = index_of(long_days, LENGTH_OF(long_days), day) >= 0;
    if ((!is_long && index_of(days, LENGTH_OF(days), day) < 0) || !str_starts(rest, " "))
        return false;
    str_cut(&rest, ' ');
    struct date d;
    char between = is_long ? '-' : ' ';
    d.day = str_cut(&rest, between);
    d.month = str_cut(&rest, between);
    d.year = str_cut(&rest, ' ');
    d.time = str_cut(&rest, ' ');
    return d.day.len == 2 && d.year.len == (is_long ? 2 : 4) && str_is(rest, "GMT") &&
           date_to_ms(&d, now_wall_ms, ret_ms);
}

/* "Sun Nov  6 08:49:37 1994" */
static bool read_asctime_date(struct str value, int64_t now_wall_ms, int64_t *ret_ms)
{
    struct str rest = value;
    struct date d;
    if (index_of(days, LENGTH_OF(days), str_cut(&rest, ' ')) < 0)
        return false;
    d.month = str_cut(&rest, ' ');
    if (str_starts(rest, " "))
        str_cut(&rest, ' ');
    d.day = str_cut(&rest, ' ');
    d.time = str_cut(&rest, ' ');
    d.year = rest;
    return d.year.len == 4 && date_to_ms(&d, now_wall_ms, ret_ms);
}

static int64_t within(int64_t ms)
{
    return ms < 0 ? 0 : ms > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : ms;
}

int64_t retry_after_ms(struct str value, int64_t now_wall_ms)
{
    value = str_trim(value);
    size_t digits = 0;
    while (digits < value.len && value.ptr[digits] >= '0' && value.ptr[digits] <= '9')
        digits++;
    int64_t seconds, at_ms;
    if (digits && digits == value.len) {
        if (!str_to_int(value, 0, RETRY_AFTER_MAX_MS / 1000, &seconds))
            return RETRY_AFTER_MAX_MS;
        return seconds * 1000;
    }
    if (read_gmt_date(value, now_wall_ms, &at_ms) || read_asctime_date(value, now_wall_ms, &at_ms))
        return within(at_ms - now_wall_ms);
    return -1;
}
