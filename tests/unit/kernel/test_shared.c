/* A batch on a store that other nodes write to as well, on the bench: the memory store, told to be shared. It
 * is forgotten after every batch and loaded again, meets others' changes when told to, and says who has the
 * duties. */
#include "unit/kernel/rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { SLOT = 5, SECOND_MS = 1000, LOOK_MS = 5000 };

static struct {
    struct rig *rig;
    struct kernel *elsewhere;   /* another node of the same store */
    int conflicts;              /* so many commits to come meet others' changes */
    int commits;                /* tried */
    int64_t load_ms, commit_ms; /* a load or a commit takes so long */
    struct store_duties duties; /* what `lead` says ... */
    bool lead_fails, files_gone;
    int asked, kept; /* ... how often it was asked; how often there was retention */
} bench;

static void bring(const struct task_row *row)
{
    struct live *live = bench.rig->store->live;
    if (live_find(live, row->id))
        return;
    struct task *t = live_task_new(live, row);
    live_set_worker(live, t, row->worker, 0);
    live_place(live, t, bench.rig->wall_us / 1000);
}

static bool bring_ready(const void *row, void *arg)
{
    (void)arg;
    if (task_row_phase(row) == TASK_READY)
        bring(row);
    return true;
}

static enum err_code load(struct store *s, struct load_set *l, struct arena *a, struct err *err)
{
    struct rig *r = bench.rig;
    rig_pass(r, bench.load_ms);
    for (size_t i = 0; i < l->row_count; i++)
        assert_int_equal(r->real->fetch(s, l->rows[i].table, l->rows[i].row, a, &l->rows[i].found, err),
                         ERR_OK);
    for (size_t i = 0; i < l->task_count; i++) {
        struct task_row row = {.id = l->tasks[i]};
        bool found;
        assert_int_equal(r->real->fetch(s, &table_task_row, &row, a, &found, err), ERR_OK);
        if (found)
            bring(&row);
    }
    if (!l->claim_count)
        return ERR_OK;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, err), ERR_OK);
    enum err_code code = r->reader->ops->reader_scan(r->reader, &table_task_row, bring_ready, NULL, err);
    r->reader->ops->reader_end(r->reader);
    return code;
}

/* What a batch counts is added to what is there. */
static void add_counts(struct store *s, struct stats_row *row)
{
    struct rig *r = bench.rig;
    struct stats_row stored = {.client = row->client};
    struct client_counts *sum = ARENA_NEW(r->arena, struct client_counts);
    struct err err;
    bool found;
    assert_int_equal(r->real->fetch(s, &table_stats_row, &stored, r->arena, &found, &err), ERR_OK);
    counts_from_bytes(sum, row->counts);
    if (found)
        counts_add(sum, stored.counts);
    row->counts = counts_bytes(sum);
}

static enum err_code commit(struct store *s, const struct change_set *c, struct err *err)
{
    bench.commits++;
    rig_pass(bench.rig, bench.commit_ms);
    for (size_t i = 0; !bench.conflicts && i < c->row_count; i++)
        if (c->rows[i].table == &table_stats_row)
            add_counts(s, (struct stats_row *)(uintptr_t)c->rows[i].row);
    if (!bench.conflicts)
        return bench.rig->real->commit(s, c, err);
    bench.conflicts--;
    err_set(err, ERR_STORAGE_DB_ERROR, "others were faster");
    err->conflict = true;
    return err->code;
}

static enum err_code lead(struct store *s, struct store_duties *ret_duties, struct err *err)
{
    bench.asked++;
    if (bench.lead_fails)
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "told to fail");
    *ret_duties = bench.duties;
    s->leads = bench.duties.leads;
    return ERR_OK;
}

static void hint(struct store *s, unsigned what)
{
    (void)s, (void)what;
}

static enum err_code watch(struct store *s, struct err *err)
{
    (void)s;
    return bench.files_gone ? err_set(err, ERR_STORAGE_UNAVAILABLE, "told to be gone") : ERR_OK;
}

static bool keep(void *self, struct unit *u)
{
    (void)self, (void)u;
    bench.kept++;
    return false;
}

static struct kernel *open_node(struct rig *r)
{
    struct kernel_config config = {.owners = task_owners,
                                   .owner_count = LENGTH_OF(task_owners),
                                   .timer_kinds = timer_kinds,
                                   .timer_kind_count = LENGTH_OF(timer_kinds),
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &r->clock,
                                   .housekeep = keep};
    return kernel_new(&config);
}

static int share(void **state)
{
    rig_use_disk = rig_use_postgres = false;
    int failed = rig_up(state);
    struct rig *r = *state;
    memset(&bench, 0, sizeof bench);
    bench.rig = r;
    bench.duties = (struct store_duties){.leads = true, .next_due_ms = INT64_MAX, .next_lapse_ms = INT64_MAX};
    r->ops.load = load;
    r->ops.commit = commit;
    r->ops.lead = lead;
    r->ops.hint = hint;
    r->ops.watch = watch;
    r->store->shared = true;
    r->store->id_slot = SLOT;
    atomic_store(&r->store->clock_minus_mono_us, r->wall_us - r->mono_ms * 1000);
    kernel_free(r->kernel);
    r->kernel = open_node(r);
    return failed;
}

