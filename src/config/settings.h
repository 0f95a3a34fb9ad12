/* config/settings.h - every setting there is, in one list: key, type, default, bounds, meaning.
 *
 * Sources, strongest first: flags (--set KEY=VALUE, --listen, --data, --store), environment
 * (WEIR_SERVER_LISTEN for server.listen), YAML file (--config), default. An unknown key or a bad
 * value is one clear line naming the key; nothing starts.
 * To add a setting: one line in SETTINGS_LIST (settings_list.h); struct settings, parsing, `weir config
 * show`, docs/settings.md and the environment name all come from it. */
#ifndef WEIR_CONFIG_SETTINGS_H
#define WEIR_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "config/settings_list.h"

#define INT(field, ...)    SETTING_##field,
#define REAL(field, ...)   SETTING_##field,
#define TEXT(field, ...)   SETTING_##field,
#define SECRET(field, ...) SETTING_##field, SETTING_##field##_file,
enum setting_id { SETTINGS_LIST(INT, REAL, TEXT, SECRET) SETTING_COUNT };
#undef INT
#undef REAL
#undef TEXT
#undef SECRET

/* Where a value came from; a stronger origin is never overwritten by a weaker one. The last two are for
 * secrets that nothing else has set. */
enum settings_origin {
    ORIGIN_DEFAULT,
    ORIGIN_FILE,
    ORIGIN_ENVIRONMENT,
    ORIGIN_FLAG,
    ORIGIN_CREDENTIAL,
    ORIGIN_SECRET_FILE
};

struct settings {
    enum settings_origin origin[SETTING_COUNT];
#define INT(field, key, def, min, max, meaning)  int64_t field;
#define REAL(field, key, def, min, max, meaning) double field;
#define TEXT(field, key, form, def, meaning)     const char *field;
#define SECRET(field, key, form, meaning)        const char *field, *field##_file;
    SETTINGS_LIST(INT, REAL, TEXT, SECRET)
#undef INT
#undef REAL
#undef TEXT
#undef SECRET
};

/* All defaults. Texts are owned by the settings and freed by settings_free, secrets overwritten by it. */
void settings_init(struct settings *s);
void settings_free(struct settings *s);

/* Sets one key from text. ERR_CONFIG_INVALID with one clear line naming the key on any fault. A bad
 * value is refused even when a stronger origin has set the key already. */
MUST_CHECK enum err_code settings_set(struct settings *s, const char *key, const char *value,
                                      enum settings_origin origin, struct err *err);
/* YAML; `server: {listen: ..}` and `server.listen: ..` mean the same. Faults name file and line. */
MUST_CHECK enum err_code settings_load_file(struct settings *s, const char *path, struct err *err);
/* The same for bytes in memory; `name` stands for the file in messages. */
MUST_CHECK enum err_code settings_load_text(struct settings *s, const char *name, struct str text,
                                            struct err *err);
/* Reads WEIR_* for every key; variables that are no key are passed over. */
MUST_CHECK enum err_code settings_load_environment(struct settings *s, char **environ_list, struct err *err);
/* One line for each WEIR_ variable that is no key, with the one that was probably meant. Not told: those of
 * the command line (WEIR_URL, WEIR_API_KEY, ...), and what Kubernetes injects for services called weir or
 * weir-NAME. */
void settings_warn_of_variables(char **environ_list, FILE *out);
/* Secrets that are not given as values, after every other source: KEY_file, the file `KEY` in
 * `credentials_dir` (systemd's; may be NULL), and PGPASSWORD for store.password. ERR_CONFIG_INVALID when a
 * key and its file are both given, or when the file cannot be read, is empty or is too long. */
MUST_CHECK enum err_code settings_load_secrets(struct settings *s, const char *credentials_dir,
                                               struct err *err);
/* After every source: keys that nothing has set get the default of this environment. */
void settings_complete(struct settings *s);
/* Rules that bind several keys (heartbeat below lease, backoff base below its cap, ...). */
MUST_CHECK enum err_code settings_check(const struct settings *s, struct err *err);
/* Advice that does not stop the start, one line each (AJ-06, prod without operator token, ...). */
void settings_warn(const struct settings *s, FILE *out);
/* key, value and origin of every setting as aligned table or JSON; secrets are shown as "(set)", the
 * password of a store URL as "***". */
void settings_show(const struct settings *s, bool json, bool origin, FILE *out);
void settings_markdown(FILE *out); /* docs/settings.md, whole */

/* May this value of the key be shown to other users of the machine? Not a secret's, not a store URL with a
 * password in it, and not that of a key that does not exist. */
bool settings_value_is_secret(struct str key, struct str value);

/* From the process that reads the settings to root and core; the descriptors are files in memory. The public
 * part has every setting, but no secret, and "***" for the password of store.url. The secret part has what
 * core needs and nothing else. */
MUST_CHECK enum err_code settings_hand_over(const struct settings *s, int public_fd, int secret_fd,
                                            struct err *err);
MUST_CHECK enum err_code settings_take_public(struct settings *ret_settings, int fd, struct err *err);
MUST_CHECK enum err_code settings_take_secrets(struct settings *s, int fd, struct err *err);
/* Overwrites the values of every variable that holds a secret, in their place: a process title needs the
 * environment whole (runtime/process_title.h). Then, so that libpq sees none, takes the variables away. */
void settings_overwrite_environment(void);
void settings_forget_environment(void);

/* Values derived from the settings, for several callers. */
enum { SETTINGS_HOST_MAX = 254 };
/* server.listen in parts; brackets of an IPv6 address are taken off; port 0 = any free one. False: off. */
bool settings_listen_parts(const struct settings *s, char *ret_host, size_t host_size, uint16_t *ret_port);
/* The same of server.tls_listen; false when it is not set. */
bool settings_tls_listen_parts(const struct settings *s, char *ret_host, size_t host_size,
                               uint16_t *ret_port);
enum { SETTINGS_STORE_URL_MAX = 4 * 4096 + 64 };
/* store.url with store.password in it, or sqlite:DATA/weir.db. */
MUST_CHECK enum err_code settings_store_url(const struct settings *s, char *ret_url, size_t url_size,
                                            struct err *err);
/* The SQLite file of it; ERR_CONFIG_INVALID when the store is another. */
MUST_CHECK enum err_code settings_store_path(const struct settings *s, char *ret_path, size_t path_size,
                                             struct err *err);
bool settings_store_is_postgres(const struct settings *s);
enum { SETTINGS_ISSUER_MAX = 257 };
/* tokens.issuer, or weir-ENVIRONMENT. */
void settings_tokens_issuer(const struct settings *s, char ret_issuer[SETTINGS_ISSUER_MAX]);
bool settings_is_on(const char *value); /* of a SWITCH */
/* The part of `whole` (jobs.max_active, jobs.queue_size) that one client may have; at least 1. */
int64_t settings_share_of_client(const struct settings *s, int64_t whole);
/* The longest run a job may ask for, of the catalog or of its own kind. */
int64_t settings_runtime_max_ms(const struct settings *s, bool is_catalog);
/* clients.registration; unset: open in dev. */
bool settings_registration_is_open(const struct settings *s);
bool settings_webhooks_private(const struct settings *s); /* webhooks.allow_private; unset: dev */
int64_t settings_http_threads(const struct settings *s);  /* server.threads, or the online CPUs */
enum log_level settings_log_level(const struct settings *s);
enum log_format settings_log_format(const struct settings *s);

#endif
