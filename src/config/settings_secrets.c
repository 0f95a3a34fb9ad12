/* Secrets that do not stand in an argument, a variable or the settings file: in a file of their own, or in
 * the directory of credentials that systemd makes for a service. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

enum { SECRET_BYTES_MAX = SETTING_TEXT_MAX + 2 }; /* and an end of line */

static void fd_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* `where` opens the messages. */
static enum err_code read_secret(const char *path, const char *where, char ret_value[SECRET_BYTES_MAX + 1],
                                 struct err *err)
{
    int fd CLEANUP(fd_close) = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && len < SECRET_BYTES_MAX + 1) {
        n = read(fd, ret_value + len, SECRET_BYTES_MAX + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return err_set(err, ERR_CONFIG_INVALID, "%s%.160s: %s", where, path, strerror(errno));
    if (len > SECRET_BYTES_MAX || memchr(ret_value, 0, len))
        return err_set(err, ERR_CONFIG_INVALID, "%s%.160s must hold one line of at most %d bytes", where,
                       path, SETTING_TEXT_MAX);
    while (len && is_line_end(ret_value[len - 1]))
        len--;
    ret_value[len] = 0;
    if (!len)
        return err_set(err, ERR_CONFIG_INVALID, "%s%.160s is empty", where, path);
    return ERR_OK;
}

static enum err_code take_file(struct settings *s, const struct setting *d, const char *path,
                               enum settings_origin origin, struct err *err)
{
    char value[SECRET_BYTES_MAX + 1], where[SETTING_ENV_NAME_MAX + 16];
    snprintf(where, sizeof where, "%s%s: ", d->key, origin == ORIGIN_CREDENTIAL ? " (credential)" : "_file");
    enum err_code code = read_secret(path, where, value, err);
    if (code == ERR_OK)
        code = setting_assign(s, d, str_of(value), origin, where, err);
    explicit_bzero(value, sizeof value);
    return code;
}

static enum err_code take_credential(struct settings *s, const struct setting *d, const char *dir,
                                     struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, d->key);
    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0)
        return ERR_OK;
    return take_file(s, d, path, ORIGIN_CREDENTIAL, err);
}

static enum err_code take_secret(struct settings *s, const struct setting *d, const char *credentials_dir,
                                 struct err *err)
{
    const char *file = *setting_text(s, d + 1);
    if (*setting_text(s, d)) {
        if (file)
            return err_set(err, ERR_CONFIG_INVALID, "%s (%s) and %s_file (%s) are both set: keep one", d->key,
                           setting_origin_name(s, d), d->key, setting_origin_name(s, d + 1));
        return ERR_OK;
    }
    if (file)
        return take_file(s, d, file, ORIGIN_SECRET_FILE, err);
    bool untouched = s->origin[d - settings_table] == ORIGIN_DEFAULT; /* not emptied on purpose */
    return untouched && credentials_dir && *credentials_dir ? take_credential(s, d, credentials_dir, err)
                                                            : ERR_OK;
}

/* libpq would read it in core; taken here it is handed to core as any other secret is. */
static enum err_code take_postgres_variable(struct settings *s, struct err *err)
{
    const char *value = getenv(SETTING_POSTGRES_VARIABLE);
    if (!value || !*value || s->store_password || !settings_store_is_postgres(s) ||
        store_url_has_password(str_of(s->store_url)))
        return ERR_OK;
    return setting_assign(s, &settings_table[SETTING_store_password], str_of(value), ORIGIN_ENVIRONMENT,
                          SETTING_POSTGRES_VARIABLE ": ", err);
}

enum err_code settings_load_secrets(struct settings *s, const char *credentials_dir, struct err *err)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (settings_table[i].secret && take_secret(s, &settings_table[i], credentials_dir, err) != ERR_OK)
            return err->code;
    return take_postgres_variable(s, err);
}

void settings_warn_of_open_files(const struct settings *s, FILE *out)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        if (!d->secret || s->origin[i] != ORIGIN_SECRET_FILE)
            continue;
        struct stat info;
        const char *path = *setting_text((struct settings *)(uintptr_t)s, d + 1);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_mode & (S_IRWXG | S_IRWXO))
            fprintf(out, "weir: warning: %s_file: others may use %s (mode %03o); chmod 600 it\n", d->key,
                    path, info.st_mode & 0777u);
    }
}
