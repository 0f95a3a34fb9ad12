/* Power cuts and disk errors at every step that changes a key set: what is there afterwards is the set as it
 * was or as it was to be, it signs, and what was reported done stays done.
 *
 * The steps are the calls write, fsync, rename, unlink and unlinkat, wrapped by the linker. A cut in a child
 * process loses what was not synced: half of the bytes of a file without fsync and, in one of two ways it may
 * go, the renames without an fsync of the folder. Negative control: with an fsync that does nothing, the same
 * cuts must be seen to damage the set. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "tokens/token_mint.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

enum { NOW = 1800000000, FILES_MAX = 16, STEPS_MAX = 60, DONE = 0, REFUSED = 10, CUT = 11 };

enum plan_kind { PLAN_NONE, PLAN_CUT_LOSING_RENAMES, PLAN_CUT_KEEPING_RENAMES, PLAN_ERROR };

/* --- a disk that forgets ------------------------------------------------------------------------- */

struct undo {
    char from[256], to[256], saved[300];
    bool had;
};

static struct {
    enum plan_kind kind;
    int at, count; /* the step that goes wrong; steps seen */
    bool sync_lies;
    char dirty[FILES_MAX][256];
    struct undo undo[FILES_MAX];
    size_t dirty_count, undo_count;
} disk;

ssize_t __real_write(int fd, const void *bytes, size_t len);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_unlinkat(int fd, const char *path, int flags);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int fd, const char *path, int flags);

static void path_of(int fd, char out[256])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, 255);
    MUST(n > 0);
    out[n] = 0;
}

static void forget_dirty(const char *path)
{
    for (size_t i = 0; i < disk.dirty_count; i++)
        if (strcmp(disk.dirty[i], path) == 0)
            memcpy(disk.dirty[i], disk.dirty[--disk.dirty_count], sizeof disk.dirty[i]);
}

static void lose_renames(void)
{
    while (disk.undo_count) {
        const struct undo *u = &disk.undo[--disk.undo_count];
        MUST(__real_rename(u->to, u->from) == 0);
        if (u->had)
            MUST(__real_rename(u->saved, u->to) == 0);
        for (size_t i = 0; i < disk.dirty_count; i++)
            if (strcmp(disk.dirty[i], u->to) == 0)
                snprintf(disk.dirty[i], sizeof disk.dirty[i], "%s", u->from);
    }
}

static void cut_power(int code)
{
    if (disk.kind == PLAN_CUT_LOSING_RENAMES)
        lose_renames();
    for (size_t i = 0; i < disk.dirty_count; i++) {
        struct stat info;
        if (stat(disk.dirty[i], &info) == 0)
            MUST(truncate(disk.dirty[i], info.st_size / 2) == 0);
    }
    _exit(code);
}

/* True: this call fails. */
static bool step(void)
{
    if (disk.kind == PLAN_NONE || ++disk.count != disk.at)
        return false;
    if (disk.kind != PLAN_ERROR)
        cut_power(CUT);
    errno = EIO;
    return true;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    char path[256];
    if (disk.kind == PLAN_NONE || fd <= 2)
        return __real_write(fd, bytes, len);
    if (step())
        return -1;
    path_of(fd, path);
    forget_dirty(path);
    MUST(disk.dirty_count < FILES_MAX);
    snprintf(disk.dirty[disk.dirty_count++], sizeof disk.dirty[0], "%s", path);
    return __real_write(fd, bytes, len);
}

