#include "runtime/scratch_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

const char *scratch_dir(void)
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

int scratch_file_open(void)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/weir-scratch-XXXXXX", scratch_dir()) >= (int)sizeof path)
        return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
