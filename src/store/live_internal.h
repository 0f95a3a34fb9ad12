/* store/live_internal.h - what the live queue's own files share: live.c (tasks and their places),
 * live_ready.c (who is next), live_workers.c. */
#ifndef WEIR_STORE_LIVE_INTERNAL_H
#define WEIR_STORE_LIVE_INTERNAL_H

#include "base/hash.h"
#include "store/live.h"

/* Ready tasks of one client in one queue. Its key in the queue's heap is its first task's key, so
 * "the best of this client" and "the best of all" are both one look. */
struct ready_list {
    struct map_node node;
    struct heap_node place;
    struct heap tasks;
    struct ready_queue *queue;
    int64_t client;
    bool delivers;  /* its tasks are streams */
    bool suspended; /* or paused: it stands in the queue's map and not in its heap */
};

struct ready_queue {
    struct map_node node;
    struct heap lists;
    struct map by_client;
    char *name;
};

struct live {
    struct map by_id, queues, workers, suspended;
    struct heap wall_timers, steady_timers;
    struct receivers receivers;
    uint32_t jobs_by_phase[TASK_ENDED + 1];
    uint32_t replays_ready;
    uint64_t deliveries;
    size_t paused; /* entries of `suspended` that are queues */
};

static inline uint64_t live_id_hash(int64_t id)
{
    return hash_mix((uint64_t)id);
}

static inline uint64_t live_text_hash(struct str s)
{
    return hash_secret(s.ptr, s.len);
}

/* live_ready.c: a task that could be claimed; with a receiver it takes turns. */
void ready_put(struct live *l, struct task *t);
void ready_remove(struct live *l, struct task *t);
void ready_claimed(struct live *l, struct task *t);   /* holds a slot of its receiver, whatever the limit */
void ready_admit(struct live *l, struct receiver *x); /* slots are free again */
void ready_list_changed(struct live *l, struct ready_list *list); /* it may be gone afterwards */
struct ready_queue *ready_find_queue(const struct live *l, struct str name);
struct ready_list *ready_find_list(const struct ready_queue *q, int64_t client);

/* live_suspended.c */
void live_suspended_free(struct live *l);

/* live_workers.c */
void live_workers_free(struct live *l);

#endif
