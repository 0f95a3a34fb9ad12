#include "unit/kernel/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/time_text.h"
#include "store/copy_internal.h"

#include "base/banned.h"

enum { START_MONO_MS = 5000000, STORE_TIMEOUT_MS = 2000 };
static const int64_t START_WALL_US = INT64_C(1763248200000000);

bool rig_use_disk, rig_use_postgres;
static struct rig *the_rig; /* the store's commit has no other way back */

int rig_group_memory(void **state)
{
    (void)state;
    rig_use_disk = rig_use_postgres = false;
    return 0;
}

int rig_group_disk(void **state)
{
    (void)state;
    rig_use_disk = true;
    rig_use_postgres = false;
    return 0;
}

int rig_group_postgres(void **state)
{
    (void)state;
    rig_use_disk = rig_use_postgres = true;
    return 0;
}

int rig_run_both(void)
{
    return store_run("memory", rig_group_memory) + store_run("sqlite", rig_group_disk);
}

int rig_run_all(void)
{
    return rig_run_both() + store_run("postgres", rig_group_postgres);
}

/* --- clock and store --------------------------------------------------------------------------- */

static int64_t wall_us(void *self)
{
    return ((struct rig *)self)->wall_us;
}
static int64_t mono_ms(void *self)
{
    return ((struct rig *)self)->mono_ms;
}

static void seeded_bytes(void *self, void *out, size_t len)
{
    struct rig *r = self;
    for (char *at = out; len;) {
        uint64_t next = hash_mix(atomic_fetch_add(&r->seed, UINT64_C(0x9E3779B97F4A7C15)));
        size_t n = len < sizeof next ? len : sizeof next;
        memcpy(at, &next, n);
        at += n;
        len -= n;
    }
}

struct uuid rig_uuid(struct rig *r)
{
    uint8_t bytes[sizeof(struct uuid)];
    seeded_bytes(r, bytes, sizeof bytes);
    return uuid_v4_of(bytes);
}

void rig_pass(struct rig *r, int64_t ms)
{
    r->wall_us += ms * 1000;
    r->mono_ms += ms;
}

void rig_set_wall(struct rig *r, int64_t ms)
{
    r->wall_us += ms * 1000;
}

static enum err_code watched_probe(struct store *s, struct err *err)
{
    struct rig *r = the_rig;
    if (r->probe_fails)
        return err_set(err, ERR_STORAGE_DB_ERROR, "told to fail");
    return r->real->probe(s, err);
}

static enum err_code counted_commit(struct store *s, const struct change_set *c, struct err *err)
{
    struct rig *r = the_rig;
    void (*before)(struct rig * r) = r->before_commit;
    r->before_commit = NULL;
    if (before)
        before(r);
    if (r->commit_takes_us)
        usleep((useconds_t)r->commit_takes_us);
    if (r->failures) {
        r->failures--;
        return err_set(err, r->failure, "told to fail");
    }
    r->commits++;
    memset(r->writes, 0, sizeof r->writes);
    for (size_t i = 0; i < c->row_count; i++)
        r->writes[c->rows[i].table->number]++;
    return r->real->commit(s, c, err);
}

static enum err_code counted_fetch(struct store *s, const struct table *t, void *row, struct arena *a,
                                   bool *ret_found, struct err *err)
{
    struct rig *r = the_rig;
    if (r->fetches_left >= 0 && r->fetches_left-- == 0)
        return err_set(err, ERR_STORAGE_DB_ERROR, "told to fail");
    r->fetches[t->number]++;
    return r->real->fetch(s, t, row, a, ret_found, err);
}

/* All nodes go by the database's clock; here that is the rig's. */
static void set_database_clock(const struct rig *r, struct store *s)
{
    atomic_store(&s->clock_minus_mono_us, r->wall_us - r->mono_ms * 1000);
}

static enum err_code timed_lead(struct store *s, struct store_duties *ret_duties, struct err *err)
{
    enum err_code code = the_rig->real->lead(s, ret_duties, err);
    set_database_clock(the_rig, s);
    return code;
}

/* The database may be away for a while. Rows that come with the load of a batch count like those that are
 * fetched one by one. */
