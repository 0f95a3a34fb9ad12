/* Clients, API keys and callback secrets. On both stores. */
#include "unit/kernel/rig.h"

#include <stdio.h>

#include "base/banned.h"

enum { DAY_MS = 86400000, OVERLAP_MS = 3600000 };
static const int64_t TTL_MS = (int64_t)90 * DAY_MS;

struct keys_client {
    struct uuid id;
    int64_t num;
};

static struct keys_client new_client(struct rig *r)
{
    struct keys_client c;
    c.num = rig_new_client(r, &c.id);
    return c;
}

static struct key_command *post_key(struct rig *r, const struct keys_client *client, enum key_action action,
                                    struct principal who)
{
    struct key_command *c = ARENA_NEW(r->arena, struct key_command);
    c->action = action;
    c->who = who;
    c->client_id = client->id;
    memset(c->new_hash, 5, sizeof c->new_hash);
    rig_post(r, &c->base, &key_command_type);
    return c;
}

static const struct principal nobody = {.kind = PRINCIPAL_NONE}, operator= {.kind = PRINCIPAL_OPERATOR};

static struct principal holder(const struct keys_client *client, const struct key_command *key)
{
    return (struct principal){.kind = PRINCIPAL_KEY, .client = client->num, .key = key->key_id};
}

static struct key_command *key_now(struct rig *r, const struct keys_client *client, enum key_action action,
                                   struct principal who)
{
    struct key_command *c = post_key(r, client, action, who);
    rig_step(r);
    return c;
}

static struct key_command *rotate_now(struct rig *r, const struct keys_client *client, struct principal who)
{
    struct key_command *c = post_key(r, client, KEY_CREATE, who);
    c->rotate = true;
    rig_step(r);
    return c;
}

static struct key_command *revoke_now(struct rig *r, const struct keys_client *client, struct principal who,
                                      const struct key_command *key)
{
    struct key_command *c = post_key(r, client, KEY_REVOKE, who);
    c->key_id = key->key_id;
    c->key_low = key->key_low;
    rig_step(r);
    return c;
}

static struct api_key_row key_row(struct rig *r, int64_t id)
{
    struct api_key_row row = {.id = id};
    assert_true(rig_row(r, &table_api_key_row, &row));
    return row;
}

/* AJ-07 */
RIG_TEST(test_the_first_key_needs_no_credentials_and_later_ones_do, r)
{
    struct keys_client client = new_client(r), other = new_client(r);
    struct key_command *first = key_now(r, &client, KEY_CREATE, nobody);
    assert_int_equal(first->base.result, ERR_OK);
    assert_true(first->fresh);
    assert_int_equal(first->created_ms, r->wall_us / 1000);
    assert_int_equal(first->expires_ms, first->created_ms + TTL_MS);
    assert_int_equal(key_now(r, &client, KEY_CREATE, nobody)->base.result, ERR_AUTH_INVALID_CREDENTIALS);
    assert_int_equal(rotate_now(r, &client, nobody)->base.result, ERR_AUTH_INVALID_CREDENTIALS);
    assert_int_equal(key_now(r, &client, KEY_RENEW, nobody)->base.result, ERR_AUTH_INVALID_CREDENTIALS);
    assert_int_equal(revoke_now(r, &client, nobody, first)->base.result, ERR_AUTH_INVALID_CREDENTIALS);
    assert_int_equal(key_now(r, &other, KEY_CREATE, holder(&client, first))->base.result, ERR_AUTH_FORBIDDEN);
    assert_int_equal(revoke_now(r, &client, operator, first)->base.result, ERR_OK);
    assert_int_equal(key_now(r, &client, KEY_CREATE, nobody)->base.result, ERR_AUTH_INVALID_CREDENTIALS);
    other.id = uuid_v4();
    assert_int_equal(key_now(r, &other, KEY_CREATE, nobody)->base.result, ERR_CLIENT_NOT_FOUND);
}

