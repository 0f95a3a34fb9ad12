/* API keys: create (with rotation), renew, revoke. Who may: where registration is open nobody needs to
 * authenticate for a client's first key (its id is unguessable, AJ-07); else the operator makes it. Later a
 * valid key of that client or the operator. */
#include "base/must.h"
#include "jobs/client_state.h"
#include "jobs/creates.h"
#include "jobs/job_notices.h"
#include "lifecycle/key_list.h"

#include "base/banned.h"

static struct client_row client_key(const struct key_command *c)
{
    return (struct client_row){.uuid = {(const char *)c->client_id.bytes, sizeof c->client_id.bytes}};
}

static struct str scope_of(struct unit *u, int64_t client)
{
    return arena_printf(u->arena, "keys:%lld", (long long)client);
}

static void prefetch_key(struct unit *u, int64_t id)
{
    unit_prefetch(u, &table_api_key_row, &(struct api_key_row){.id = id});
}

static struct key_list keys_of(const struct key_head_row *head)
{
    return head ? key_list_read(head->listed, head->active) : (struct key_list){.count = 0};
}

static void load_key(struct unit *u, struct command *base)
{
    const struct key_command *c = (const struct key_command *)base;
    struct client_row key = client_key(c);
    const struct client_row *client = unit_prefetch(u, &table_client_row, &key);
    if (!client)
        return;
    if (c->action == KEY_CREATE)
        (void)creates_prefetch(u, scope_of(u, client->num), &c->once);
    if (c->action == KEY_REVOKE)
        prefetch_key(u, c->key_id);
    if (c->names_key)
        prefetch_key(u, c->named_id);
    const struct key_head_row *head =
        unit_prefetch(u, &table_key_head_row, &(struct key_head_row){.client = client->num});
    struct key_list list = keys_of(head); /* a key that works is in it, the presented one too */
    for (size_t i = 0; i < list.count; i++)
        prefetch_key(u, list.ids[i]);
    if (!head)
        unit_prefetch(u, &table_client_number_row,
                      &(struct client_number_row){.keyless = 1, .num = client->num});
}

/* --- the keys of a client ------------------------------------------------------------------------- */

static bool is_usable(const struct unit *u, const struct api_key_row *key)
{
    return !key->revoked_ms && (!key->ends_ms || key->ends_ms > u->now_ms) && key->expires_ms > u->now_ms;
}

/* Usable, and nobody has replaced it. */
static bool is_active(const struct unit *u, const struct api_key_row *key)
{
    return !key->revoked_ms && !key->ends_ms && key->expires_ms > u->now_ms;
}

/* A key as this batch sees it; one made earlier in the batch is known to the unit too. NULL: it is gone. */
static struct api_key_row *key_of(struct unit *u, int64_t id)
{
    struct api_key_row key = {.id = id};
    return unit_has(u, &table_api_key_row, &key) ? unit_row(u, &table_api_key_row, &key) : NULL;
}

static struct key_power power_of(const struct api_key_row *key)
{
    return (struct key_power){.scopes = key_scopes_of_stored(key->scopes), .queues = key->queues};
}

static bool same_text(struct str a, struct str b)
{
    return (a.ptr != NULL) == (b.ptr != NULL) && str_equal(a, b);
}

/* The newest active key, or the newest of this description. */
static struct api_key_row *find_active(struct unit *u, const struct key_head_row *head,
                                       const struct key_wish *like)
{
    struct key_list list = keys_of(head);
    for (size_t i = list.count; i-- > 0;) {
        struct api_key_row *key = key_of(u, list.ids[i]);
        if (key && is_active(u, key) &&
            (!like ||
             (same_text(key->name, like->name) && key->scopes == key_scopes_stored(like->power.scopes) &&
              same_text(key->queues, like->power.queues))))
            return key;
    }
    return NULL;
}

/* --- who may --------------------------------------------------------------------------------------- */

/* A key that was valid when its request was read may have been revoked by a command before this one. */
static enum err_code check_still_valid(struct unit *u, const struct key_command *c, struct err *err)
{
    const struct api_key_row *key = key_of(u, c->who.key);
    if (key && is_usable(u, key))
        return ERR_OK;
    return err_set(err, ERR_AUTH_KEY_CONFLICT, "the key was replaced or revoked meanwhile");
}

