/* What operators do to clients, and what a client costs that does nothing. On all stores. */
#include "unit/kernel/rig.h"

#include "jobs/client_state.h"
#include "jobs/operator_commands.h"

#include "base/banned.h"

enum { CLIENTS = 300, SECONDS = 1000 };

struct a_client {
    struct uuid id;
    int64_t num;
};

static struct a_client new_client(struct rig *r)
{
    struct a_client c;
    c.num = rig_new_client(r, &c.id);
    return c;
}

static struct operator_command *post(struct rig *r, const struct a_client *client,
                                     enum operator_action action)
{
    struct operator_command *c = ARENA_NEW(r->arena, struct operator_command);
    c->action = action;
    c->client_id = client->id;
    c->actor = STR("ada");
    rig_post(r, &c->base, &operator_command_type);
    return c;
}

static struct operator_command *operate(struct rig *r, const struct a_client *client,
                                        enum operator_action action)
{
    struct operator_command *c = post(r, client, action);
    rig_step(r);
    return c;
}

static bool count_one(const void *row, void *arg)
{
    (void)row;
    ++*(size_t *)arg;
    return true;
}

static size_t rows_of(struct rig *r, const struct table *t)
{
    struct err err;
    size_t n = 0;
    assert_int_equal(r->reader->ops->reader_begin(r->reader, &err), ERR_OK);
    assert_int_equal(r->reader->ops->reader_scan(r->reader, t, count_one, &n, &err), ERR_OK);
    r->reader->ops->reader_end(r->reader);
    return n;
}

/* --- suspend and resume ------------------------------------------------------------------------------ */

static void test_no_claim_gets_work_of_a_suspended_client(void **state)
{
    struct rig *r = *state;
    struct a_client suspended = new_client(r), other = new_client(r);
    struct submit_item first = rig_submit_default(r, suspended.num);
    assert_int_equal(operate(r, &suspended, OPERATOR_SUSPEND)->state, CLIENT_SUSPENDED);
    struct submit_item second = rig_submit_default(r, suspended.num); /* it was on its way */
    struct submit_item theirs = rig_submit_default(r, other.num);
    assert_int_equal(rig_claim(r, "w").id, theirs.id);
    assert_int_equal(rig_claim_count(r, "w", 10), 0);
    if (r->on_disk) {
        rig_restart(r, 10);
        assert_int_equal(rig_claim_count(r, "w", 10), 0);
    }
    assert_int_equal(operate(r, &suspended, OPERATOR_RESUME)->state, CLIENT_ACTIVE);
    assert_int_equal(rig_claim(r, "w").id, first.id);
    assert_int_equal(rig_claim(r, "w").id, second.id);
}

/* In one batch with the claim, too: the commands before it have made it ready. */
static void test_a_job_that_comes_due_while_its_client_is_suspended_waits(void **state)
{
    struct rig *r = *state;
    struct a_client client = new_client(r);
    struct submit_item job = rig_submit_deferred(r, client.num, 500);
    operate(r, &client, OPERATOR_SUSPEND);
    rig_pass(r, SECONDS);
    assert_int_equal(rig_claim_count(r, "w", 10), 0);
    rig_step(r);
    assert_int_equal(rig_claim_count(r, "w", 10), 0);
    assert_int_equal(rig_state(r, job.id), JOB_QUEUED);
    operate(r, &client, OPERATOR_RESUME);
    assert_int_equal(rig_claim(r, "w").id, job.id);
}

static void test_a_parked_claim_is_woken_by_a_resumption(void **state)
{
    struct rig *r = *state;
    struct a_client client = new_client(r);
    struct submit_item job = rig_submit_default(r, client.num);
    operate(r, &client, OPERATOR_SUSPEND);
    struct claim_command *parked = rig_post_claim(r, "w", 1, 60000);
    rig_step(r);
    assert_false(rig_is_done(&parked->base));
    operate(r, &client, OPERATOR_RESUME);
    rig_step(r);
    assert_true(rig_is_done(&parked->base));
    assert_int_equal(parked->task_count, 1);
    assert_int_equal(parked->tasks[0].id, job.id);
}

static void test_a_failed_commit_suspends_nobody_and_records_nothing(void **state)
{
    struct rig *r = *state;
    struct a_client client = new_client(r);
    struct submit_item job = rig_submit_default(r, client.num);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    assert_int_equal(operate(r, &client, OPERATOR_SUSPEND)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_claim(r, "w").id, job.id);
    assert_int_equal(rows_of(r, &table_operator_action_row), 0);
    assert_int_equal(rows_of(r, &table_client_state_row), 0);
}

