/* Which process counts as silent. */
#include "case.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/heartbeat.h"

#include "base/banned.h"

enum { PAGES = 3, TIMEOUT_MS = 1000 };

static struct heart_page *pages;
static struct heartbeat_silence silence;

static int set_up(void **state)
{
    (void)state;
    pages = heartbeat_pages_new(PAGES);
    heart_use(pages, PAGES, 1, 250);
    return pages ? 0 : -1;
}

static bool silent_after(int64_t ms)
{
    return heartbeat_silent(&pages[1], TIMEOUT_MS, clock_mono_ms(&clock_system) + ms, &silence);
}

#define PAGE_TEST(name) TEST_BETWEEN(name, set_up, NULL)

PAGE_TEST(test_a_loop_that_does_not_beat_is_silent_after_its_time)
{
    assert_false(silent_after(1000000)); /* no loops, nobody silent: still starting, or a test's child */
    struct heart *one = heart_open("one"), *two = heart_open("two");
    assert_false(silent_after(TIMEOUT_MS / 2));
    assert_true(silent_after(TIMEOUT_MS * 2));
    atomic_fetch_add(&one->beat_ms, 5000);
    assert_true(silent_after(TIMEOUT_MS * 2)); /* one loop that stands is enough */
    assert_string_equal(silence.loop, "two");
    assert_int_equal(silence.thread_id, getpid());
    heart_close(two);
    assert_false(silent_after(TIMEOUT_MS * 2)); /* it ended; nobody misses it */
}

PAGE_TEST(test_a_loop_that_waits_for_a_disk_is_not_silent)
{
    struct heart *h = heart_open("commit");
    heart_waits(h, true);
    assert_false(silent_after(3600000));
    heart_waits(h, false);
    assert_true(silent_after(TIMEOUT_MS * 2)); /* the control: the same loop, without the wait */
}

PAGE_TEST(test_a_page_is_cleared_for_the_next_process_and_keeps_its_counters)
{
    heart_open("old");
    heart_add_count(3);
    heartbeat_clear(&pages[1]);
    assert_false(silent_after(3600000));
    assert_int_equal(heart_count(3), 1);
    heart_open("new");
    assert_true(silent_after(TIMEOUT_MS * 2));
    assert_string_equal(silence.loop, "new");
}

PAGE_TEST(test_loops_beyond_the_slots_are_not_watched_and_do_no_harm)
{
    for (int i = 0; i < HEART_SLOTS; i++)
        assert_non_null(heart_open("many"));
    struct heart *none = heart_open("one more");
    assert_null(none);
    heart_beat(none);
    heart_waits(none, true);
    heart_close(none);
    assert_true(silent_after(TIMEOUT_MS * 2));
}

PAGE_TEST(test_counters_of_all_processes_add_up)
{
    heart_add_count(0);
    pid_t child = fork();
    if (child == 0) {
        heart_use(pages, PAGES, 2, 250);
        heartbeat_keep_own(pages, PAGES, 2);
        heart_add_count(0);
        heart_add_count(0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(heart_count(0), 1);
    assert_int_equal(heart_count_all(0), 3);
}

PAGE_TEST(test_a_process_cannot_write_on_the_page_of_another)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        heartbeat_keep_own(pages, PAGES, 2);
        atomic_store(&pages[2].slots[0].beat_ms, 1); /* its own is fine */
        atomic_store(&pages[1].slots[0].beat_ms, 1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(atomic_load(&pages[2].slots[0].beat_ms), 1);
}

PAGE_TEST(test_sleeps_are_cut_to_the_interval)
{
    assert_int_equal(heart_sleep_ms(-1), 250);
    assert_int_equal(heart_sleep_ms(60000), 250);
    assert_int_equal(heart_sleep_ms(0), 0);
    assert_int_equal(heart_sleep_ms(100), 100);
}

/* State D is had in test_supervisor_restart.c; that the others are not taken for it is seen here. */
PAGE_TEST(test_a_stopped_process_is_told_from_one_that_runs_or_waits)
{
    siginfo_t info;
    assert_false(heartbeat_in_disk_wait(getpid(), getpid()));
    assert_false(heartbeat_is_stopped(getpid()));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        for (;;)
            pause();
    }
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
    assert_false(heartbeat_in_disk_wait(child, child));
    assert_true(heartbeat_is_stopped(child));
    assert_true(heartbeat_is_stopped(child)); /* asking changes nothing */
    kill(child, SIGCONT);
    assert_false(heartbeat_is_stopped(child));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(heartbeat_in_disk_wait(child, child)); /* gone */
    assert_false(heartbeat_is_stopped(child));
}
