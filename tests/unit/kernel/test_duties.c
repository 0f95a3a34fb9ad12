/* What a lane does by itself: retention, saving, probing, counting; how long it may sleep until then; and
 * whom it remembers how long. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/kernel/rig.h"

#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { SECOND_MS = 1000, AGAIN_MS = 20, MINUTE_MS = 60000 };

/* What is asked of a kernel besides commands, counted. */
static struct {
    int kept, saves, stored, lost, watched;
    bool more, more_to_save, fails, gone;
} chores;

static bool keep(void *self, struct unit *u)
{
    (void)self;
    chores.kept++;
    if (chores.fails)
        err_set(&u->load_err, ERR_STORAGE_DB_ERROR, "told to fail");
    return chores.more;
}

static bool save(void *self, struct unit *u)
{
    (void)self, (void)u;
    chores.saves++;
    return chores.more_to_save;
}

static void saved(void *self, bool stored)
{
    (void)self;
    chores.stored += stored;
    chores.lost += !stored;
}

static enum err_code watch(struct store *s, struct err *err)
{
    (void)s;
    chores.watched++;
    return chores.gone ? err_set(err, ERR_STORAGE_UNAVAILABLE, "told to be gone") : ERR_OK;
}

static void open_with(struct rig *r, bool keeps, bool saves)
{
    struct kernel_config config = {.owners = task_owners,
                                   .owner_count = LENGTH_OF(task_owners),
                                   .timer_kinds = timer_kinds,
                                   .timer_kind_count = LENGTH_OF(timer_kinds),
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &r->clock,
                                   .housekeep = keeps ? keep : NULL,
                                   .save = saves ? save : NULL,
                                   .saved = saved};
    memset(&chores, 0, sizeof chores);
    kernel_free(r->kernel);
    r->kernel = kernel_new(&config);
}

/* The numbers of owners are stored: the place in the list says nothing. */
RIG_TEST(test_owners_are_given_in_any_order, r)
{
    const struct task_owner *turned[LENGTH_OF(task_owners)];
    for (size_t i = 0; i < LENGTH_OF(turned); i++)
        turned[i] = task_owners[LENGTH_OF(turned) - 1 - i];
    struct kernel_config config = {.owners = turned,
                                   .owner_count = LENGTH_OF(turned),
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &r->clock};
    kernel_free(r->kernel);
    r->kernel = kernel_new(&config);
    int64_t client = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    struct claimed_task t = rig_claim(r, "w");
    assert_ptr_equal(t.owner, &job_task_owner);
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
}

RIG_TEST(test_two_owners_of_one_number_are_a_bug, r)
{
    const struct task_owner *twice[] = {&job_task_owner, &job_task_owner};
    struct kernel_config config = {.owners = twice,
                                   .owner_count = LENGTH_OF(twice),
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &r->clock};
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        (void)kernel_new(&config);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static int64_t idle_ms(const struct rig *r)
{
    return lane_idle_ms(&r->kernel->lanes[0]);
}

static void step_after(struct rig *r, int64_t ms)
{
    rig_pass(r, ms);
    rig_step(r);
}

RIG_TEST(test_retention_and_saving_come_once_a_second_and_soon_again_while_there_is_more, r)
{
    open_with(r, true, true);
    rig_step(r);
    assert_true(chores.kept == 1 && chores.saves == 1 && chores.stored == 1);
    assert_int_equal(idle_ms(r), SECOND_MS);
    step_after(r, SECOND_MS - 1);
    assert_true(chores.kept == 1 && chores.saves == 1);
    assert_int_equal(idle_ms(r), 1);
    chores.more = true;
    step_after(r, 1);
    assert_true(chores.kept == 2 && chores.saves == 2);
    assert_int_equal(idle_ms(r), AGAIN_MS);
    step_after(r, AGAIN_MS - 1);
    assert_int_equal(chores.kept, 2);
    chores.more = false;
    step_after(r, 1);
    assert_true(chores.kept == 3 && chores.saves == 2); /* each by its own time */
    chores.more_to_save = true;
    step_after(r, SECOND_MS);
    assert_true(chores.kept == 4 && chores.saves == 3 && chores.stored == 3);
    assert_int_equal(idle_ms(r), AGAIN_MS);
    step_after(r, AGAIN_MS);
    assert_true(chores.kept == 4 && chores.saves == 4);
}

RIG_TEST(test_a_failed_batch_of_chores_is_told_and_tried_again_in_a_second, r)
{
    struct kernel_stats s;
    open_with(r, true, true);
    chores.more = chores.more_to_save = chores.fails = true;
    rig_step(r);
    assert_true(chores.kept == 1 && chores.saves == 1 && chores.lost == 1 && !chores.stored);
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.commit_errors, 1);
    step_after(r, SECOND_MS - 1);
    assert_int_equal(chores.kept, 1);
    step_after(r, 1);
    assert_true(chores.kept == 2 && chores.lost == 2);
}

static const struct store_ops *real;
static bool no_reader;

static enum err_code open_reader(struct store *s, struct reader **ret_reader, struct err *err)
{
    return no_reader ? err_set(err, ERR_STORAGE_UNAVAILABLE, "told to fail")
                     : real->reader_open(s, ret_reader, err);
}

