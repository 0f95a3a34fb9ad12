/* How settings get from the process that reads them to root and core, so that secrets are in core alone.
 *
 * Root forks every child, and a child has all that root's memory ever held: freed blocks, buffers of the YAML
 * reader, the first place of a text that grew. So root never reads a secret. A short-lived child of it does
 * (cli/serve.c), and writes what it found into two files in memory: one for root and all processes, one for
 * core. Root keeps the second open and unread, for the next core.
 *
 * The form is private to one program: a header of origins, then each value in the order of the table. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

enum { TEXT_ABSENT = UINT16_MAX, HANDOVER_BYTES_MAX = 1024 * 1024 };
_Static_assert((int)SETTING_TEXT_MAX < (int)TEXT_ABSENT, "a length is never taken for no text");

/* The secrets that core needs. Others stay with the process that read the settings: weir serve has no use for
 * the passphrase of private keys, which only the commands that mint need. */
static const enum setting_id core_needs[] = {SETTING_operator_token, SETTING_store_password,
                                             SETTING_store_url};

static struct settings *unconst(const struct settings *s)
{
    return (struct settings *)(uintptr_t)s; /* read through the accessors of the owner */
}

static void add_text(struct strbuf *out, const char *text)
{
    uint16_t len = text ? (uint16_t)strlen(text) : TEXT_ABSENT;
    strbuf_add(out, &len, sizeof len);
    if (text)
        strbuf_add(out, text, len);
}

static void add_public(struct strbuf *out, const struct settings *s, const struct setting *d)
{
    struct strbuf shown CLEANUP(strbuf_free) = {0};
    const char *text;
    switch (d->type) {
    case SETTING_INT:
        strbuf_add(out, setting_int(unconst(s), d), sizeof(int64_t));
        break;
    case SETTING_REAL:
        strbuf_add(out, setting_real(unconst(s), d), sizeof(double));
        break;
    case SETTING_TEXT:
        text = d->secret ? NULL : *setting_text(unconst(s), d);
        if (text && d->form == FORM_STORE) {
            store_url_show(str_of(text), &shown);
            text = shown.ptr;
        }
        add_text(out, text);
        break;
    }
}