static enum err_code rig_load(struct store *s, struct load_set *l, struct arena *a, struct err *err)
{
    struct rig *r = the_rig;
    if (r->load_outage_ms) {
        rig_pass(r, r->load_outage_ms);
        r->load_outage_ms = 0;
        err_set(err, ERR_STORAGE_UNAVAILABLE, "told to be away");
        err->conflict = true;
        return err->code;
    }
    for (size_t i = 0; i < l->row_count; i++) {
        if (r->fetches_left >= 0 && r->fetches_left-- == 0)
            return err_set(err, ERR_STORAGE_DB_ERROR, "told to fail");
        r->fetches[l->rows[i].table->number]++;
    }
    return r->real->load(s, l, a, err);
}

static void take_notice(struct rig *r, const struct notice *n)
{
    const struct job_notice *job = notice_row(n, &job_notices);
    const struct attempt_notice *attempt = notice_row(n, &attempt_notices);
    if (job) {
        r->notices++;
        r->last_notice = *job;
    }
    if (attempt) {
        r->attempts++;
        r->last_attempt = *attempt;
        if (attempt->error.ptr)
            r->last_attempt.error = arena_str(r->arena, attempt->error);
    }
}

static void committed(void *self, const struct unit *u)
{
    struct rig *r = self;
    r->notices = 0;
    for (size_t i = 0; i < u->notices.count; i++)
        take_notice(r, &u->notices.list[i]);
}

static void fatal(void *self, const struct err *err)
{
    (void)err;
    ((struct rig *)self)->fatal++;
}

static struct store *open_node(struct rig *r)
{
    struct err err;
    struct store *s;
    struct postgres_options o = {.url = r->schema.url, .timeout_ms = STORE_TIMEOUT_MS};
    assert_int_equal(store_open_postgres(&o, &s, &err), ERR_OK);
    return s;
}

static void open_store(struct rig *r)
{
    struct err err;
    if (r->shared) {
        r->store = open_node(r);
    } else if (r->on_disk) {
        struct sqlite_options o = {.path = r->path,
                                   .timeout_ms = STORE_TIMEOUT_MS,
                                   .synchronous = "OFF", /* nothing here is about power cuts */
                                   .wall_ms = r->wall_us / 1000};
        assert_int_equal(store_open_sqlite(&o, &r->store, &err), ERR_OK);
    } else if (!r->store) {
        r->store = store_open_memory();
    }
    if (r->store->ops != &r->ops) {
        r->real = r->store->ops;
        r->ops = *r->real;
        r->ops.commit = counted_commit;
        r->ops.fetch = counted_fetch;
        r->ops.probe = watched_probe;
        if (r->ops.lead) {
            r->ops.lead = timed_lead;
            r->ops.load = rig_load;
        }
        r->store->ops = &r->ops;
    }
    if (r->shared)
        set_database_clock(r, r->store);
    assert_int_equal(r->real->reader_open(r->store, &r->reader, &err), ERR_OK);
}

const struct timer_kind *rig_timer_kind;

static void open_kernel(struct rig *r)
{
    static const struct notice_kind *const costly[] = {&attempt_notices, NULL};
    const struct timer_kind *kinds[] = {&run_grace_timer, rig_timer_kind};
    struct kernel_config config = {.owners = task_owners,
                                   .owner_count = LENGTH_OF(task_owners),
                                   .timer_kinds = kinds,
                                   .timer_kind_count = rig_timer_kind ? 2 : 1,
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &r->clock,
                                   .random = &r->random,
                                   .watch = {.committed = committed,
                                             .fatal = fatal,
                                             .costly = r->tells_attempts ? costly : NULL,
                                             .self = r},
                                   .housekeep = purge_housekeep,
                                   .housekeep_self = &r->purge};
    r->kernel = kernel_new(&config);
}

void rig_switch_node(struct rig *r)
{
    assert_true(r->shared);
    struct store *store = r->other_store ? r->other_store : open_node(r);
    struct kernel *kernel = r->other_kernel;
    r->other_store = r->store;
    r->other_kernel = r->kernel;
    r->store = store;
    r->store->ops = &r->ops;
    set_database_clock(r, store);
    if (kernel)
        r->kernel = kernel;
    else
        open_kernel(r);
}

