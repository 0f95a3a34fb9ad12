#include "runtime/heartbeat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

struct heart_page *heartbeat_pages_new(size_t count)
{
    void *pages = mmap(NULL, count * sizeof(struct heart_page), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void heartbeat_keep_own(struct heart_page *pages, size_t count, size_t own)
{
    /* A refusal (memory pages larger than ours) costs a guard against stray writes, nothing else. */
    for (size_t i = 0; i < count; i++)
        if (i != own && mprotect(&pages[i], sizeof pages[i], PROT_READ) != 0)
            return;
}

void heartbeat_clear(struct heart_page *page)
{
    memset(page->slots, 0, sizeof page->slots);
    atomic_store(&page->slot_count, 0);
}

bool heartbeat_silent(const struct heart_page *page, int64_t timeout_ms, int64_t now_ms,
                      struct heartbeat_silence *ret)
{
    bool found = false;
    uint32_t count = atomic_load(&page->slot_count);
    for (uint32_t i = 0; i < count && i < HEART_SLOTS; i++) {
        const struct heart *h = &page->slots[i];
        int64_t beat_ms = atomic_load_explicit(&h->beat_ms, memory_order_acquire);
        if (!beat_ms || now_ms - beat_ms <= timeout_ms || atomic_load(&h->waits_since_ms))
            continue;
        if (found && now_ms - beat_ms <= ret->silent_ms)
            continue;
        found = true;
        ret->silent_ms = now_ms - beat_ms;
        ret->thread_id = atomic_load(&h->thread_id);
        memcpy(ret->loop, h->name, sizeof ret->loop);
        ret->loop[sizeof ret->loop - 1] = 0;
    }
    return found;
}

/* The letter by which the kernel tells what a thread does; 0 when it is gone, or hidden from us. */
static char thread_state(pid_t pid, int32_t thread_id)
{
    char path[64], stat[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)thread_id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[n > 0 ? n : 0] = 0;
    const char *name_end = strrchr(stat, ')'); /* the name may hold anything */
    return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

bool heartbeat_in_disk_wait(pid_t pid, int32_t thread_id)
{
    return thread_state(pid, thread_id) == 'D';
}

bool heartbeat_is_stopped(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}