/* AJ-08 [JOB-074] */
RIG_TEST(test_creating_again_gives_the_same_key_and_rotating_replaces_it, r)
{
    struct keys_client client = new_client(r);
    struct key_command *first = key_now(r, &client, KEY_CREATE, nobody);
    rig_pass(r, 1000);
    struct key_command *again = key_now(r, &client, KEY_CREATE, holder(&client, first));
    assert_int_equal(again->key_id, first->key_id);
    assert_int_equal(again->key_low, first->key_low);
    assert_int_equal(again->created_ms, first->created_ms);
    assert_int_equal(again->expires_ms, first->expires_ms);
    assert_false(again->fresh);
    struct key_command *rotated = rotate_now(r, &client, holder(&client, first));
    assert_true(rotated->fresh);
    assert_int_not_equal(rotated->key_id, first->key_id);
    assert_int_equal(key_row(r, first->key_id).ends_ms, r->wall_us / 1000 + OVERLAP_MS);
    assert_int_equal(key_row(r, first->key_id).revoked_ms, 0);
    assert_int_equal(key_row(r, rotated->key_id).ends_ms, 0);
    assert_true(
        str_equal(key_row(r, rotated->key_id).client_uuid, (struct str){(char *)client.id.bytes, 16}));
}

RIG_TEST(test_an_idempotent_create_names_the_key_it_made_and_never_shows_it_again, r)
{
    struct keys_client client = new_client(r);
    struct key_command *all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = post_key(r, &client, KEY_CREATE, operator);
        all[i]->once.name = STR("once");
        all[i]->rotate = true;
    }
    rig_step(r);
    assert_true(all[0]->fresh && !all[0]->replayed);
    for (int i = 1; i < 3; i++) {
        assert_true(!all[i]->fresh && all[i]->replayed);
        assert_int_equal(all[i]->key_id, all[0]->key_id);
        assert_int_equal(all[i]->expires_ms, all[0]->expires_ms);
    }
    struct key_command *other = post_key(r, &client, KEY_CREATE, operator);
    other->once.name = STR("once");
    other->once.fingerprint[3] = 1;
    rig_step(r);
    assert_int_equal(other->base.result, ERR_EXEC_IDEMPOTENCY_CONFLICT);
}

/* AJ-09 JOB-083: the decider's side. */
RIG_TEST(test_renewing_replaces_the_presenting_key, r)
{
    struct keys_client client = new_client(r);
    struct key_command *first = key_now(r, &client, KEY_CREATE, nobody);
    rig_pass(r, DAY_MS);
    struct key_command *renewed = post_key(r, &client, KEY_RENEW, holder(&client, first));
    struct key_command *raced = post_key(r, &client, KEY_RENEW, holder(&client, first));
    rig_step(r);
    assert_int_equal(renewed->base.result, ERR_OK);
    assert_true(renewed->fresh && renewed->expires_ms > first->expires_ms);
    assert_int_equal(raced->base.result, ERR_AUTH_KEY_CONFLICT); /* one winner */
    assert_true(key_row(r, first->key_id).ends_ms != 0);
    assert_int_equal(key_row(r, renewed->key_id).ends_ms, 0);
}

/* Requests that were let in together: the key is checked again where it counts. */
RIG_TEST(test_a_key_revoked_by_an_earlier_command_of_its_batch_manages_no_keys, r)
{
    struct keys_client client = new_client(r);
    struct key_command *key = key_now(r, &client, KEY_CREATE, nobody);
    struct key_command *revoke = post_key(r, &client, KEY_REVOKE, operator);
    revoke->key_id = key->key_id;
    revoke->key_low = key->key_low;
    struct key_command *rotate = post_key(r, &client, KEY_CREATE, holder(&client, key));
    rotate->rotate = true;
    struct key_command *renew = post_key(r, &client, KEY_RENEW, holder(&client, key));
    rig_step(r);
    assert_int_equal(revoke->base.result, ERR_OK);
    assert_int_equal(rotate->base.result, ERR_AUTH_KEY_CONFLICT);
    assert_int_equal(renew->base.result, ERR_AUTH_KEY_CONFLICT);
    assert_false(rotate->fresh || renew->fresh);
}