/* Retention reads; it waits for a reader, and commands do not. */
RIG_TEST(test_without_a_reader_chores_wait_and_nothing_else_does, r)
{
    int64_t client = rig_new_client(r, NULL);
    real = r->real;
    r->ops.reader_open = open_reader;
    no_reader = true;
    open_with(r, true, true);
    rig_submit_default(r, client);
    assert_true(!chores.kept && !chores.saves);
    assert_int_equal(idle_ms(r), SECOND_MS);
    no_reader = false;
    step_after(r, SECOND_MS - 1);
    assert_true(!chores.kept && !chores.saves);
    step_after(r, 1);
    assert_true(chores.kept == 1 && chores.saves == 1);
}

RIG_TEST(test_nothing_is_kept_or_saved_where_nobody_asked_for_it, r)
{
    open_with(r, false, true);
    rig_step(r);
    assert_true(!chores.kept && chores.saves == 1);
    assert_int_equal(idle_ms(r), SECOND_MS);
    open_with(r, true, false);
    rig_step(r);
    assert_true(chores.kept == 1 && !chores.saves && !chores.stored);
    assert_int_equal(idle_ms(r), SECOND_MS);
}

RIG_TEST(test_a_lane_sleeps_until_the_next_that_happens_by_itself, r)
{
    int64_t client = rig_new_client(r, NULL);
    open_with(r, false, false);
    rig_step(r);
    assert_int_equal(idle_ms(r), MINUTE_MS); /* nothing will: it looks all the same */
    rig_submit_deferred(r, client, 5000);
    assert_int_equal(idle_ms(r), 500); /* somebody may set the clock by which it is due */
    rig_pass(r, 4600);
    assert_int_equal(idle_ms(r), 400);
    rig_pass(r, 400);
    assert_int_equal(idle_ms(r), 0);
    rig_step(r); /* queued: its time is over */
    assert_int_equal(idle_ms(r), MINUTE_MS);
    rig_claim(r, "w");
    int64_t lease = r->settings.queue_lease_ms;
    assert_true(lease > 1000 && lease < MINUTE_MS);
    assert_int_equal(idle_ms(r), lease);
    struct claim_command *c = rig_post_claim(r, "v", 1, 700);
    rig_step(r);
    assert_int_equal(idle_ms(r), 700); /* until a long poll is answered */
    step_after(r, 700);
    assert_true(rig_is_done(&c->base));
    assert_int_equal(idle_ms(r), lease - 700);
}

/* What is due meanwhile waits with the others. */
RIG_TEST(test_after_a_failed_commit_nothing_is_tried_for_a_moment, r)
{
    int64_t client = rig_new_client(r, NULL);
    open_with(r, false, false);
    rig_submit_deferred(r, client, 100);
    struct submit_item item = rig_item();
    r->failures = 1;
    rig_submit(r, client, &item);
    assert_int_equal(idle_ms(r), 200);
    rig_pass(r, 150);
    assert_int_equal(idle_ms(r), 50);
    rig_step(r);
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.waiting, 1);
    step_after(r, 50);
    kernel_stats(r->kernel, &s);
    assert_int_equal(s.queued, 1);
}

RIG_TEST(test_a_store_that_failed_is_asked_once_a_second, r)
{
    int64_t client = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    struct kernel_stats s;
    r->failures = 1;
    r->probe_fails = true;
    rig_submit(r, client, &item);
    rig_step(r); /* asks */
    r->probe_fails = false;
    step_after(r, SECOND_MS - 1);
    kernel_stats(r->kernel, &s);
    assert_false(s.storing);
    step_after(r, 1);
    kernel_stats(r->kernel, &s);
    assert_true(s.storing);
}

RIG_TEST(test_the_files_of_the_store_are_looked_for_once_a_second, r)
{
    struct kernel_stats s;
    r->ops.watch = watch;
    open_with(r, false, false);
    rig_step(r);
    step_after(r, SECOND_MS - 1);
    assert_int_equal(chores.watched, 1);
    chores.gone = r->probe_fails = true;
    step_after(r, 1);
    assert_int_equal(chores.watched, 2);
    kernel_stats(r->kernel, &s);
    assert_false(s.storing);
    chores.gone = r->probe_fails = false;
    step_after(r, 2 * SECOND_MS);
    kernel_stats(r->kernel, &s);
    assert_true(s.storing);
}

static uint32_t counted_workers(struct rig *r)
{
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    return s.workers;
}

/* Of those that were heard of within the longest long poll. Counted ten times a second at most. */
RIG_TEST(test_workers_are_counted_while_they_are_heard_of, r)
{
    open_with(r, false, false);
    rig_claim_count(r, "w", 1);
    assert_int_equal(counted_workers(r), 1);
    rig_pass(r, 99);
    rig_claim_count(r, "v", 1);
    assert_int_equal(counted_workers(r), 1);
    step_after(r, 1);
    assert_int_equal(counted_workers(r), 2);
    step_after(r, 40001 - 100);
    assert_int_equal(counted_workers(r), 1); /* the first one is over */
    rig_claim_count(r, "w", 1);
    step_after(r, 40000);
    assert_int_equal(counted_workers(r), 1); /* to the millisecond: not yet */
    step_after(r, 100);
    assert_int_equal(counted_workers(r), 0);
}

