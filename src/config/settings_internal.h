/* config/settings_internal.h - SETTINGS_LIST as a table, and the forms a text value may have.
 *
 * Only for files of this folder. To add a form: one line in SETTING_FORMS and its check in
 * settings_forms.c. */
#ifndef WEIR_CONFIG_SETTINGS_INTERNAL_H
#define WEIR_CONFIG_SETTINGS_INTERNAL_H

#include "base/store_url.h"
#include "config/settings.h"

/* X(name, is a comma list, what a value must be; completes "KEY must be ...") */
#define SETTING_FORMS(X)                                                                                     \
    X(ANY, false, "a text of at most 4096 bytes without control characters")                                 \
    X(WORD, false, "a text of at most 4096 bytes without spaces or control characters")                      \
    X(NAME, false, "a name of at most 256 bytes without spaces, commas or control characters")               \
    X(NAMES, true, "at most 32 names, each of at most 256 bytes, with commas between")                       \
    X(AGENTS, true, "at most 32 of ROLE or ROLE=SECONDS, 1 to 14400, with commas between")                   \
    X(ENVIRONMENT, false, "dev, stage or prod")                                                              \
    X(BOOLEAN, false, "true or false")                                                                       \
    X(SWITCH, false, "on or off")                                                                            \
    X(REGISTRATION, false, "open or operator")                                                               \
    X(SANDBOX, false, "enforce, log or off")                                                                 \
    X(FALLBACK, false, "deny, allow_with_flag or builtin")                                                   \
    X(SIGNALS, true, "signal types such as UPDATE_PARAMS or EMERGENCY_STOP, several with commas between")    \
    X(URL, false,                                                                                            \
      "an http or https URL without user name or fragment, such as http://127.0.0.1:8181/v1/data/a")         \
    X(LEVEL, false, "debug, info, warn or error")                                                            \
    X(LOG_FORMAT, false, "auto, text or json")                                                               \
    X(LISTEN, false, "HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or localhost:0")                          \
    X(LISTEN_OR_OFF, false, "HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or localhost:0; or off")           \
    X(PATH, false, "the path of a file")                                                                     \
    X(STORE, false, STORE_URL_FORM)                                                                          \
    X(TYPES, true, "a comma list out of EXECUTE, DEFERRED and EMIT_EVENT")                                   \
    X(OVERRIDES, true, "CLIENT_ID=REQUESTS_PER_MINUTE, several with commas between")                         \
    X(CIDRS, true, "addresses such as 10.0.0.0/8 or fd00::/8, several with commas between")

#define X(name, list, must_be) FORM_##name,
enum setting_form { SETTING_FORMS(X) FORM_COUNT };
#undef X

enum setting_type { SETTING_INT, SETTING_REAL, SETTING_TEXT };

struct setting {
    const char *key, *meaning;
    size_t offset; /* in struct settings */
    enum setting_type type;
    enum setting_form form; /* SETTING_TEXT only */
    int64_t int_default, int_min, int_max;
    double real_default, real_min, real_max;
    const char *text_default;
    bool secret; /* never shown; the setting behind it in the table is its KEY_file */
};

extern const struct setting settings_table[SETTING_COUNT];

enum { SETTING_TEXT_MAX = 4096, SETTING_ENV_NAME_MAX = 80 };
#define SETTING_POSTGRES_VARIABLE "PGPASSWORD" /* libpq's own */

int64_t *setting_int(struct settings *s, const struct setting *d);
double *setting_real(struct settings *s, const struct setting *d);
const char **setting_text(struct settings *s, const struct setting *d);

/* NULL when no key has this name. */
const struct setting *setting_find(struct str key);
/* The key that was probably meant, or NULL. */
const struct setting *setting_nearest(struct str key);
/* Some key starts with `section` and a dot. */
bool setting_is_section(struct str section);
/* "WEIR_SERVER_LISTEN" */
void setting_env_name(const struct setting *d, char out[SETTING_ENV_NAME_MAX]);
bool setting_is_secret(const struct setting *d);
bool setting_is_list(const struct setting *d);
const char *setting_origin_name(const struct settings *s, const struct setting *d); /* "environment" */
/* A text as it is, checked by another process of this program; absent: unset. */
void setting_keep_text(struct settings *s, const struct setting *d, struct str value);
void settings_warn_of_open_files(const struct settings *s, FILE *out);

/* Sets one known key; `where` (may be empty) opens the message, such as "weir.yaml:12: ". */
enum err_code setting_assign(struct settings *s, const struct setting *d, struct str value,
                             enum settings_origin origin, const char *where, struct err *err);
enum err_code setting_unknown(struct str key, const char *where, struct err *err);

bool setting_form_fits(enum setting_form form, struct str value);
const char *setting_form_text(enum setting_form form); /* completes "must be" */
bool setting_form_is_list(enum setting_form form);
bool listen_parse(struct str text, char *ret_host, size_t host_size, uint16_t *ret_port);

#endif
