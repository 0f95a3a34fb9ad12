/* store/live.h - the live queue: every unfinished task in memory, indexed for the three questions that
 * are asked all the time: which task is next for this worker, whose time has come, where is task N.
 *
 * Owns:      struct task. The durable image is the `tasks` table; at start it is read back once.
 * Process:   core, the holder of the kernel's turn; no locks.
 * Order:     a claim gives the smallest (9 - priority, id): priority first, then creation order (AJ-21).
 * Time:      due_ms is wall time (schedules, backoff); lease_ms, expire_ms and run_until_ms are steady time,
 *            a wall clock that does not jump (kernel/kernel.h), so that setting the clock never ends a lease.
 * Changes:   the unit of work (kernel/unit.h) remembers a before-image of each task it touches and undoes
 *            through live_place()/live_take() when a commit fails. */
#ifndef WEIR_STORE_LIVE_H
#define WEIR_STORE_LIVE_H

#include "base/heap.h"
#include "base/map.h"
#include "lifecycle/job_lifecycle.h"
#include "store/rows.h"
#include "store/receivers.h"

/* The store knows no owner by its number. What it has to know about a task, the row says: a job's task has
 * the id of its job, below this bit, and the ids of all others have it set ... */
#define TASK_ID_OF_OTHERS (UINT64_C(1) << 59)
static inline bool task_id_is_job(int64_t id)
{
    return !((uint64_t)id & TASK_ID_OF_OTHERS);
}
static inline bool task_is_job(const struct task_row *r)
{
    return task_id_is_job(r->id);
}
/* ... and one that has a receiver is a stream: its refs are deliveries, `done` of which are made. */
static inline bool task_is_stream(const struct task_row *r)
{
    return r->target != 0;
}

/* Dead letters take their turns at a receiver apart from live deliveries: their receiver has this bit, which
 * no id has. */
#define RECEIVER_OF_REPLAY (INT64_C(1) << 61)
static inline bool task_is_replay(const struct task_row *r)
{
    return r->target > 0 && r->target & RECEIVER_OF_REPLAY;
}

struct worker_seen {
    struct map_node node;
    struct str id;
    int64_t last_seen_ms; /* steady */
    uint32_t tasks;       /* leased to it now */
    bool is_domain;       /* a process of ours that works on no jobs: does not count as a worker */
};

struct ready_list;
struct task_touch;

struct task {
    struct task_row row;
    enum task_phase phase; /* row.state as of when it was placed */
    int64_t run_until_ms;  /* steady; meaningful while RUNNING */
    struct worker_seen *worker;
    struct task_touch *touch; /* the unit's record while a batch is open */
    struct map_node node;
    struct heap_node ready, timer;
    struct ready_list *list;
    struct receiver *receiver; /* while it is alive and has one */
    uint32_t refs_capacity;
    uint32_t deliveries;             /* a stream: those still to be made, as counted when it was placed */
    bool placed;                     /* found by live_find() */
    bool waits_for_slot, holds_slot; /* of its receiver */
    bool stored_waits_for_slot;      /* the shared store has it among those that wait for a slot */
    bool has_callback;               /* a job: a stream waits for its events */
    bool about_loaded;               /* every stream about it is in memory; set by stores that load tasks */
    uint64_t room[];                 /* behind it in the same block: refs, then the queue's name */
};

struct live;

struct live_claim {
    const struct str *queues;
    size_t queue_count;
    int64_t client; /* 0: any client's (built-in domains) */
};

struct live *live_new(void);
struct live *live_free(struct live *l);
/* Removes all tasks and receivers; workers stay. For a store that loads a batch's tasks and forgets them. */
void live_clear(struct live *l);

