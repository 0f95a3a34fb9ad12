#include "store/queue_flow.h"

#include <string.h>

#include "base/banned.h"

static size_t place(int64_t slot)
{
    return (size_t)(slot % FLOW_SLOTS);
}

void flow_advance(struct queue_flow *f, int64_t slot)
{
    if (slot - f->slot >= FLOW_SLOTS)
        *f = (struct queue_flow){.slot = slot};
    for (; f->slot < slot; f->slot++) {
        f->counts.completed[place(f->slot + 1)] = 0;
        f->counts.failed[place(f->slot + 1)] = 0;
    }
}

static bool is_held(const struct queue_flow *f, int64_t slot)
{
    return slot <= f->slot && slot > f->slot - FLOW_SLOTS && slot >= 0;
}

void flow_add(struct queue_flow *f, int64_t now_ms, uint32_t completed, uint32_t failed)
{
    int64_t slot = now_ms / FLOW_SLOT_MS;
    flow_advance(f, slot);
    if (!is_held(f, slot)) /* the clock was set back */
        return;
    f->counts.completed[place(slot)] += completed;
    f->counts.failed[place(slot)] += failed;
}

void flow_merge(struct queue_flow *f, const struct queue_flow *more)
{
    flow_advance(f, more->slot);
    for (int64_t slot = more->slot; is_held(more, slot); slot--)
        if (is_held(f, slot)) {
            f->counts.completed[place(slot)] += more->counts.completed[place(slot)];
            f->counts.failed[place(slot)] += more->counts.failed[place(slot)];
        }
}

void flow_subtract(struct queue_flow *f, const struct queue_flow *less)
{
    for (int64_t slot = less->slot; is_held(less, slot); slot--)
        if (is_held(f, slot)) {
            f->counts.completed[place(slot)] -= less->counts.completed[place(slot)];
            f->counts.failed[place(slot)] -= less->counts.failed[place(slot)];
        }
}

bool flow_is_empty(const struct queue_flow *f)
{
    for (size_t i = 0; i < FLOW_SLOTS; i++)
        if (f->counts.completed[i] || f->counts.failed[i])
            return false;
    return true;
}

void flow_per_minute(const struct queue_flow *f, int64_t now_ms, int64_t *ret_completed, int64_t *ret_failed)
{
    int64_t now_slot = now_ms / FLOW_SLOT_MS, in_slot_ms = now_ms % FLOW_SLOT_MS;
    int64_t completed = 0, failed = 0;
    for (int64_t back = 0; back < FLOW_SLOTS; back++) {
        int64_t slot = now_slot - back;
        int64_t part_ms = back == FLOW_SLOTS - 1 ? FLOW_SLOT_MS - in_slot_ms : FLOW_SLOT_MS;
        if (!is_held(f, slot))
            continue;
        completed += f->counts.completed[place(slot)] * part_ms;
        failed += f->counts.failed[place(slot)] * part_ms;
    }
    *ret_completed = (completed + FLOW_SLOT_MS / 2) / FLOW_SLOT_MS;
    *ret_failed = (failed + FLOW_SLOT_MS / 2) / FLOW_SLOT_MS;
}

struct str flow_bytes(const struct flow_counts *c)
{
    return (struct str){(const char *)c, sizeof *c};
}

struct queue_flow flow_from_bytes(int64_t slot, struct str bytes)
{
    struct queue_flow f = {.slot = slot};
    if (bytes.len == sizeof f.counts)
        memcpy(&f.counts, bytes.ptr, sizeof f.counts);
    return f;
}