/* A call that changes nothing leaves no record; ids of records go on over a restart. */
static void test_each_change_is_recorded_once(void **state)
{
    struct rig *r = *state;
    struct a_client client = new_client(r);
    static const enum operator_action all[] = {OPERATOR_SUSPEND, OPERATOR_SUSPEND, OPERATOR_RESUME,
                                               OPERATOR_RESUME, OPERATOR_PURGE_JOBS};
    for (size_t i = 0; i < LENGTH_OF(all); i++)
        assert_int_equal(operate(r, &client, all[i])->base.result, ERR_OK);
    assert_int_equal(rows_of(r, &table_operator_action_row), 2);
    if (r->on_disk)
        rig_restart(r, 0);
    operate(r, &client, OPERATOR_SUSPEND);
    assert_int_equal(rows_of(r, &table_operator_action_row), 3);
}

/* --- delete ------------------------------------------------------------------------------------------- */

static void test_a_client_with_jobs_in_its_own_batch_is_not_deleted(void **state)
{
    struct rig *r = *state;
    struct a_client client = new_client(r);
    struct submit_item item = rig_item();
    rig_post_submit(r, client.num, &item, 1);
    struct operator_command *c = operate(r, &client, OPERATOR_DELETE);
    assert_int_equal(c->base.result, ERR_CLIENT_CONFLICT);
    rig_run(r, true);
    assert_int_equal(operate(r, &client, OPERATOR_DELETE)->state, CLIENT_DELETED);
    assert_int_equal(rows_of(r, &table_client_secret_row), 0);
    assert_int_equal(operate(r, &client, OPERATOR_SUSPEND)->base.result, ERR_CLIENT_NOT_FOUND);
}

/* --- clients that do nothing --------------------------------------------------------------------------- */

static void test_a_client_without_unfinished_jobs_costs_no_memory(void **state)
{
    struct rig *r = *state;
    struct a_client first = new_client(r);
    for (int i = 0; i < CLIENTS; i++)
        new_client(r);
    assert_int_equal(r->store->counts.made_count, 0);
    rig_submit_default(r, first.num);
    rig_run(r, true);
    if (r->on_disk) {
        rig_restart(r, 10);
        assert_true(r->store->counts.made_count <= 1);
    }
    assert_int_equal(rig_counts(r, first.num).by_state[JOB_SUCCEEDED], 1);
}

/* Counters leave memory with each merge; what is counted afterwards goes on from what was stored. */
static void test_counters_are_exact_for_clients_that_come_and_go(void **state)
{
    struct rig *r = *state;
    struct a_client clients[40];
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        clients[i] = new_client(r);
    size_t most = 0;
    for (int round = 0; round < 40; round++)
        for (size_t i = 0; i < LENGTH_OF(clients); i++) {
            rig_submit_default(r, clients[i].num);
            rig_run(r, true);
            most = r->store->counts.made_count > most ? r->store->counts.made_count : most;
        }
    for (size_t i = 0; i < LENGTH_OF(clients); i++)
        assert_int_equal(rig_counts(r, clients[i].num).by_state[JOB_SUCCEEDED], 40);
    assert_true(most <= LENGTH_OF(clients));
}

static void test_clients_that_never_got_a_key_are_dropped_with_their_rows(void **state)
{
    struct rig *r = *state;
    r->settings.clients_keyless_ttl_seconds = 3600;
    struct a_client used = new_client(r);
    struct key_command *key = ARENA_NEW(r->arena, struct key_command);
    key->client_id = used.id;
    rig_post(r, &key->base, &key_command_type);
    rig_step(r);
    assert_int_equal(key->base.result, ERR_OK);
    for (int i = 0; i < CLIENTS; i++)
        new_client(r);
    rig_pass(r, 3600 * SECONDS - SECONDS);
    rig_step(r);
    assert_int_equal(rows_of(r, &table_client_row), CLIENTS + 1);
    struct a_client late = new_client(r);
    for (int i = 0; i < 4; i++) {
        rig_pass(r, 61 * SECONDS);
        rig_step(r);
    }
    assert_int_equal(rows_of(r, &table_client_row), 2);
    assert_int_equal(rows_of(r, &table_client_secret_row), 2);
    assert_int_equal(rows_of(r, &table_client_number_row), 2);
    rig_submit_default(r, used.num);
    assert_int_equal(operate(r, &late, OPERATOR_SUSPEND)->state, CLIENT_SUSPENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_no_claim_gets_work_of_a_suspended_client),
        RIG_TEST(test_a_job_that_comes_due_while_its_client_is_suspended_waits),
        RIG_TEST(test_a_parked_claim_is_woken_by_a_resumption),
        RIG_TEST(test_a_failed_commit_suspends_nobody_and_records_nothing),
        RIG_TEST(test_each_change_is_recorded_once),
        RIG_TEST(test_a_client_with_jobs_in_its_own_batch_is_not_deleted),
        RIG_TEST(test_a_client_without_unfinished_jobs_costs_no_memory),
        RIG_TEST_UNSHARED(test_counters_are_exact_for_clients_that_come_and_go,
                          "memory holds the batch's alone"),
        RIG_TEST(test_clients_that_never_got_a_key_are_dropped_with_their_rows),
    };
    return RIG_RUN_ALL(tests);
}
