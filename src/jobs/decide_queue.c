/* Pause, resume, defaults of a queue. A queue for which nothing is set has no row. */
#include "jobs/job_commands.h"
#include "jobs/queue_commands.h"

#include "base/banned.h"

static struct queue_row key_of(const struct queue_command *c)
{
    return (struct queue_row){.client = c->client, .queue = c->queue};
}

static void load_queue(struct unit *u, struct command *base)
{
    struct queue_row key = key_of((const struct queue_command *)base);
    unit_prefetch(u, &table_queue_row, &key);
}

struct queue_defaults queue_defaults_of(const struct queue_row *row)
{
    if (!row)
        return (struct queue_defaults){-1, -1, -1, -1};
    return (struct queue_defaults){.retry = row->retry,
                                   .max_retries = row->max_retries,
                                   .queue_ttl_seconds = row->queue_ttl_ms ? row->queue_ttl_ms / 1000 : -1,
                                   .retention_seconds = row->retention_ms ? row->retention_ms / 1000 : -1};
}

static enum err_code check_range(const char *field, int64_t value, int64_t min, int64_t max, struct err *err)
{
    if (value < 0 || (value >= min && value <= max)) /* below 0: not set */
        return ERR_OK;
    return err_set(err, ERR_JOB_VALIDATION_FAILED, "%s must be from %lld to %lld", field, (long long)min,
                   (long long)max);
}

static enum err_code check_defaults(const struct settings *s, const struct queue_defaults *d, struct err *err)
{
    if (check_range("max_retries", d->max_retries, 0, s->jobs_retry_max, err) != ERR_OK ||
        check_range("queue_ttl_seconds", d->queue_ttl_seconds, 1, JOB_QUEUE_TTL_SECONDS_MAX, err) != ERR_OK)
        return err->code;
    if (d->retention_seconds >= 0 &&
        (d->retention_seconds < 1 || d->retention_seconds > s->jobs_retention_seconds))
        return err_set(err, ERR_JOB_VALIDATION_FAILED,
                       "retention_seconds must be from 1 to jobs.retention_seconds, which is %lld",
                       (long long)s->jobs_retention_seconds);
    return ERR_OK;
}

static void count_row(const struct queue_row *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
}

static enum err_code check_room(struct unit *u, int64_t client, struct err *err)
{
    size_t count = u->inserted[TABLE_NUMBER_queue_row];
    queue_settings_each(&u->store->queues, client, count_row, &count);
    if (count < QUEUES_SET_MAX)
        return ERR_OK;
    return err_set(
        err, ERR_EXEC_CLIENT_LIMIT,
        "%d queues of this client are paused or have defaults, the most allowed; resume one or clear "
        "its defaults",
        QUEUES_SET_MAX);
}

static bool sets_nothing(const struct queue_row *r)
{
    return !r->paused && r->retry < 0 && r->max_retries < 0 && !r->queue_ttl_ms && !r->retention_ms;
}

static bool is_same(const struct queue_row *a, const struct queue_row *b)
{
    return a->paused == b->paused && a->retry == b->retry && a->max_retries == b->max_retries &&
           a->queue_ttl_ms == b->queue_ttl_ms && a->retention_ms == b->retention_ms;
}

/* The row as the command wants it. */
static struct queue_row wanted(struct unit *u, const struct queue_command *c, const struct queue_row *before)
{
    struct queue_row row = before ? *before : key_of(c);
    if (!before)
        row.retry = row.max_retries = -1;
    row.changed_ms = u->now_ms;
    if (c->action != QUEUE_SET) {
        row.paused = c->action == QUEUE_PAUSE;
        return row;
    }
    const struct queue_defaults *d = &c->defaults;
    row.retry = d->retry;
    row.max_retries = d->max_retries;
    row.queue_ttl_ms = d->queue_ttl_seconds > 0 ? d->queue_ttl_seconds * 1000 : 0;
    row.retention_ms = d->retention_seconds > 0 ? d->retention_seconds * 1000 : 0;
    return row;
}

static void write(struct unit *u, struct queue_row *before, const struct queue_row *after)
{
    if (before && sets_nothing(after)) {
        unit_delete(u, &table_queue_row, before);
    } else if (before) {
        *before = *after;
        unit_update(u, &table_queue_row, before);
    } else {
        struct queue_row *row = ARENA_NEW(u->arena, struct queue_row);
        *row = *after;
        row->queue = arena_str(u->arena, after->queue);
        unit_insert(u, &table_queue_row, row);
    }
}

static enum err_code decide_queue(struct unit *u, struct command *base, struct err *err)
{
    struct queue_command *c = (struct queue_command *)base;
    struct queue_row key = key_of(c), nothing = {.retry = -1, .max_retries = -1};
    struct queue_row *before = unit_row(u, &table_queue_row, &key);
    if (c->action == QUEUE_SET && check_defaults(u->settings, &c->defaults, err) != ERR_OK)
        return err->code;
    struct queue_row after = wanted(u, c, before);
    c->changed = !is_same(before ? before : &nothing, &after);
    if (c->changed && !before && check_room(u, c->client, err) != ERR_OK)
        return err->code;
    if (c->changed)
        write(u, before, &after);
    c->paused = after.paused != 0;
    c->defaults = queue_defaults_of(&after);
    return ERR_OK;
}

const struct command_type queue_command_type = {
    "queue", load_queue, decide_queue, COMMAND_ANSWER(struct queue_command, paused), .critical = true};