static void remove_files(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < LENGTH_OF(ends); i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

int rig_up(void **state)
{
    struct rig *r = must_alloc(sizeof *r);
    the_rig = r;
    r->on_disk = rig_use_disk;
    r->shared = rig_use_postgres;
    r->clock = (struct clock){wall_us, mono_ms, r};
    r->random = (struct random){seeded_bytes, r};
    r->seed = 1;
    r->wall_us = START_WALL_US;
    r->mono_ms = START_MONO_MS;
    r->failure = ERR_STORAGE_DB_ERROR;
    r->fetches_left = -1;
    r->arena = arena_new(1 << 16);
    settings_init(&r->settings);
    r->settings.jobs_max_active_per_client = 100000000; /* one client may fill it, unless a test says other */
    r->settings.clients_keyless_ttl_seconds = 3153600000; /* the rig's clients work without keys */
    log_minimum(
        (enum log_level)(LOG_ERROR + 1)); /* failed commits are told to fail: nothing to read in them */
    if (r->shared) {
        bench_schema_borrow(&r->schema);
    } else if (r->on_disk) {
        snprintf(r->path, sizeof r->path, "/tmp/weir-rig-XXXXXX");
        int fd = mkstemp(r->path);
        assert_true(fd >= 0);
        close(fd);
    }
    open_store(r);
    open_kernel(r);
    *state = r;
    return 0;
}

int rig_down(void **state)
{
    rig_timer_kind = NULL;
    struct rig *r = *state;
    rig_expect_sound(r);
    r->kernel = kernel_free(r->kernel);
    kernel_free(r->other_kernel);
    r->reader->ops->reader_close(r->reader);
    store_close(r->store);
    store_close(r->other_store);
    if (r->shared)
        bench_schema_give_back(&r->schema);
    else if (r->on_disk)
        remove_files(r->path);
    settings_free(&r->settings);
    arena_free(r->arena);
    free(r);
    return 0;
}

void rig_forget_ids(struct rig *r)
{
    r->kernel = kernel_free(r->kernel);
    r->store->last_id = 0;
    open_kernel(r);
}

void rig_restart(struct rig *r, int64_t down_ms)
{
    r->kernel = kernel_free(r->kernel);
    r->reader->ops->reader_close(r->reader);
    if (r->on_disk)
        r->store = store_close(r->store);
    r->wall_us += down_ms * 1000;
    r->mono_ms = 1000; /* another boot: the monotonic clock starts anew */
    open_store(r);
    open_kernel(r);
}

/* Who has the duties of all nodes looks for leases that ended once a second; the rig in every batch. */
size_t rig_step(struct rig *r)
{
    if (r->shared)
        kernel_hint(r->kernel, HINT_TIMER);
    return kernel_step(r->kernel);
}

static void print_problem(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "verify: %s\n", line);
}

void rig_expect_sound(struct rig *r)
{
    struct verify_result result;
    struct err err;
    assert_int_equal(store_verify(r->reader, print_problem, NULL, NULL, &result, &err), ERR_OK);
    assert_int_equal(result.problems, 0);
    assert_int_equal(result.jobs, result.live + result.ended);
    if (!r->shared)
        assert_int_equal(result.live, live_count(r->store->live));
}

static void no_progress(void *self, enum copy_step step, int part, uint64_t done, uint64_t total)
{
    (void)self;
    (void)step;
    (void)part;
    (void)done;
    (void)total;
}