static bool bring_any(const void *row, void *arg)
{
    (void)arg;
    bring(row);
    return true;
}

/* It is a store of one again, which has everything in memory. */
static int end_share(void **state)
{
    struct rig *r = *state;
    struct err err;
    kernel_free(bench.elsewhere);
    r->store->shared = false;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, &table_task_row, bring_any, NULL, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return rig_down(state);
}

static void step_after(struct rig *r, int64_t ms)
{
    rig_pass(r, ms);
    kernel_step(r->kernel);
}

/* A job that another node takes in; here nobody hears of it. */
static void submit_elsewhere(struct rig *r, int64_t client)
{
    struct kernel *here = r->kernel;
    if (!bench.elsewhere)
        bench.elsewhere = open_node(r);
    r->kernel = bench.elsewhere;
    rig_submit_default(r, client);
    r->kernel = here;
}

/* --- others are met --------------------------------------------------------------------------------- */

#define SHARED_TEST(name, parameter) TEST_WITH(name, struct rig *parameter, share, end_share)

SHARED_TEST(what_met_others_is_decided_anew_from_its_beginning, r)
{
    rig_submit_default(r, rig_new_client(r, NULL));
    struct claim_command *c = rig_post_claim(r, "w", 3, 0);
    bench.conflicts = 2;
    kernel_step(r->kernel);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->task_count, 1); /* what was claimed in vain is not told */
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.conflicts, 2);
}

