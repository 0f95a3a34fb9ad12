/* Retention works in turns: each takes a bounded part, what is left comes with the next ones, and what has to
 * be looked through as a whole is looked through seldom. */
#include "unit/jobs/deliver_calls.h"

#include <stdio.h>

#include "base/banned.h"

enum { SECOND_MS = 1000, MINUTE_MS = 60000, HOUR_MS = 3600000, AGAIN_MS = 20 };

static void pass_turn(struct rig *r, int64_t ms)
{
    rig_pass(r, ms);
    rig_step(r);
}

/* Far less than the second between turns that had nothing left to do. */
static void take_turns(struct rig *r, int turns)
{
    for (int i = 0; i < turns; i++)
        pass_turn(r, AGAIN_MS);
    rig_expect_sound(r);
}

/* --- the parts -------------------------------------------------------------------------------------- */

RIG_TEST(test_a_long_log_goes_in_parts_one_soon_after_the_other, r)
{
    enum { JOBS = 700 }; /* some 43 chunks where commits share them */
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_retention_seconds = 3600;
    for (int i = 0; i < JOBS; i++) {
        rig_submit_default(r, client);
        rig_run(r, true);
    }
    int64_t parts = (r->store->next_chunk - r->store->first_chunk) / 16; /* chunks a turn */
    assert_in_range(parts, 2, 200);
    pass_turn(r, HOUR_MS + SECOND_MS);
    assert_in_range(rig_rows(r, &table_job_row), 1, JOBS - 1);
    take_turns(r, (int)parts);
    assert_int_equal(rig_rows(r, &table_job_row), 0);
    assert_int_equal(r->store->first_chunk, r->store->next_chunk);
}

/* Answers the first so many that can be sent, all at once. */
static size_t answer_some(struct rig *r, size_t max)
{
    size_t sent = 0;
    while (sent < max) {
        struct claim_command *c =
            claim_some(r, (uint32_t)(max - sent < CLAIMED_MAX ? max - sent : CLAIMED_MAX));
        for (uint32_t i = 0; i < c->task_count; i++)
            rig_post_work(r, &finish_command_type, &c->tasks[i], true);
        rig_step(r);
        sent += c->task_count;
        if (!c->task_count)
            break;
    }
    return sent;
}

/* Jobs that wait for their receiver are many: those that it has heard of go, wherever they stand. */
RIG_TEST(test_jobs_put_down_for_later_are_looked_through_to_the_last, r)
{
    enum { JOBS = 230, SERVED = 40 };
    int64_t client = rig_new_client(r, NULL);
    r->settings.jobs_retention_seconds = 3600;
    new_webhook(r, client, "http://hook/1", "job.succeeded");
    for (int i = 0; i < JOBS; i++) {
        rig_submit_default(r, client);
        rig_run(r, true);
    }
    pass_turn(r, HOUR_MS + SECOND_MS);
    take_turns(r, 100);
    assert_int_equal(rig_rows(r, &table_job_row), JOBS);
    assert_int_equal(r->store->first_chunk, r->store->next_chunk);
    assert_int_equal(answer_some(r, SERVED), SERVED); /* the oldest: the last to be looked at */
    pass_turn(r, MINUTE_MS);
    take_turns(r, 5);
    assert_int_equal(rig_rows(r, &table_job_row), JOBS - SERVED);
    assert_int_equal(answer_some(r, JOBS), JOBS - SERVED);
    pass_turn(r, MINUTE_MS);
    take_turns(r, 5);
    assert_int_equal(rig_rows(r, &table_job_row), 0);
    assert_int_equal(rig_rows(r, &table_kept_row), 0);
}

/* More than one turn takes: the job goes with the last of them. */
RIG_TEST(test_a_job_with_very_many_deliveries_goes_when_all_have_gone, r)
{
    enum { HOOKS = 250, EVENTS = 5 };
    int64_t client = rig_new_client(r, NULL);
    char url[32];
    r->settings.jobs_retention_seconds = 3600;
    r->settings.webhooks_max_per_client = HOOKS;
    for (int i = 0; i < HOOKS; i++) {
        snprintf(url, sizeof url, "%08d/", i);
        new_webhook(r, client, arena_printf(r->arena, "%s", url).ptr, "*");
    }
    rig_submit_default(r, client);
    rig_run(r, true);
    assert_int_equal(answer_some(r, (size_t)HOOKS * EVENTS), HOOKS * EVENTS);
    pass_turn(r, HOUR_MS + SECOND_MS);
    assert_int_equal(rig_rows(r, &table_job_row), 1);
    assert_in_range(rig_rows(r, &table_delivery_row), 1, HOOKS * EVENTS - 1);
    pass_turn(r, SECOND_MS);
    assert_int_equal(rig_rows(r, &table_job_row), 0);
    assert_int_equal(rig_rows(r, &table_delivery_row), 0);
    rig_expect_sound(r);
}

