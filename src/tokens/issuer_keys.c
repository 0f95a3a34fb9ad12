#include "tokens/issuer_keys.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "tokens/token_digest.h"

#include "base/banned.h"

enum { GAP_SECONDS_MAX = 30, GAP_SHARE = 10 };

struct slot {
    const struct issuer *issuer;
    struct jwks set;
    int64_t read_at;    /* when `set` was read or fetched; 0: never */
    int64_t tried_at;   /* 0: never */
    bool under_way;     /* since tried_at */
    bool wanted;        /* a kid was not known */
    bool failed, known; /* the last outcome, once there was one */
    uint64_t fetches, failures;
    struct timespec modified; /* of a file */
    off_t bytes;
    ino_t inode;
};

struct issuer_keys {
    pthread_mutex_t lock;
    struct issuers issuers;
    struct issuer_rules rules;
    char *data_dir;
    struct slot slots[ISSUERS_MAX];
};

/* --- on disk --------------------------------------------------------------------------------------- */

/* DATA/issuers/DIGEST.json; the folder alone without an issuer. */
static bool cache_path(const struct issuer_keys *k, const struct issuer *issuer, const char *ending,
                       char out[ISSUER_PATH_MAX])
{
    uint8_t digest[TOKEN_DIGEST_BYTES];
    char name[33] = "";
    if (issuer) {
        token_digest("issuer", issuer->name, digest);
        for (size_t i = 0; i < 16; i++)
            snprintf(name + 2 * i, 3, "%02x", digest[i]);
    }
    int n = snprintf(out, ISSUER_PATH_MAX, "%s/issuers%s%s%s", k->data_dir, issuer ? "/" : "", name, ending);
    return n > 0 && n < ISSUER_PATH_MAX;
}

/* A convenience for the next start, so a failure is none, and nothing is synced. */
static void keep(const struct issuer_keys *k, const struct slot *s, struct str body)
{
    char folder[ISSUER_PATH_MAX], path[ISSUER_PATH_MAX], partial[ISSUER_PATH_MAX];
    if (!cache_path(k, NULL, "", folder) || !cache_path(k, s->issuer, ".json", path) ||
        !cache_path(k, s->issuer, ".partial", partial))
        return;
    mkdir(folder, 0700);
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool whole = fd >= 0 && write(fd, body.ptr, body.len) == (ssize_t)body.len;
    if (fd >= 0)
        close(fd);
    if (!whole || rename(partial, path) != 0)
        unlink(partial);
}

static void recall(const struct issuer_keys *k, struct slot *s, int64_t now)
{
    char path[ISSUER_PATH_MAX];
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct stat info;
    struct err ignored;
    if (!cache_path(k, s->issuer, ".json", path) || stat(path, &info) != 0 ||
        issuer_file_read(path, JWKS_BYTES_MAX, &text, &ignored) != ERR_OK ||
        jwks_read(strbuf_str(&text), &s->set, &ignored) != ERR_OK)
        return;
    s->read_at = info.st_mtime > now ? now : info.st_mtime;
}

/* Reads the file again when it is another. A file that is gone or bad leaves the keys as they are. */
static enum err_code look_at_file(struct slot *s, int64_t now, struct err *err)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct stat info;
    struct jwks fresh;
    struct err why;
    s->tried_at = now;
    bool there = stat(s->issuer->jwks_file, &info) == 0;
    if (there && s->read_at && info.st_size == s->bytes && info.st_ino == s->inode &&
        info.st_mtim.tv_sec == s->modified.tv_sec && info.st_mtim.tv_nsec == s->modified.tv_nsec) {
        s->read_at = now;
        return ERR_OK;
    }
    if (issuer_file_read(s->issuer->jwks_file, JWKS_BYTES_MAX, &text, err) != ERR_OK)
        return err->code;
    if (jwks_read(strbuf_str(&text), &fresh, &why) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "%.140s: %.100s", s->issuer->jwks_file, why.detail);
    jwks_free(&s->set);
    s->set = fresh;
    s->read_at = now;
    s->bytes = info.st_size;
    s->inode = info.st_ino;
    s->modified = info.st_mtim;
    return ERR_OK;
}

/* --- a life ---------------------------------------------------------------------------------------- */

enum err_code issuer_keys_new(struct issuers *issuers, const struct issuer_rules *rules, int64_t now,
                              struct issuer_keys **ret_keys, struct err *err)
{
    struct issuer_keys *k = must_alloc(sizeof *k);
    struct err why;
    pthread_mutex_init(&k->lock, NULL);
    k->issuers = *issuers;
    *issuers = (struct issuers){0};
    k->rules = *rules;
    k->data_dir = must_strdup(rules->data_dir);
    for (size_t i = 0; i < k->issuers.count; i++) {
        struct slot *s = &k->slots[i];
        s->issuer = &k->issuers.list[i];
        if (s->issuer->jwks_url) {
            recall(k, s, now);
        } else if (look_at_file(s, now, &why) != ERR_OK) {
            issuer_keys_free(k);
            return err_set(err, ERR_CONFIG_INVALID, "tokens.issuers: jwks_file: %.220s", why.detail);
        }
    }
    *ret_keys = k;
    return ERR_OK;
}

enum err_code issuer_keys_open(const char *path, struct str own, const struct issuer_rules *rules,
                               int64_t now, struct issuer_keys **ret_keys, struct err *err)
{
    struct issuers issuers;
    *ret_keys = NULL;
    if (!path)
        return ERR_OK;
    if (issuers_load(path, own, &issuers, err) != ERR_OK)
        return err->code;
    return issuer_keys_new(&issuers, rules, now, ret_keys, err);
}

