#include "cli/metrics_text.h"

#include <math.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

/* --- reading --------------------------------------------------------------------------------------- */

/* Where the labels end: a brace in a quoted value does not count. */
static bool cut_labels(struct str *rest, struct str *ret_labels)
{
    bool quoted = false;
    for (size_t i = 0; i < rest->len; i++) {
        char c = rest->ptr[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (c == '}' && !quoted) {
            *ret_labels = (struct str){rest->ptr, i};
            *rest = (struct str){rest->ptr + i + 1, rest->len - i - 1};
            return true;
        }
    }
    return false;
}

static bool read_value(struct str text, double *ret)
{
    char digits[64], *end;
    text = str_trim(text);
    text = str_cut(&text, ' '); /* a time may stand behind it */
    if (!text.len || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    *ret = strtod(digits, &end);
    return *end == '\0';
}

static bool read_line(struct str line, struct metric_sample *ret)
{
    size_t n = 0;
    while (n < line.len && line.ptr[n] != '{' && line.ptr[n] != ' ')
        n++;
    if (!n || line.ptr[0] == '#' || n == line.len)
        return false;
    ret->name = (struct str){line.ptr, n};
    ret->labels = STR("");
    struct str rest = {line.ptr + n + 1, line.len - n - 1};
    if (line.ptr[n] == '{' && !cut_labels(&rest, &ret->labels))
        return false;
    return read_value(rest, &ret->value);
}

void metrics_text_read(struct arena *a, struct str text, struct metrics_text *ret)
{
    size_t lines = 1, count = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    if (lines > METRICS_SAMPLES_MAX)
        lines = METRICS_SAMPLES_MAX;
    struct metric_sample *samples = arena_alloc(a, lines * sizeof *samples);
    while (text.len && count < lines)
        count += read_line(str_cut(&text, '\n'), &samples[count]);
    *ret = (struct metrics_text){samples, count};
}

/* --- asking ---------------------------------------------------------------------------------------- */

static bool holds(struct str labels, const char *label)
{
    size_t len = label ? strlen(label) : 0;
    for (size_t i = 0; label && i + len <= labels.len; i++)
        if (memcmp(labels.ptr + i, label, len) == 0)
            return true;
    return !label;
}

double metrics_sum(const struct metrics_text *m, const char *name, const char *label)
{
    double sum = 0;
    for (size_t i = 0; i < m->count; i++)
        if (str_is(m->samples[i].name, name) && holds(m->samples[i].labels, label))
            sum += m->samples[i].value;
    return sum;
}

struct buckets {
    double bounds[METRICS_BUCKETS_MAX], below[METRICS_BUCKETS_MAX];
    size_t count;
};

/* The bound of a sample's bucket; false: it has none. */
static bool bound_of(struct str labels, double *ret)
{
    for (size_t i = 0; i + 4 <= labels.len; i++)
        if (memcmp(labels.ptr + i, "le=\"", 4) == 0 && (i == 0 || labels.ptr[i - 1] == ',')) {
            struct str value = {labels.ptr + i + 4, labels.len - i - 4};
            value = str_cut(&value, '"');
            if (str_is(value, "+Inf")) {
                *ret = INFINITY;
                return true;
            }
            return read_value(value, ret);
        }
    return false;
}

/* Series with other labels are added up; their bounds are the same. */
static void add_buckets(struct buckets *b, const struct metrics_text *m, const char *name, const char *label,
                        double sign)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < m->count; i++) {
        const struct metric_sample *s = &m->samples[i];
        double bound;
        size_t at = 0;
        if (s->name.len != len + 7 || !str_starts(s->name, name) ||
            memcmp(s->name.ptr + len, "_bucket", 7) != 0 || !holds(s->labels, label) ||
            !bound_of(s->labels, &bound))
            continue;
        while (at < b->count && b->bounds[at] < bound)
            at++;
        if (at == b->count || b->bounds[at] > bound) {
            if (b->count == METRICS_BUCKETS_MAX)
                continue;
            for (size_t k = b->count++; k > at; k--) {
                b->bounds[k] = b->bounds[k - 1];
                b->below[k] = b->below[k - 1];
            }
            b->bounds[at] = bound;
            b->below[at] = 0;
        }
        b->below[at] += sign * s->value;
    }
}

bool metrics_quantile(const struct metrics_text *before, const struct metrics_text *now, const char *name,
                      const char *label, double quantile, double *ret_value)
{
    struct buckets b = {.count = 0};
    add_buckets(&b, now, name, label, 1);
    add_buckets(&b, before, name, label, -1);
    double all = b.count ? b.below[b.count - 1] : 0, wanted = quantile * all, low = 0, under = 0;
    if (all <= 0)
        return false;
    for (size_t i = 0; i < b.count; i++) {
        if (b.below[i] >= wanted && !isinf(b.bounds[i])) {
            double in = b.below[i] - under;
            *ret_value = low + (in > 0 ? (b.bounds[i] - low) * (wanted - under) / in : 0);
            return true;
        }
        if (!isinf(b.bounds[i]))
            low = b.bounds[i];
        under = b.below[i];
    }
    *ret_value = low; /* above the last bound: that much at least */
    return true;
}
