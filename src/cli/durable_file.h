/* cli/durable_file.h - files that are whole on the disk, or not there at all. */
#ifndef WEIR_CLI_DURABLE_FILE_H
#define WEIR_CLI_DURABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

MUST_CHECK enum err_code file_sync(const char *path, struct err *err);
MUST_CHECK enum err_code file_sync_directory_of(const char *path, struct err *err);
/* An empty file that only this user may read; it must not exist. */
MUST_CHECK enum err_code file_create_private(const char *path, struct err *err);
/* Makes `to`, which must not exist; synced when this returns. */
MUST_CHECK enum err_code file_copy_synced(const char *from, const char *to, struct err *err);
/* Renames unless `to` exists; the directory is synced. */
MUST_CHECK enum err_code file_publish(const char *from, const char *to, struct err *err);
/* Missing is fine. */
MUST_CHECK enum err_code file_remove(const char *path, struct err *err);
bool file_exists(const char *path);
int64_t file_bytes(const char *path); /* -1 when there is none */

#endif
