/* The signal bus between processes: what one says the others hear, whoever they are. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#include "base/bus.h"
#include "base/heart.h"

#include "base/banned.h"

enum { PROCESSES = 3, ROOT = 0 };

static struct heart_page *new_pages(void)
{
    void *pages = mmap(NULL, PROCESSES * sizeof(struct heart_page), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    return pages;
}

static void say(struct heart_page *pages, size_t process, enum bus_topic topic, int64_t value)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        heart_use(pages, PROCESSES, process, 100);
        bus_publish(topic, value);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* What a process hears: value and count in one exit code. */
static int heard(struct heart_page *pages, size_t process, enum bus_topic topic)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        heart_use(pages, PROCESSES, process, 100);
        struct bus_word w = bus_last(topic);
        _exit((int)(w.value * 10 + (int64_t)w.count));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* [TOP-004] */
TEST(test_what_one_process_says_the_others_hear)
{
    struct heart_page *pages = new_pages();
    for (size_t i = 0; i < PROCESSES; i++) /* the control: nobody has said anything */
        assert_int_equal(heard(pages, i, BUS_REPLAY), 0);
    say(pages, 1, BUS_REPLAY, 7);
    for (size_t i = 0; i < PROCESSES; i++)
        assert_int_equal(heard(pages, i, BUS_REPLAY), 71);
    say(pages, 1, BUS_REPLAY, 5);
    usleep(2000); /* by the clock, too, the next word is later */
    say(pages, 2, BUS_REPLAY, 9);
    for (size_t i = 0; i < PROCESSES; i++)
        assert_int_equal(heard(pages, i, BUS_REPLAY), 93);
    munmap(pages, PROCESSES * sizeof *pages);
}

TEST(test_a_process_without_a_root_speaks_to_itself)
{
    assert_int_equal(bus_last(BUS_REPLAY).count, 0);
    bus_publish(BUS_REPLAY, 2);
    bus_publish(BUS_REPLAY, 3);
    struct bus_word w = bus_last(BUS_REPLAY);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.value, 3);
    assert_true(w.at_ms > 0);
}
