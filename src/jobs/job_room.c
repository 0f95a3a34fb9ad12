#include "jobs/job_room.h"

#include "base/banned.h"

/* Whether the client has its share; none can while all together have less. */
static enum err_code check_share(struct unit *u, const struct job_room *w, const struct room *all,
                                 struct err *err)
{
    const struct settings *s = u->settings;
    int64_t active_max = settings_share_of_client(s, s->jobs_max_active);
    int64_t queue_max = settings_share_of_client(s, s->jobs_queue_size);
    bool is_new = w->is_new && active_max < s->jobs_max_active;
    bool joins = w->queue_max >= 0 && queue_max < s->jobs_queue_size;
    struct client_counts own;
    if ((!is_new || all->live < active_max) && (!joins || all->ready < queue_max))
        return ERR_OK;
    unit_read_counts(u, w->client, &own);
    int64_t active = counts_unfinished(&own), queued = own.by_state[JOB_QUEUED];
    if (is_new && active >= active_max)
        err_set(err, ERR_EXEC_CLIENT_LIMIT,
                "this client has %lld unfinished jobs, its share (jobs.max_active_per_client)",
                (long long)active);
    else if (joins && queued >= queue_max)
        err_set(err, ERR_EXEC_CLIENT_LIMIT,
                "this client has %lld jobs in the queue, its share of jobs.queue_size "
                "(jobs.max_active_per_client)",
                (long long)queued);
    return err->code;
}

static void refuse_all(const struct settings *s, const struct job_room *w, const struct room *all,
                       struct err *err)
{
    if (w->is_new && all->live >= s->jobs_max_active)
        err_set(err, ERR_REQUEST_RATE_LIMITED, "%lld jobs are unfinished, the most allowed (jobs.max_active)",
                (long long)all->live);
    else
        err_set(err, ERR_EXEC_QUEUE_FULL,
                all->ready >= s->jobs_queue_size
                    ? "the queue holds %lld jobs, the most allowed (jobs.queue_size)"
                    : "the queue holds %lld jobs and takes no priority 0 to 2 until it is shorter",
                (long long)all->ready);
}

enum err_code job_room_take(struct unit *u, const struct job_room *w, struct err *err)
{
    struct room all = {.live_max = w->is_new ? u->settings->jobs_max_active : -1, .ready_max = w->queue_max};
    bool taken = unit_take_room(u, &all);
    *err = (struct err){.code = ERR_OK};
    if (check_share(u, w, &all, err) != ERR_OK && taken)
        unit_give_room_back(u, &all);
    else if (err->code == ERR_OK && !taken)
        refuse_all(u->settings, w, &all, err);
    if (err->code != ERR_OK)
        err->retry_after_s = 1;
    u->met_share |= err->code == ERR_EXEC_CLIENT_LIMIT;
    return err->code;
}
