/* tests/faults/store_load.c - a seeded stand-in for the kernel: rows in, change sets out. */
#include "faults/store_load.h"

#include <stdlib.h>
#include <string.h>

#include "faults/sim_image.h"
#include "base/must.h"
#include "base/banned.h"

enum {
    LOAD_JOBS_MAX = 8192,
    LOAD_EVENTS_MAX = 24, /* of one job */
    LOAD_CLIENT = 1,
    LOAD_CHANGES_PER_JOB = 3,
};

struct load_job {
    int64_t id;
    enum job_state state;
    uint32_t seq, attempt;
    uint64_t touched; /* the last batch that moved it */
    uint64_t refs[LOAD_EVENTS_MAX];
};

struct store_load {
    struct load_job *jobs;
    size_t job_count;
    uint64_t seed, batches;
    unsigned per_batch;
    struct client_counts counts;
};

/* The batch being built; every list has room for all that a batch may do. */
struct build {
    struct store_load *load;
    struct arena *arena;
    struct log_builder log;
    struct row_change *rows;
    struct list_entry *list;
    struct idem_entry *idem;
    size_t row_count, list_count, idem_count;
};

struct store_load *store_load_new(uint64_t seed, unsigned jobs_per_batch)
{
    struct store_load *l = must_alloc(sizeof *l);
    l->jobs = must_alloc(LOAD_JOBS_MAX * sizeof *l->jobs);
    l->seed = seed;
    l->per_batch = jobs_per_batch;
    return l;
}

void store_load_free(struct store_load *l)
{
    free(l->jobs);
    free(l);
}

uint64_t store_load_batches(const struct store_load *l)
{
    return l->batches;
}

static void add_row(struct build *b, const struct table *t, enum row_op op, const void *row)
{
    b->rows[b->row_count++] = (struct row_change){t, op, arena_copy(b->arena, row, t->row_size)};
}

static void add_list(struct build *b, int64_t id, uint8_t bucket, bool removed)
{
    b->list[b->list_count++] = (struct list_entry){LOAD_CLIENT, id, bucket, removed};
}

static void add_event(struct build *b, struct load_job *j, enum job_event event, enum job_state next)
{
    struct event e = {.job = j->id,
                      .seq = j->seq + 1,
                      .event = event,
                      .prev = j->seq ? j->state : JOB_NO_STATE,
                      .next = next,
                      .at_us = (int64_t)(b->load->batches * 1000 + j->seq),
                      .attempt = j->attempt,
                      .extra = STR("{}")};
    for (size_t i = 0; i < sizeof e.id.bytes; i++)
        e.id.bytes[i] = (uint8_t)sim_next(&b->load->seed);
    MUST(j->seq < LOAD_EVENTS_MAX);
    j->refs[j->seq++] = log_append(&b->log, &e);
    if (e.prev != JOB_NO_STATE)
        b->load->counts.by_state[j->state]--;
    b->load->counts.by_state[next]++;
    j->state = next;
}

static struct str refs_of(const struct load_job *j)
{
    return (struct str){(const char *)j->refs, j->seq * sizeof *j->refs};
}

static struct task_row task_row_of(const struct load_job *j)
{
    bool leased = j->state == JOB_ASSIGNED || j->state == JOB_RUNNING;
    return (struct task_row){.id = j->id,
                             .client = LOAD_CLIENT,
                             .priority = 4,
                             .queue = STR("default"),
                             .state = (int64_t)job_state_phase(j->state),
                             .job_state = (int64_t)j->state,
                             .attempt = j->attempt,
                             .max_retries = j->attempt,
                             .token = j->seq,
                             .lease_ms = leased,
                             .started_ms = j->state == JOB_RUNNING,
                             .worker = leased ? STR("worker") : STR_ABSENT,
                             .refs = refs_of(j)};
}

static void submit(struct build *b, struct load_job *j)
{
    char key[32];
    int len = snprintf(key, sizeof key, "key-%llx", (unsigned long long)j->id);
    struct str idem_key = arena_str(b->arena, (struct str){key, (size_t)len});
    struct str payload = arena_printf(b->arena, "{\"n\":%0*llu}", (int)(20 + sim_next(&b->load->seed) % 400),
                                      (unsigned long long)j->id);
    struct job_row row = {.id = j->id,
                          .client = LOAD_CLIENT,
                          .priority = 4,
                          .queue = STR("default"),
                          .idem_key = idem_key,
                          .idem_fingerprint = STR("fingerprint"),
                          .payload = payload};
    add_event(b, j, JOB_EVENT_CREATED, JOB_QUEUED);
    struct task_row task = task_row_of(j);
    add_row(b, &table_job_row, ROW_INSERT, &row);
    add_row(b, &table_task_row, ROW_INSERT, &task);
    add_list(b, j->id, LIST_ALL, false);
    b->idem[b->idem_count++] = (struct idem_entry){idem_hash(LOAD_CLIENT, idem_key), j->id};
}

static void move_task(struct build *b, struct load_job *j, enum job_event event, enum job_state to)
{
    add_event(b, j, event, to);
    struct task_row task = task_row_of(j);
    add_row(b, &table_task_row, ROW_UPDATE, &task);
}