struct issuer_keys *issuer_keys_free(struct issuer_keys *k)
{
    if (!k)
        return NULL;
    for (size_t i = 0; i < k->issuers.count; i++)
        jwks_free(&k->slots[i].set);
    issuers_free(&k->issuers);
    free(k->data_dir);
    pthread_mutex_destroy(&k->lock);
    free(k);
    return NULL;
}

/* --- questions ------------------------------------------------------------------------------------- */

const struct issuer *issuer_keys_issuer(const struct issuer_keys *k, struct str name)
{
    return k ? issuers_find(&k->issuers, name) : NULL;
}

static bool is_fresh(const struct issuer_keys *k, const struct slot *s, int64_t now)
{
    return s->read_at && now - s->read_at <= k->rules.max_age_seconds;
}

enum token_reason issuer_keys_find(struct issuer_keys *k, const struct issuer *issuer, struct str kid,
                                   int64_t now, struct token_key *ret_key)
{
    struct slot *s = &k->slots[issuer - k->issuers.list];
    struct err ignored; /* seen by its age: doctor and metrics tell it */
    pthread_mutex_lock(&k->lock);
    if (issuer->jwks_file && s->tried_at != now && look_at_file(s, now, &ignored) != ERR_OK)
        s->failures++;
    enum token_reason reason = TOKEN_KEYS_UNREADABLE;
    if (is_fresh(k, s, now)) {
        const struct token_key *key = jwks_find(&s->set, kid);
        reason = key ? TOKEN_OK : TOKEN_KEY_UNKNOWN;
        s->wanted = s->wanted || !key;
        if (key)
            *ret_key = token_key_copy(key);
    }
    pthread_mutex_unlock(&k->lock);
    return reason;
}

static int64_t gap_seconds(const struct issuer_keys *k)
{
    int64_t gap = k->rules.refresh_seconds / GAP_SHARE;
    return gap < 1 ? 1 : gap > GAP_SECONDS_MAX ? GAP_SECONDS_MAX : gap;
}

static bool is_due(const struct issuer_keys *k, const struct slot *s, int64_t now)
{
    if (!s->issuer->jwks_url)
        return false;
    if (!s->tried_at || now < s->tried_at) /* or the clock was set back */
        return true;
    if (s->under_way)
        return now - s->tried_at >= ISSUER_FETCH_SECONDS;
    bool soon = s->wanted || s->failed || !s->read_at;
    return now - s->tried_at >= (soon ? gap_seconds(k) : k->rules.refresh_seconds);
}

bool issuer_keys_due(struct issuer_keys *k, int64_t now, size_t *ret_index, const char **ret_url)
{
    bool found = false;
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; !found && i < k->issuers.count; i++) {
        struct slot *s = &k->slots[i];
        found = is_due(k, s, now);
        if (!found)
            continue;
        s->tried_at = now;
        s->under_way = true;
        s->wanted = false;
        s->fetches++;
        *ret_index = i;
        *ret_url = s->issuer->jwks_url;
    }
    pthread_mutex_unlock(&k->lock);
    return found;
}

enum err_code issuer_keys_put(struct issuer_keys *k, size_t index, struct str body, struct str why,
                              int64_t now, bool *ret_told, struct err *err)
{
    struct jwks fresh = {0}, former = {0};
    struct slot *s = &k->slots[index];
    enum err_code code =
        body.ptr ? jwks_read(body, &fresh, err) : err_set(err, ERR_CONFIG_INVALID, "%.*s", STR_ARG(why));
    pthread_mutex_lock(&k->lock);
    s->under_way = false;
    *ret_told = !s->known || s->failed != (code != ERR_OK);
    s->known = true;
    s->failed = code != ERR_OK;
    s->failures += code != ERR_OK;
    if (code == ERR_OK) {
        former = s->set;
        s->set = fresh;
        s->read_at = now;
        keep(k, s, body);
    }
    pthread_mutex_unlock(&k->lock);
    jwks_free(&former);
    return code;
}

enum err_code issuer_keys_read(struct issuer_keys *k, size_t index, int64_t now, bool *ret_read,
                               struct err *err)
{
    enum err_code code = ERR_OK;
    struct slot *s = &k->slots[index];
    pthread_mutex_lock(&k->lock);
    *ret_read = s->issuer->jwks_file != NULL;
    if (*ret_read) {
        s->bytes = -1; /* no file looks like this */
        code = look_at_file(s, now, err);
        s->failures += code != ERR_OK;
    } else if (!s->under_way) {
        s->tried_at = 0;
    }
    pthread_mutex_unlock(&k->lock);
    return code;
}

size_t issuer_keys_count(const struct issuer_keys *k)
{
    return k ? k->issuers.count : 0;
}

void issuer_keys_state(struct issuer_keys *k, size_t index, int64_t now, struct issuer_state *ret)
{
    pthread_mutex_lock(&k->lock);
    const struct slot *s = &k->slots[index];
    *ret = (struct issuer_state){.issuer = s->issuer->name,
                                 .from_url = s->issuer->jwks_url != NULL,
                                 .key_count = s->set.count,
                                 .age_seconds = s->read_at ? now - s->read_at : -1,
                                 .fresh = is_fresh(k, s, now),
                                 .fetches = s->fetches,
                                 .failures = s->failures};
    pthread_mutex_unlock(&k->lock);
}
