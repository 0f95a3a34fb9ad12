#include "cli/durable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

static enum err_code fault(const char *doing, const char *path, struct err *err)
{
    int number = errno;
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "cannot %s %.180s: %s", doing, path, strerror(number));
}

bool file_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

int64_t file_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
}

enum err_code file_sync(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fault("open", path, err);
    enum err_code code = fsync(fd) == 0 ? ERR_OK : fault("sync", path, err);
    close(fd);
    return code;
}

enum err_code file_sync_directory_of(const char *path, struct err *err)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (!slash)
        snprintf(directory, sizeof directory, ".");
    else
        slash[slash == directory] = 0; /* "/file" lies in "/" */
    return file_sync(directory, err);
}

static int open_private(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

enum err_code file_create_private(const char *path, struct err *err)
{
    int fd = open_private(path);
    return fd >= 0 && close(fd) == 0 ? ERR_OK : fault("create", path, err);
}

/* False with errno on a failure. */
static bool copy_bytes(int from, int to)
{
    static char bytes[1 << 20]; /* one copy at a time */
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        for (ssize_t done = 0, w; done < n; done += w)
            if ((w = write(to, bytes + done, (size_t)(n - done))) < 0)
                return false;
    return n == 0 && fsync(to) == 0;
}

enum err_code file_copy_synced(const char *from, const char *to, struct err *err)
{
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        return fault("open", from, err);
    int target = open_private(to);
    enum err_code code = target < 0 ? fault("create", to, err) : ERR_OK;
    if (code == ERR_OK && !copy_bytes(source, target)) {
        code = fault("copy to", to, err);
        unlink(to);
    }
    close(source);
    if (target >= 0)
        close(target);
    return code;
}

enum err_code file_publish(const char *from, const char *to, struct err *err)
{
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) /* a file system without that flag */
        rc = file_exists(to) ? (errno = EEXIST, -1) : rename(from, to);
    if (rc != 0 && errno == EEXIST)
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "%.180s exists; it is not overwritten", to);
    return rc == 0 ? file_sync_directory_of(to, err) : fault("rename to", to, err);
}

enum err_code file_remove(const char *path, struct err *err)
{
    return unlink(path) == 0 || errno == ENOENT ? ERR_OK : fault("remove", path, err);
}