static void end_job(struct build *b, struct load_job *j, enum job_event event, enum job_state to)
{
    add_event(b, j, event, to);
    struct task_row task = task_row_of(j);
    struct end_row end = {.id = j->id,
                          .client = LOAD_CLIENT,
                          .state = (int64_t)to,
                          .attempt = j->attempt,
                          .seq = j->seq,
                          .result = STR("{\"ok\":true}"),
                          .refs = refs_of(j)};
    add_row(b, &table_task_row, ROW_DELETE, &task);
    add_row(b, &table_end_row, ROW_INSERT, &end);
    add_list(b, j->id, (uint8_t)(1 + to), false);
}

static void retry(struct build *b, struct load_job *j)
{
    struct end_row end = {.id = j->id};
    struct archive_row archive = {.job = j->id, .attempt = j->attempt, .error = STR("{}")};
    add_list(b, j->id, (uint8_t)(1 + j->state), true);
    j->attempt++;
    add_event(b, j, JOB_EVENT_QUEUED, JOB_QUEUED);
    struct task_row task = task_row_of(j);
    add_row(b, &table_end_row, ROW_DELETE, &end);
    add_row(b, &table_archive_row, ROW_INSERT, &archive);
    add_row(b, &table_task_row, ROW_INSERT, &task);
}

static void move_on(struct build *b, struct load_job *j)
{
    uint64_t dice = sim_next(&b->load->seed) % 8;
    j->touched = b->load->batches + 1;
    switch (j->state) {
    case JOB_CREATED:
    case JOB_QUEUED:
        if (dice == 0)
            end_job(b, j, JOB_EVENT_CANCELED, JOB_CANCELED);
        else
            move_task(b, j, JOB_EVENT_ASSIGNED, JOB_ASSIGNED);
        break;
    case JOB_ASSIGNED:
        move_task(b, j, JOB_EVENT_RUNNING, JOB_RUNNING);
        break;
    case JOB_RUNNING:
        if (dice < 3)
            end_job(b, j, JOB_EVENT_FAILED, JOB_FAILED);
        else
            end_job(b, j, JOB_EVENT_SUCCEEDED, JOB_SUCCEEDED);
        break;
    case JOB_FAILED:
        if (j->attempt < 4)
            retry(b, j);
        break;
    case JOB_SUCCEEDED:
    case JOB_CANCELED:
    case JOB_STATE_COUNT:
        break;
    }
}

static void build_batch(struct build *b)
{
    struct store_load *l = b->load;
    for (unsigned i = 0; i < l->per_batch && l->job_count > 0; i++) {
        for (unsigned look = 0; look < 4; look++) { /* mostly young jobs: old ones are finished */
            size_t window = l->job_count < 200 ? l->job_count : 200;
            struct load_job *j = &l->jobs[l->job_count - 1 - sim_next(&l->seed) % window];
            if (j->touched != l->batches + 1)
                move_on(b, j);
        }
    }
    for (unsigned i = 0; i < l->per_batch; i++) {
        MUST(l->job_count < LOAD_JOBS_MAX);
        struct load_job *j = &l->jobs[l->job_count++];
        *j = (struct load_job){.id = (INT64_C(1700000000000) << 12) + (int64_t)l->job_count,
                               .attempt = 1,
                               .touched = l->batches + 1};
        submit(b, j);
    }
    struct stats_row stats = {.client = LOAD_CLIENT, .counts = counts_bytes(&l->counts)};
    add_row(b, &table_stats_row, l->batches == 0 ? ROW_INSERT : ROW_UPDATE, &stats);
    log_builder_finish(&b->log);
    l->batches++;
}

static enum err_code commit_build(struct build *b, struct store *s, struct err *err)
{
    struct change_set c = {.rows = b->rows,
                           .row_count = b->row_count,
                           .chunks = b->log.chunks,
                           .chunk_count = b->log.chunk_count,
                           .first_chunk = b->log.first_chunk,
                           .first_offset = b->log.first_offset,
                           .list = b->list,
                           .list_count = b->list_count,
                           .idem_add = b->idem,
                           .idem_add_count = b->idem_count};
    return s->ops->commit(s, &c, err);
}

enum err_code store_load_step(struct store_load *l, struct store *s, struct err *err)
{
    struct store_load tried = *l; /* a refused batch leaves the load as it was */
    tried.jobs = must_alloc(LOAD_JOBS_MAX * sizeof *l->jobs);
    memcpy(tried.jobs, l->jobs, l->job_count * sizeof *l->jobs);
    struct build b = {.load = &tried, .arena = arena_new(64 * 1024)};
    size_t most = 1 + (size_t)l->per_batch * 5 * LOAD_CHANGES_PER_JOB;
    b.rows = ARENA_ARRAY(b.arena, struct row_change, most);
    b.list = ARENA_ARRAY(b.arena, struct list_entry, most);
    b.idem = ARENA_ARRAY(b.arena, struct idem_entry, most);
    log_builder_start(&b.log, b.arena, s->next_chunk, s->open_bytes);
    build_batch(&b);
    enum err_code code = commit_build(&b, s, err);
    if (code == ERR_OK) {
        free(l->jobs);
        *l = tried;
    } else {
        free(tried.jobs);
    }
    arena_free(b.arena);
    return code;
}