/* Nothing is looked for more often than it has to be. */
RIG_TEST(test_a_turn_that_leaves_nothing_is_followed_by_a_second_without_one, r)
{
    r->settings.jobs_retention_seconds = 3600;
    rig_submit_default(r, rig_new_client(r, NULL));
    rig_run(r, true);
    pass_turn(r, HOUR_MS - 500);
    assert_int_equal(rig_rows(r, &table_job_row), 1);
    pass_turn(r, 600); /* its time is over */
    assert_int_equal(rig_rows(r, &table_job_row), 1);
    pass_turn(r, 400);
    assert_int_equal(rig_rows(r, &table_job_row), 0);
}

static struct key_head_row head_of(struct rig *r, int64_t client)
{
    struct key_head_row row = {.client = client};
    assert_true(rig_row(r, &table_key_head_row, &row));
    return row;
}

/* --- keys ------------------------------------------------------------------------------------------- */

static struct key_command *new_key(struct rig *r, const struct uuid *client, int number, int64_t seconds)
{
    struct key_command *c = ARENA_NEW(r->arena, struct key_command);
    c->client_id = *client;
    c->who.kind = PRINCIPAL_OPERATOR;
    c->wish = (struct key_wish){
        .has_name = true, .name = arena_printf(r->arena, "key %d", number), .life_seconds = seconds};
    rig_post(r, &c->base, &key_command_type);
    rig_step(r);
    assert_true(c->fresh);
    return c;
}

static void end_key(struct rig *r, const struct uuid *client, const struct key_command *key,
                    enum key_action how)
{
    struct key_command *c = ARENA_NEW(r->arena, struct key_command);
    c->client_id = *client;
    c->who.kind = PRINCIPAL_OPERATOR;
    c->action = how;
    c->names_key = how == KEY_RENEW;
    c->key_id = c->named_id = key->key_id;
    c->key_low = c->named_low = key->key_low;
    rig_post(r, &c->base, &key_command_type);
    rig_step(r);
    assert_int_equal(c->base.result, ERR_OK);
}

/* Ended keys stay in the list of their client while there is room, and the oldest of them makes it. */
RIG_TEST(test_a_full_list_of_keys_loses_the_oldest_that_has_ended, r)
{
    struct uuid client;
    int64_t number = rig_new_client(r, &client), ids[KEYS_LISTED_MAX + 2];
    struct key_command *works = new_key(r, &client, 0, 3600);
    ids[0] = works->key_id;
    for (int i = 1; i < KEYS_LISTED_MAX + 2; i++) {
        struct key_command *key = new_key(r, &client, i, 3600);
        ids[i] = key->key_id;
        end_key(r, &client, key, KEY_REVOKE);
        struct str listed = head_of(r, number).listed;
        int64_t gone = i < KEYS_LISTED_MAX ? 0 : i - KEYS_LISTED_MAX + 1; /* behind the one that works */
        assert_int_equal(listed.len, (size_t)(i + 1 - gone) * sizeof ids[0]);
        assert_memory_equal(listed.ptr, ids, sizeof ids[0]);
        assert_memory_equal(listed.ptr + sizeof ids[0], ids + 1 + gone, listed.len - sizeof ids[0]);
    }
    end_key(r, &client, works, KEY_REVOKE); /* now that is the oldest */
    new_key(r, &client, KEYS_LISTED_MAX + 2, 3600);
    assert_memory_equal(head_of(r, number).listed.ptr, &ids[3], sizeof ids[0]);
}

RIG_TEST(test_old_keys_go_in_parts, r)
{
    enum { KEYS = 430 };
    struct uuid client;
    rig_new_client(r, &client);
    for (int i = 0; i < KEYS; i++) {
        new_key(r, &client, i, 60);
        rig_pass(r, MINUTE_MS + SECOND_MS);
    }
    r->settings.keys_revoked_retention_seconds = 3600;
    for (int turn = 1; turn <= 2; turn++) {
        pass_turn(r, turn == 1 ? HOUR_MS : SECOND_MS);
        assert_int_equal(rig_rows(r, &table_api_key_row), KEYS - 200 * turn);
    }
    pass_turn(r, SECOND_MS);
    assert_int_equal(rig_rows(r, &table_api_key_row), 0);
    rig_expect_sound(r);
}

