/* Lines reach stderr whole, in order and in time; a stuck stderr stops nobody. Each case is a child process
 * whose stderr is a pipe of ours. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/must.h"
#include "pace.h"

#include "base/banned.h"

enum { PIPE_BYTES = 16384, MANY = 20000, THREADS = 4 };

struct child {
    pid_t pid;
    int log;
};

static struct child start(void (*body)(void))
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) >= PIPE_BYTES);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        log_process("child");
        body();
        exit(7);
    }
    close(ends[1]);
    return (struct child){pid, ends[0]};
}

static struct strbuf read_all(struct child *c)
{
    struct strbuf text = {0};
    char bytes[4096];
    for (ssize_t n; (n = read(c->log, bytes, sizeof bytes)) > 0;)
        strbuf_add(&text, bytes, (size_t)n);
    close(c->log);
    return text;
}

static int wait_end(const struct child *c)
{
    int status;
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    return status;
}

static size_t count(const struct strbuf *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text->ptr; at && (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* Every line is one object and lines of one thread are in order; gives how many "n" lines there are. */
static size_t check_lines(const struct strbuf *text)
{
    struct arena *a = arena_new(1 << 16);
    int64_t last[THREADS] = {0};
    size_t found = 0;
    for (struct str rest = strbuf_str(text); rest.len;) {
        struct str line = str_cut(&rest, '\n');
        const struct json *j, *n, *thread;
        struct err err;
        int64_t number, t = 0;
        assert_int_equal(json_parse(a, line, &j, &err), ERR_OK);
        n = json_get(j, "n");
        thread = json_get(j, "thread");
        if (n && json_to_int(n, &number) && (!thread || json_to_int(thread, &t))) {
            assert_true(number > last[t]);
            last[t] = number;
            found++;
        }
        arena_reset(a);
    }
    arena_free(a);
    return found;
}

static void log_numbers(int64_t thread, int64_t lines)
{
    for (int64_t n = 1; n <= lines; n++)
        log_line(LOG_INFO, "line", "thread", LOG_INT(thread), "n", LOG_INT(n), NULL);
}

/* --- the cases ------------------------------------------------------------------------------------- */

static void *log_thread(void *number)
{
    log_numbers(*(int64_t *)number, 200);
    return NULL;
}

