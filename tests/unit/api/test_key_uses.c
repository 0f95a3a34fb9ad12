/* When a key was last used: what is noted, and how little of it is written. */
#include "api/key_uses.h"
#include "unit/kernel/rig.h"

#include "base/banned.h"

#define START_MS INT64_C(1800000000000)

struct bench {
    struct rig *rig;
    struct key_uses *uses;
    int64_t key;
};

static struct bench bench_up(struct rig *r)
{
    struct uuid id;
    rig_new_client(r, &id);
    struct key_command c = {.action = KEY_CREATE, .client_id = id};
    rig_post(r, &c.base, &key_command_type);
    rig_step(r);
    assert_int_equal(c.base.result, ERR_OK);
    return (struct bench){.rig = r, .uses = key_uses_new(), .key = c.key_id};
}

static enum err_code decide_save(struct unit *u, struct command *c, struct err *err)
{
    (void)err;
    (void)key_uses_save(c->owner, u);
    return ERR_OK;
}
static const struct command_type save_type = {"save", NULL, decide_save};

static enum err_code save(struct bench *b)
{
    struct command *c = ARENA_NEW(b->rig->arena, struct command);
    rig_post(b->rig, c, &save_type);
    c->owner = b->uses;
    rig_step(b->rig);
    key_uses_saved(b->uses, c->result == ERR_OK);
    return c->result;
}

static int64_t stored_ms(struct bench *b)
{
    struct api_key_row row = {.id = b->key};
    struct reader *r = b->rig->reader;
    struct err err;
    bool found = false;
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_row(r, &table_api_key_row, &row, b->rig->arena, &found, &err), ERR_OK);
    r->ops->reader_end(r);
    assert_true(found);
    return row.used_ms;
}

RIG_TEST(a_use_is_stored_once_a_minute, r)
{
    struct bench b = bench_up(r);
    assert_int_equal(stored_ms(&b), 0);
    for (int i = 0; i < 3; i++) /* as threads do that have not heard of each other */
        assert_true(key_uses_note(b.uses, b.key, START_MS + i));
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(stored_ms(&b), START_MS);
    size_t commits = b.rig->commits;
    assert_true(key_uses_note(b.uses, b.key, START_MS + KEY_USE_MS - 1));
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(b.rig->commits, commits);
    assert_true(key_uses_note(b.uses, b.key, START_MS + KEY_USE_MS));
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(stored_ms(&b), START_MS + KEY_USE_MS);
    assert_int_equal(b.rig->commits, commits + 1);
    b.uses = key_uses_free(b.uses);
}

RIG_TEST(a_clock_that_is_put_right_is_followed, r)
{
    struct bench b = bench_up(r);
    assert_true(key_use_is_news(0, START_MS));
    assert_false(key_use_is_news(START_MS, START_MS));
    assert_true(key_use_is_news(START_MS, START_MS - 1));
    assert_true(key_uses_note(b.uses, b.key, START_MS * 2));
    assert_int_equal(save(&b), ERR_OK);
    assert_true(key_uses_note(b.uses, b.key, START_MS));
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(stored_ms(&b), START_MS);
    b.uses = key_uses_free(b.uses);
}

RIG_TEST(what_was_not_stored_is_saved_later, r)
{
    struct bench b = bench_up(r);
    assert_true(key_uses_note(b.uses, b.key, START_MS));
    b.rig->failures = 1;
    assert_int_equal(save(&b), ERR_STORAGE_DB_ERROR);
    assert_int_equal(stored_ms(&b), 0);
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(stored_ms(&b), START_MS);
    b.uses = key_uses_free(b.uses);
}

/* One that nobody has is as one that was deleted meanwhile. */
RIG_TEST(the_list_is_bounded_and_forgets_keys_that_are_gone, r)
{
    struct bench b = bench_up(r);
    for (int i = 0; i < KEY_USES_MAX; i++)
        assert_true(key_uses_note(b.uses, 1 + i, START_MS));
    assert_false(key_uses_note(b.uses, b.key, START_MS));
    assert_int_equal(save(&b), ERR_OK);
    assert_true(key_uses_note(b.uses, b.key, START_MS));
    for (int i = 0; i < KEY_USES_MAX && !stored_ms(&b); i++)
        assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(stored_ms(&b), START_MS);
    b.uses = key_uses_free(b.uses);
}

int main(void)
{
    return test_run("sqlite", rig_group_disk, NULL);
}
