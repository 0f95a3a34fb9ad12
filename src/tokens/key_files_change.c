/* Files of a key set, changed: under the folder's lock, each file whole or absent. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/must.h"
#include "tokens/key_files_internal.h"

#include "base/banned.h"

enum { LOCK_TRIES = 200, LOCK_PAUSE_NS = 50 * 1000 * 1000 }; /* ten seconds */

static enum err_code sync_folder(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum err_code code = fd >= 0 && fsync(fd) == 0 ? ERR_OK : key_file_fault("sync", path, err);
    if (fd >= 0)
        close(fd);
    return code;
}

/* DATA/keys, and DATA where it is missing; it stays. */
static enum err_code make_folder(const struct key_place *p, const char *folder, struct err *err)
{
    if (mkdir(p->data_dir, 0700) != 0 && errno != EEXIST)
        return key_file_fault("create", p->data_dir, err);
    if (mkdir(folder, 0700) == 0)
        return sync_folder(p->data_dir, err);
    return errno == EEXIST ? ERR_OK : key_file_fault("create", folder, err);
}

static bool write_all(int fd, struct str bytes)
{
    for (ssize_t n; bytes.len; bytes.ptr += n, bytes.len -= (size_t)n)
        if ((n = write(fd, bytes.ptr, bytes.len)) < 0)
            return false;
    return fsync(fd) == 0;
}

static enum err_code write_file(const struct key_place *p, const char *name, const char *ending,
                                struct str bytes, struct err *err)
{
    char folder[KEY_PATH_MAX], path[KEY_PATH_MAX], partial[KEY_PATH_MAX];
    if (key_path(p, "", "", folder, err) != ERR_OK || key_path(p, name, ending, path, err) != ERR_OK ||
        key_path(p, name, KEY_PARTIAL_ENDING, partial, err) != ERR_OK)
        return err->code;
    if (unlink(partial) != 0 && errno != ENOENT) /* left by a crash; we hold the lock */
        return key_file_fault("remove", partial, err);
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return key_file_fault("create", partial, err);
    bool written = write_all(fd, bytes);
    enum err_code code = written ? ERR_OK : key_file_fault("write", partial, err);
    close(fd);
    if (code == ERR_OK && rename(partial, path) != 0)
        code = key_file_fault("rename to", path, err);
    if (code != ERR_OK)
        unlink(partial);
    return code == ERR_OK ? sync_folder(folder, err) : code;
}

/* -1 with err set. */
static int lock_folder(const struct key_place *p, struct err *err)
{
    char folder[KEY_PATH_MAX], path[KEY_PATH_MAX];
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    if (key_path(p, "", "", folder, err) != ERR_OK || key_path(p, KEY_LOCK, "", path, err) != ERR_OK ||
        make_folder(p, folder, err) != ERR_OK)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        (void)!key_file_fault("open", path, err);
        return -1;
    }
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        nanosleep(&pause, NULL);
    }
    close(fd);
    (void)!err_set(err, ERR_STORAGE_UNAVAILABLE, "%.180s: somebody else is changing the keys", path);
    return -1;
}

static void unlock(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static enum err_code write_private(const struct key_place *p, const char *kid, const struct token_key *key,
                                   struct err *err)
{
    struct strbuf pem = {0};
    strbuf_reserve(&pem, TOKEN_PEM_BYTES_MAX);
    token_key_write_pem(key, p->passphrase, &pem);
    enum err_code code = write_file(p, kid, KEY_PRIVATE_ENDING, strbuf_str(&pem), err);
    OPENSSL_cleanse(pem.ptr, pem.cap);
    strbuf_free(&pem);
    return code;
}

static bool ends_in(struct str name, struct str ending)
{
    return name.len > ending.len && memcmp(name.ptr + name.len - ending.len, ending.ptr, ending.len) == 0;
}

/* A private key that signs no more, or that a crash kept out of the manifest. */
static bool is_leftover(const struct key_set *s, struct str name, int64_t now)
{
    if (ends_in(name, STR(KEY_PARTIAL_ENDING)))
        return true;
    if (!ends_in(name, STR(KEY_PRIVATE_ENDING)))
        return false;
    name.len -= sizeof KEY_PRIVATE_ENDING - 1;
    const struct key_record *k = key_set_find(s, name);
    enum key_state state = k ? key_set_state(s, k, now) : KEY_RETIRED;
    return state != KEY_PENDING && state != KEY_SIGNING;
}

static enum err_code remove_leftovers(const struct key_place *p, const struct key_set *s, int64_t now,
                                      struct err *err)
{
    char path[KEY_PATH_MAX];
    enum err_code code = key_path(p, "", "", path, err);
    if (code != ERR_OK)
        return code;
    DIR *folder = opendir(path);
    if (!folder)
        return key_file_fault("open", path, err);
    for (struct dirent *e; code == ERR_OK && (e = readdir(folder));)
        if (is_leftover(s, str_of(e->d_name), now) && unlinkat(dirfd(folder), e->d_name, 0) != 0)
            code = key_file_fault("clean up", path, err);
    closedir(folder);
    return code;
}

/* The manifest last: until it is there, nothing has changed. Leftovers after it. */
static enum err_code save(const struct key_place *p, struct key_set *s, int64_t now, struct err *err)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    key_set_forget(s, &p->rules, now);
    key_set_write(s, &text);
    if (write_file(p, KEY_MANIFEST, "", strbuf_str(&text), err) != ERR_OK)
        return err->code;
    return remove_leftovers(p, s, now, err);
}

