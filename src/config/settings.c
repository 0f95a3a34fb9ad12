#include "config/settings.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

#define INT(f, k, def, min, max, m)                                                                          \
    {.key = k,                                                                                               \
     .meaning = m,                                                                                           \
     .offset = offsetof(struct settings, f),                                                                 \
     .type = SETTING_INT,                                                                                    \
     .int_default = def,                                                                                     \
     .int_min = min,                                                                                         \
     .int_max = max},
#define REAL(f, k, def, min, max, m)                                                                         \
    {.key = k,                                                                                               \
     .meaning = m,                                                                                           \
     .offset = offsetof(struct settings, f),                                                                 \
     .type = SETTING_REAL,                                                                                   \
     .real_default = def,                                                                                    \
     .real_min = min,                                                                                        \
     .real_max = max},
#define TEXT(f, k, form_name, def, m)                                                                        \
    {.key = k,                                                                                               \
     .meaning = m,                                                                                           \
     .offset = offsetof(struct settings, f),                                                                 \
     .type = SETTING_TEXT,                                                                                   \
     .form = FORM_##form_name,                                                                               \
     .text_default = def},
#define SECRET(f, k, form_name, m)                                                                           \
    {.key = k,                                                                                               \
     .meaning = m,                                                                                           \
     .offset = offsetof(struct settings, f),                                                                 \
     .type = SETTING_TEXT,                                                                                   \
     .form = FORM_##form_name,                                                                               \
     .secret = true},                                                                                        \
        {.key = k "_file",                                                                                   \
         .meaning = "file that holds " k " (at most 4096 bytes), mode 0600 or less",                         \
         .offset = offsetof(struct settings, f##_file),                                                      \
         .type = SETTING_TEXT,                                                                               \
         .form = FORM_ANY},
const struct setting settings_table[SETTING_COUNT] = {SETTINGS_LIST(INT, REAL, TEXT, SECRET)};
#undef INT
#undef REAL
#undef TEXT
#undef SECRET

/* The offsets come from the list itself, so type and place always agree. */
int64_t *setting_int(struct settings *s, const struct setting *d)
{
    MUST(d->type == SETTING_INT);
    return (int64_t *)((char *)s + d->offset);
}

double *setting_real(struct settings *s, const struct setting *d)
{
    MUST(d->type == SETTING_REAL);
    return (double *)((char *)s + d->offset);
}

const char **setting_text(struct settings *s, const struct setting *d)
{
    MUST(d->type == SETTING_TEXT);
    return (const char **)((char *)s + d->offset);
}

bool setting_is_secret(const struct setting *d)
{
    return d->secret;
}

bool setting_is_list(const struct setting *d)
{
    return d->type == SETTING_TEXT && setting_form_is_list(d->form);
}

static void set_default(struct settings *s, const struct setting *d)
{
    switch (d->type) {
    case SETTING_INT:
        *setting_int(s, d) = d->int_default;
        break;
    case SETTING_REAL:
        *setting_real(s, d) = d->real_default;
        break;
    case SETTING_TEXT:
        *setting_text(s, d) = d->text_default ? must_strdup(d->text_default) : NULL;
        break;
    }
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    for (size_t i = 0; i < SETTING_COUNT; i++)
        set_default(s, &settings_table[i]);
}

static void text_free(const struct setting *d, const char **text)
{
    char *own = (char *)(uintptr_t)*text; /* const for readers; allocated by us */
    if (own && (d->secret || d->form == FORM_STORE))
        explicit_bzero(own, strlen(own));
    free(own);
    *text = NULL;
}

void settings_free(struct settings *s)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings_table[i].type == SETTING_TEXT)
            text_free(&settings_table[i], setting_text(s, &settings_table[i]));
}

/* Quoted for a message: short, one line, nothing a terminal would act upon. */
static const char *quoted(struct str value, char *out, size_t size)
{
    enum { SHOWN_MAX = 60 };
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < value.len && i < SHOWN_MAX && n + 8 < size; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        out[n++] = c < 0x20 || c == 0x7f || c == '"' ? '?' : (char)c;
    }
    snprintf(out + n, size - n, "%s\"", value.len > SHOWN_MAX ? "..." : "");
    return out;
}

