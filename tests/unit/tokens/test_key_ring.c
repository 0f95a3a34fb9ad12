/* The keys that verify, as a change of their list on disk reaches them. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "tokens/key_ring.h"

#include "base/banned.h"

enum { NOW = 1800000000 };

struct fixture {
    char path[64], list[128], kid[KEY_ID_MAX + 1];
    struct key_place place;
    struct stat at_first;
};

static int set_up(void **state)
{
    struct fixture *f = must_alloc(sizeof *f);
    struct key_record made;
    struct err err;
    snprintf(f->path, sizeof f->path, "/tmp/weir-key-ring-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->place = (struct key_place){.data_dir = f->path,
                                  .environment = "dev",
                                  .rules = {KEY_OVERLAP_SECONDS_MIN, KEY_HISTORY_SECONDS_MIN}};
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, &made, &err), ERR_OK);
    snprintf(f->list, sizeof f->list, "%s/keys/manifest.json", f->path);
    snprintf(f->kid, sizeof f->kid, "%s", made.kid);
    assert_int_equal(stat(f->list, &f->at_first), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#define RING_TEST(name, parameter) TEST_WITH(name, struct fixture *parameter, set_up, tear_down)

RING_TEST(a_change_of_the_keys_leaves_no_descriptor_open, f)
{
    struct key_record made;
    struct err err;
    int before = open_descriptors();
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + 1, &made, &err), ERR_OK);
    assert_int_equal(open_descriptors(), before);
}

/* The list in a file: that of one new key, or of as many. Its kid is that of the last. */
static void write_list(struct fixture *f, const char *path, int keys, long later_ns)
{
    struct key_set s = {0};
    struct token_key key CLEANUP(token_key_free) = {0};
    struct strbuf text CLEANUP(strbuf_free) = {0};
    const struct key_record *made;
    struct err err;
    snprintf(s.environment, sizeof s.environment, "dev");
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &key, &err), ERR_OK);
    for (int i = 0; i < keys; i++) {
        assert_int_equal(key_set_add(&s, &key, STR("t"), &f->place.rules, false, NOW, &made, &err), ERR_OK);
        snprintf(f->kid, sizeof f->kid, "%s", made->kid);
    }
    key_set_write(&s, &text);
    key_set_free(&s);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    fclose(file);
    struct timespec times[2] = {f->at_first.st_mtim, f->at_first.st_mtim};
    times[1].tv_nsec = (times[1].tv_nsec + later_ns) % 1000000000;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static enum token_reason find(struct key_ring *ring, const char *kid, int64_t now)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    return key_ring_find(ring, str_of(kid), now, &key);
}

/* By its time, its length or its number; looked at once a second. */
RING_TEST(a_list_that_is_another_by_anything_is_read_again, f)
{
    struct key_ring *ring = key_ring_new(&f->place);
    char other[160], first[KEY_ID_MAX + 1];
    snprintf(first, sizeof first, "%s", f->kid);
    assert_int_equal(find(ring, first, NOW), TOKEN_OK);
    write_list(f, f->list, 1, 1); /* a nanosecond later */
    assert_int_equal(find(ring, first, NOW), TOKEN_OK);
    assert_int_equal(find(ring, f->kid, NOW + 1), TOKEN_OK);
    assert_int_equal(find(ring, first, NOW + 1), TOKEN_KEY_UNKNOWN);
    write_list(f, f->list, 2, 1); /* longer */
    assert_int_equal(find(ring, f->kid, NOW + 2), TOKEN_OK);
    snprintf(other, sizeof other, "%s.new", f->list);
    write_list(f, other, 2, 1); /* another file with all else the same */
    assert_int_equal(rename(other, f->list), 0);
    assert_int_equal(find(ring, f->kid, NOW + 3), TOKEN_OK);
    key_ring_free(ring);
}

/* Its first token comes in the second of a look. Unauthenticated callers cannot cause looks without end. */
RING_TEST(a_new_key_is_found_at_once_and_no_key_only_so_often, f)
{
    struct key_ring *ring = key_ring_new(&f->place);
    assert_int_equal(find(ring, f->kid, NOW), TOKEN_OK);
    write_list(f, f->list, 1, 1);
    assert_int_equal(find(ring, f->kid, NOW), TOKEN_OK);
    for (int i = 2; i < KEY_RING_MORE_LOOKS_MAX; i++)
        assert_int_equal(find(ring, "nobody", NOW), TOKEN_KEY_UNKNOWN);
    write_list(f, f->list, 2, 1);
    assert_int_equal(find(ring, f->kid, NOW), TOKEN_OK); /* by the last look */
    write_list(f, f->list, 3, 1);
    assert_int_equal(find(ring, f->kid, NOW), TOKEN_KEY_UNKNOWN);
    assert_int_equal(find(ring, f->kid, NOW + 1), TOKEN_OK);
    key_ring_free(ring);
}

RING_TEST(keys_that_cannot_be_read_any_more_count_for_a_while, f)
{
    struct key_ring *ring = key_ring_new(&f->place);
    struct strbuf out CLEANUP(strbuf_free) = {0};
    struct err err;
    assert_int_equal(find(ring, f->kid, NOW), TOKEN_OK);
    assert_int_equal(unlink(f->list), 0);
    assert_int_equal(find(ring, f->kid, NOW + KEY_RING_STALE_SECONDS), TOKEN_OK);
    assert_int_equal(key_ring_jwks(ring, NOW + KEY_RING_STALE_SECONDS, &out, &err), ERR_OK);
    assert_non_null(strstr(out.ptr, f->kid));
    assert_int_equal(find(ring, f->kid, NOW + KEY_RING_STALE_SECONDS + 1), TOKEN_KEYS_UNREADABLE);
    assert_int_equal(key_ring_jwks(ring, NOW + KEY_RING_STALE_SECONDS + 1, &out, &err),
                     ERR_AUTH_KEY_NOT_FOUND);
    assert_non_null(strstr(err.detail, f->list));
    key_ring_free(ring);
}

RING_TEST(keys_are_made_in_a_folder_that_is_not_there_yet, f)
{
    struct key_record made;
    struct err err;
    char path[80];
    snprintf(path, sizeof path, "%s/new", f->path);
    f->place.data_dir = path;
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, &made, &err), ERR_OK);
}

static void *hold_for_a_while(void *lock)
{
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    close(*(int *)lock);
    return NULL;
}

/* Whoever changes the keys has them for himself for a moment; others wait, ten seconds at most. */
RING_TEST(who_finds_the_keys_locked_waits_for_his_turn, f)
{
    struct key_record made;
    struct err err;
    char path[80];
    pthread_t holder;
    snprintf(path, sizeof path, "%s/keys/lock", f->path);
    int lock = open(path, O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0 && flock(lock, LOCK_EX) == 0);
    assert_int_equal(pthread_create(&holder, NULL, hold_for_a_while, &lock), 0);
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, &made, &err), ERR_OK);
    pthread_join(holder, NULL);
}

static int files_in(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Files may not grow beyond a few bytes here: as on a full disk. */
RING_TEST(a_key_that_cannot_be_written_leaves_no_part_of_it, f)
{
    struct key_record made;
    struct rlimit before, few;
    struct err err;
    char path[80];
    snprintf(path, sizeof path, "%s/keys", f->path);
    int count = files_in(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = before;
    few.rlim_cur = 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    enum err_code code = key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + 1, &made, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, ERR_STORAGE_UNAVAILABLE);
    assert_int_equal(files_in(path), count);
}
