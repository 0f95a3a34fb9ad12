/* api/jobs/list_filter.h - the filters of GET /v1/jobs and GET /v1/reports, and their cursors.
 * Pure, fuzzed. */
#ifndef WEIR_API_JOBS_LIST_FILTER_H
#define WEIR_API_JOBS_LIST_FILTER_H

#include "store/job_view.h"

enum { LIST_LIMIT_DEFAULT = 50, LIST_LIMIT_MAX = 200 };

struct list_filter {
    bool has_state, has_type, has_work_kind;
    enum job_state state; /* from state or outcome */
    enum job_type type;
    enum work_kind work_kind;
    struct str kind; /* absent: any */
    struct str queue;
    struct str queues; /* that the caller's key is limited to; absent: none (lifecycle/key_power.h) */
    int64_t below_id, from_id;
    int64_t limit;
    bool nothing; /* the filters exclude each other */
};

/* By name, in the query and in the `filter` of a bulk action. */
#define JOB_FILTERS(X)                                                                                       \
    X(state)                                                                                                 \
    X(outcome)                                                                                               \
    X(type)                                                                                                  \
    X(kind)                                                                                                  \
    X(work_kind)                                                                                             \
    X(queue)                                                                                                 \
    X(created_after)                                                                                         \
    X(created_before)

/* Texts as in the query; absent when not given. ERR_REQUEST_MALFORMED names the parameter. */
struct list_query_texts {
#define X(name) struct str name;
    JOB_FILTERS(X)
#undef X
    struct str limit, cursor;
};
MUST_CHECK enum err_code list_filter_parse(const struct list_query_texts *q, struct list_filter *ret_filter,
                                           struct err *err);
/* `limit` of any listing: absent means the fallback. */
MUST_CHECK enum err_code list_limit_parse(struct str text, int64_t fallback, int64_t max, int64_t *ret_limit,
                                          struct err *err);
bool list_filter_matches(const struct list_filter *f, const struct job_view *v);
/* Opaque to clients: the id to go on below. */
struct str list_cursor_text(struct arena *a, int64_t id);

#endif
