/* runtime/data_lock.h - one Weir per data directory.
 *
 * The lock is flock(2) on DATA/weir.lock, which also names the holder's pid for people. Root takes
 * it and core inherits the descriptor, so that a core whose root was killed still keeps a second
 * writer away. The file stays when the lock is given back: only the lock counts, never the file. */
#ifndef WEIR_RUNTIME_DATA_LOCK_H
#define WEIR_RUNTIME_DATA_LOCK_H

#include <stdint.h>

#include "base/err.h"

/* Makes the directory, and those above it, with mode 0700 where absent. */
MUST_CHECK enum err_code data_dir_create(const char *data_dir, struct err *err);

/* Refused at once with the holder's pid when the holder lives. When it is dead but its core still
 * holds on, waits up to `orphan_wait_ms` for that core to end. */
MUST_CHECK enum err_code data_lock_take(const char *data_dir, int64_t orphan_wait_ms, int *ret_fd,
                                        struct err *err);
void data_lock_release(int fd);

#endif
