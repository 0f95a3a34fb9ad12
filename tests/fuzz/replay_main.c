/* The main() of a fuzz target where libFuzzer is not: replay_main FOLDER runs the target on every file of
 * the folder, and on the first half of each, since parsers see parts of what is sent. The empty input is
 * tried in any case; a folder that is not there is none besides. Ends with the report of the sanitizer or of
 * the target, or with 0. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX (16u << 20)

/* In memory of exactly its size: a read behind the end is seen. */
static void try_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    MUST(exact);
    if (size)
        memcpy(exact, bytes, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void try_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    MUST(file);
    uint8_t *bytes = malloc(INPUT_BYTES_MAX);
    MUST(bytes);
    size_t size = fread(bytes, 1, INPUT_BYTES_MAX, file);
    MUST(!ferror(file) && size < INPUT_BYTES_MAX);
    (void)fclose(file);
    try_bytes(bytes, size);
    try_bytes(bytes, size / 2);
    free(bytes);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    try_bytes(NULL, 0);
    DIR *folder = opendir(argv[1]);
    MUST(folder || errno == ENOENT);
    int inputs = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        MUST(snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name) < (int)sizeof path);
        printf("%s\n", path); /* the last one named is the one that failed */
        try_file(path);
        inputs++;
    }
    if (folder)
        (void)closedir(folder);
    printf("%d inputs\n", inputs);
    return 0;
}