RIG_TEST(test_a_worker_that_works_is_heard_of, r)
{
    int64_t client = rig_new_client(r, NULL);
    rig_submit_default(r, client);
    struct claimed_task task = rig_claim(r, "w");
    rig_pass(r, 20000);
    rig_work(r, &start_command_type, &task);
    for (int i = 0; i < 2; i++) {
        rig_pass(r, 20000);
        assert_int_equal(rig_work(r, &heartbeat_command_type, &task).code, ERR_OK);
    }
    step_after(r, 100);
    assert_int_equal(counted_workers(r), 1);
}

static uint32_t known_workers(const struct rig *r)
{
    return live_worker_count(r->store->live, INT64_MIN);
}

RIG_TEST(test_workers_that_are_silent_for_ten_minutes_are_forgotten, r)
{
    open_with(r, false, false);
    rig_claim_count(r, "w", 1);
    step_after(r, 10 * MINUTE_MS); /* to the millisecond: not yet */
    assert_int_equal(known_workers(r), 1);
    step_after(r, MINUTE_MS - 1); /* looked through once a minute */
    assert_int_equal(known_workers(r), 1);
    step_after(r, 1);
    assert_int_equal(known_workers(r), 0);
}

RIG_TEST(test_a_store_of_ones_own_leaves_one_the_duties, r)
{
    struct kernel_stats s;
    kernel_stats(r->kernel, &s);
    assert_true(s.leads && s.storing);
    rig_step(r);
    kernel_stats(r->kernel, &s);
    assert_true(s.leads && !s.clock_in_doubt && !s.deliveries);
}

/* --- ended leases ---------------------------------------------------------------------------------- */

static void remember(struct ended_leases *e, int64_t task, int64_t token, enum lease_end how,
                     int64_t until_ms)
{
    ended_leases_add(e, &(struct ended_lease){.task = task, .token = token, .client = 50 + token, .how = how},
                     until_ms);
}

TEST(test_an_ended_lease_is_found_by_task_token_and_end_until_its_time_is_over)
{
    struct ended_leases e = {0};
    remember(&e, 1, 7, LEASE_CUT, 1000);
    remember(&e, 1, 8, LEASE_CUT, 999);
    remember(&e, 2, 7, LEASE_FAILED, 1001);
    assert_int_equal(ended_leases_find(&e, 1, 7, LEASE_CUT)->client, 57);
    assert_int_equal(ended_leases_find(&e, 1, 8, LEASE_CUT)->client, 58);
    assert_int_equal(ended_leases_find(&e, 2, 7, LEASE_FAILED)->client, 57);
    assert_null(ended_leases_find(&e, 1, 7, LEASE_FAILED));
    assert_null(ended_leases_find(&e, 2, 7, LEASE_SUCCEEDED));
    assert_null(ended_leases_find(&e, 2, 8, LEASE_FAILED));
    assert_null(ended_leases_find(&e, 3, 7, LEASE_CUT));
    ended_leases_forget(&e, 998);
    assert_non_null(ended_leases_find(&e, 1, 8, LEASE_CUT));
    ended_leases_forget(&e, 1000);
    assert_null(ended_leases_find(&e, 1, 7, LEASE_CUT));
    assert_null(ended_leases_find(&e, 1, 8, LEASE_CUT));
    assert_non_null(ended_leases_find(&e, 2, 7, LEASE_FAILED));
    ended_leases_free(&e);
}

/* A hundred thousand: of more, those that end first go early. */
TEST(test_ended_leases_are_bounded)
{
    enum { MOST = 100000 };
    struct ended_leases e = {0};
    for (int64_t i = 0; i < MOST; i++)
        remember(&e, i, 1, LEASE_CUT, 1000 + i);
    assert_non_null(ended_leases_find(&e, 0, 1, LEASE_CUT));
    remember(&e, MOST, 1, LEASE_CUT, 10);
    assert_null(ended_leases_find(&e, 0, 1, LEASE_CUT));
    assert_non_null(ended_leases_find(&e, 1, 1, LEASE_CUT));
    assert_non_null(ended_leases_find(&e, MOST, 1, LEASE_CUT));
    assert_int_equal(e.by_end.count, MOST);
    ended_leases_free(&e);
}

/* Else the commit thread would not sleep any more. */
RIG_TEST(test_who_waits_is_looked_at_once_when_told, r)
{
    struct claim_command *c = rig_post_claim(r, "w", 1, 5000);
    rig_step(r);
    kernel_hint(r->kernel, HINT_READY | HINT_TIMER | HINT_INBOX);
    rig_step(r);
    assert_false(rig_is_done(&c->base));
    assert_true(!r->kernel->timer_moved && !r->kernel->inbox_filled);
    for (int kind = 0; kind < LANE_KINDS; kind++)
        assert_int_equal(r->kernel->look_for_parked[kind], 0);
}

int main(void)
{
    return rig_run_both();
}
