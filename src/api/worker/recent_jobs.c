/* Rows stand one behind the other in a ring of bytes, none across its end: the struct, then its texts. */
#include "api/worker/recent_jobs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

struct place {
    int64_t id;
    size_t at, size; /* in bytes */
};

struct recent_jobs {
    pthread_mutex_t lock; /* guards all below */
    char *bytes;
    size_t byte_count, next_at; /* next_at: the oldest rows stand behind it, the newest before it */
    struct place *places;       /* of row number n: places[n % place_count] */
    size_t place_count;
    uint64_t oldest, end; /* numbers of the oldest row and of the next one; equal when there is none */
};

struct recent_jobs *recent_jobs_new(size_t bytes, size_t rows_max)
{
    struct recent_jobs *r = must_alloc(sizeof *r);
    r->bytes = must_alloc(bytes);
    r->byte_count = bytes;
    r->places = must_alloc(rows_max * sizeof *r->places);
    r->place_count = rows_max;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

struct recent_jobs *recent_jobs_free(struct recent_jobs *r)
{
    if (!r)
        return NULL;
    pthread_mutex_destroy(&r->lock);
    free(r->places);
    free(r->bytes);
    free(r);
    return NULL;
}

static struct str *text_of(struct job_row *job, const struct column *c)
{
    return (struct str *)(void *)((char *)job + c->offset);
}

static size_t size_of(const struct job_row *job)
{
    size_t size = sizeof *job;
    for (size_t i = 0; i < table_job_row.column_count; i++)
        if (table_job_row.columns[i].type != COLUMN_INT)
            size += row_str(job, &table_job_row.columns[i]).len;
    size_t unit = _Alignof(struct job_row);
    return (size + unit - 1) / unit * unit;
}

static struct place *place_of(struct recent_jobs *r, uint64_t number)
{
    return &r->places[number % r->place_count];
}

static bool oldest_is_in(struct recent_jobs *r, size_t from, size_t to)
{
    if (r->oldest == r->end)
        return false;
    size_t at = place_of(r, r->oldest)->at;
    return at >= from && at < to;
}

/* Forgets the oldest rows until `size` bytes in a row and a place are free; next_at is where. */
static void make_room(struct recent_jobs *r, size_t size)
{
    if (r->end - r->oldest == r->place_count)
        r->oldest++;
    if (r->byte_count - r->next_at < size) { /* the end of the ring stays empty this time */
        while (oldest_is_in(r, r->next_at, r->byte_count))
            r->oldest++;
        r->next_at = 0;
    }
    while (oldest_is_in(r, r->next_at, r->next_at + size))
        r->oldest++;
}

static void copy_in(char *to, const struct job_row *job)
{
    struct job_row *copy = (struct job_row *)(void *)to;
    char *text_at = to + sizeof *job;
    *copy = *job;
    for (size_t i = 0; i < table_job_row.column_count; i++) {
        const struct column *c = &table_job_row.columns[i];
        if (c->type == COLUMN_INT || !row_str(job, c).ptr)
            continue;
        struct str *text = text_of(copy, c);
        memcpy(text_at, text->ptr, text->len);
        text->ptr = text_at;
        text_at += text->len;
    }
}

void recent_jobs_add(struct recent_jobs *r, const struct job_row *job)
{
    size_t size = size_of(job);
    if (size > r->byte_count / RECENT_JOBS_ROW_PART)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->oldest == r->end || place_of(r, r->end - 1)->id < job->id) { /* else finding would not */
        make_room(r, size);
        copy_in(r->bytes + r->next_at, job);
        *place_of(r, r->end++) = (struct place){job->id, r->next_at, size};
        r->next_at += size;
    }
    pthread_mutex_unlock(&r->lock);
}

static const struct place *find_place(struct recent_jobs *r, int64_t id)
{
    uint64_t from = r->oldest, to = r->end;
    while (from < to) { /* the first row whose id is not smaller is in [from, to] */
        uint64_t middle = from + (to - from) / 2;
        if (place_of(r, middle)->id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from < r->end && place_of(r, from)->id == id ? place_of(r, from) : NULL;
}

/* The texts still point into the ring: to the same places of the copy. */
static void copy_out(const char *from, size_t size, struct arena *a, struct job_row *ret_job)
{
    char *copy = arena_alloc(a, size);
    memcpy(copy, from, size);
    memcpy(ret_job, copy, sizeof *ret_job);
    for (size_t i = 0; i < table_job_row.column_count; i++) {
        const struct column *c = &table_job_row.columns[i];
        if (c->type == COLUMN_INT || !row_str(ret_job, c).ptr)
            continue;
        struct str *text = text_of(ret_job, c);
        text->ptr = copy + (text->ptr - from);
    }
}

bool recent_jobs_find(struct recent_jobs *r, int64_t id, struct arena *a, struct job_row *ret_job)
{
    pthread_mutex_lock(&r->lock);
    const struct place *p = find_place(r, id);
    if (p)
        copy_out(r->bytes + p->at, p->size, a, ret_job);
    pthread_mutex_unlock(&r->lock);
    return p != NULL;
}
