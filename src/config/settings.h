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

#define INT(field, ...)  SETTING_##field,
#define REAL(field, ...) SETTING_##field,
#define TEXT(field, ...) SETTING_##field,
enum setting_id { SETTINGS_LIST(INT, REAL, TEXT) SETTING_COUNT };
#undef INT
#undef REAL
#undef TEXT

/* Where a value came from; a stronger origin is never overwritten by a weaker one. */
enum settings_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

struct settings {
    enum settings_origin origin[SETTING_COUNT];
#define INT(field, key, def, min, max, meaning)  int64_t field;
#define REAL(field, key, def, min, max, meaning) double field;
#define TEXT(field, key, form, def, meaning)     const char *field;
    SETTINGS_LIST(INT, REAL, TEXT)
#undef INT
#undef REAL
#undef TEXT
};

/* All defaults. Texts are owned by the settings and freed by settings_free. */
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
/* Reads WEIR_* for every key; an unknown WEIR_ variable is refused. Known beside the keys: WEIR_URL,
 * WEIR_API_KEY and WEIR_TOKEN of the command line, and what a cluster injects for a service named weir. */
MUST_CHECK enum err_code settings_load_environment(struct settings *s, char **environ_list, struct err *err);
/* Rules that bind several keys (heartbeat below lease, backoff base below its cap, ...). */
MUST_CHECK enum err_code settings_check(const struct settings *s, struct err *err);
/* Advice that does not stop the start, one line each (AJ-06, prod without operator token, ...). */
void settings_warn(const struct settings *s, FILE *out);
/* key, value and origin of every setting as aligned table or JSON; secrets are shown as "(set)", the
 * password of a store URL as "***". */
void settings_show(const struct settings *s, bool json, bool origin, FILE *out);
void settings_markdown(FILE *out); /* docs/settings.md, whole */

/* What several callers would otherwise each work out from the values. */
enum { SETTINGS_HOST_MAX = 254 };
/* server.listen in parts; brackets of an IPv6 address are taken off; port 0 = any free one. */
bool settings_listen_parts(const struct settings *s, char *ret_host, size_t host_size, uint16_t *ret_port);
enum { SETTINGS_STORE_URL_MAX = 4096 + 32 };
/* store.url, or sqlite:DATA/weir.db. */
MUST_CHECK enum err_code settings_store_url(const struct settings *s, char *ret_url, size_t url_size,
                                            struct err *err);
/* The SQLite file of it; ERR_CONFIG_INVALID when the store is another. */
MUST_CHECK enum err_code settings_store_path(const struct settings *s, char *ret_path, size_t path_size,
                                             struct err *err);
bool settings_store_is_postgres(const struct settings *s);
enum { SETTINGS_ISSUER_MAX = 257 };
/* tokens.issuer, or weir-ENVIRONMENT. */
void settings_tokens_issuer(const struct settings *s, char ret_issuer[SETTINGS_ISSUER_MAX]);
bool settings_is_on(const char *value);                   /* of a SWITCH */
bool settings_webhooks_private(const struct settings *s); /* webhooks.allow_private; unset: dev */
int64_t settings_http_threads(const struct settings *s);  /* server.threads, or the online CPUs */
enum log_level settings_log_level(const struct settings *s);

#endif