/* --- several keys, with less power ------------------------------------------------------------- */

static struct key_command *wish_now(struct rig *r, const struct keys_client *client, struct principal who,
                                    struct key_wish wish)
{
    struct key_command *c = post_key(r, client, KEY_CREATE, who);
    wish.has_name = wish.name.ptr != NULL;
    wish.has_scopes = wish.power.scopes != 0;
    wish.has_queues = wish.power.queues.ptr != NULL;
    c->wish = wish;
    rig_step(r);
    return c;
}

static struct key_command *renew_named(struct rig *r, const struct keys_client *client, struct principal who,
                                       const struct key_command *key)
{
    struct key_command *c = post_key(r, client, KEY_RENEW, who);
    c->names_key = true;
    c->named_id = key->key_id;
    c->named_low = key->key_low;
    rig_step(r);
    return c;
}

RIG_TEST(test_keys_that_differ_in_name_scopes_or_queues_stand_beside_each_other, r)
{
    struct keys_client client = new_client(r);
    struct key_wish wishes[] = {{.life_seconds = 0},
                                {.power = {.scopes = SCOPE_WORK}},
                                {.power = {.scopes = SCOPE_WORK, .queues = STR("mail")}},
                                {.name = STR("a"), .power = {.scopes = SCOPE_WORK, .queues = STR("mail")}}};
    struct key_command *made[LENGTH_OF(wishes)];
    for (size_t i = 0; i < LENGTH_OF(wishes); i++) {
        made[i] = wish_now(r, &client, operator, wishes[i]);
        assert_true(made[i]->fresh);
    }
    for (size_t i = 0; i < LENGTH_OF(wishes); i++) {
        struct key_command *again = wish_now(r, &client, operator, wishes[i]);
        assert_true(!again->fresh && again->key_id == made[i]->key_id);
        struct api_key_row row = key_row(r, made[i]->key_id);
        assert_int_equal(row.revoked_ms, 0);
        assert_true(str_equal(row.name, wishes[i].name) && str_equal(row.queues, wishes[i].power.queues));
    }
    assert_int_equal(key_row(r, made[0]->key_id).scopes, 0);
    assert_int_equal(key_row(r, made[1]->key_id).scopes, SCOPE_WORK);
}

RIG_TEST(test_a_key_lives_as_long_as_asked_and_no_longer_than_the_setting, r)
{
    struct keys_client client = new_client(r);
    struct key_command *hour = wish_now(r, &client, operator,(struct key_wish){.life_seconds = 3600});
    assert_int_equal(hour->expires_ms, hour->created_ms + 3600000);
    rig_pass(r, 1000);
    struct key_command *next = key_now(r, &client, KEY_RENEW, holder(&client, hour));
    assert_int_equal(next->expires_ms, next->created_ms + 3600000); /* as long as it was */
    struct key_wish too_long = {.name = STR("x"), .life_seconds = TTL_MS / 1000 + 1};
    assert_int_equal(wish_now(r, &client, operator, too_long)->base.result, ERR_REQUEST_MALFORMED);
    too_long.life_seconds--;
    assert_int_equal(wish_now(r, &client, operator, too_long)->base.result, ERR_OK);
}

/* A setting that was made smaller holds for the next key of a long one. */
RIG_TEST(test_a_renewed_key_lives_no_longer_than_the_setting_of_now, r)
{
    struct keys_client client = new_client(r);
    struct key_command *key = key_now(r, &client, KEY_CREATE, nobody);
    const int64_t settings_s[] = {TTL_MS / 1000 + 60, 7200, 3600, 7200};
    const int64_t lives_ms[] = {TTL_MS, 7200000, 3600000, 3600000};
    for (size_t i = 0; i < LENGTH_OF(settings_s); i++) {
        r->settings.keys_ttl_seconds = settings_s[i];
        key = key_now(r, &client, KEY_RENEW, holder(&client, key));
        assert_int_equal(key->base.result, ERR_OK);
        assert_int_equal(key->expires_ms - key->created_ms, lives_ms[i]);
    }
}

