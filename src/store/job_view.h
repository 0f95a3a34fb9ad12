/* store/job_view.h - a job as a reader sees it: its row, its live or final state, its events.
 *
 * Built from the backend's key reads inside one snapshot, so state and events always agree. */
#ifndef WEIR_STORE_JOB_VIEW_H
#define WEIR_STORE_JOB_VIEW_H

#include "store/store.h"

struct job_view {
    struct job_row job;
    enum job_state state;
    int64_t attempt;
    int64_t updated_us;
    int64_t started_ms;  /* of the current attempt; 0: not started */
    int64_t finished_ms; /* 0: not final */
    uint32_t seq;        /* last event */
    struct str result;
    struct str error; /* of the last attempt that ended, if it failed */
    struct str refs;
    bool is_live;
    struct task_row task; /* when is_live */
};

/* ret_found is false for an unknown id. Inside reader_begin/reader_end. */
MUST_CHECK enum err_code job_view_read(struct reader *r, struct arena *a, int64_t id,
                                       struct job_view *ret_view, bool *ret_found, struct err *err);

/* The log chunk read last: events of many jobs, read one by one, mostly stand in the same one. */
struct log_memo {
    bool is_read;
    int64_t number;
    struct str chunk; /* in the arena of the reads; absent: there is none, or it is damaged */
};

/* One event; not found when it is purged or damaged. */
MUST_CHECK enum err_code job_view_event(struct reader *r, struct arena *a, const struct job_view *v,
                                        uint32_t seq, struct log_memo *memo, struct event *ret_event,
                                        bool *ret_found, struct err *err);

/* Events with seq > after, at most `max`, in order. One that is missing (purged or damaged) is left out:
 * the job still works, its history is incomplete (JOB-240). */
MUST_CHECK enum err_code job_view_events(struct reader *r, struct arena *a, const struct job_view *v,
                                         uint32_t after, size_t max, struct event *ret_events,
                                         size_t *ret_count, struct err *err);

#endif
