/* runtime/data_lock.h - one Weir per data directory, one core at a time.
 *
 * The lock is flock(2) on DATA/weir.lock. Root takes it and core inherits the descriptor, so that a core
 * whose root was killed still keeps a second writer away. The file stays when the lock is given back: only
 * the lock counts, never the file. Its text is for people, for the next root and for tests:
 *   root's pid
 *   epoch and pid of the last core
 *
 * Fencing: the epoch is raised by every core before it opens the store. A core that was stopped and replaced
 * cannot wake and write: root starts the next one only after the kernel has told that the old one is gone
 * (waitpid after SIGKILL), and another root only when the old core, which holds the lock itself, has ended.
 * So no commit has to look at the epoch; it shows how many cores there were, and which one is the last. A
 * shared store (PostgreSQL) has several writers by design and fences by its own leases. */
#ifndef WEIR_RUNTIME_DATA_LOCK_H
#define WEIR_RUNTIME_DATA_LOCK_H

#include <stdint.h>

#include "base/err.h"

/* Makes the directory, and those above it, with mode 0700 where absent. */
MUST_CHECK enum err_code data_dir_create(const char *data_dir, struct err *err);

/* Refused at once with the holder's pid when the holder lives. When it is dead but its core still
 * holds on, waits up to `orphan_wait_ms` for that core to end; one that has not by then (it was stopped, so
 * it does not hear that it should leave) is killed. */
MUST_CHECK enum err_code data_lock_take(const char *data_dir, int64_t orphan_wait_ms, int *ret_fd,
                                        struct err *err);
/* In core, with the descriptor it inherited, before it opens the store. */
MUST_CHECK enum err_code data_lock_raise_epoch(int fd, int64_t *ret_epoch, struct err *err);
void data_lock_release(int fd);

#endif