/* A store URL that is none may still be one with a slip in it. */
static bool may_hold_password(const struct setting *d, struct str value)
{
    return d->type == SETTING_TEXT && d->form == FORM_STORE &&
           (memchr(value.ptr, '@', value.len) || memchr(value.ptr, '=', value.len));
}

bool settings_value_is_secret(struct str key, struct str value)
{
    const struct setting *d = setting_find(key);
    return !d || setting_is_secret(d) || may_hold_password(d, value);
}

static enum err_code refuse(const struct setting *d, struct str value, const char *where, struct err *err)
{
    char shown[80];
    bool hidden = setting_is_secret(d) || may_hold_password(d, value);
    const char *got = hidden ? "another value" : quoted(value, shown, sizeof shown);
    switch (d->type) {
    case SETTING_INT:
        return err_set(err, ERR_CONFIG_INVALID,
                       "%s%s must be an integer from %" PRId64 " to %" PRId64 ", got %s", where, d->key,
                       d->int_min, d->int_max, got);
    case SETTING_REAL:
        return err_set(err, ERR_CONFIG_INVALID, "%s%s must be a number from %g to %g, got %s", where, d->key,
                       d->real_min, d->real_max, got);
    case SETTING_TEXT:
        break;
    }
    return err_set(err, ERR_CONFIG_INVALID, "%s%s must be %s, got %s", where, d->key,
                   setting_form_text(d->form), got);
}

/* Plain decimal notation only: strtod alone would also take hex, "inf" and "nan". */
static bool real_parse(struct str value, double min, double max, double *ret_value)
{
    char text[64];
    if (!value.len || value.len >= sizeof text)
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = 0;
    if (strspn(text, "0123456789.eE+-") < value.len)
        return false;
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= min && v <= max))
        return false;
    *ret_value = v;
    return true;
}

static bool text_fits(const struct setting *d, struct str value)
{
    if (value.len > SETTING_TEXT_MAX || !str_is_utf8(value))
        return false;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
            return false;
    if (!value.len)
        return d->text_default == NULL; /* empty takes the value away where there may be none */
    return setting_form_fits(d->form, value);
}

/* Lists are kept without the spaces around their items, so readers only cut at commas. */
static void text_store(struct settings *s, const struct setting *d, struct str value)
{
    struct strbuf text = {0};
    if (setting_is_list(d)) {
        while (value.len) {
            if (text.len)
                strbuf_add_char(&text, ',');
            strbuf_add_str(&text, str_trim(str_cut(&value, ',')));
        }
    } else if (value.len) {
        strbuf_add_str(&text, value);
    }
    text_free(d, setting_text(s, d));
    *setting_text(s, d) = text.ptr; /* NULL for an empty value: unset */
}

void setting_keep_text(struct settings *s, const struct setting *d, struct str value)
{
    struct strbuf text = {0};
    if (value.ptr)
        strbuf_add_str(&text, value);
    text_free(d, setting_text(s, d));
    *setting_text(s, d) = text.ptr;
}

enum err_code setting_assign(struct settings *s, const struct setting *d, struct str value,
                             enum settings_origin origin, const char *where, struct err *err)
{
    enum settings_origin *held = &s->origin[d - settings_table];
    bool weaker = origin < *held; /* still checked: a fault in the file is never silent */
    int64_t whole = 0;
    double real = 0;
    bool fits = false;
    switch (d->type) {
    case SETTING_INT:
        fits = str_to_int(value, d->int_min, d->int_max, &whole);
        if (fits && !weaker)
            *setting_int(s, d) = whole;
        break;
    case SETTING_REAL:
        fits = real_parse(value, d->real_min, d->real_max, &real);
        if (fits && !weaker)
            *setting_real(s, d) = real;
        break;
    case SETTING_TEXT:
        fits = text_fits(d, value);
        if (fits && !weaker)
            text_store(s, d, value);
        break;
    }
    if (!fits)
        return refuse(d, value, where, err);
    if (!weaker)
        *held = origin;
    return ERR_OK;
}

enum err_code settings_set(struct settings *s, const char *key, const char *value,
                           enum settings_origin origin, struct err *err)
{
    const struct setting *d = setting_find(str_of(key));
    if (!d)
        return setting_unknown(str_of(key), "", err);
    return setting_assign(s, d, str_of(value), origin, "", err);
}