static enum err_code check_allowed(struct unit *u, const struct key_command *c,
                                   const struct client_row *client, const struct key_head_row *head,
                                   struct err *err)
{
    switch (c->who.kind) {
    case PRINCIPAL_OPERATOR:
        return ERR_OK;
    case PRINCIPAL_KEY:
        if (c->who.client == client->num)
            return check_still_valid(u, c, err);
        return err_set(err, ERR_AUTH_FORBIDDEN, "the client is another one");
    case PRINCIPAL_DOMAIN:
    case PRINCIPAL_NONE:
        break;
    }
    if (c->action == KEY_CREATE && !head && settings_registration_is_open(u->settings))
        return ERR_OK;
    if (c->action == KEY_CREATE && !head)
        return err_set(err, ERR_AUTH_FORBIDDEN,
                       "only the operator makes a client's first key here: send the operator token, or set "
                       "clients.registration to open");
    return err_set(err, ERR_AUTH_INVALID_CREDENTIALS, "this client has had a key; send one that is valid");
}

/* No key makes one with more power than its own. */
static enum err_code check_power(struct unit *u, const struct key_command *c, const struct key_power *wanted,
                                 struct err *err)
{
    if (c->who.kind != PRINCIPAL_KEY)
        return ERR_OK;
    struct key_power holder = power_of(key_of(u, c->who.key));
    const char *what;
    struct str name;
    if (!key_power_lacks(&holder, wanted, &what, &name))
        return ERR_OK;
    return err_set(err, ERR_AUTH_FORBIDDEN, "the new key would have %s%.*s, which the presented key has not",
                   what, STR_ARG(name));
}

static enum err_code check_room(struct unit *u, const struct key_head_row *head, struct err *err)
{
    struct key_list list = keys_of(head);
    size_t usable = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct api_key_row *key = key_of(u, list.ids[i]);
        usable += key && is_usable(u, key);
    }
    if (usable < KEYS_ACTIVE_MAX)
        return ERR_OK;
    return err_set(err, ERR_AUTH_KEY_CONFLICT,
                   "the client has %d keys that work, the most allowed; revoke one first", KEYS_ACTIVE_MAX);
}

/* --- changes --------------------------------------------------------------------------------------- */

/* At once, or when the overlap is over. */
static void end_key(struct unit *u, struct api_key_row *key, int64_t overlap_ms)
{
    if (overlap_ms)
        key->ends_ms = u->now_ms + overlap_ms;
    else
        key->revoked_ms = u->now_ms;
    unit_update(u, &table_api_key_row, key);
    unit_notify(u, &key_change_notices, NULL);
}

/* Behind the others; when the list is full the oldest that does not work any more leaves it. */
static void list_key(struct unit *u, struct key_list *list, int64_t id)
{
    for (size_t i = 0; list->count == KEYS_LISTED_MAX && i < list->count; i++) {
        const struct api_key_row *key = key_of(u, list->ids[i]);
        if (!key || !is_usable(u, key))
            key_list_remove(list, list->ids[i]);
    }
    MUST(list->count < KEYS_LISTED_MAX); /* check_room */
    list->ids[list->count++] = id;
}

static void add_to_head(struct unit *u, const struct client_row *client, struct key_head_row *head,
                        int64_t id)
{
    struct key_list list = keys_of(head);
    bool first = !head;
    if (first) {
        head = ARENA_NEW(u->arena, struct key_head_row);
        head->client = client->num;
    }
    list_key(u, &list, id);
    head->active = id;
    head->listed = key_list_text(&list, u->arena);
    if (first) {
        unit_insert(u, &table_key_head_row, head);
        client_number_has_key(u, client);
    } else {
        unit_update(u, &table_key_head_row, head);
    }
}

static void answer(struct key_command *c, const struct api_key_row *key)
{
    c->key_id = key->id;
    c->key_low = (uint64_t)key->low;
    c->created_ms = key->created_ms;
    c->expires_ms = key->expires_ms;
}