/* By the measure of the store. */
SHARED_TEST(who_meets_others_again_and_again_has_an_answer_in_time, r)
{
    struct submit_item item = rig_item();
    int64_t client = rig_new_client(r, NULL);
    int before = bench.commits;
    bench.conflicts = 1000;
    bench.commit_ms = r->settings.store_timeout_ms / 4;
    struct submit_command *c = rig_post_submit(r, client, &item, 1);
    kernel_step(r->kernel);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(c->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(c->base.err.retry_after_s, 1);
    assert_int_equal(bench.commits - before, 4);
    bench.conflicts = 0;
    bench.commit_ms = 0;
    rig_submit_default(r, client);
}

/* --- when rows are in hand ---------------------------------------------------------------------------- */

struct look_command {
    struct command base;
    int64_t decide_after_ms; /* when all rows were in hand, from the batch's time on */
};

static void load_look(struct unit *u, struct command *c)
{
    struct create_row key = {.scope = STR("s"), .name = STR("n")};
    unit_prefetch_task(u, 1);
    if (!unit_task_is_gone(u, 1))
        return;
    (void)c;
    unit_prefetch(u, &table_create_row, &key);
}

static enum err_code decide_look(struct unit *u, struct command *c, struct err *err)
{
    (void)err;
    ((struct look_command *)c)->decide_after_ms = u->locked_at_ms - u->now_ms;
    return ERR_OK;
}

/* A load may wait for others' locks: what is decided then has a time behind all of it. */
SHARED_TEST(what_is_decided_has_the_time_at_which_its_rows_were_in_hand, r)
{
    static const struct command_type look = {.name = "look", .load = load_look, .decide = decide_look};
    struct look_command *c = ARENA_NEW(r->arena, struct look_command);
    bench.load_ms = 7;
    rig_post(r, &c->base, &look);
    kernel_step(r->kernel);
    assert_int_equal(c->decide_after_ms, 14);
    bench.load_ms = 0;
}

/* --- who waits ------------------------------------------------------------------------------------- */

SHARED_TEST(who_waits_gets_what_another_node_made_once_it_is_told, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *c = rig_post_claim(r, "w", 1, 60000), *other = rig_post_claim(r, "v", 1, 60000);
    kernel_step(r->kernel);
    submit_elsewhere(r, client);
    kernel_step(r->kernel);
    assert_false(rig_is_done(&c->base));
    kernel_hint(r->kernel, HINT_READY);
    kernel_step(r->kernel);
    assert_true(rig_is_done(&c->base) && c->task_count == 1);
    assert_false(rig_is_done(&other->base));
    for (int kind = 0; kind < LANE_KINDS; kind++)
        assert_int_equal(r->kernel->look_for_parked[kind], 0); /* or it would never sleep */
}

/* Word of other nodes may be lost. */
SHARED_TEST(who_waits_is_asked_again_now_and_then, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *c = rig_post_claim(r, "w", 1, 60000);
    kernel_step(r->kernel);
    submit_elsewhere(r, client);
    step_after(r, LOOK_MS - SECOND_MS);
    assert_false(rig_is_done(&c->base));
    step_after(r, SECOND_MS);
    assert_true(rig_is_done(&c->base) && c->task_count == 1);
}

static bool always(const struct command *c)
{
    (void)c;
    return true;
}

SHARED_TEST(what_another_node_made_goes_to_nobody_who_is_gone, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct claim_command *gone = rig_post_claim(r, "w", 1, 60000), *c = rig_post_claim(r, "v", 1, 60000);
    kernel_step(r->kernel);
    submit_elsewhere(r, client);
    gone->base.abandoned = always;
    kernel_hint(r->kernel, HINT_READY);
    kernel_step(r->kernel);
    assert_true(rig_is_done(&gone->base) && !gone->task_count);
    assert_true(rig_is_done(&c->base) && c->task_count == 1);
}

/* Its age is that of those who have waited for this batch. */
SHARED_TEST(a_long_poll_makes_no_batch_old, r)
{
    int64_t client = rig_new_client(r, NULL);
    rig_post_claim(r, "w", 1, 60000);
    kernel_step(r->kernel);
    rig_pass(r, 3000);
    kernel_hint(r->kernel, HINT_READY);
    rig_submit_default(r, client);
    assert_int_equal(r->kernel->lanes[0].unit.oldest_us, r->wall_us);
}

/* --- numbers ---------------------------------------------------------------------------------------- */

SHARED_TEST(ids_of_a_handle_are_its_own, r)
{
    lane_start_unit(&r->kernel->lanes[0]);
    struct unit *u = &r->kernel->lanes[0].unit;
    int64_t a = unit_id(u), b = unit_id(u);
    assert_true(a % STORE_ID_SLOTS == SLOT && b % STORE_ID_SLOTS == SLOT);
    assert_true(a < b && uuid_v7_ms(a) == u->now_ms);
    unit_abort(u);
}

/* What is stored, and what the batch adds; the store is asked once. */
SHARED_TEST(a_batch_sees_the_counts_of_a_client_with_its_own, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct client_counts counts;
    rig_submit_default(r, client);
    lane_start_unit(&r->kernel->lanes[0]);
    struct unit *u = &r->kernel->lanes[0].unit;
    size_t before = r->fetches[TABLE_NUMBER_stats_row];
    unit_read_counts(u, client, &counts);
    assert_int_equal(counts.by_state[JOB_QUEUED], 1);
    unit_counts(u, client)->by_state[JOB_QUEUED] += 2;
    unit_read_counts(u, client, &counts);
    assert_int_equal(counts.by_state[JOB_QUEUED], 3);
    assert_int_equal(r->fetches[TABLE_NUMBER_stats_row], before + 1);
    unit_read_counts(u, client + 1, &counts);
    assert_int_equal(counts.by_state[JOB_QUEUED], 0);
    unit_abort(u);
}

/* --- duties ------------------------------------------------------------------------------------------ */

static bool leads(const struct rig *r)
{
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    return s.leads;
}

SHARED_TEST(who_has_the_duties_is_asked_once_a_second_and_when_they_are_lost, r)
{
    kernel_step(r->kernel);
    assert_true(bench.asked == 1 && leads(r));
    step_after(r, SECOND_MS - 1);
    assert_int_equal(bench.asked, 1);
    step_after(r, 1);
    assert_int_equal(bench.asked, 2);
    r->store->leads = false; /* with the connection */
    step_after(r, 1);
    assert_true(bench.asked == 3 && leads(r));
    bench.duties.leads = false;
    step_after(r, SECOND_MS);
    assert_true(bench.asked == 4 && !leads(r));
    bench.duties.leads = true;
    step_after(r, SECOND_MS);
    bench.lead_fails = true;
    step_after(r, SECOND_MS);
    assert_true(bench.asked == 6 && !leads(r));
}

SHARED_TEST(retention_is_for_who_has_the_duties_and_soon_when_something_was_put_in, r)
{
    bench.duties.leads = false;
    kernel_step(r->kernel);
    assert_int_equal(bench.kept, 0);
    bench.duties.leads = true;
    step_after(r, SECOND_MS);
    assert_int_equal(bench.kept, 1);
    step_after(r, SECOND_MS);
    assert_int_equal(bench.kept, 1); /* every look is a query */
    bench.duties.inbox = true;
    step_after(r, SECOND_MS);
    assert_int_equal(bench.kept, 2);
}

/* What a batch writes to stderr. */
static const char *logged_by_step(struct rig *r, int64_t after_ms)
{
    char *text = arena_alloc(r->arena, 4096);
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    log_minimum(LOG_INFO);
    step_after(r, after_ms);
    log_minimum((enum log_level)(LOG_ERROR + 1));
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, 4095, file)] = 0;
    fclose(file);
    return text;
}

SHARED_TEST(the_log_tells_what_happened_and_nothing_else, r)
{
    assert_non_null(strstr(logged_by_step(r, 0), "duties_taken"));
    assert_string_equal(logged_by_step(r, SECOND_MS), "");
    bench.duties.given_anew = 3;
    assert_non_null(strstr(logged_by_step(r, SECOND_MS), "leases_given_anew"));
    bench.duties.given_anew = 0;
    bench.lead_fails = true;
    const char *text = logged_by_step(r, SECOND_MS);
    assert_true(strstr(text, "duties_unknown") && strstr(text, "duties_lost"));
    bench.lead_fails = false;
    logged_by_step(r, SECOND_MS);
    bench.files_gone = true;
    assert_non_null(strstr(logged_by_step(r, SECOND_MS), "store_files_gone"));
}