static enum err_code write_all(int fd, struct strbuf *bytes, struct err *err)
{
    size_t done = 0;
    while (done < bytes->len) {
        ssize_t n = pwrite(fd, bytes->ptr + done, bytes->len - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_INTERNAL, "the settings cannot be handed on: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return ERR_OK;
}

static void wipe(struct strbuf *b)
{
    if (b->ptr)
        explicit_bzero(b->ptr, b->cap);
    strbuf_free(b);
}

enum err_code settings_hand_over(const struct settings *s, int public_fd, int secret_fd, struct err *err)
{
    struct strbuf all CLEANUP(wipe) = {0}, secrets CLEANUP(wipe) = {0};
    strbuf_add(&all, s->origin, sizeof s->origin);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        add_public(&all, s, &settings_table[i]);
    for (size_t i = 0; i < LENGTH_OF(core_needs); i++)
        add_text(&secrets, *setting_text(unconst(s), &settings_table[core_needs[i]]));
    if (write_all(public_fd, &all, err) != ERR_OK)
        return err->code;
    return write_all(secret_fd, &secrets, err);
}

/* ---- the other side ---- */

struct reader {
    struct str rest;
    bool failed;
};

static bool take_bytes(struct reader *r, void *out, size_t len)
{
    r->failed = r->failed || r->rest.len < len;
    if (r->failed)
        return false;
    memcpy(out, r->rest.ptr, len);
    r->rest = (struct str){r->rest.ptr + len, r->rest.len - len};
    return true;
}

static void take_text(struct reader *r, struct settings *s, const struct setting *d)
{
    uint16_t len = TEXT_ABSENT;
    char text[SETTING_TEXT_MAX + 1];
    take_bytes(r, &len, sizeof len);
    if (len == TEXT_ABSENT || len > SETTING_TEXT_MAX || !take_bytes(r, text, len)) {
        r->failed = r->failed || len != TEXT_ABSENT;
        setting_keep_text(s, d, STR_ABSENT);
        return;
    }
    setting_keep_text(s, d, (struct str){text, len});
    explicit_bzero(text, sizeof text);
}

static enum err_code read_all(int fd, struct strbuf *ret_bytes, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size > HANDOVER_BYTES_MAX)
        return err_set(err, ERR_INTERNAL, "the settings were not handed on");
    strbuf_reserve(ret_bytes, (size_t)info.st_size + 1); /* at once: no copy is left behind */
    while (ret_bytes->len < (size_t)info.st_size) {
        ssize_t n = pread(fd, ret_bytes->ptr + ret_bytes->len, (size_t)info.st_size - ret_bytes->len,
                          (off_t)ret_bytes->len);
        if (n <= 0 && errno != EINTR)
            return err_set(err, ERR_INTERNAL, "the settings cannot be read: %s", strerror(errno));
        ret_bytes->len += n > 0 ? (size_t)n : 0;
    }
    return ERR_OK;
}

static enum err_code finished(const struct reader *r, struct err *err)
{
    if (r->failed || r->rest.len)
        return err_set(err, ERR_INTERNAL, "the settings were handed on by another program");
    return ERR_OK;
}

enum err_code settings_take_public(struct settings *ret_settings, int fd, struct err *err)
{
    struct strbuf bytes CLEANUP(wipe) = {0};
    settings_init(ret_settings);
    if (read_all(fd, &bytes, err) != ERR_OK)
        return err->code;
    struct reader r = {.rest = strbuf_str(&bytes)};
    take_bytes(&r, ret_settings->origin, sizeof ret_settings->origin);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        switch (d->type) {
        case SETTING_INT:
            take_bytes(&r, setting_int(ret_settings, d), sizeof(int64_t));
            break;
        case SETTING_REAL:
            take_bytes(&r, setting_real(ret_settings, d), sizeof(double));
            break;
        case SETTING_TEXT:
            take_text(&r, ret_settings, d);
            break;
        }
    }
    return finished(&r, err);
}

enum err_code settings_take_secrets(struct settings *s, int fd, struct err *err)
{
    struct strbuf bytes CLEANUP(wipe) = {0};
    if (read_all(fd, &bytes, err) != ERR_OK)
        return err->code;
    struct reader r = {.rest = strbuf_str(&bytes)};
    for (size_t i = 0; i < LENGTH_OF(core_needs); i++)
        take_text(&r, s, &settings_table[core_needs[i]]);
    return finished(&r, err);
}

/* ---- the environment ---- */

/* Of the command line: for a server that is started from a shell. */
static const char *const other_secrets[] = {"WEIR_API_KEY", "WEIR_TOKEN", SETTING_POSTGRES_VARIABLE};

static void each_secret_variable(void (*act)(const char *name))
{
    char name[SETTING_ENV_NAME_MAX];
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        if (!d->secret && !(d->type == SETTING_TEXT && d->form == FORM_STORE))
            continue;
        setting_env_name(d, name);
        act(name);
    }
    for (size_t i = 0; i < LENGTH_OF(other_secrets); i++)
        act(other_secrets[i]);
}

static void overwrite(const char *name)
{
    char *value = getenv(name);
    if (value)
        memset(value, '*', strlen(value));
}

/* An empty entry has no name: as unset, and its memory stays the owner's. */
static void forget(const char *name)
{
    char *value = getenv(name);
    if (value)
        explicit_bzero(value - strlen(name) - 1, strlen(name) + 1 + strlen(value));
}

void settings_overwrite_environment(void)
{
    each_secret_variable(overwrite);
}

void settings_forget_environment(void)
{
    each_secret_variable(forget);
}