RIG_TEST(test_a_key_is_renewed_until_it_expires_and_no_later, r)
{
    for (int64_t late_ms = -1; late_ms <= 1; late_ms++) {
        struct keys_client client = new_client(r);
        struct key_command *key = wish_now(r, &client, operator,(struct key_wish){.life_seconds = 60});
        rig_pass(r, 60000 + late_ms);
        assert_int_equal(renew_named(r, &client, operator, key)->base.result,
                         late_ms < 0 ? ERR_OK : ERR_AUTH_KEY_CONFLICT);
    }
}

RIG_TEST(test_no_key_makes_or_renews_one_with_more_power, r)
{
    struct keys_client client = new_client(r);
    struct key_command *full = key_now(r, &client, KEY_CREATE, nobody);
    struct key_wish small = {.name = STR("small"),
                             .power = {.scopes = SCOPE_ADMIN | SCOPE_WORK, .queues = STR("mail,news")}};
    struct principal weak = holder(&client, wish_now(r, &client, holder(&client, full), small));
    struct key_wish more[] = {{.name = STR("x")},
                              {.power = {.scopes = SCOPE_WORK}},
                              {.power = {.scopes = SCOPE_READ, .queues = STR("mail")}},
                              {.power = {.scopes = SCOPE_WORK, .queues = STR("other")}}};
    for (size_t i = 0; i < LENGTH_OF(more); i++)
        assert_int_equal(wish_now(r, &client, weak, more[i])->base.result, ERR_AUTH_FORBIDDEN);
    struct key_command *rotate = post_key(r, &client, KEY_CREATE, weak);
    rotate->rotate = true;
    rotate->wish = (struct key_wish){.has_scopes = true, .power.scopes = SCOPE_ALL};
    rig_step(r);
    assert_int_equal(rotate->base.result, ERR_AUTH_FORBIDDEN);
    assert_int_equal(renew_named(r, &client, weak, full)->base.result, ERR_AUTH_FORBIDDEN);
    struct key_command *forced = post_key(r, &client, KEY_RENEW, weak);
    forced->wish = rotate->wish;
    rig_step(r);
    assert_int_equal(forced->base.result, ERR_AUTH_FORBIDDEN);
    assert_int_equal(key_row(r, full->key_id).revoked_ms, 0);
    struct key_wish less = {.power = {.scopes = SCOPE_WORK, .queues = STR("news")}};
    assert_int_equal(wish_now(r, &client, weak, less)->base.result, ERR_OK);
}

RIG_TEST(test_a_replaced_key_hands_on_its_power_and_works_until_the_overlap_is_over, r)
{
    struct keys_client client = new_client(r);
    struct key_command *full = key_now(r, &client, KEY_CREATE, nobody);
    struct key_wish small = {.name = STR("mailer"), .power = {.scopes = SCOPE_ADMIN, .queues = STR("mail")}};
    struct key_command *old = wish_now(r, &client, holder(&client, full), small);
    struct key_command *new = renew_named(r, &client, holder(&client, full), old);
    assert_int_equal(new->base.result, ERR_OK);
    struct api_key_row row = key_row(r, new->key_id);
    assert_true(str_is(row.name, "mailer") && str_is(row.queues, "mail") && row.scopes == SCOPE_ADMIN);
    /* It works on, but is not renewed again. */
    struct key_wish other = {.name = STR("x"), .power = small.power};
    assert_int_equal(wish_now(r, &client, holder(&client, old), other)->base.result, ERR_OK);
    assert_int_equal(key_now(r, &client, KEY_RENEW, holder(&client, old))->base.result,
                     ERR_AUTH_KEY_CONFLICT);
    assert_int_equal(renew_named(r, &client, operator, old)->base.result, ERR_AUTH_KEY_CONFLICT);
    rig_pass(r, OVERLAP_MS);
    other.name = STR("y");
    assert_int_equal(wish_now(r, &client, holder(&client, old), other)->base.result, ERR_AUTH_KEY_CONFLICT);
    assert_int_equal(key_row(r, full->key_id).revoked_ms, 0);
}