/* Nothing that exists changes by it: caches need not hear of it. */
static void add_key(struct unit *u, struct key_command *c, const struct client_row *client,
                    struct key_head_row *head, const struct key_wish *wish)
{
    struct api_key_row *key = ARENA_NEW(u->arena, struct api_key_row);
    *key = (struct api_key_row){.id = unit_id(u),
                                .low = unit_uuid_tail(u),
                                .client = client->num,
                                .client_uuid = arena_str(u->arena, client->uuid),
                                .hash = {arena_copy(u->arena, c->new_hash, KEY_HASH_BYTES), KEY_HASH_BYTES},
                                .created_ms = u->now_ms,
                                .expires_ms = u->now_ms + wish->life_seconds * 1000,
                                .scopes = key_scopes_stored(wish->power.scopes),
                                .queues = wish->power.queues,
                                .name = wish->name};
    unit_insert(u, &table_api_key_row, key);
    add_to_head(u, client, head, key->id);
    answer(c, key);
    c->fresh = true;
}

/* `former` may be NULL: nothing is replaced. */
static enum err_code complete_wish(struct unit *u, const struct key_command *c,
                                   const struct api_key_row *former, struct key_wish *ret_wish,
                                   struct err *err)
{
    int64_t ttl = u->settings->keys_ttl_seconds;
    struct key_wish wish = c->wish;
    struct key_power base = former ? power_of(former) : (struct key_power){.scopes = SCOPE_ALL};
    if (!wish.has_name)
        wish.name = former ? former->name : STR_ABSENT;
    if (!wish.has_scopes)
        wish.power.scopes = base.scopes;
    if (!wish.has_queues)
        wish.power.queues = base.queues;
    if (wish.life_seconds > ttl)
        return err_set(err, ERR_REQUEST_MALFORMED,
                       "expires_in_seconds must be from 1 to %lld (keys.ttl_seconds)", (long long)ttl);
    if (!wish.life_seconds) {
        int64_t life = former ? (former->expires_ms - former->created_ms) / 1000 : ttl;
        wish.life_seconds = life < ttl ? life : ttl;
    }
    *ret_wish = wish;
    return check_power(u, c, &wish.power, err);
}

/* The new key takes the place of `former`, which ends when the overlap is over. */
static enum err_code replace(struct unit *u, struct key_command *c, const struct client_row *client,
                             struct key_head_row *head, struct api_key_row *former, struct err *err)
{
    struct key_wish wish;
    if (former->revoked_ms || former->ends_ms)
        return err_set(err, ERR_AUTH_KEY_CONFLICT, "the key was replaced or revoked meanwhile");
    if (complete_wish(u, c, former, &wish, err) != ERR_OK)
        return err->code;
    int64_t overlap_ms = u->settings->keys_overlap_seconds * 1000;
    if (overlap_ms && check_room(u, head, err) != ERR_OK)
        return err->code;
    end_key(u, former, overlap_ms);
    add_key(u, c, client, head, &wish);
    return ERR_OK;
}

/* --- the actions ----------------------------------------------------------------------------------- */

static enum err_code answer_replay(struct unit *u, struct key_command *c, const struct create_row *former,
                                   struct err *err)
{
    struct uuid id; /* the secret is shown once only; the id says which key the first call made */
    memcpy(id.bytes, former->uuid.ptr, sizeof id.bytes);
    c->replayed = true;
    if (!uuid_split_v7(&id, &c->key_id, &c->key_low))
        return err_set(err, ERR_STORE_CORRUPT, "a key id in creates is not one");
    c->created_ms = former->created_ms;
    c->expires_ms = former->created_ms + u->settings->keys_ttl_seconds * 1000;
    const struct api_key_row *key = key_of(u, c->key_id);
    if (key)
        answer(c, key);
    return ERR_OK;
}

