#include "cli/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json_members.h"
#include "base/must.h"
#include "cli/table.h"

#include "base/banned.h"

struct finding finding(enum finding_level level, const char *advice, const char *fmt, ...)
{
    struct finding f = {.level = level, .advice = advice};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f.found, sizeof f.found, fmt, ap);
    va_end(ap);
    if (level == FINDING_OK)
        f.advice = "";
    return f;
}

struct finding doctor_config(const struct doctor *d)
{
    char *text = NULL;
    size_t len = 0;
    if (d->settings_err.code != ERR_OK)
        return finding(FINDING_FAIL, "fix it; the other checks use the defaults", "%s",
                       d->settings_err.detail);
    FILE *out = open_memstream(&text, &len);
    MUST(out);
    settings_warn_of_variables(environ, out);
    settings_warn(&d->settings, out);
    fclose(out);
    struct str rest = {text, len};
    struct str first = str_cut(&rest, '\n');
    struct finding f = first.len
                           ? finding(FINDING_WARN, "see `weir config show --origin`", "%.*s", STR_ARG(first))
                           : finding(FINDING_OK, "", "valid, environment %s", d->settings.environment);
    free(text);
    return f;
}

static const struct {
    const char *name;
    struct finding (*look)(const struct doctor *d);
} checks[] = {
#define X(function, name) {name, doctor_##function},
    DOCTOR_CHECKS(X)
#undef X
};

static const char *const level_names[] = {
    [FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "FAIL"};
static const enum tone level_tones[] = {
    [FINDING_OK] = TONE_GOOD, [FINDING_WARN] = TONE_BUSY, [FINDING_FAIL] = TONE_BAD};

static void show_table(const struct finding *found)
{
    static const char *const headings[] = {"CHECK", "RESULT", "FOUND"};
    struct text_table *t = text_table_new(headings, 3);
    for (size_t i = 0; i < LENGTH_OF(checks); i++) {
        if (!*found[i].found)
            continue;
        text_table_add(t, str_of(checks[i].name));
        text_table_add_tone(t, str_of(level_names[found[i].level]), level_tones[found[i].level]);
        text_table_add(t, str_of(found[i].found));
        if (!*found[i].advice)
            continue;
        text_table_add(t, STR(""));
        text_table_add(t, STR(""));
        text_table_addf(t, "-> %s", found[i].advice);
    }
    text_table_print(t, stdout, 0, terminal_colour(stdout)); /* advice is not to be cut */
    text_table_free(t);
}

static void show_json(const struct finding *found)
{
    static const char *const names[] = {
        [FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    jw_key(&w, "checks");
    jw_array(&w);
    for (size_t i = 0; i < LENGTH_OF(checks); i++) {
        if (!*found[i].found)
            continue;
        jw_object(&w);
        encode_text(&w, "check", checks[i].name);
        encode_text(&w, "result", names[found[i].level]);
        encode_text(&w, "found", found[i].found);
        encode_text(&w, "advice", *found[i].advice ? found[i].advice : NULL);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

static void look_at_store(struct doctor *d)
{
    struct err err;
    d->on_postgres = settings_store_is_postgres(&d->settings);
    if (settings_store_url(&d->settings, d->store_url, sizeof d->store_url, &err) != ERR_OK)
        d->store_url[0] = 0;
    if (d->on_postgres) {
        struct postgres_options o = {.url = d->store_url, .timeout_ms = d->settings.store_timeout_ms};
        d->look_err.code = postgres_look(&o, &d->look, &d->look_err);
    } else if (settings_store_path(&d->settings, d->store_path, sizeof d->store_path, &err) != ERR_OK) {
        d->store_path[0] = 0;
    }
}

static void doctor_prepare(struct doctor *d, const struct invocation *in)
{
    struct err err;
    d->in = in;
    d->settings_err.code = cli_settings_load(in, &d->settings, &d->settings_err);
    if (d->settings_err.code != ERR_OK) {
        settings_free(&d->settings);
        settings_init(&d->settings);
        const char *data = in->flags->value[FLAG_DATA];
        if (data)
            (void)!settings_set(&d->settings, "data", data, ORIGIN_FLAG, &err);
    }
    look_at_store(d);
    snprintf(d->lock_path, sizeof d->lock_path, "%s/weir.lock", d->settings.data_dir);
}

int command_doctor(const struct invocation *in)
{
    struct doctor d = {0};
    struct finding found[LENGTH_OF(checks)];
    bool failed = false;
    doctor_prepare(&d, in);
    for (size_t i = 0; i < LENGTH_OF(checks); i++) {
        found[i] = checks[i].look(&d);
        failed = failed || found[i].level == FINDING_FAIL;
    }
    if (in->json)
        show_json(found);
    else
        show_table(found);
    settings_free(&d.settings);
    return failed ? CLI_FAILED : CLI_OK;
}