RIG_TEST(test_revoking_ends_a_replaced_key_at_once, r)
{
    struct keys_client client = new_client(r);
    struct key_command *first = key_now(r, &client, KEY_CREATE, nobody);
    struct key_command *second = key_now(r, &client, KEY_RENEW, holder(&client, first));
    rig_pass(r, 1000);
    assert_int_equal(revoke_now(r, &client, holder(&client, second), first)->base.result, ERR_OK);
    assert_int_equal(key_row(r, first->key_id).revoked_ms, r->wall_us / 1000);
    assert_int_equal(key_row(r, second->key_id).revoked_ms, 0);
}

RIG_TEST(test_without_an_overlap_the_replaced_key_ends_with_the_answer, r)
{
    struct keys_client client = new_client(r);
    r->settings.keys_overlap_seconds = 0;
    struct key_command *first = key_now(r, &client, KEY_CREATE, nobody);
    key_now(r, &client, KEY_RENEW, holder(&client, first));
    assert_int_equal(key_row(r, first->key_id).revoked_ms, r->wall_us / 1000);
}

static struct key_command *make_numbered(struct rig *r, const struct keys_client *client, int number)
{
    struct key_wish wish = {.name = arena_printf(r->arena, "key %d", number)};
    return wish_now(r, client, operator, wish);
}

/* The newest that is left is the one the operator renews. */
RIG_TEST(test_keys_that_work_are_bounded_and_ended_ones_make_room, r)
{
    struct keys_client client = new_client(r);
    struct key_command *last = NULL, *kept = NULL;
    for (int i = 0; i < KEYS_ACTIVE_MAX; i++) {
        kept = last;
        last = make_numbered(r, &client, i);
        assert_true(last->fresh);
    }
    for (int i = KEYS_ACTIVE_MAX; i < KEYS_ACTIVE_MAX + KEYS_LISTED_MAX; i++) {
        assert_int_equal(make_numbered(r, &client, i)->base.result, ERR_AUTH_KEY_CONFLICT);
        assert_int_equal(renew_named(r, &client, operator, last)->base.result, ERR_AUTH_KEY_CONFLICT);
        assert_int_equal(revoke_now(r, &client, operator, last)->base.result, ERR_OK);
        last = make_numbered(r, &client, i);
        assert_true(last->fresh);
    }
    revoke_now(r, &client, operator, last);
    assert_true(key_now(r, &client, KEY_RENEW, operator)->fresh);
    assert_int_not_equal(key_row(r, kept->key_id).ends_ms, 0);
}

RIG_TEST(test_without_an_active_key_there_is_nothing_to_renew, r)
{
    struct keys_client client = new_client(r);
    assert_int_equal(key_now(r, &client, KEY_RENEW, operator)->base.result, ERR_AUTH_KEY_CONFLICT);
    struct key_command *key = key_now(r, &client, KEY_CREATE, nobody);
    revoke_now(r, &client, operator, key);
    assert_int_equal(key_now(r, &client, KEY_RENEW, operator)->base.result, ERR_AUTH_KEY_CONFLICT);
    key_now(r, &client, KEY_CREATE, operator);
    rig_pass(r, TTL_MS); /* expired */
    assert_int_equal(key_now(r, &client, KEY_RENEW, operator)->base.result, ERR_AUTH_KEY_CONFLICT);
    assert_true(key_now(r, &client, KEY_CREATE, operator)->fresh);
}

