/* Copies and renames that never leave half a file under its final name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "cli/durable_file.h"

#include "base/banned.h"

static int enter_directory(void **state)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    if (!mkdtemp(path) || chdir(path) != 0)
        return -1;
    *state = must_strdup(path);
    return 0;
}

static int leave_directory(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < LENGTH_OF(names); i++)
        unlink(names[i]);
    if (chdir("/") != 0 || rmdir(*state) != 0)
        return -1;
    free(*state);
    return 0;
}

static void write_file(const char *name, size_t bytes)
{
    FILE *f = fopen(name, "w");
    for (size_t i = 0; i < bytes; i++)
        fputc((int)(i * 7 & 0xFF), f);
    assert_int_equal(fclose(f), 0);
}

#define DIRECTORY_TEST(name) TEST_BETWEEN(name, enter_directory, leave_directory)

DIRECTORY_TEST(test_a_copy_has_every_byte_and_is_private)
{
    enum { BYTES = (1 << 20) + 17 };
    struct err err;
    write_file("a", BYTES);
    assert_int_equal(file_copy_synced("a", "b", &err), ERR_OK);
    assert_int_equal(file_bytes("b"), BYTES);
    FILE *f = fopen("b", "r");
    for (size_t i = 0; i < BYTES; i++)
        if (fgetc(f) != (int)(i * 7 & 0xFF))
            fail_msg("byte %zu differs", i);
    fclose(f);
    assert_int_equal(access("b", X_OK), -1);
}

DIRECTORY_TEST(test_a_copy_or_rename_never_overwrites)
{
    struct err err;
    write_file("a", 5);
    write_file("b", 9);
    assert_int_not_equal(file_copy_synced("a", "b", &err), ERR_OK);
    assert_int_equal(file_bytes("b"), 9);
    assert_int_not_equal(file_publish("a", "b", &err), ERR_OK);
    assert_non_null(strstr(err.detail, "b exists"));
    assert_int_equal(file_bytes("a"), 5);
    assert_int_equal(file_bytes("b"), 9);
    assert_int_equal(file_publish("a", "c", &err), ERR_OK);
    assert_false(file_exists("a"));
    assert_int_equal(file_bytes("c"), 5);
}

DIRECTORY_TEST(test_removing_what_is_not_there_is_fine)
{
    struct err err;
    assert_int_equal(file_remove("a", &err), ERR_OK);
    assert_int_equal(file_bytes("a"), -1);
    assert_int_not_equal(file_copy_synced("a", "b", &err), ERR_OK);
    assert_false(file_exists("b"));
}
