#include "store/verify.h"

#include <stdio.h>

#include "base/hash.h"
#include "store/row_rules.h"
#include "store/verify_internal.h"

#include "base/banned.h"

enum { PROGRESS_ROWS = 1 << 16, LINE_MAX_BYTES = 400, ARENA_FIRST_BYTES = 1 << 16 };

void verify_seen(struct verify *v)
{
    if (++v->rows % PROGRESS_ROWS == 0 && v->progress)
        v->progress(v->arg, v->rows);
}

__attribute__((format(printf, 3, 0))) static void say(struct verify *v, const char *who, const char *fmt,
                                                      va_list args)
{
    char line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof line, "%s", who);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
    v->result->problems++;
    v->problem(v->arg, line);
}

void verify_say(struct verify *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(v, "", fmt, args);
    va_end(args);
}

void verify_say_job(struct verify *v, const struct checked_job *j, const char *fmt, ...)
{
    char who[64], text[UUID_TEXT_LEN + 1];
    if (j->has_job) {
        struct uuid id = uuid_from_v7(j->id, (uint64_t)j->low);
        uuid_text(&id, text);
        snprintf(who, sizeof who, "job %s: ", text);
    } else {
        snprintf(who, sizeof who, "job number %lld: ", (long long)j->id);
    }
    va_list args;
    va_start(args, fmt);
    say(v, who, fmt, args);
    va_end(args);
}

/* --- rows by their descriptions ---------------------------------------------------------------- */

struct scan {
    struct verify *v;
    const struct table *table;
    store_row_fn *fn;
    void *arg;
};

void verify_row(struct verify *v, const struct table *t, const void *row)
{
    const struct column *key = &t->columns[0];
    const char *broken = row_broken_rule(t, row);
    v->scanned[t->number] = true;
    if (broken && key->type == COLUMN_INT)
        verify_say(v, "%s: row %lld breaks a rule: %s", t->name, (long long)row_int(row, key), broken);
    else if (broken)
        verify_say(v, "%s: a row breaks a rule: %s", t->name, broken);
}

static bool check_row(const void *row, void *arg)
{
    const struct scan *s = arg;
    verify_row(s->v, s->table, row);
    return !s->fn || s->fn(row, s->arg);
}

enum err_code verify_scan(struct verify *v, const struct table *t, store_row_fn *fn, void *arg,
                          struct err *err)
{
    struct scan s = {v, t, fn, arg};
    v->scanned[t->number] = true;
    return v->reader->ops->reader_scan(v->reader, t, check_row, &s, err);
}

/* Tables that no pass has looked at as a whole. */
static enum err_code verify_others(struct verify *v, struct err *err)
{
    enum err_code code = ERR_OK;
    for (unsigned i = 0; i < table_count && code == ERR_OK; i++)
        if (!v->scanned[i] && table_has_rules(tables[i]))
            code = verify_scan(v, tables[i], NULL, NULL, err);
    return code;
}

/* --- what is remembered ------------------------------------------------------------------------ */

struct checked_job *verify_find_job(const struct verify *v, int64_t id)
{
    for (struct map_node *n = map_first(&v->jobs, hash_mix((uint64_t)id)); n; n = map_next(n)) {
        struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
        if (j->id == id)
            return j;
    }
    return NULL;
}

struct checked_job *verify_add_job(struct verify *v, int64_t id)
{
    struct checked_job *j = ARENA_NEW(v->arena, struct checked_job);
    j->id = id;
    j->state = JOB_NO_STATE;
    map_put(&v->jobs, &j->node, hash_mix((uint64_t)id));
    return j;
}

struct checked_client *verify_client(struct verify *v, int64_t num)
{
    for (struct map_node *n = map_first(&v->clients, hash_mix((uint64_t)num)); n; n = map_next(n)) {
        struct checked_client *c = CONTAINER_OF(n, struct checked_client, node);
        if (c->num == num)
            return c;
    }
    struct checked_client *c = ARENA_NEW(v->arena, struct checked_client);
    c->num = num;
    map_put(&v->clients, &c->node, hash_mix((uint64_t)num));
    return c;
}