/* To the millisecond: a key is kept for its audit time, counted from when it ended, however it did. */
RIG_TEST(test_a_key_stays_for_its_audit_time_and_no_longer, r)
{
    struct uuid client;
    rig_new_client(r, &client);
    r->settings.keys_revoked_retention_seconds = 10;
    r->settings.keys_overlap_seconds = 1;
    pass_turn(r, HOUR_MS); /* a look: the next ones are five seconds apart */
    end_key(r, &client, new_key(r, &client, 1, 3600), KEY_REVOKE);
    end_key(r, &client, new_key(r, &client, 2, 3600), KEY_RENEW); /* ends a second later; so does... */
    new_key(r, &client, 3, 1);
    pass_turn(r, 5 * SECOND_MS);
    pass_turn(r, 5 * SECOND_MS);
    assert_int_equal(rig_rows(r, &table_api_key_row), 4);
    pass_turn(r, 6 * SECOND_MS);
    assert_int_equal(rig_rows(r, &table_api_key_row), 1); /* the renewed one */
}

/* Only keys that work, that nobody has replaced, and whose end is near. */
RIG_TEST(test_keys_that_expire_soon_are_counted, r)
{
    struct uuid client;
    rig_new_client(r, &client);
    r->settings.keys_overlap_seconds = HOUR_MS;
    int64_t near = KEY_WARN_SECONDS + 3600; /* at the look */
    new_key(r, &client, 1, near);
    new_key(r, &client, 2, near - 1);
    new_key(r, &client, 3, near + 1);
    new_key(r, &client, 4, 3600);
    new_key(r, &client, 5, 3601);
    end_key(r, &client, new_key(r, &client, 6, near - 1), KEY_REVOKE);
    struct key_command *replaced = new_key(r, &client, 7, 7200);
    end_key(r, &client, replaced, KEY_RENEW); /* its follower is counted */
    pass_turn(r, HOUR_MS);
    assert_int_equal(atomic_load(&r->purge.keys_expiring), 3);
}

/* --- how often -------------------------------------------------------------------------------------- */

static void make_old_client(struct rig *r)
{
    r->settings.clients_keyless_ttl_seconds = 600;
    rig_new_client(r, NULL);
}

static void make_old_test(struct rig *r)
{
    struct uuid id;
    int64_t client = rig_new_client(r, &id);
    new_key(r, &id, 1, 86400); /* or it would be dropped */
    r->settings.jobs_retention_seconds = 600;
    send_test(r, client, new_webhook(r, client, "http://hook/1", "job.created"));
    answer(r, &claim_all(r)->tasks[0], 200);
}

static void make_old_key(struct rig *r)
{
    struct uuid client;
    rig_new_client(r, &client);
    r->settings.keys_revoked_retention_seconds = 600;
    end_key(r, &client, new_key(r, &client, 1, 86400), KEY_REVOKE);
}

/* What is over goes with the first look afterwards, and looks are as far apart as they may be: half of the
 * time that things stay, and a minute or an hour at most. */
RIG_TEST(test_what_is_looked_through_whole_is_looked_through_seldom, r)
{
    const struct {
        void (*make)(struct rig *r);
        const struct table *table;
        int64_t every_ms;
    } cases[] = {{make_old_test, &table_delivery_row, 300 * SECOND_MS},
                 {make_old_key, &table_api_key_row, 300 * SECOND_MS},
                 {make_old_client, &table_client_row, MINUTE_MS}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        pass_turn(r, 2 * HOUR_MS); /* a look at everything */
        size_t before = rig_rows(r, cases[i].table);
        rig_pass(r, SECOND_MS);
        cases[i].make(r);
        size_t made = rig_rows(r, cases[i].table) - before;
        for (int64_t ms = SECOND_MS; ms < 600 * SECOND_MS; ms += cases[i].every_ms)
            pass_turn(r, ms == SECOND_MS ? cases[i].every_ms - SECOND_MS : cases[i].every_ms);
        assert_int_equal(rig_rows(r, cases[i].table), before + made); /* it is a second too young */
        pass_turn(r, cases[i].every_ms - 1);
        assert_int_equal(rig_rows(r, cases[i].table), before + made); /* and nobody looks */
        pass_turn(r, SECOND_MS);
        assert_int_equal(rig_rows(r, cases[i].table), before);
    }
}

int main(void)
{
    return rig_run_both();
}
