#include "base/heart.h"

#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

#include "base/banned.h"

static struct heart_page own_page;
static struct heart_page *page = &own_page, *all_pages = &own_page;
static size_t all_count = 1;
static int64_t interval_ms = HEART_INTERVAL_MS;

void heart_use(struct heart_page *pages, size_t page_count, size_t own, int64_t shared_interval_ms)
{
    all_pages = pages;
    all_count = page_count;
    page = &pages[own];
    interval_ms = shared_interval_ms;
}

int64_t heart_interval_ms(void)
{
    return interval_ms;
}

int heart_sleep_ms(int64_t wait_ms)
{
    return (int)(wait_ms < 0 || wait_ms > interval_ms ? interval_ms : wait_ms);
}

static _Thread_local struct heart *served; /* by this thread: it has beaten for it last */

static int32_t thread_id(void)
{
    static _Thread_local int32_t id;
    if (!id)
        id = (int32_t)syscall(SYS_gettid);
    return id;
}

static void beat(struct heart *h)
{
    atomic_store_explicit(&h->thread_id, thread_id(), memory_order_relaxed);
    atomic_store_explicit(&h->beat_ms, clock_mono_ms(&clock_system), memory_order_release);
}

/* A slot that was closed is not used again: loops begin with their process and end with it. */
struct heart *heart_open(const char *loop)
{
    uint32_t place = atomic_fetch_add(&page->slot_count, 1);
    if (place >= HEART_SLOTS)
        return NULL;
    struct heart *h = &page->slots[place];
    snprintf(h->name, sizeof h->name, "%s", loop);
    beat(h);
    return h;
}

void heart_beat(struct heart *h)
{
    if (!h)
        return;
    served = h;
    beat(h);
}

void heart_waits(struct heart *h, bool waits)
{
    if (!h)
        return;
    if (!waits) /* first, or the look between the two would find an old beat */
        heart_beat(h);
    atomic_store_explicit(&h->waits_since_ms, waits ? clock_mono_ms(&clock_system) : 0, memory_order_release);
}

bool heart_waits_here(bool waits)
{
    bool before = served && atomic_load_explicit(&served->waits_since_ms, memory_order_relaxed);
    heart_waits(served, waits);
    return before;
}

void heart_close(struct heart *h)
{
    if (h)
        atomic_store_explicit(&h->beat_ms, 0, memory_order_release);
}

void heart_add_count(unsigned counter)
{
    MUST(counter < HEART_COUNTERS);
    atomic_fetch_add_explicit(&page->counters[counter], 1, memory_order_relaxed);
}

uint64_t heart_count(unsigned counter)
{
    MUST(counter < HEART_COUNTERS);
    return atomic_load_explicit(&page->counters[counter], memory_order_relaxed);
}

uint64_t heart_count_all(unsigned counter)
{
    MUST(counter < HEART_COUNTERS);
    uint64_t sum = 0;
    for (size_t i = 0; i < all_count; i++)
        sum += atomic_load_explicit(&all_pages[i].counters[counter], memory_order_relaxed);
    return sum;
}

struct heart_page *heart_own_page(void)
{
    return page;
}

const struct heart_page *heart_all_pages(size_t *ret_count)
{
    *ret_count = all_count;
    return all_pages;
}
