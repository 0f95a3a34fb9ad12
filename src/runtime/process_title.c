#include "runtime/process_title.h"

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/must.h"

#include "base/banned.h"

static struct {
    char *start;
    size_t size;
} area; /* argv and environment as the kernel laid them out, one after the other */

/* The old strings stay, since pointers to them may be kept; only `environ` is pointed elsewhere. */
static void move_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **moved = must_alloc((count + 1) * sizeof *moved);
    for (size_t i = 0; i < count; i++)
        moved[i] = must_strdup(environ[i]);
    environ = moved;
}

void process_title_prepare(int argc, char **argv)
{
    if (area.start || argc < 1 || !argv || !argv[0])
        return;
    char *end = argv[0];
    for (int i = 0; i < argc && argv[i] && argv[i] == end; i++)
        end = argv[i] + strlen(argv[i]) + 1;
    for (size_t i = 0; environ[i] == end; i++)
        end = environ[i] + strlen(environ[i]) + 1;
    area.start = argv[0];
    area.size = (size_t)(end - argv[0]);
    move_environment();
}

void process_title_set(const char *title)
{
    prctl(PR_SET_NAME, title);
    size_t len = strlen(title);
    if (area.size < 2)
        return;
    if (len > area.size - 1)
        len = area.size - 1;
    memset(area.start, 0, area.size);
    memcpy(area.start, title, len);
}
