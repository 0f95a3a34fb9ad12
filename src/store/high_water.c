#include "store/high_water.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

#include "base/banned.h"

#define LINE_HEAD "weir-mark 1 "
enum { NUMBER_DIGITS = 19, LINE_BYTES = sizeof LINE_HEAD - 1 + 2 * (NUMBER_DIGITS + 1) };

static enum err_code failed(const char *doing, struct err *err)
{
    int why = errno;
    err_set(err, ERR_STORAGE_UNAVAILABLE, "the high-water mark: %s: %s", doing, strerror(why));
    err->no_room = why == ENOSPC || why == EDQUOT;
    return err->code;
}

/* weir.db: weir.mark. Any other name: with the ending behind it. */
static bool mark_path(const char *database, char out[PATH_MAX])
{
    size_t len = strlen(database);
    size_t stem = len > 3 && strcmp(database + len - 3, ".db") == 0 ? len - 3 : len;
    int n = snprintf(out, PATH_MAX, "%.*s.mark", (int)stem, database);
    return n > 0 && n < PATH_MAX;
}

static void line_of(const struct high_water *h, char out[LINE_BYTES + 1])
{
    snprintf(out, LINE_BYTES + 1, LINE_HEAD "%0*" PRId64 " %0*" PRId64 "\n", NUMBER_DIGITS, h->store,
             NUMBER_DIGITS, h->commits);
}

static bool number_of(struct str *rest, char end, int64_t *ret)
{
    return str_to_int(str_cut(rest, end), 0, INT64_MAX, ret);
}

struct high_water high_water_read(const char *database)
{
    char path[PATH_MAX], line[LINE_BYTES + 1];
    struct high_water h = {0, 0};
    int fd = mark_path(database, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0)
        return h;
    ssize_t n = read(fd, line, sizeof line);
    close(fd);
    struct str rest = {line, n > 0 ? (size_t)n : 0};
    if (n != LINE_BYTES || !str_starts(rest, LINE_HEAD))
        return h;
    rest = (struct str){line + sizeof LINE_HEAD - 1, LINE_BYTES - (sizeof LINE_HEAD - 1)};
    if (!number_of(&rest, ' ', &h.store) || !number_of(&rest, '\n', &h.commits))
        return (struct high_water){0, 0};
    return h;
}

static enum err_code sync_directory(const char *file, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed("open its directory", err);
    enum err_code code = fsync(fd) == 0 ? ERR_OK : failed("sync its directory", err);
    close(fd);
    return code;
}

enum err_code high_water_write(const char *database, const struct high_water *h, int *ret_fd, struct err *err)
{
    char path[PATH_MAX], line[LINE_BYTES + 1];
    if (!mark_path(database, path))
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "the path of the high-water mark is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return failed("open", err);
    line_of(h, line);
    if (pwrite(fd, line, LINE_BYTES, 0) != LINE_BYTES || ftruncate(fd, LINE_BYTES) != 0 || fsync(fd) != 0)
        failed("write", err);
    else if (sync_directory(path, err) == ERR_OK) {
        *ret_fd = fd;
        return ERR_OK;
    }
    close(fd);
    return err->code;
}

void high_water_note(int fd, const struct high_water *h)
{
    char line[LINE_BYTES + 1];
    if (fd < 0)
        return;
    line_of(h, line);
    (void)!pwrite(fd, line, LINE_BYTES, 0);
}

enum err_code high_water_remove(const char *database, struct err *err)
{
    char path[PATH_MAX];
    if (!mark_path(database, path))
        return ERR_OK; /* it cannot have been made */
    if (unlink(path) != 0)
        return errno == ENOENT ? ERR_OK : failed("remove", err);
    return sync_directory(path, err);
}

enum err_code high_water_judge(const struct high_water *mark, const struct high_water *store, struct err *err)
{
    if (!mark->commits)
        return ERR_OK;
    if (!store->store)
        return err_set(err, ERR_STORE_LOST,
                       "all %" PRId64 " commits of the database are missing: it was removed or replaced",
                       mark->commits);
    if (mark->store != store->store)
        return err_set(err, ERR_STORE_LOST,
                       "the database was replaced by another one: %" PRId64 " commits are missing",
                       mark->commits);
    if (store->commits >= mark->commits)
        return ERR_OK;
    return err_set(err, ERR_STORE_LOST,
                   "%" PRId64 " commits are missing: the database has %" PRId64 ", its mark says %" PRId64,
                   mark->commits - store->commits, store->commits, mark->commits);
}