static enum err_code create(struct unit *u, struct key_command *c, const struct client_row *client,
                            struct key_head_row *head, struct err *err)
{
    const struct create_row *made = creates_find(u, scope_of(u, client->num), &c->once, err);
    if (err->code != ERR_OK)
        return err->code;
    if (made)
        return answer_replay(u, c, made, err);
    struct api_key_row *presented = c->who.kind == PRINCIPAL_KEY ? key_of(u, c->who.key) : NULL;
    struct key_wish wish;
    if (!(c->rotate && presented) && complete_wish(u, c, NULL, &wish, err) != ERR_OK)
        return err->code;
    struct api_key_row *former = c->rotate && presented ? presented : find_active(u, head, &wish);
    if (former && !c->rotate) {
        answer(c, former);
        return ERR_OK;
    }
    if (former && replace(u, c, client, head, former, err) != ERR_OK)
        return err->code;
    if (!former) {
        if (check_room(u, head, err) != ERR_OK)
            return err->code;
        add_key(u, c, client, head, &wish);
    }
    struct uuid id = uuid_from_v7(c->key_id, c->key_low);
    creates_add(u, scope_of(u, client->num), &c->once, &id);
    return ERR_OK;
}

/* The client's key of this id, or NULL with err set. */
static struct api_key_row *named_key(struct unit *u, const struct key_command *c,
                                     const struct client_row *client, struct err *err)
{
    bool renews = c->action == KEY_RENEW;
    struct api_key_row *key = key_of(u, renews ? c->named_id : c->key_id);
    if (key && (uint64_t)key->low == (renews ? c->named_low : c->key_low) && key->client == client->num)
        return key;
    err_set(err, ERR_AUTH_KEY_NOT_FOUND, "the client has no key of this id");
    return NULL;
}

static enum err_code renew(struct unit *u, struct key_command *c, const struct client_row *client,
                           struct key_head_row *head, struct err *err)
{
    struct api_key_row *former = c->names_key                   ? named_key(u, c, client, err)
                                 : c->who.kind == PRINCIPAL_KEY ? key_of(u, c->who.key)
                                                                : find_active(u, head, NULL);
    if (err->code != ERR_OK)
        return err->code;
    if (!former || former->expires_ms <= u->now_ms)
        return err_set(err, ERR_AUTH_KEY_CONFLICT, "the client has no active key to renew");
    struct key_power power = power_of(former);
    if (check_power(u, c, &power, err) != ERR_OK)
        return err->code;
    return replace(u, c, client, head, former, err);
}

static enum err_code revoke_one(struct unit *u, struct key_command *c, const struct client_row *client,
                                struct key_head_row *head, struct err *err)
{
    struct api_key_row *key = named_key(u, c, client, err);
    if (!key)
        return err->code;
    if (key->revoked_ms)
        return ERR_OK;
    end_key(u, key, 0);
    if (head && head->active == key->id) {
        const struct api_key_row *other = find_active(u, head, NULL);
        head->active = other ? other->id : 0;
        if (!head->listed.len) /* a row from before there were lists goes on naming it */
            head->listed = key_list_text(&(struct key_list){.ids = {key->id}, .count = 1}, u->arena);
        unit_update(u, &table_key_head_row, head);
    }
    return ERR_OK;
}

static enum err_code decide_key(struct unit *u, struct command *base, struct err *err)
{
    struct key_command *c = (struct key_command *)base;
    struct client_row key = client_key(c);
    const struct client_row *client = unit_row(u, &table_client_row, &key);
    enum client_state state = client ? client_state_of(u, client->num) : CLIENT_DELETED;
    if (state == CLIENT_DELETED)
        return err_set(err, ERR_CLIENT_NOT_FOUND, "no client has this id");
    if (state == CLIENT_SUSPENDED && c->who.kind != PRINCIPAL_OPERATOR)
        return err_set(err, ERR_AUTH_CLIENT_SUSPENDED, "an operator has suspended this client");
    struct key_head_row *head =
        unit_row(u, &table_key_head_row, &(struct key_head_row){.client = client->num});
    if (check_allowed(u, c, client, head, err) != ERR_OK)
        return err->code;
    switch (c->action) {
    case KEY_CREATE:
        return create(u, c, client, head, err);
    case KEY_RENEW:
        return renew(u, c, client, head, err);
    case KEY_REVOKE:
        return revoke_one(u, c, client, head, err);
    }
    return ERR_OK;
}

const struct command_type key_command_type = {"key", load_key, decide_key,
                                              COMMAND_ANSWER(struct key_command, created_ms)};