/* AJ-10 */
RIG_TEST(test_revoking_is_idempotent_and_foreign_keys_are_not_found, r)
{
    struct keys_client client = new_client(r), other = new_client(r);
    struct key_command *key = key_now(r, &client, KEY_CREATE, nobody),
                       *theirs = key_now(r, &other, KEY_CREATE, nobody);
    assert_int_equal(revoke_now(r, &client, holder(&client, key), theirs)->base.result,
                     ERR_AUTH_KEY_NOT_FOUND);
    struct key_command half = *key;
    half.key_low ^= 1;
    assert_int_equal(revoke_now(r, &client, holder(&client, key), &half)->base.result,
                     ERR_AUTH_KEY_NOT_FOUND);
    assert_int_equal(revoke_now(r, &client, holder(&client, key), key)->base.result, ERR_OK);
    int64_t when = key_row(r, key->key_id).revoked_ms;
    assert_int_equal(when, r->wall_us / 1000);
    rig_pass(r, 5000);
    assert_int_equal(revoke_now(r, &client, operator, key)->base.result, ERR_OK);
    assert_int_equal(key_row(r, key->key_id).revoked_ms, when);
    assert_int_equal(key_row(r, theirs->key_id).revoked_ms, 0);
}

static struct key_head_row head_of(struct rig *r, int64_t client)
{
    struct key_head_row row = {.client = client};
    assert_true(rig_row(r, &table_key_head_row, &row));
    return row;
}

/* The newest one that nobody has ended or replaced; ended ones stay in the list for a while. */
RIG_TEST(test_the_active_key_of_a_client_is_the_newest_that_is_left, r)
{
    struct keys_client client = new_client(r);
    struct key_command *keys[3];
    for (int i = 0; i < 3; i++) {
        keys[i] = make_numbered(r, &client, i);
        assert_int_equal(head_of(r, client.num).active, keys[i]->key_id);
    }
    revoke_now(r, &client, operator, keys[1]); /* not the newest: nothing changes */
    assert_int_equal(head_of(r, client.num).active, keys[2]->key_id);
    revoke_now(r, &client, operator, keys[2]);
    assert_int_equal(head_of(r, client.num).active, keys[0]->key_id);
    assert_int_equal(head_of(r, client.num).listed.len, 3 * sizeof(int64_t));
}

/* Where registration is closed the operator alone makes clients and their first keys. */
RIG_TEST(test_where_registration_is_closed_the_operator_opens_the_door, r)
{
    struct err err;
    struct keys_client client = new_client(r);
    assert_int_equal(settings_set(&r->settings, "clients.registration", "operator", ORIGIN_FLAG, &err),
                     ERR_OK);
    for (int by_operator = 0; by_operator < 2; by_operator++) {
        struct create_client_command c = {.client_id = uuid_v4(), .by_operator = by_operator};
        rig_post(r, &c.base, &create_client_command_type);
        rig_step(r);
        assert_int_equal(c.base.result, by_operator ? ERR_OK : ERR_AUTH_FORBIDDEN);
        assert_int_equal(key_now(r, &client, KEY_CREATE, by_operator ? operator: nobody)->base.result,
                         by_operator ? ERR_OK : ERR_AUTH_FORBIDDEN);
    }
}

/* A create that is repeated long afterwards names the key it made, though it has gone. */
RIG_TEST(test_a_repeated_create_names_a_key_that_has_gone, r)
{
    struct keys_client client = new_client(r);
    struct key_command *made[2];
    r->settings.keys_revoked_retention_seconds = 86400; /* idempotency keys stay longer */
    for (int i = 0; i < 2; i++) {
        made[i] = post_key(r, &client, KEY_CREATE, operator);
        made[i]->once.name = STR("once");
        made[i]->wish.life_seconds = 60;
        rig_step(r);
        rig_pass(r, 2 * (int64_t)DAY_MS);
        rig_step(r);
    }
    assert_true(made[1]->replayed && made[1]->key_id == made[0]->key_id);
    assert_true(made[1]->key_low == made[0]->key_low && made[1]->created_ms == made[0]->created_ms);
    assert_int_equal(made[1]->expires_ms, made[0]->created_ms + TTL_MS);
}

