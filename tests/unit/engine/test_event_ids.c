/* The registry of event ids: which id an event has or shall have, before and after it is written. */
#include "unit/engine/engine_rig.h"

#include "base/banned.h"

static bool is_v4(const struct uuid *id)
{
    return id->bytes[6] >> 4 == 4 && id->bytes[8] >> 6 == 2;
}

static bool same(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* [RUN-051] [RUN-052] [RUN-054] [RUN-055] [RUN-056] [RUN-057]: one id for (run, key), for good */
RIG_TEST(test_an_event_has_one_id_however_often_it_is_asked_for, r)
{
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"}),
                       b = outside_item(r, "run", &(struct outside){.type = "RunPaused"});
    struct uuid first = ask_event_id(r, TENANT, "run", a.write.key)->event_id;
    assert_true(is_v4(&first));
    rig_restart(r, 1000);
    for (int i = 0; i < 3; i++) {
        struct uuid again = ask_event_id(r, TENANT, "run", a.write.key)->event_id;
        assert_true(same(&first, &again));
    }
    struct uuid other_key = ask_event_id(r, TENANT, "run", b.write.key)->event_id,
                other_run = ask_event_id(r, TENANT, "run2", a.write.key)->event_id;
    assert_false(same(&first, &other_key));
    assert_false(same(&first, &other_run));
    assert_false(same(&other_key, &other_run));
}

/* [RUN-053]: the id is there and durable before anything of the run is */
RIG_TEST(test_an_id_needs_no_run, r)
{
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"});
    struct run_row run;
    struct uuid id = ask_event_id(r, TENANT, "run", a.write.key)->event_id;
    assert_false(find_run(r, "run", &run));
    a.write.event_id = id;
    struct append_command *c = post_append(r, TENANT, "run", &a, 1);
    rig_step(r);
    assert_int_equal(c->items[0].err.code, ERR_OK);
    assert_true(same(&c->items[0].place.event_id, &id));
}

/* [RUN-047] [RUN-050] [RUN-058] [RUN-059]: what is written goes first, also where the registry knows
 * another, or nothing */
RIG_TEST(test_what_is_written_is_the_id, r)
{
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"});
    struct uuid registered = ask_event_id(r, TENANT, "run", a.write.key)->event_id;
    struct append_item written = append_one(r, "run", &(struct outside){.type = "RunStarted"});
    assert_false(same(&written.place.event_id, &registered));
    struct uuid now = ask_event_id(r, TENANT, "run", a.write.key)->event_id;
    assert_true(same(&now, &written.place.event_id));
    struct append_item b = append_one(r, "run", &(struct outside){.type = "RunPaused"});
    now = ask_event_id(r, TENANT, "run", b.write.key)->event_id;
    assert_true(same(&now, &b.place.event_id));
}

RIG_TEST(test_ids_of_another_tenant_are_not_told, r)
{
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"});
    ask_event_id(r, TENANT, "run", a.write.key);
    assert_int_equal(ask_event_id(r, "evil", "run", a.write.key)->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
    append_good(r, "run2", "RunStarted", NULL, 1);
    assert_int_equal(ask_event_id(r, "evil", "run2", a.write.key)->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_int_equal(ask_event_id(r, TENANT, "run2", a.write.key)->base.result, ERR_OK);
}

/* Asked for together: one. */
RIG_TEST(test_those_who_ask_together_get_one_id, r)
{
    enum { TOGETHER = 10 };
    struct event_id_command *c[TOGETHER];
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"});
    for (int i = 0; i < TOGETHER; i++) {
        c[i] = ARENA_NEW(r->arena, struct event_id_command);
        *c[i] = (struct event_id_command){.tenant = STR(TENANT), .run_id = STR("run"), .event_id = uuid_v4()};
        memcpy(c[i]->key, a.write.key, sizeof a.write.key);
        rig_post(r, &c[i]->base, &event_id_command_type);
    }
    rig_step(r);
    for (int i = 0; i < TOGETHER; i++) {
        assert_int_equal(c[i]->base.result, ERR_OK);
        assert_true(same(&c[i]->event_id, &c[0]->event_id));
    }
    assert_int_equal(count_rows(r, &table_event_id_row), 1);
}

/* A commit that fails gives no id that counts. */
RIG_TEST(test_a_failed_commit_registers_nothing, r)
{
    struct append_item a = outside_item(r, "run", &(struct outside){.type = "RunStarted"});
    r->failures = 1;
    assert_int_equal(ask_event_id(r, TENANT, "run", a.write.key)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(count_rows(r, &table_event_id_row), 0);
}

int main(void)
{
    return rig_run_all();
}
