/* What ps shows. Needs the real argv, so main() keeps it. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/process_title.h"

#include "base/banned.h"

static char *kept_value;

static void command_line(char *out, size_t size)
{
    FILE *f = fopen("/proc/self/cmdline", "re");
    assert_non_null(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = 0;
    fclose(f);
}

TEST(test_ps_shows_the_title_and_the_environment_survives)
{
    char shown[4096], long_title[8192];
    process_title_set("weir: runner 1");
    command_line(shown, sizeof shown);
    assert_string_equal(shown, "weir: runner 1");
    assert_string_equal(getenv("WEIR_TITLE_TEST"), kept_value);
    process_title_set("weir: core");
    command_line(shown, sizeof shown);
    assert_string_equal(shown, "weir: core");
    memset(long_title, 'x', sizeof long_title - 1);
    long_title[sizeof long_title - 1] = 0;
    process_title_set(long_title); /* cut, never written beyond its place */
    assert_string_equal(getenv("WEIR_TITLE_TEST"), kept_value);
}

int main(int argc, char **argv)
{
    if (!getenv("WEIR_TITLE_TEST")) { /* an environment of known content, laid out by the kernel */
        char sanitizer[512];
        const char *options = getenv("ASAN_OPTIONS"); /* they say what this machine allows */
        (void)snprintf(sanitizer, sizeof sanitizer, "ASAN_OPTIONS=%s", options ? options : "");
        char *again[] = {(char[]){"t"}, NULL};
        char *environment[] = {(char[]){"WEIR_TITLE_TEST=still here"}, sanitizer, NULL};
        execve("/proc/self/exe", again, environment);
        return 1;
    }
    kept_value = strdup(getenv("WEIR_TITLE_TEST"));
    process_title_prepare(argc, argv);
    int failed = test_run("tests", NULL, NULL);
    free(kept_value);
    return failed;
}