/* JOB-158 and JOB-159, the part behind the API: nothing changes when the store refuses. */
RIG_TEST(test_a_failed_commit_leaves_keys_as_they_were, r)
{
    struct keys_client client = new_client(r);
    struct key_command *key = key_now(r, &client, KEY_CREATE, nobody);
    r->failures = 3;
    assert_int_equal(key_now(r, &client, KEY_RENEW, holder(&client, key))->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(rotate_now(r, &client, holder(&client, key))->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(revoke_now(r, &client, operator, key)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(key_row(r, key->key_id).revoked_ms, 0);
    assert_int_equal(key_now(r, &client, KEY_CREATE, operator)->key_id, key->key_id);
}

RIG_TEST(test_create_rotate_revoke_in_one_batch_end_in_one_state, r)
{
    struct keys_client client = new_client(r);
    struct key_command *a = post_key(r, &client, KEY_CREATE, operator),
                       *b = post_key(r, &client, KEY_CREATE, operator);
    b->rotate = true;
    struct key_command *c = post_key(r, &client, KEY_RENEW, operator),
                       *d = post_key(r, &client, KEY_CREATE, operator);
    rig_step(r);
    assert_true(a->fresh && b->fresh && c->fresh && !d->fresh);
    assert_int_equal(d->key_id, c->key_id);
    assert_true(key_row(r, a->key_id).ends_ms && key_row(r, b->key_id).ends_ms);
    assert_int_equal(key_row(r, c->key_id).ends_ms, 0);
}

RIG_TEST(test_an_idempotent_client_is_created_once, r)
{
    struct create_client_command c[3] = {
        {.once = {.name = STR("n")}}, {.once = {.name = STR("n")}}, {.once = {.name = STR("n")}}};
    for (int i = 0; i < 3; i++) {
        c[i].client_id = uuid_v4();
        if (i == 2)
            c[i].once.fingerprint[0] = 9;
        rig_post(r, &c[i].base, &create_client_command_type);
    }
    rig_step(r);
    assert_true(!c[0].replayed && c[1].replayed);
    assert_memory_equal(c[0].client_id.bytes, c[1].client_id.bytes, 16);
    assert_int_equal(c[1].created_ms, c[0].created_ms);
    assert_int_equal(c[2].base.result, ERR_EXEC_IDEMPOTENCY_CONFLICT);
    assert_int_equal(r->store->next_client, 2);
}

/* As a lane of a shared store sees it when another has given the number it would give next. */
RIG_TEST(test_a_new_client_gets_no_number_whose_jobs_move_in_its_batch, r)
{
    int64_t taken = rig_new_client(r, NULL);
    struct submit_item item = rig_item();
    struct create_client_command c = {.client_id = uuid_v4()};
    r->store->next_client = taken;
    struct submit_command *submit = rig_post_submit(r, taken, &item, 1);
    rig_post(r, &c.base, &create_client_command_type);
    rig_step(r);
    assert_int_equal(submit->items[0].err.code, ERR_OK);
    assert_int_equal(c.base.result, ERR_OK);
    assert_int_equal(r->store->next_client, taken + 2);
}

RIG_TEST(test_a_rotated_callback_secret_keeps_the_former_one, r)
{
    struct keys_client client = new_client(r), other = new_client(r);
    struct rotate_secret_command c = {.who = operator, .client_id = client.id };
    memset(c.secret, 9, sizeof c.secret);
    rig_post(r, &c.base, &rotate_secret_command_type);
    rig_step(r);
    assert_int_equal(c.base.result, ERR_OK);
    struct client_secret_row row = {.client = client.num};
    struct err err;
    bool found = false;
    assert_int_equal(r->store->ops->fetch(r->store, &table_client_secret_row, &row, r->arena, &found, &err),
                     ERR_OK);
    assert_true(found && row.secret.ptr[0] == 9 && row.former.ptr[0] == 7);
    assert_int_equal(row.rotated_ms, r->wall_us / 1000);
    struct rotate_secret_command foreign = {.who = {.kind = PRINCIPAL_KEY, .client = other.num},
                                            .client_id = client.id};
    rig_post(r, &foreign.base, &rotate_secret_command_type);
    rig_step(r);
    assert_int_equal(foreign.base.result, ERR_AUTH_FORBIDDEN);
}

int main(void)
{
    return rig_run_all();
}
