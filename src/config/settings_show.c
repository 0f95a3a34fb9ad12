/* Settings for people: `weir config show` and docs/settings.md. */
#include <inttypes.h>

#include "base/json.h"
#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

static const char *const origin_names[] = {
    [ORIGIN_DEFAULT] = "default",         [ORIGIN_FILE] = "file",
    [ORIGIN_ENVIRONMENT] = "environment", [ORIGIN_FLAG] = "flag",
    [ORIGIN_CREDENTIAL] = "credential",   [ORIGIN_SECRET_FILE] = "secret file",
};

const char *setting_origin_name(const struct settings *s, const struct setting *d)
{
    return origin_names[s->origin[d - settings_table]];
}

/* Reading through the accessors of the owner; nothing is changed. */
static struct settings *unconst(const struct settings *s)
{
    return (struct settings *)(uintptr_t)s;
}

/* NULL: unset. The buffer is for what has to be made up. */
static const char *shown_text(const struct settings *s, const struct setting *d, struct strbuf *buffer)
{
    const char *text = *setting_text(unconst(s), d);
    if (!text || d->form != FORM_STORE)
        return text && setting_is_secret(d) ? "(set)" : text;
    strbuf_clear(buffer);
    store_url_show(str_of(text), buffer);
    return buffer->ptr;
}

static void show_table_row(const struct settings *s, const struct setting *d, bool origin, FILE *out)
{
    char value[SETTING_TEXT_MAX + 1] = "";
    struct strbuf buffer CLEANUP(strbuf_free) = {0};
    const char *text;
    switch (d->type) {
    case SETTING_INT:
        snprintf(value, sizeof value, "%" PRId64, *setting_int(unconst(s), d));
        break;
    case SETTING_REAL:
        snprintf(value, sizeof value, "%g", *setting_real(unconst(s), d));
        break;
    case SETTING_TEXT:
        text = shown_text(s, d, &buffer);
        snprintf(value, sizeof value, "%s", text ? text : "(unset)");
        break;
    }
    if (origin)
        fprintf(out, "%-32s %-28s %s\n", d->key, value, setting_origin_name(s, d));
    else
        fprintf(out, "%-32s %s\n", d->key, value);
}

static void show_json_value(const struct settings *s, const struct setting *d, struct json_writer *w)
{
    struct strbuf buffer CLEANUP(strbuf_free) = {0};
    switch (d->type) {
    case SETTING_INT:
        jw_int(w, *setting_int(unconst(s), d));
        break;
    case SETTING_REAL:
        jw_double(w, *setting_real(unconst(s), d));
        break;
    case SETTING_TEXT:
        jw_text(w, shown_text(s, d, &buffer));
        break;
    }
}

static void show_json(const struct settings *s, bool origin, FILE *out)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        jw_key(&w, d->key);
        if (!origin) {
            show_json_value(s, d, &w);
            continue;
        }
        jw_object(&w);
        jw_key(&w, "value");
        show_json_value(s, d, &w);
        jw_key(&w, "origin");
        jw_text(&w, setting_origin_name(s, d));
        jw_object_end(&w);
    }
    jw_object_end(&w);
    fprintf(out, "%.*s\n", STR_ARG(strbuf_str(&text)));
}

void settings_show(const struct settings *s, bool json, bool origin, FILE *out)
{
    if (json) {
        show_json(s, origin, out);
        return;
    }
    for (size_t i = 0; i < SETTING_COUNT; i++)
        show_table_row(s, &settings_table[i], origin, out);
}

/* " in dev, else 600": where stage and prod have another one. */
static void markdown_other_default(const struct setting *d, FILE *out)
{
#define X(field, value)                                                                                      \
    if (d == &settings_table[SETTING_##field])                                                               \
        fprintf(out, " in dev, else %d", value);
    SETTINGS_OUTSIDE_DEV(X)
#undef X
}

static void markdown_row(const struct setting *d, FILE *out)
{
    char env_name[SETTING_ENV_NAME_MAX];
    setting_env_name(d, env_name);
    fprintf(out, "| `%s` | ", d->key);
    switch (d->type) {
    case SETTING_INT:
        fprintf(out, "%" PRId64, d->int_default);
        markdown_other_default(d, out);
        fprintf(out, " | integer, %" PRId64 " to %" PRId64, d->int_min, d->int_max);
        break;
    case SETTING_REAL:
        fprintf(out, "%g | number, %g to %g", d->real_default, d->real_min, d->real_max);
        break;
    case SETTING_TEXT:
        if (d->text_default)
            fprintf(out, "`%s`", d->text_default);
        else
            fputs("unset", out);
        fprintf(out, " | %s", setting_form_text(d->form));
        break;
    }
    fprintf(out, " | %s | `%s` |\n", d->meaning, env_name);
}

void settings_markdown(FILE *out)
{
    fputs("# Settings\n\n"
          "Written by `weir config markdown` from the list in `src/config/settings.h`; do not "
          "edit.\n\n"
          "Strongest first: flags (`--set KEY=VALUE`, `--listen`, `--data`, `--store`), "
          "environment,\n"
          "the YAML file named by `--config`, default. In the file `server: {listen: ...}` and\n"
          "`server.listen: ...` mean the same, and keys that take a comma list also take a YAML "
          "list.\n"
          "An unknown key or a bad value is one line on stderr that names it, and exit 2.\n\n"
          "A secret may stand in a file of its own instead (`KEY_file`), or be a credential of systemd named "
          "as\n"
          "its key ([operations/secrets.md](operations/secrets.md)).\n\n"
          "| key | default | values | meaning | environment |\n"
          "|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        markdown_row(&settings_table[i], out);
}
