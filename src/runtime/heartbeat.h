/* runtime/heartbeat.h - root's side of base/heart.h: the pages of its children, and which of them is silent.
 *
 * A child is silent when one of its loops has not beaten for longer than it may. Two kinds of loops are not
 * counted: a loop that waits for a disk or a database and says so (base/heart.h), and a loop whose thread the
 * kernel holds in an uninterruptible wait (state D): killing would not end it, and its successor would wait
 * for the same disk. So a stalled disk leads to no restart, but other causes do: a stopped (SIGSTOP),
 * spinning or deadlocked process. A stopped process counts as silent whatever its page says. */
#ifndef WEIR_RUNTIME_HEARTBEAT_H
#define WEIR_RUNTIME_HEARTBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/heart.h"

enum { HEARTBEAT_LOOKS = 4 }; /* in the time that a loop may be silent; loops beat as often */

/* Shared with every process forked from now on, and never given back: failures are counted on them until the
 * process ends. NULL when there is no memory. */
struct heart_page *heartbeat_pages_new(size_t count);
/* In a child, once: the pages of the others become read-only. */
void heartbeat_keep_own(struct heart_page *pages, size_t count, size_t own);
/* Before a process begins on the page: the loops of the one before are gone. Counters stay. */
void heartbeat_clear(struct heart_page *page);

struct heartbeat_silence {
    char loop[HEART_NAME_MAX];
    int64_t silent_ms;
    int32_t thread_id;
};
/* The loop that is silent longest, if one is so for more than timeout_ms. Pure, but for the page. */
bool heartbeat_silent(const struct heart_page *page, int64_t timeout_ms, int64_t now_ms,
                      struct heartbeat_silence *ret);
/* Does the kernel hold this thread in state D? False when it is gone, and where /proc hides it (hidepid: our
 * children are not dumpable). */
bool heartbeat_in_disk_wait(pid_t pid, int32_t thread_id);
/* Was this child of ours stopped by a signal? Its page does not always show it: it may have been stopped
 * before its first loop began, or while all of them waited for a disk. One that a debugger holds is not
 * stopped. The kernel tells it to a parent whatever /proc hides, as long as no wait() collects stops. */
bool heartbeat_is_stopped(pid_t child);

#endif