uint64_t rig_digest(struct rig *r)
{
    const struct copy_watch watch = {.progress = no_progress};
    struct part_sum sums[COPY_PARTS_MAX];
    struct err err;
    uint64_t digest = 0;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(copy_sum(r->reader, NULL, false, &watch, COPY_COUNTS_SOURCE, 0, sums, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    for (int i = 0; i < COPY_PART_COUNT; i++)
        digest = hash_mix(digest ^ sums[i].digest ^ sums[i].rows);
    return digest;
}

/* --- commands ---------------------------------------------------------------------------------- */

static void note_done(struct command *c)
{
    assert_non_null(c->type); /* answered once */
    c->type = NULL;
}

bool rig_is_done(const struct command *c)
{
    return !c->type;
}

void rig_post(struct rig *r, struct command *c, const struct command_type *type)
{
    c->type = type;
    c->done = note_done;
    c->received_us = r->wall_us;
    MUST(kernel_post(r->kernel, c));
}

int64_t rig_new_client(struct rig *r, struct uuid *ret_id)
{
    struct create_client_command *c = ARENA_NEW(r->arena, struct create_client_command);
    int64_t num = r->store->next_client;
    c->client_id = rig_uuid(r);
    memset(c->webhook_secret, 7, sizeof c->webhook_secret);
    rig_post(r, &c->base, &create_client_command_type);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
    if (ret_id)
        *ret_id = c->client_id;
    return num;
}

struct submit_item rig_item(void)
{
    return (struct submit_item){.type = STR("EXECUTE"), .work_kind = STR("SUCCESS_FAST")};
}

struct submit_command *rig_post_submit(struct rig *r, int64_t client, const struct submit_item *items,
                                       size_t count)
{
    struct submit_command *c = ARENA_NEW(r->arena, struct submit_command);
    c->client = client;
    c->items = ARENA_ARRAY(r->arena, struct submit_item, count);
    memcpy(c->items, items, count * sizeof *items);
    c->item_count = count;
    rig_post(r, &c->base, &submit_command_type);
    return c;
}

struct submit_item rig_submit(struct rig *r, int64_t client, const struct submit_item *item)
{
    struct submit_command *c = rig_post_submit(r, client, item, 1);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    if (c->base.result != ERR_OK)
        c->items[0].err = c->base.err;
    return c->items[0];
}

struct submit_item rig_submit_default(struct rig *r, int64_t client)
{
    struct submit_item item = rig_item();
    item = rig_submit(r, client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    return item;
}

struct submit_item rig_submit_deferred(struct rig *r, int64_t client, int64_t after_ms)
{
    struct submit_item item = rig_item();
    char *text = arena_alloc(r->arena, TIME_TEXT_MAX);
    item.type = STR("DEFERRED");
    item.execution_at = time_text_us(r->wall_us + after_ms * 1000, text);
    item = rig_submit(r, client, &item);
    assert_int_equal(item.err.code, ERR_OK);
    return item;
}

struct job_command *rig_post_job(struct rig *r, const struct command_type *type, int64_t client,
                                 const struct submit_item *job)
{
    struct job_command *c = ARENA_NEW(r->arena, struct job_command);
    c->client = client;
    c->id = job->id;
    c->low = job->low;
    rig_post(r, &c->base, type);
    return c;
}

static struct job_command *job_now(struct rig *r, const struct command_type *type, int64_t client,
                                   const struct submit_item *job)
{
    struct job_command *c = rig_post_job(r, type, client, job);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    return c;
}

struct job_command *rig_cancel(struct rig *r, int64_t client, const struct submit_item *job)
{
    return job_now(r, &cancel_command_type, client, job);
}

struct job_command *rig_retry(struct rig *r, int64_t client, const struct submit_item *job)
{
    return job_now(r, &retry_command_type, client, job);
}

struct claim_command *rig_post_claim(struct rig *r, const char *worker, uint32_t max, int64_t wait_ms)
{
    static const struct str queues[] = {{"default", 7}};
    struct claim_command *c = ARENA_NEW(r->arena, struct claim_command);
    c->worker_id = str_of(worker);
    c->queues = queues;
    c->queue_count = 1;
    c->max = max;
    c->wait_ms = wait_ms;
    c->tasks = ARENA_ARRAY(r->arena, struct claimed_task, max);
    rig_post(r, &c->base, &claim_command_type);
    return c;
}

struct claimed_task rig_claim(struct rig *r, const char *worker)
{
    struct claim_command *c = rig_post_claim(r, worker, 1, 0);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->task_count, 1);
    return c->tasks[0];
}

size_t rig_claim_count(struct rig *r, const char *worker, uint32_t max)
{
    struct claim_command *c = rig_post_claim(r, worker, max, 0);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    return c->task_count;
}

struct worker_command *rig_post_work(struct rig *r, const struct command_type *type,
                                     const struct claimed_task *task, bool success)
{
    struct worker_command *c = ARENA_NEW(r->arena, struct worker_command);
    c->items = ARENA_NEW(r->arena, struct worker_item);
    c->item_count = 1;
    c->items[0] = (struct worker_item){.id = task->id, .token = task->token, .low = task->low};
    c->items[0].outcome = success ? (struct task_outcome){.success = true, .result = STR("{\"n\":1}")}
                                  : (struct task_outcome){.error_code = STR("broken"),
                                                          .error_message = STR("it broke"),
                                                          .retryable = true};
    rig_post(r, &c->base, type);
    return c;
}

struct worker_item rig_work(struct rig *r, const struct command_type *type, const struct claimed_task *task)
{
    struct worker_command *c = rig_post_work(r, type, task, true);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    return c->items[0];
}

struct worker_item rig_fail(struct rig *r, const struct claimed_task *task)
{
    struct worker_command *c = rig_post_work(r, &finish_command_type, task, false);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
    return c->items[0];
}

void rig_run(struct rig *r, bool success)
{
    struct claimed_task t = rig_claim(r, "w");
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
    if (success)
        assert_int_equal(rig_work(r, &finish_command_type, &t).code, ERR_OK);
    else
        assert_int_equal(rig_fail(r, &t).code, ERR_OK);
}

/* --- what a reader sees ------------------------------------------------------------------------ */

struct counted {
    const struct task_owner *owner;
    uint32_t by_phase[TASK_ENDED + 1];
};

static bool count_task(const void *row, void *arg)
{
    struct counted *c = arg;
    if (((const struct task_row *)row)->owner == c->owner->number)
        c->by_phase[task_row_phase(row)]++;
    return true;
}

static struct counted count_tasks(struct rig *r, const struct task_owner *owner)
{
    struct err err = {.code = ERR_OK};
    struct counted c = {.owner = owner};
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    enum err_code code = r->reader->ops->reader_scan(r->reader, &table_task_row, count_task, &c, &err);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(code, ERR_OK);
    return c;
}

uint32_t rig_live_count(struct rig *r)
{
    struct counted c = count_tasks(r, &job_task_owner);
    uint32_t count = 0;
    for (int i = 0; i < TASK_ENDED; i++)
        count += c.by_phase[i];
    if (!r->shared)
        assert_int_equal(count, live_count(r->store->live));
    return count;
}

static void count_stream(struct task *t, void *arg)
{
    struct counted *c = arg;
    if (t->row.owner == c->owner->number)
        c->by_phase[t->phase]++;
}

uint32_t rig_stream_count(struct rig *r, enum task_phase phase)
{
    struct counted live = {.owner = &delivery_task_owner};
    uint32_t count = count_tasks(r, &delivery_task_owner).by_phase[phase];
    if (!r->shared) {
        live_each(r->store->live, count_stream, &live);
        assert_int_equal(count, live.by_phase[phase]);
    }
    return count;
}

bool rig_row(struct rig *r, const struct table *t, void *row)
{
    struct err err;
    bool found = false;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_row(r->reader, t, row, r->arena, &found, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return found;
}

static bool count_row(const void *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

size_t rig_rows(struct rig *r, const struct table *t)
{
    struct err err;
    size_t n = 0;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, t, count_row, &n, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return n;
}

/* As stored; what memory holds must say the same, but for leases, which memory may have extended. */
struct task_row rig_task(struct rig *r, int64_t id)
{
    struct task_row row = {.id = id};
    assert_true(rig_row(r, &table_task_row, &row));
    const struct task *t = live_find(r->store->live, id);
    assert_true(t || r->shared);
    if (t) {
        assert_int_equal(t->phase, task_row_phase(&row));
        assert_true(str_equal(t->row.worker, row.worker));
        assert_true(t->worker ? str_equal(t->worker->id, row.worker) : !row.worker.ptr);
    }
    return row;
}

bool rig_find(struct rig *r, int64_t id, struct job_view *ret_view)
{
    struct err err = {.code = ERR_OK};
    bool found = false;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    enum err_code code = job_view_read(r->reader, r->arena, id, ret_view, &found, &err);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(code, ERR_OK);
    return found;
}

struct job_view rig_view(struct rig *r, int64_t id)
{
    struct job_view v;
    assert_true(rig_find(r, id, &v));
    return v;
}

enum job_state rig_state(struct rig *r, int64_t id)
{
    return rig_view(r, id).state;
}

size_t rig_events(struct rig *r, int64_t id, struct event *ret_events)
{
    struct err err = {.code = ERR_OK};
    struct job_view v;
    bool found = false;
    size_t n = 0;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    enum err_code code = job_view_read(r->reader, r->arena, id, &v, &found, &err);
    if (code == ERR_OK && found)
        code = job_view_events(r->reader, r->arena, &v, 0, RIG_EVENTS_MAX, ret_events, &n, &err);
    r->reader->ops->reader_end(r->reader);
    assert_int_equal(code, ERR_OK);
    assert_true(found);
    assert_int_equal(n, v.seq);
    return n;
}

size_t rig_event_count(struct rig *r, int64_t id)
{
    struct event events[RIG_EVENTS_MAX];
    return rig_events(r, id, events);
}

struct event rig_last_event(struct rig *r, int64_t id)
{
    struct event events[RIG_EVENTS_MAX];
    return events[rig_events(r, id, events) - 1];
}

struct client_counts rig_counts(struct rig *r, int64_t client)
{
    struct stats_row row = {.client = client};
    struct client_counts counts;
    assert_true(rig_row(r, &table_stats_row, &row));
    counts_from_bytes(&counts, row.counts);
    if (!r->shared)
        assert_memory_equal(&counts, counts_of(&r->store->counts, client), sizeof counts);
    return counts;
}
