#include "case.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "domains/runner/exercise.h"

#include "base/banned.h"

enum { PATIENCE_MS = 60000 };

static char dir[] = "/tmp/weir-exercise-XXXXXX";
static struct exerciser *x;
static int scratch_fd;

static int open_exerciser(void **state)
{
    (void)state;
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(dir));
    scratch_fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(scratch_fd >= 0);
    x = exerciser_new(scratch_fd);
    return 0;
}

static int close_exerciser(void **state)
{
    (void)state;
    x = exerciser_free(x);
    close(scratch_fd);
    return rmdir(dir); /* fails when something was left behind */
}

/* The thread tells nobody what it has done: the loop never waits for it. So the test looks. */
#define UNTIL(fact)                                                                                          \
    do {                                                                                                     \
        int64_t until_ms = clock_mono_ms(&clock_system) + PATIENCE_MS;                                       \
        while (!(fact)) {                                                                                    \
            assert_true(clock_mono_ms(&clock_system) < until_ms);                                            \
            nanosleep(&(struct timespec){0, 1000000}, NULL);                                                 \
        }                                                                                                    \
    } while (0)

#define THREAD_TEST(name) TEST_BETWEEN(name, open_exerciser, close_exerciser)

THREAD_TEST(test_kinds_that_use_nothing_have_no_exercise)
{
    assert_null(exercise_begin(x, BEHAVE_WAIT, 1000, 1000));
    assert_null(exercise_begin(x, BEHAVE_LARGE_OUTPUT, 1000, 1000));
    assert_null(exercise_begin(x, BEHAVE_FAIL_ONCE, 1000, 1000));
    assert_true(exercise_end(x, NULL));
}

THREAD_TEST(test_cpu_is_burnt_but_never_more_than_the_bound)
{
    struct exercise *e = exercise_begin(x, BEHAVE_BURN_CPU, 3600 * 1000000LL, 0);
    UNTIL(exerciser_count(x).cpu_us >= EXERCISE_CPU_MS_MAX * 1000);
    assert_true(exercise_end(x, e));
    struct exercise *last = exercise_begin(x, BEHAVE_WRITE_FILE, 0, 1);
    UNTIL(exerciser_count(x).files == 1); /* the thread has nothing else in hand by now */
    assert_true(exerciser_count(x).cpu_us < (EXERCISE_CPU_MS_MAX + 10) * 1000);
    exercise_end(x, last);
}

THREAD_TEST(test_ending_a_burst_early_stops_it)
{
    struct exercise *e = exercise_begin(x, BEHAVE_BURN_CPU, 50000, 0);
    UNTIL(exerciser_count(x).cpu_us > 0);
    assert_true(exercise_end(x, e));
    struct exercise *last = exercise_begin(x, BEHAVE_WRITE_FILE, 0, 1);
    UNTIL(exerciser_count(x).files == 1);
    uint64_t burnt_us = exerciser_count(x).cpu_us;
    assert_true(burnt_us < 50000);
    exercise_end(x, last);
}

THREAD_TEST(test_bursts_take_turns)
{
    struct exercise *long_one = exercise_begin(x, BEHAVE_BURN_CPU, 50000, 0);
    struct exercise *file = exercise_begin(x, BEHAVE_WRITE_FILE, 0, 1);
    UNTIL(exerciser_count(x).files == 1);
    assert_true(exerciser_count(x).cpu_us < 50000); /* the file did not wait for the whole burst */
    exercise_end(x, long_one);
    exercise_end(x, file);
}

static long resident_kb(void)
{
    long pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(f, "%ld %ld", &ignored, &pages), 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

THREAD_TEST(test_every_block_is_touched_few_are_held_and_all_are_given_back)
{
    struct exercise *e[12];
    long before_kb = resident_kb();
    for (size_t i = 0; i < LENGTH_OF(e); i++)
        e[i] = exercise_begin(x, BEHAVE_TOUCH_MEMORY, 0, 0);
    UNTIL(exerciser_count(x).blocks == LENGTH_OF(e));
    long held_kb = resident_kb() - before_kb;
    for (size_t i = 0; i < LENGTH_OF(e); i++)
        assert_true(exercise_end(x, e[i]));
    long left_kb = resident_kb() - before_kb;
#if !defined(__SANITIZE_THREAD__)                        /* it doubles what is touched */
    assert_in_range(held_kb, 3 * 8192, 5 * 8192 + 4096); /* four blocks, of twelve */
    assert_true(left_kb < 8192);
#else
    assert_true(left_kb < held_kb);
#endif
}

THREAD_TEST(test_a_file_is_written_compared_and_leaves_nothing_behind)
{
    struct exercise *e = exercise_begin(x, BEHAVE_WRITE_FILE, 0, SIZE_MAX); /* cut to the bound */
    UNTIL(exerciser_count(x).files == 1);
    assert_true(exercise_end(x, e));
    struct stat file;
    assert_int_equal(fstat(scratch_fd, &file), 0);
    assert_int_equal(file.st_size, 0);
}

THREAD_TEST(test_a_file_that_cannot_be_written_fails_the_exercise)
{
    struct exerciser *nowhere = exerciser_new(-1);
    struct exercise *file = exercise_begin(nowhere, BEHAVE_WRITE_FILE, 0, 4096);
    struct exercise *burst = exercise_begin(nowhere, BEHAVE_BURN_CPU, 2000, 0);
    UNTIL(exerciser_count(nowhere).cpu_us >= 2000); /* so the file has had its turn */
    assert_false(exercise_end(nowhere, file));
    assert_true(exercise_end(nowhere, burst));
    exerciser_free(nowhere);
}