int __wrap_fsync(int fd)
{
    struct stat info;
    char path[256];
    if (step())
        return -1;
    if (disk.kind != PLAN_NONE && !disk.sync_lies) {
        MUST(fstat(fd, &info) == 0);
        path_of(fd, path);
        if (S_ISDIR(info.st_mode))
            disk.undo_count = 0;
        else
            forget_dirty(path);
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    if (disk.kind == PLAN_NONE)
        return __real_rename(from, to);
    if (step())
        return -1;
    MUST(disk.undo_count < FILES_MAX);
    struct undo *u = &disk.undo[disk.undo_count];
    snprintf(u->from, sizeof u->from, "%s", from);
    snprintf(u->to, sizeof u->to, "%s", to);
    snprintf(u->saved, sizeof u->saved, "%s.saved-%zu", to, disk.undo_count++);
    u->had = link(to, u->saved) == 0;
    for (size_t i = 0; i < disk.dirty_count; i++)
        if (strcmp(disk.dirty[i], from) == 0)
            snprintf(disk.dirty[i], sizeof disk.dirty[i], "%s", to);
    return __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
    return step() ? -1 : __real_unlink(path);
}

int __wrap_unlinkat(int fd, const char *path, int flags)
{
    return step() ? -1 : __real_unlinkat(fd, path, flags);
}

/* --- one change and what must hold after it -------------------------------------------------------- */

enum change { MAKE, ROTATE, REVOKE };

struct fixture {
    char dir[64], kid[KEY_ID_MAX + 1];
    struct key_place place;
    struct strbuf token; /* of the key before the change */
};

static void remove_all(const char *dir)
{
    char path[512];
    DIR *folder = opendir(dir);
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            if (__real_unlink(path) != 0)
                remove_all(path);
        }
    if (folder)
        closedir(folder);
    rmdir(dir);
}

static enum err_code mint(struct fixture *f, int64_t now, struct strbuf *out, struct err *err)
{
    const struct token_policy p = {
        .issuer = STR("i"), .audiences = STR("a"), .required = TOKEN_FOR_ANY, .ttl_seconds_max = 28800};
    const struct token_order order = {.subject = STR("ada"), .roles = STR("r")};
    struct token_key key CLEANUP(token_key_free) = {0};
    enum err_code code = key_files_signer(&f->place, TOKEN_ALG_ES256, STR("t"), now, f->kid, &key, err);
    return code == ERR_OK ? token_mint(&order, &p, str_of(f->kid), &key, now, out, err) : code;
}

static enum token_reason verify(struct fixture *f, const struct strbuf *token, int64_t now)
{
    struct arena *a = arena_new(8192);
    struct token_verdict verdict;
    struct token_verifier v = {
        .keys = key_ring_new(&f->place),
        .blocklist = blocklist_new(1),
        .jtis = jti_table_new(1),
        .policy = {
            .issuer = STR("i"), .audiences = STR("a"), .required = TOKEN_FOR_ANY, .ttl_seconds_max = 28800}};
    enum token_reason reason = token_verify(&v, strbuf_str(token), now, a, &verdict);
    key_ring_free(v.keys);
    blocklist_free(v.blocklist);
    jti_table_free(v.jtis);
    arena_free(a);
    return reason;
}

static void set_up_change(struct fixture *f, enum change change)
{
    struct err err;
    *f = (struct fixture){.dir = "/tmp/weir-key-files-XXXXXX"};
    assert_non_null(mkdtemp(f->dir));
    f->place = (struct key_place){.data_dir = f->dir,
                                  .environment = "dev",
                                  .rules = {KEY_OVERLAP_SECONDS_MIN, KEY_HISTORY_SECONDS_MIN}};
    if (change != MAKE)
        assert_int_equal(mint(f, NOW, &f->token, &err), ERR_OK);
}

static enum err_code do_change(struct fixture *f, enum change change, struct err *err)
{
    struct key_record made;
    switch (change) {
    case MAKE:
    case ROTATE:
        return key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + 1, &made, err);
    case REVOKE:
        return key_files_revoke(&f->place, str_of(f->kid), STR("t"), STR("r"), NOW + 1, &made, err);
    }
    return ERR_INTERNAL;
}

