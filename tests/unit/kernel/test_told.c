/* What the kernel writes to the log: failures, once a second; a clock that jumps, once. */
#include "unit/kernel/rig.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

#include "base/banned.h"

enum { DAY_MS = 86400000 };

static int lines_fd, stderr_was;

static void listen_to_the_log(void)
{
    lines_fd = memfd_create("log", MFD_CLOEXEC);
    stderr_was = dup(STDERR_FILENO);
    assert_true(lines_fd >= 0 && stderr_was >= 0 && dup2(lines_fd, STDERR_FILENO) >= 0);
    log_minimum(LOG_INFO);
}

static void stop_listening(void)
{
    log_minimum((enum log_level)(LOG_ERROR + 1));
    dup2(stderr_was, STDERR_FILENO);
    close(stderr_was);
    close(lines_fd);
}

/* Lines that hold all of these words; NULL: any. */
static int lines_with(const char *one, const char *two, const char *three)
{
    static char text[65536];
    ssize_t len = pread(lines_fd, text, sizeof text - 1, 0);
    assert_in_range(len, 0, sizeof text - 2);
    text[len] = 0;
    int n = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        n += strstr(line, one) && (!two || strstr(line, two)) && (!three || strstr(line, three));
    }
    return n;
}

static void fail_a_commit(struct rig *r, int64_t client)
{
    struct submit_item item = rig_item();
    r->failures = 1;
    rig_submit(r, client, &item);
}

static void test_failures_are_told_once_a_second(void **state)
{
    struct rig *r = *state;
    int64_t client = rig_new_client(r, NULL);
    listen_to_the_log();
    fail_a_commit(r, client);
    assert_int_equal(lines_with("\"commit_failed\"", "\"error\"", "told to fail"), 1);
    rig_pass(r, 999);
    fail_a_commit(r, client);
    assert_int_equal(lines_with("\"commit_failed\"", NULL, NULL), 1);
    rig_pass(r, 1);
    fail_a_commit(r, client);
    fail_a_commit(r, client);
    assert_int_equal(lines_with("\"commit_failed\"", NULL, NULL), 2);
    stop_listening();
}

/* By how much, and when it is right again. */
static void test_a_jump_of_the_clock_is_told_when_it_begins_and_ends(void **state)
{
    struct rig *r = *state;
    struct kernel_stats s;
    rig_step(r);
    listen_to_the_log();
    rig_step(r);
    assert_int_equal(lines_with("\"clock\"", NULL, NULL), 0);
    rig_set_wall(r, DAY_MS);
    rig_step(r);
    rig_step(r);
    assert_int_equal(lines_with("\"clock\"", NULL, NULL), 1);
    assert_int_equal(lines_with("\"clock\"", "\"error\"", "\"off_by_ms\":86400000"), 1);
    assert_int_equal(lines_with("\"clock\"", "\"deletes\":0", NULL), 1);
    kernel_stats(r->kernel, &s);
    assert_true(s.clock_in_doubt);
    rig_set_wall(r, -DAY_MS);
    rig_step(r);
    assert_int_equal(lines_with("\"clock\"", NULL, NULL), 2);
    assert_int_equal(lines_with("\"clock\"", "\"info\"", "\"off_by_ms\":0"), 1);
    kernel_stats(r->kernel, &s);
    assert_false(s.clock_in_doubt);
    rig_set_wall(r, DAY_MS);
    kernel_accept_clock(r->kernel); /* somebody says that it is right */
    rig_step(r);
    assert_int_equal(lines_with("\"clock\"", NULL, NULL), 2);
    kernel_stats(r->kernel, &s);
    assert_false(s.clock_in_doubt);
    stop_listening();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_failures_are_told_once_a_second),
        RIG_TEST(test_a_jump_of_the_clock_is_told_when_it_begins_and_ends),
    };
    return RIG_RUN_BOTH(tests);
}
