/* Files of a key set, read. */
#include "tokens/key_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/must.h"
#include "tokens/key_files_internal.h"

#include "base/banned.h"

enum err_code key_path(const struct key_place *p, const char *name, const char *ending,
                       char out[KEY_PATH_MAX], struct err *err)
{
    int n = snprintf(out, KEY_PATH_MAX, "%s/keys%s%s%s", p->data_dir, *name ? "/" : "", name, ending);
    return n > 0 && n < KEY_PATH_MAX
               ? ERR_OK
               : err_set(err, ERR_CONFIG_INVALID, "the path of the data directory is too long");
}

enum err_code key_file_fault(const char *doing, const char *path, struct err *err)
{
    int number = errno;
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "cannot %s %.180s: %s", doing, path, strerror(number));
}

static enum err_code read_open(int fd, const char *path, size_t max, struct strbuf *out, struct err *err)
{
    char chunk[4096];
    ssize_t n;
    enum err_code code = ERR_OK;
    while (code == ERR_OK && (n = read(fd, chunk, sizeof chunk)) != 0) {
        if (n < 0)
            code = key_file_fault("read", path, err);
        else if (out->len + (size_t)n > max)
            code = err_set(err, ERR_CONFIG_INVALID, "%.180s is too long", path);
        else
            strbuf_add(out, chunk, (size_t)n);
    }
    OPENSSL_cleanse(chunk, sizeof chunk);
    return code;
}

static enum err_code read_whole(const char *path, size_t max, struct strbuf *out, struct stat *ret_info,
                                struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_AUTH_KEY_NOT_FOUND, "there is no %.200s", path);
    if (fd < 0)
        return key_file_fault("open", path, err);
    enum err_code code;
    if (fstat(fd, ret_info) != 0 || !S_ISREG(ret_info->st_mode))
        code = err_set(err, ERR_CONFIG_INVALID, "%.180s is no file", path);
    else
        code = read_open(fd, path, max, out, err);
    close(fd);
    return code;
}

static struct key_files_version version_of(const struct stat *info)
{
    return (struct key_files_version){(int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
                                      (int64_t)info->st_size, (uint64_t)info->st_ino};
}

enum err_code key_files_version(const struct key_place *p, struct key_files_version *ret_version,
                                struct err *err)
{
    char path[KEY_PATH_MAX];
    struct stat info;
    if (key_path(p, KEY_MANIFEST, "", path, err) != ERR_OK)
        return err->code;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? err_set(err, ERR_AUTH_KEY_NOT_FOUND, "there is no %.200s", path)
                               : key_file_fault("look at", path, err);
    *ret_version = version_of(&info);
    return ERR_OK;
}

enum err_code key_files_load(const struct key_place *p, struct key_set *ret_set,
                             struct key_files_version *ret_version, struct err *err)
{
    char path[KEY_PATH_MAX];
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct stat info;
    if (key_path(p, KEY_MANIFEST, "", path, err) != ERR_OK ||
        read_whole(path, KEY_SET_BYTES_MAX, &text, &info, err) != ERR_OK)
        return err->code;
    if (key_set_read(strbuf_str(&text), p->environment, ret_set, err) != ERR_OK) {
        struct err why = *err;
        return err_set(err, ERR_CONFIG_INVALID, "%.100s is refused: %.140s", path, why.detail);
    }
    *ret_version = version_of(&info);
    return ERR_OK;
}

static void secret_free(struct strbuf *text)
{
    if (text->ptr)
        OPENSSL_cleanse(text->ptr, text->cap);
    strbuf_free(text);
}

enum err_code key_files_private(const struct key_place *p, const struct key_record *k,
                                struct token_key *ret_key, struct err *err)
{
    char path[KEY_PATH_MAX];
    struct strbuf pem CLEANUP(secret_free) = {0};
    struct stat info;
    strbuf_reserve(&pem, TOKEN_PEM_BYTES_MAX); /* in one place: growing would leave copies behind */
    if (key_path(p, k->kid, KEY_PRIVATE_ENDING, path, err) != ERR_OK ||
        read_whole(path, TOKEN_PEM_BYTES_MAX, &pem, &info, err) != ERR_OK)
        return err->code;
    if (info.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_CONFIG_INVALID,
                       "%.150s may be read by others; revoke the key, or chmod 600 it", path);
    if (token_key_read_pem(strbuf_str(&pem), p->passphrase, k->key.alg, ret_key, err) != ERR_OK) {
        struct err why = *err;
        return err_set(err, ERR_CONFIG_INVALID, "%.140s: %.100s", path, why.detail);
    }
    if (!token_key_same_public(ret_key, &k->key)) {
        token_key_free(ret_key);
        return err_set(err, ERR_CONFIG_INVALID, "%.150s is not the key that the manifest lists", path);
    }
    return ERR_OK;
}
