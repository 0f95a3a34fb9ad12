/* What operators do to clients, and what a client costs that does nothing. On all stores. */
#include "unit/kernel/rig.h"

#include "jobs/client_state.h"
#include "jobs/operator_commands.h"
#include "jobs/webhook_fingerprint.h"

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

/* --- suspend and resume ------------------------------------------------------------------------------ */

/* A key of its own would be a way around the suspension. */
RIG_TEST(test_only_an_operator_makes_keys_of_a_suspended_client, r)
{
    static const enum principal_kind who[] = {PRINCIPAL_NONE, PRINCIPAL_OPERATOR};
    struct a_client client = new_client(r);
    operate(r, &client, OPERATOR_SUSPEND);
    for (size_t i = 0; i < LENGTH_OF(who); i++) {
        struct key_command *key = ARENA_NEW(r->arena, struct key_command);
        key->client_id = client.id;
        key->who.kind = who[i];
        rig_post(r, &key->base, &key_command_type);
        rig_step(r);
        assert_int_equal(key->base.result, who[i] == PRINCIPAL_OPERATOR ? ERR_OK : ERR_AUTH_CLIENT_SUSPENDED);
    }
}

RIG_TEST(test_no_claim_gets_work_of_a_suspended_client, r)
{
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
RIG_TEST(test_a_job_that_comes_due_while_its_client_is_suspended_waits, r)
{
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

RIG_TEST(test_a_parked_claim_is_woken_by_a_resumption, r)
{
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

RIG_TEST(test_a_failed_commit_suspends_nobody_and_records_nothing, r)
{
    struct a_client client = new_client(r);
    struct submit_item job = rig_submit_default(r, client.num);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    assert_int_equal(operate(r, &client, OPERATOR_SUSPEND)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rig_claim(r, "w").id, job.id);
    assert_int_equal(rig_rows(r, &table_operator_action_row), 0);
    assert_int_equal(rig_rows(r, &table_client_state_row), 0);
}

/* A call that changes nothing leaves no record; ids of records go on over a restart. */
RIG_TEST(test_each_change_is_recorded_once, r)
{
    struct a_client client = new_client(r);
    static const enum operator_action all[] = {OPERATOR_SUSPEND, OPERATOR_SUSPEND, OPERATOR_RESUME,
                                               OPERATOR_RESUME, OPERATOR_PURGE_JOBS};
    for (size_t i = 0; i < LENGTH_OF(all); i++)
        assert_int_equal(operate(r, &client, all[i])->base.result, ERR_OK);
    assert_int_equal(rig_rows(r, &table_operator_action_row), 2);
    if (r->on_disk)
        rig_restart(r, 0);
    operate(r, &client, OPERATOR_SUSPEND);
    assert_int_equal(rig_rows(r, &table_operator_action_row), 3);
}

/* --- delete ------------------------------------------------------------------------------------------- */

RIG_TEST(test_a_client_with_jobs_in_its_own_batch_is_not_deleted, r)
{
    struct a_client client = new_client(r);
    struct submit_item item = rig_item();
    rig_post_submit(r, client.num, &item, 1);
    struct operator_command *c = operate(r, &client, OPERATOR_DELETE);
    assert_int_equal(c->base.result, ERR_CLIENT_CONFLICT);
    rig_run(r, true);
    assert_int_equal(operate(r, &client, OPERATOR_DELETE)->state, CLIENT_DELETED);
    assert_int_equal(rig_rows(r, &table_client_secret_row), 0);
    assert_int_equal(operate(r, &client, OPERATOR_SUSPEND)->base.result, ERR_CLIENT_NOT_FOUND);
}

static int64_t new_key(struct rig *r, const struct a_client *client, const char *name)
{
    struct key_command *key = ARENA_NEW(r->arena, struct key_command);
    key->client_id = client->id;
    key->who.kind = PRINCIPAL_OPERATOR;
    key->wish = (struct key_wish){.has_name = true, .name = str_of(name)};
    rig_post(r, &key->base, &key_command_type);
    rig_step(r);
    assert_true(key->fresh);
    return key->key_id;
}

static void new_hook(struct rig *r, const struct a_client *client)
{
    struct create_webhook_command *c = ARENA_NEW(r->arena, struct create_webhook_command);
    c->client = client->num;
    c->url = STR("http://hook/1");
    c->events = STR("*");
    webhook_fingerprint(c->url, c->events, c->fingerprint);
    rig_post(r, &c->base, &create_webhook_command_type);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
}

/* The answer says what went; asked again nothing does. Whatever else the call names is not touched. */
RIG_TEST(test_a_deleted_client_leaves_with_its_keys_and_webhooks, r)
{
    struct a_client client = new_client(r), other = new_client(r);
    int64_t ids[] = {new_key(r, &client, "a"), new_key(r, &other, "theirs"), new_key(r, &client, "b"), 4711};
    new_hook(r, &client);
    new_hook(r, &other);
    for (int again = 0; again < 2; again++) {
        struct operator_command *c = post(r, &client, OPERATOR_DELETE);
        c->ids = ids;
        c->id_count = LENGTH_OF(ids);
        rig_step(r);
        assert_int_equal(c->base.result, ERR_OK);
        assert_int_equal(c->state, CLIENT_DELETED);
        assert_int_equal(c->moved, !again);
        assert_int_equal(c->changed, again ? 0 : 3);
        assert_int_equal(rig_rows(r, &table_api_key_row), 1);
        assert_int_equal(rig_rows(r, &table_key_head_row), 1);
        assert_int_equal(rig_rows(r, &table_webhook_row), 1);
        assert_int_equal(rig_rows(r, &table_webhook_key_row), 1);
        assert_int_equal(rig_rows(r, &table_client_secret_row), 1);
        assert_int_equal(rig_rows(r, &table_operator_action_row), 1);
    }
}

RIG_TEST(test_purging_jobs_cancels_those_of_the_client_and_no_others, r)
{
    struct a_client client = new_client(r), other = new_client(r);
    int64_t done = rig_submit_default(r, client.num).id;
    rig_run(r, true);
    int64_t ids[] = {done, rig_submit_default(r, client.num).id, rig_submit_default(r, other.num).id,
                     rig_submit_deferred(r, client.num, 60 * SECONDS).id};
    static const enum job_state after[] = {JOB_SUCCEEDED, JOB_CANCELED, JOB_QUEUED, JOB_CANCELED};
    for (int again = 0; again < 2; again++) {
        struct operator_command *c = post(r, &client, OPERATOR_PURGE_JOBS);
        c->ids = ids;
        c->id_count = LENGTH_OF(ids);
        rig_step(r);
        assert_int_equal(c->changed, again ? 0 : 2);
        assert_false(c->moved);
        assert_int_equal(c->state, CLIENT_ACTIVE);
        assert_int_equal(rig_rows(r, &table_operator_action_row), 1);
        for (size_t i = 0; i < LENGTH_OF(ids); i++)
            assert_int_equal(rig_state(r, ids[i]), after[i]);
    }
    assert_true(str_is(rig_last_event(r, ids[1]).extra, "{\"reason\":\"purged\"}"));
}

/* --- clients that do nothing --------------------------------------------------------------------------- */

RIG_TEST(test_a_client_without_unfinished_jobs_costs_no_memory, r)
{
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
RIG_TEST_UNSHARED(test_counters_are_exact_for_clients_that_come_and_go, r, "memory holds the batch's alone")
{
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

RIG_TEST(test_clients_that_never_got_a_key_are_dropped_with_their_rows, r)
{
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
    assert_int_equal(rig_rows(r, &table_client_row), CLIENTS + 1);
    struct a_client late = new_client(r);
    for (int i = 0; i < 4; i++) {
        rig_pass(r, 61 * SECONDS);
        rig_step(r);
    }
    assert_int_equal(rig_rows(r, &table_client_row), 2);
    assert_int_equal(rig_rows(r, &table_client_secret_row), 2);
    assert_int_equal(rig_rows(r, &table_client_number_row), 2);
    rig_submit_default(r, used.num);
    assert_int_equal(operate(r, &late, OPERATOR_SUSPEND)->state, CLIENT_SUSPENDED);
}

/* As the engine writes it with the first plan or run of a tenant that has the id of a client. */
static void make_tenant(struct rig *r, const struct a_client *client)
{
    char text[UUID_TEXT_LEN + 1];
    struct err err;
    uuid_text(&client->id, text);
    struct tenant_row row = {.name = str_of(text), .num = client->num};
    struct row_change one = {&table_tenant_row, ROW_INSERT, &row};
    struct change_set c = {.rows = &one, .row_count = 1, .first_chunk = r->store->next_chunk};
    assert_int_equal(r->real->commit(r->store, &c, &err), ERR_OK);
}

/* It has runs, an application has sent jobs for it that never asked for a key, or an operator touched it. */
RIG_TEST(test_a_client_without_a_key_that_is_in_use_stays, r)
{
    r->settings.clients_keyless_ttl_seconds = 3600;
    r->settings.jobs_retention_seconds = 86400;
    struct a_client scheduled = new_client(r), queued = new_client(r), canceled = new_client(r),
                    touched = new_client(r), tenant = new_client(r);
    new_client(r); /* the only one that goes */
    make_tenant(r, &tenant);
    rig_submit_deferred(r, scheduled.num, 86400 * SECONDS);
    struct submit_item job = rig_submit_default(r, canceled.num);
    rig_cancel(r, canceled.num, &job);
    rig_submit_default(r, queued.num);
    operate(r, &touched, OPERATOR_SUSPEND);
    operate(r, &touched, OPERATOR_RESUME);
    for (int i = 0; i < 3; i++) {
        rig_pass(r, 3600 * SECONDS);
        rig_step(r);
    }
    assert_int_equal(rig_rows(r, &table_client_row), 5);
    assert_int_equal(rig_rows(r, &table_client_number_row), 5);
    rig_submit_default(r, queued.num);
    assert_int_equal(operate(r, &touched, OPERATOR_SUSPEND)->state, CLIENT_SUSPENDED);
}

/* A client is dropped when its time is over and not before; its idempotency key is free again then. */
RIG_TEST(test_an_operator_makes_a_client_anew_that_was_dropped, r)
{
    struct create_client_command c[4] = {0};
    static const bool replayed[] = {false, true, false, true};
    r->settings.clients_keyless_ttl_seconds = 3600;
    for (size_t i = 0; i < LENGTH_OF(c); i++) {
        c[i].once.name = STR("n");
        c[i].by_operator = true;
        c[i].client_id = uuid_v4();
        rig_post(r, &c[i].base, &create_client_command_type);
        rig_step(r);
        assert_int_equal(c[i].base.result, ERR_OK);
        assert_int_equal(c[i].replayed, replayed[i]);
        assert_int_equal(c[i].created_ms, c[i - replayed[i]].created_ms);
        assert_memory_equal(&c[i].client_id, &c[i - replayed[i]].client_id, sizeof c[i].client_id);
        rig_pass(r, i == 1 ? 3541 * SECONDS : 60 * SECONDS);
        rig_step(r);
    }
    assert_int_equal(rig_rows(r, &table_client_row), 1);
}

int main(void)
{
    return rig_run_all();
}
