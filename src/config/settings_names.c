/* Finding a key by its name, by its environment name, and guessing which one was meant. */
#include <stdlib.h>

#include "config/settings_internal.h"

#include "base/banned.h"

const struct setting *setting_find(struct str key)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (str_is(key, settings_table[i].key))
            return &settings_table[i];
    return NULL;
}

bool setting_is_section(struct str section)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        struct str key = str_of(settings_table[i].key);
        if (key.len > section.len && key.ptr[section.len] == '.' &&
            memcmp(key.ptr, section.ptr, section.len) == 0)
            return true;
    }
    return false;
}

void setting_env_name(const struct setting *d, char out[SETTING_ENV_NAME_MAX])
{
    snprintf(out, SETTING_ENV_NAME_MAX, "WEIR_%s", d->key);
    for (char *c = out; *c; c++) {
        if (*c == '.')
            *c = '_';
        else if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 32);
    }
}

enum { NEAREST_KEY_MAX = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein: how many letters must be put in, taken out or changed. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t row[NEAREST_KEY_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            row[j] = smaller(change, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.len];
}

/* "retry_max" for "jobs.retry_max": the section was forgotten. */
static bool is_last_part(const char *key, struct str part)
{
    const char *dot = strrchr(key, '.');
    return dot && str_is(part, dot + 1);
}

const struct setting *setting_nearest(struct str key)
{
    const struct setting *best = NULL;
    size_t best_distance = key.len / 3 + 2; /* further away is no help */
    if (!key.len || key.len > NEAREST_KEY_MAX)
        return NULL;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        if (is_last_part(d->key, key))
            return d;
        size_t distance = edit_distance(key, str_of(d->key));
        if (distance < best_distance) {
            best_distance = distance;
            best = d;
        }
    }
    return best;
}

enum err_code setting_unknown(struct str key, const char *where, struct err *err)
{
    enum { SHOWN_MAX = 60 };
    const struct setting *near = setting_nearest(key);
    char shown[SHOWN_MAX + 1] = "";
    for (size_t i = 0; i < key.len && i < SHOWN_MAX; i++)
        shown[i] = (unsigned char)key.ptr[i] < 0x20 || key.ptr[i] == 0x7f ? '?' : key.ptr[i];
    return err_set(err, ERR_CONFIG_INVALID, "%sunknown key \"%s\"%s%s%s", where, shown,
                   near ? "; did you mean " : "", near ? near->key : "", near ? "?" : "");
}