/* A task with a copy of the row's texts and refs, in no index yet. */
struct task *live_task_new(struct live *l, const struct task_row *row);
void live_task_free(struct live *l, struct task *t);
/* Puts it where its row says it belongs (by phase, due_ms, lease_ms); callable again after any change. */
void live_place(struct live *l, struct task *t, int64_t wall_ms);
/* Out of every index, memory kept. */
void live_take(struct live *l, struct task *t);
void live_set_worker(struct live *l, struct task *t, struct str worker_id, int64_t steady_ms);
void task_add_ref(struct task *t, uint64_t ref);
/* Texts that lie apart from their task: its progress. Absent is fine for both. */
struct str live_copy_str(struct str s);
void live_free_str(struct str s);
enum task_phase task_row_phase(const struct task_row *row);
/* Its place among ready tasks of one priority: the smallest is claimed first. */
int64_t task_row_order(const struct task_row *row);

struct task *live_find(const struct live *l, int64_t id);
struct task *live_best(const struct live *l, const struct live_claim *claim);
/* First task whose wall timer (schedule or backoff) or steady timer (lease, runtime, expiry) has passed. */
struct task *live_due_wall(const struct live *l, int64_t wall_ms);
struct task *live_due_steady(const struct live *l, int64_t steady_ms);
/* When to look again; INT64_MAX when nothing waits. */
int64_t live_next_wall(const struct live *l);
int64_t live_next_steady(const struct live *l);

uint32_t live_size(const struct live *l);                           /* all live tasks */
uint32_t live_count(const struct live *l);                          /* unfinished jobs */
uint32_t live_phase_count(const struct live *l, enum task_phase p); /* of jobs; READY counts backoff too */
uint64_t live_deliveries(const struct live *l);                     /* in all streams, not yet made */
uint32_t live_replays_ready(const struct live *l);                  /* dead letters that could be claimed */
bool live_has_ready(const struct live *l);                          /* something could be claimed */

/* Receivers (store/receivers.h): how many tasks of one may be claimed at a time. */
void live_receiver_slots(struct live *l, uint32_t slots); /* at most, of every receiver; not set: no limit */
uint32_t live_receiver_usual(const struct live *l);
struct receiver *live_receiver(const struct live *l, int64_t receiver); /* NULL: it has no task */
void live_receiver_limit(struct live *l, struct receiver *x, uint32_t slots);
struct task *live_receiver_waiting(const struct receiver *x); /* first one without a slot, or NULL */
/* Of a shared store. Receivers are unknown until it has said what it knows of them, and until then admit
 * nobody; so call this first, and live_receiver_known() when a batch has read it. After the pause of a closed
 * one whoever comes first tries. */
void live_load_receivers(struct live *l);
void live_receiver_known(struct live *l, struct receiver *x, const struct receiver_state *state,
                         uint32_t elsewhere, int64_t wall_ms);
size_t live_receiver_count(const struct live *l);
void live_each_receiver(const struct live *l, void (*fn)(struct receiver *x, void *arg), void *arg);
/* Has it to wait for a slot, and will somebody who has one let it in? */
bool task_waits_for_slot(const struct task *t);
/* Has the shared store an old answer about a task that waits for a slot, or waits no longer, and that the
 * batch has not touched? */
bool live_has_news_of_slots(const struct live *l);
bool task_is_news_of_slots(const struct task *t);

/* Workers: every id that claimed or beat lately. */
struct worker_seen *live_worker(struct live *l, struct str id, int64_t steady_ms);
uint32_t live_worker_count(const struct live *l, int64_t seen_after_steady_ms);
void live_forget_workers(struct live *l, int64_t seen_before_steady_ms); /* idle ones only */

/* Suspended clients and paused queues of a client: their jobs and steps cannot be claimed. Claimed ones go
 * on, and deliveries are made. Stays through live_clear(). Memory: an entry for each. */
void live_suspend(struct live *l, int64_t client, bool suspended);
void live_pause(struct live *l, int64_t client, struct str queue, bool paused);
void live_resume_all(struct live *l);                                      /* clients and queues */
bool live_is_held(const struct live *l, int64_t client, struct str queue); /* suspended or paused */
bool live_is_paused(const struct live *l, int64_t client, struct str queue);
bool live_has_suspended(const struct live *l); /* some client */
bool live_has_paused(const struct live *l);    /* some queue */

/* For tests and metrics: calls fn for each task. */
void live_each(const struct live *l, void (*fn)(struct task *t, void *arg), void *arg);

#endif
