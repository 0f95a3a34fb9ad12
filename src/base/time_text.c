#include "base/time_text.h"

#include <stdio.h>

#include "base/banned.h"

static const int64_t DAY_S = 86400;

/* Days since 1970-01-01 of a civil date, and back (proleptic Gregorian; eras of 400 years). */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400, yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void civil_from_days(int64_t days, int64_t *ret_y, int64_t *ret_m, int64_t *ret_d)
{
    days += 719468;
    int64_t era = days / 146097, doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    *ret_d = doy - (153 * mp + 2) / 5 + 1;
    *ret_m = mp < 10 ? mp + 3 : mp - 9;
    *ret_y = yoe + era * 400 + (*ret_m <= 2);
}

static char *put_digits(char *p, int64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        p[i] = (char)('0' + value % 10);
    return p + count;
}

static struct str write_time(int64_t seconds, int64_t fraction, int digits, char *out)
{
    int64_t y, m, d, day = seconds / DAY_S, left = seconds % DAY_S;
    civil_from_days(day, &y, &m, &d);
    char *p = put_digits(out, y, 4);
    *p++ = '-';
    p = put_digits(p, m, 2);
    *p++ = '-';
    p = put_digits(p, d, 2);
    *p++ = 'T';
    p = put_digits(p, left / 3600, 2);
    *p++ = ':';
    p = put_digits(p, left / 60 % 60, 2);
    *p++ = ':';
    p = put_digits(p, left % 60, 2);
    *p++ = '.';
    p = put_digits(p, fraction, digits);
    *p++ = 'Z';
    *p = 0;
    return (struct str){out, (size_t)(p - out)};
}

struct str time_text_ms(int64_t wall_ms, char out[TIME_TEXT_MAX])
{
    if (wall_ms < 0)
        wall_ms = 0;
    return write_time(wall_ms / 1000, wall_ms % 1000, 3, out);
}

struct str time_text_us(int64_t wall_us, char out[TIME_TEXT_MAX])
{
    if (wall_us < 0)
        wall_us = 0;
    return write_time(wall_us / 1000000, wall_us % 1000000, 6, out);
}

static bool take_digits(struct str *s, int count, int64_t *ret_value)
{
    if (s->len < (size_t)count)
        return false;
    int64_t v = 0;
    for (int i = 0; i < count; i++) {
        if (s->ptr[i] < '0' || s->ptr[i] > '9')
            return false;
        v = v * 10 + (s->ptr[i] - '0');
    }
    s->ptr += count;
    s->len -= (size_t)count;
    *ret_value = v;
    return true;
}

static bool take_char(struct str *s, const char *any_of)
{
    if (!s->len || !strchr(any_of, *s->ptr) || !*s->ptr)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool take_fraction_us(struct str *s, int64_t *ret_us)
{
    int64_t us = 0, scale = 100000;
    size_t digits = 0;
    while (s->len && *s->ptr >= '0' && *s->ptr <= '9') {
        us += (*s->ptr - '0') * scale;
        scale /= 10;
        s->ptr++;
        s->len--;
        digits++;
    }
    *ret_us = us;
    return digits >= 1 && digits <= 9;
}

static int64_t days_in_month(int64_t y, int64_t m)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return m == 2 && leap ? 29 : days[m - 1];
}

bool time_parse_us(struct str text, int64_t *ret_wall_us)
{
    struct str s = text;
    int64_t y, m, d, hh, mm, ss, us = 0;
    if (!take_digits(&s, 4, &y) || !take_char(&s, "-") || !take_digits(&s, 2, &m) || !take_char(&s, "-") ||
        !take_digits(&s, 2, &d) || !take_char(&s, "Tt") || !take_digits(&s, 2, &hh) || !take_char(&s, ":") ||
        !take_digits(&s, 2, &mm) || !take_char(&s, ":") || !take_digits(&s, 2, &ss))
        return false;
    if (take_char(&s, ".") && !take_fraction_us(&s, &us))
        return false;
    if (!str_is(s, "Z") && !str_is(s, "z") && !str_is(s, "+00:00"))
        return false;
    if (y < 1970 || m < 1 || m > 12 || d < 1 || d > days_in_month(y, m) || hh > 23 || mm > 59 || ss > 59)
        return false;
    int64_t seconds = days_from_civil(y, m, d) * DAY_S + hh * 3600 + mm * 60 + ss;
    *ret_wall_us = seconds * 1000000 + us;
    return true;
}