/* An absent key set is an empty one. */
static enum err_code load(const struct key_place *p, struct key_set *ret_set, struct err *err)
{
    struct key_files_version ignored;
    enum err_code code = key_files_load(p, ret_set, &ignored, err);
    if (code != ERR_AUTH_KEY_NOT_FOUND)
        return code;
    *ret_set = (struct key_set){0};
    snprintf(ret_set->environment, sizeof ret_set->environment, "%s", p->environment);
    return ERR_OK;
}

static enum err_code add_key(const struct key_place *p, struct key_set *s, enum token_alg alg,
                             struct str actor, bool at_once, int64_t now, struct key_record *ret_record,
                             struct err *err)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    const struct key_record *made;
    if (token_key_generate(alg, &key, err) != ERR_OK ||
        key_set_add(s, &key, actor, &p->rules, at_once, now, &made, err) != ERR_OK ||
        write_private(p, made->kid, &key, err) != ERR_OK)
        return err->code;
    *ret_record = *made;
    ret_record->key = (struct token_key){.alg = alg}; /* facts only; the set keeps the key */
    return ERR_OK;
}

enum err_code key_files_rotate(const struct key_place *p, enum token_alg alg, struct str actor, int64_t now,
                               struct key_record *ret_record, struct err *err)
{
    struct key_set s CLEANUP(key_set_free) = {0};
    int lock CLEANUP(unlock) = lock_folder(p, err);
    if (lock < 0 || load(p, &s, err) != ERR_OK ||
        add_key(p, &s, alg, actor, false, now, ret_record, err) != ERR_OK)
        return err->code;
    return save(p, &s, now, err);
}

enum err_code key_files_revoke(const struct key_place *p, struct str kid, struct str actor, struct str reason,
                               int64_t now, struct key_record *ret_successor, struct err *err)
{
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_files_version ignored;
    int lock CLEANUP(unlock) = lock_folder(p, err);
    *ret_successor = (struct key_record){0};
    if (lock < 0 || key_files_load(p, &s, &ignored, err) != ERR_OK)
        return err->code;
    struct key_record *k = key_set_find(&s, kid);
    if (!k)
        return err_set(err, ERR_AUTH_KEY_NOT_FOUND, "no key has the kid %.*s", STR_ARG(kid));
    bool newest = k == &s.keys[s.count - 1], signs = k == key_set_signer(&s, now);
    enum token_alg alg = k->key.alg;
    if (!key_set_revoke(k, actor, reason, now))
        return err_set(err, ERR_AUTH_KEY_CONFLICT, "%s was revoked before", k->kid);
    if ((signs || newest) && add_key(p, &s, alg, actor, true, now, ret_successor, err) != ERR_OK)
        return err->code;
    return save(p, &s, now, err);
}

/* Another process may have made the set while we waited for the lock; then its set is used. */
static enum err_code make_set(const struct key_place *p, enum token_alg alg, struct str actor, int64_t now,
                              struct err *err)
{
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_record ignored;
    int lock CLEANUP(unlock) = lock_folder(p, err);
    if (lock < 0 || load(p, &s, err) != ERR_OK)
        return err->code;
    if (s.count)
        return ERR_OK;
    return add_key(p, &s, alg, actor, true, now, &ignored, err) == ERR_OK ? save(p, &s, now, err) : err->code;
}

enum err_code key_files_signer(const struct key_place *p, enum token_alg alg, struct str actor, int64_t now,
                               char ret_kid[KEY_ID_MAX + 1], struct token_key *ret_key, struct err *err)
{
    struct key_set s CLEANUP(key_set_free) = {0};
    struct key_files_version version;
    enum err_code code = key_files_load(p, &s, &version, err);
    if (code == ERR_AUTH_KEY_NOT_FOUND && make_set(p, alg, actor, now, err) == ERR_OK)
        code = key_files_load(p, &s, &version, err);
    if (code != ERR_OK)
        return err->code;
    const struct key_record *signer = key_set_signer(&s, now);
    if (!signer)
        return err_set(err, ERR_CONFIG_INVALID, "no key signs at this time; is the clock right?");
    snprintf(ret_kid, KEY_ID_MAX + 1, "%s", signer->kid);
    return key_files_private(p, signer, ret_key, err);
}