/* In a child of its own: DONE, REFUSED or CUT. After DONE the power fails, too. */
static int change_in_child(struct fixture *f, enum change change, enum plan_kind kind, int at, bool sync_lies)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err err;
        disk.kind = kind, disk.at = at, disk.sync_lies = sync_lies;
        enum err_code code = do_change(f, change, &err);
        if (kind == PLAN_ERROR)
            _exit(code == ERR_OK ? DONE : REFUSED);
        cut_power(code == ERR_OK ? DONE : REFUSED);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* NULL, or what is wrong. `ended`: how the change ended. */
static const char *look(struct fixture *f, enum change change, int ended)
{
    struct key_set s = {0};
    struct key_files_version version;
    struct strbuf fresh = {0};
    struct err err;
    enum err_code code = key_files_load(&f->place, &s, &version, &err);
    size_t before = change == MAKE ? 0 : 1, count = code == ERR_OK ? s.count : 0;
    const char *wrong = NULL;
    bool changed = count == before + 1;
    key_set_free(&s);
    if (code != ERR_OK && !(change == MAKE && code == ERR_AUTH_KEY_NOT_FOUND))
        return "the set cannot be read";
    if (count != before && !changed)
        return "the set is neither the old nor the new one";
    if (ended == DONE && !changed)
        return "what was reported done is undone";
    if (f->token.len) {
        enum token_reason reason = verify(f, &f->token, NOW + 1);
        if (reason != (change == REVOKE && changed ? TOKEN_KEY_REVOKED : TOKEN_OK))
            wrong = "the old token is judged wrongly";
    }
    if (mint(f, NOW + 1, &fresh, &err) != ERR_OK || verify(f, &fresh, NOW + 1) != TOKEN_OK)
        wrong = "no token can be minted";
    strbuf_free(&fresh);
    return wrong;
}

/* The next change works and leaves nothing behind but what belongs there. */
static void assert_goes_on(struct fixture *f)
{
    char path[256];
    struct key_record made;
    struct err err;
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + 2, &made, &err), ERR_OK);
    snprintf(path, sizeof path, "%s/keys", f->dir);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        assert_null(strstr(e->d_name, ".partial"));
    closedir(folder);
}

/* Every step of a change; gives the number of times the set was found wrong. */
static int walk(enum change change, enum plan_kind kind, bool sync_lies)
{
    int wrong = 0, ended = CUT, at = 0;
    while (ended != DONE) {
        struct fixture f;
        assert_true(++at < STEPS_MAX);
        set_up_change(&f, change);
        ended = change_in_child(&f, change, kind, at, sync_lies);
        const char *what = look(&f, change, ended);
        if (what && !sync_lies)
            fail_msg("change %d, plan %d, step %d: %s", change, kind, at, what);
        wrong += what != NULL;
        if (!what && !sync_lies)
            assert_goes_on(&f);
        strbuf_free(&f.token);
        remove_all(f.dir);
    }
    assert_true(at > 6); /* at least: two files, each written, synced, renamed, its folder synced */
    return wrong;
}

TEST(a_power_cut_at_any_step_leaves_the_old_or_the_new_key_set)
{
    for (enum change change = MAKE; change <= REVOKE; change++) {
        assert_int_equal(walk(change, PLAN_CUT_LOSING_RENAMES, false), 0);
        assert_int_equal(walk(change, PLAN_CUT_KEEPING_RENAMES, false), 0);
    }
}

TEST(a_disk_error_at_any_step_leaves_the_old_or_the_new_key_set)
{
    for (enum change change = MAKE; change <= REVOKE; change++)
        assert_int_equal(walk(change, PLAN_ERROR, false), 0);
}

/* Negative control: what fsync prevents is seen when it does nothing. */
TEST(without_fsync_the_same_cuts_damage_the_key_set)
{
    assert_true(walk(ROTATE, PLAN_CUT_KEEPING_RENAMES, true) > 0); /* half a manifest */
    assert_true(walk(ROTATE, PLAN_CUT_LOSING_RENAMES, true) > 0);  /* done, and undone */
}