static void log_from_threads(void)
{
    pthread_t threads[THREADS];
    int64_t numbers[THREADS];
    log_background();
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        MUST(pthread_create(&threads[i], NULL, log_thread, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

TEST(exit_writes_everything_that_was_logged)
{
    struct child c = start(log_from_threads);
    struct strbuf text = read_all(&c);
    assert_int_equal(WEXITSTATUS(wait_end(&c)), 7);
    assert_int_equal(check_lines(&text), THREADS * 200);
    strbuf_free(&text);
}

static void abort_in_a_hurry(void)
{
    log_background();
    log_numbers(0, 20);
    abort();
}

TEST(abort_writes_everything_that_was_logged)
{
    struct child c = start(abort_in_a_hurry);
    struct strbuf text = read_all(&c);
    int status = wait_end(&c);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(check_lines(&text), 20);
    strbuf_free(&text);
}

static void error_then_gone(void)
{
    log_background();
    log_line(LOG_ERROR, "store_lost", "n", LOG_INT(1), NULL);
    _exit(7);
}

TEST(an_error_line_is_out_before_the_next_statement)
{
    struct child c = start(error_then_gone);
    struct strbuf text = read_all(&c);
    wait_end(&c);
    assert_int_equal(check_lines(&text), 1);
    strbuf_free(&text);
}

/* Nobody reads until the parent has seen it stop. */
static void log_into_nothing(void)
{
    log_background();
    int64_t began = clock_mono_ms(&clock_system);
    for (int i = 0; i < MANY; i++)
        log_line(i % 1000 ? LOG_INFO : LOG_ERROR, "line", "filler",
                 LOG_TEXT("0123456789012345678901234567890123456789"), "n", LOG_INT(i + 1), NULL);
    MUST(clock_mono_ms(&clock_system) - began < 20000); /* 20 error lines, only the first waits */
    MUST(log_dropped() > 0 && log_dropped() < MANY);
    MUST(!log_flush(10));
    kill(getpid(), SIGSTOP);
    MUST(log_flush(10000));
    log_line(LOG_INFO, "after", NULL);
}

TEST(a_stuck_stderr_stops_nobody_and_what_was_dropped_is_told)
{
    struct child c = start(log_into_nothing);
    int status;
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_true(WIFSTOPPED(status));
    kill(c.pid, SIGCONT);
    struct strbuf text = read_all(&c);
    assert_int_equal(WEXITSTATUS(wait_end(&c)), 7);
    size_t written = check_lines(&text);
    assert_true(written > 1000 && written < MANY);
    assert_int_equal(count(&text, "\"event\":\"log_dropped\""), 1);
    char told[64];
    snprintf(told, sizeof told, "\"lines\":%zu}", MANY - written);
    assert_int_equal(count(&text, told), 1);
    assert_int_equal(count(&text, "\"event\":\"after\""), 1);
    strbuf_free(&text);
}

static void exit_while_stuck(void)
{
    log_background();
    log_numbers(0, 1000);
}

TEST(a_stuck_stderr_does_not_keep_a_process_from_ending)
{
    struct pace began = pace_start();
    struct child c = start(exit_while_stuck);
    assert_int_equal(WEXITSTATUS(wait_end(&c)), 7);
    assert_true(pace_quiet_ms(&began) < 10 * LOG_EXIT_WAIT_MS);
    close(c.log);
}

/* Root has no thread: its lines are tried, then dropped. */
static void log_directly_into_nothing(void)
{
    for (int i = 0; !log_dropped(); i++) {
        MUST(i < 1000);
        log_numbers(0, 1);
    }
}

TEST(without_the_thread_a_stuck_stderr_costs_a_moment)
{
    struct child c = start(log_directly_into_nothing);
    assert_int_equal(WEXITSTATUS(wait_end(&c)), 7);
    struct strbuf text = read_all(&c);
    assert_true(count(&text, "\"n\":1") > 1);
    strbuf_free(&text);
}

static void no_line_below_the_level(void)
{
    log_background();
    log_minimum(LOG_WARN);
    log_line(LOG_INFO, "quiet", NULL);
    log_line(LOG_WARN, "loud", "absent", LOG_STR(STR_ABSENT), "text", LOG_TEXT("a\"\n\x01"), NULL);
}

TEST(levels_and_hostile_texts_hold)
{
    struct child c = start(no_line_below_the_level);
    struct strbuf text = read_all(&c);
    wait_end(&c);
    assert_int_equal(check_lines(&text), 0);
    assert_int_equal(count(&text, "quiet") + count(&text, "absent"), 0);
    assert_int_equal(count(&text, "\"process\":\"child\",\"event\":\"loud\""), 1);
    assert_int_equal(count(&text, "\n"), 1);
    strbuf_free(&text);
}

static void log_for_people(void)
{
    log_use_format(LOG_FORMAT_TEXT);
    log_line(LOG_WARN, "things", "plain", LOG_TEXT("a.b/c"), "n", LOG_INT(-7), "words",
             LOG_TEXT("two \"words\""), "object", LOG_TEXT("{\"a\":\"b c\"}"), "empty", LOG_TEXT(""), "evil",
             LOG_TEXT("a\n\033[31m\177\302\233x\\"), "absent", LOG_STR(STR_ABSENT), NULL);
    exit(0);
}

/* No value ends a line or steers a terminal; a pipe has no colours. */
TEST(test_a_line_for_people_is_one_line_of_visible_characters)
{
    struct child c = start(log_for_people);
    struct strbuf text = read_all(&c);
    assert_int_equal(wait_end(&c), 0);
    assert_string_equal(text.ptr + strlen("15:04:05.123"),
                        "Z WARN  child     things plain=a.b/c n=-7 words=\"two \\\"words\\\"\" "
                        "object={\"a\":\"b c\"} empty=\"\" evil=\"a\\x0a\\x1b[31m\\x7f\\u009bx\\\\\"\n");
    strbuf_free(&text);
}
