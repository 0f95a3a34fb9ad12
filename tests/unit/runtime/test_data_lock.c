/* One Weir per data directory. */
#include "case.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/data_lock.h"
#include "pace.h"

#include "base/banned.h"

static char base[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "/tmp/weir-lock-XXXXXX");
    return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

#define LOCK_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

LOCK_TEST(test_a_missing_directory_is_made_for_the_owner_only)
{
    char path[128];
    struct stat info;
    struct err err;
    snprintf(path, sizeof path, "%s/a/b/", base);
    assert_int_equal(data_dir_create(path, &err), ERR_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(data_dir_create(path, &err), ERR_OK); /* again is fine */
}

LOCK_TEST(test_a_file_in_the_place_of_the_directory_is_refused_by_name)
{
    char path[128];
    struct err err;
    snprintf(path, sizeof path, "%s/file", base);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(data_dir_create(path, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, path));
    assert_non_null(strstr(err.detail, "not a directory"));
}

LOCK_TEST(test_a_second_taker_is_refused_at_once_with_the_pid_of_the_first)
{
    int first, second;
    struct err err;
    char pid[32];
    assert_int_equal(data_lock_take(base, 10000, &first, &err), ERR_OK);
    struct pace before = pace_start();
    assert_int_not_equal(data_lock_take(base, 10000, &second, &err), ERR_OK);
    assert_true(pace_quiet_ms(&before) < 5000); /* did not wait for a living holder */
    snprintf(pid, sizeof pid, "process %d;", (int)getpid());
    assert_non_null(strstr(err.detail, pid));
    data_lock_release(first);
    assert_int_equal(data_lock_take(base, 0, &second, &err), ERR_OK);
    data_lock_release(second);
}

/* A root that took the lock and died, while a child of it holds on until `hold` is closed. It is
 * not waited for yet, as after a kill by a manager that is slow to notice. */
static pid_t leave_an_orphan(int hold[2])
{
    assert_int_equal(pipe(hold), 0);
    pid_t root = fork();
    if (root == 0) {
        struct err err;
        int fd;
        close(hold[1]);
        if (data_lock_take(base, 0, &fd, &err))
            _exit(9);
        if (fork() == 0) {
            char byte;
            ssize_t ignored = read(hold[0], &byte, 1);
            (void)ignored;
            _exit(0);
        }
        _exit(0);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)root, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, 0);
    close(hold[0]);
    return root;
}

LOCK_TEST(test_a_child_of_a_dead_root_still_keeps_a_second_writer_away)
{
    int hold[2], fd;
    struct err err;
    pid_t dead_root = leave_an_orphan(hold);
    assert_int_not_equal(data_lock_take(base, 0, &fd, &err), ERR_OK);
    assert_non_null(strstr(err.detail, "still held"));
    close(hold[1]); /* the orphan ends, and the wait with it */
    assert_int_equal(data_lock_take(base, 10000, &fd, &err), ERR_OK);
    data_lock_release(fd);
    assert_int_equal(waitpid(dead_root, NULL, 0), dead_root);
}

LOCK_TEST(test_the_epoch_grows_with_every_core_and_outlives_the_lock)
{
    int fd;
    struct err err;
    int64_t epoch = 0;
    for (int64_t root = 0; root < 3; root++) {
        assert_int_equal(data_lock_take(base, 0, &fd, &err), ERR_OK);
        for (int64_t core = 1; core <= 2; core++) {
            assert_int_equal(data_lock_raise_epoch(fd, &epoch, &err), ERR_OK);
            assert_int_equal(epoch, 2 * root + core);
        }
        data_lock_release(fd);
    }
}

/* As it was written before there was an epoch, and as a cut write would leave it. */
LOCK_TEST(test_a_lock_file_of_another_form_is_taken_all_the_same)
{
    static const char *const texts[] = {"", "12345\n", "nonsense", "12345\nx y\n", "\n\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char path[128];
        struct err err;
        int64_t epoch;
        snprintf(path, sizeof path, "%s/weir.lock", base);
        int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
        close(fd);
        assert_int_equal(data_lock_take(base, 0, &fd, &err), ERR_OK);
        assert_int_equal(data_lock_raise_epoch(fd, &epoch, &err), ERR_OK);
        assert_int_equal(epoch, 1);
        data_lock_release(fd);
    }
}