/* --- the comparison ---------------------------------------------------------------------------- */

/* Events of a job without a row are fine only when the job was purged: it must have ended. */
static void check_purged(struct verify *v, const struct checked_job *j)
{
    if (!j->broken && !job_state_is_final((enum job_state)j->state))
        verify_say_job(v, j, "has events up to %s and no row", job_state_text((enum job_state)j->state));
}

static void check_against_log(struct verify *v, const struct checked_job *j)
{
    if (j->broken)
        return; /* told when the event was met */
    if (j->seq != j->row_seq)
        verify_say_job(v, j, "its row says %u events, the log has %u", j->row_seq, j->seq);
    else if (j->state != j->row_state)
        verify_say_job(v, j, "its row says %s, its events say %s",
                       job_state_text((enum job_state)j->row_state),
                       j->seq ? job_state_text((enum job_state)j->state) : "nothing");
    else if (j->attempt != j->row_attempt)
        verify_say_job(v, j, "its row says attempt %u, its events say %u", j->row_attempt, j->attempt);
    else if (j->last_us != j->row_last_us)
        verify_say_job(v, j, "its row and its last event differ in time");
    else if (j->row_refs != j->log_refs || j->kept_seen != j->kept_count)
        verify_say_job(v, j, "its references do not point at its events");
    if (j->is_ended && j->row_state == JOB_FAILED && (j->row_attempt > j->max_retries) != j->exhausted)
        verify_say_job(v, j, "job.retries_exhausted must stand behind the last failure, and only there");
}

static void check_job(struct map_node *n, void *arg)
{
    struct verify *v = arg;
    const struct checked_job *j = CONTAINER_OF(n, struct checked_job, node);
    if (!j->has_job) {
        check_purged(v, j);
        return;
    }
    if (!j->is_live && !j->is_ended) {
        verify_say_job(v, j, "has neither a live nor a final state");
        return;
    }
    check_against_log(v, j);
    if (j->archives + 1 != j->row_attempt)
        verify_say_job(v, j, "attempt %u needs %u archived reports, there are %u", j->row_attempt,
                       j->row_attempt - 1, j->archives);
    struct client_counts *counts = &verify_client(v, j->client)->counts;
    counts->by_state[j->row_state]++;
    if (j->kind != WORK_KIND_NONE)
        counts->by_kind[j->kind]++;
}

static enum err_code compare(struct verify *v, struct err *err)
{
    (void)err;
    map_each(&v->jobs, check_job, v);
    return ERR_OK;
}

/* --- the passes -------------------------------------------------------------------------------- */

static bool say_check(const char *line, void *arg)
{
    verify_say(arg, "file: %s", line);
    return true;
}

static enum err_code check_file(struct verify *v, struct err *err)
{
    if (!v->reader->ops->reader_check)
        return ERR_OK;
    return v->reader->ops->reader_check(v->reader, say_check, v, err);
}

static enum err_code (*const passes[])(struct verify *v, struct err *err) = {
    check_file,     verify_find_first_chunk, verify_clients, verify_job_rows,
    verify_log,     verify_delivery_rows,    compare,        verify_runs,
    verify_records, verify_beside,           verify_others,
};

enum err_code store_verify(struct reader *r, void (*problem)(void *arg, const char *line),
                           void (*progress)(void *arg, uint64_t rows), void *arg,
                           struct verify_result *ret_result, struct err *err)
{
    *ret_result = (struct verify_result){0};
    struct verify v = {.reader = r,
                       .problem = problem,
                       .progress = progress,
                       .arg = arg,
                       .result = ret_result,
                       .arena = arena_new(ARENA_FIRST_BYTES)};
    enum err_code code = r->ops->reader_begin(r, err);
    if (code == ERR_OK) {
        for (size_t i = 0; code == ERR_OK && i < sizeof passes / sizeof *passes; i++)
            code = passes[i](&v, err);
        r->ops->reader_end(r);
    }
    map_free(&v.jobs);
    map_free(&v.clients);
    map_free(&v.deliveries);
    map_free(&v.runs);
    arena_free(v.arena);
    return code;
}
