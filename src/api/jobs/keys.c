/* API keys of a client: create, list, renew, revoke. Secrets are shown where they are made, never again. */
#include "api/handlers.h"
#include "api/jobs/job_calls.h"
#include "api/jobs/encode.h"
#include "jobs/submit_values.h"
#include "lifecycle/key_list.h"

#include "base/banned.h"

static void encode_key(struct call *c, int status)
{
    const struct key_command *command = (const struct key_command *)c->command;
    struct json_writer w;
    char text[API_KEY_TEXT_MAX];
    call_mark_replay(c, command->replayed);
    call_trace_id(c, "weir.key_id", command->key_id, command->key_low);
    call_object(c, status, &w);
    jw_key(&w, "api_key"); /* only a hash is stored: shown once, null ever after */
    jw_str(&w, command->fresh ? auth_key_text(c->data, command->key_id, text) : STR_ABSENT);
    encode_uuid_v7(&w, "key_id", command->key_id, command->key_low);
    encode_time_ms(&w, "created_at", command->created_ms);
    encode_time_ms(&w, "expires_at", command->expires_ms);
    call_send_object(c, &w);
}

static void key_created(struct call *c)
{
    encode_key(c, 201);
}
static void key_renewed(struct call *c)
{
    encode_key(c, 200);
}

static void key_revoked(struct call *c)
{
    call_say(c, "revoked");
}

/* The command of the path's client; NULL: answered. */
static struct key_command *key_command(struct call *c, enum key_action action)
{
    struct key_command *command = ARENA_NEW(c->x->arena, struct key_command);
    command->action = action;
    command->who = c->who;
    return call_client_param(c, &command->client_id) ? command : NULL;
}

static void add_new_key(struct call *c, struct key_command *command)
{
    struct new_key *key = ARENA_NEW(c->x->arena, struct new_key);
    auth_make_key(key);
    memcpy(command->new_hash, key->hash, sizeof command->new_hash);
    c->data = key;
}

/* --- what is asked of a new key: the contract has checked shapes and sizes --------------------------- */

static bool read_queues(struct call *c, const struct json *list, struct key_wish *wish)
{
    struct str *names = ARENA_ARRAY(c->x->arena, struct str, list->count + 1);
    size_t count = 0;
    for (const struct json *j = list->child; j; j = j->next) {
        if (!queue_name_is_valid(j->text)) {
            call_fail(c, ERR_REQUEST_MALFORMED, "queues: each must match [a-z0-9][a-z0-9_.-]{0,63}");
            return false;
        }
        names[count++] = j->text;
    }
    wish->power.queues = key_queues_of(c->x->arena, names, count);
    wish->has_queues = true;
    return true;
}

/* People read it in tables: no control characters. */
static bool read_name(struct call *c, struct str name, struct key_wish *wish)
{
    bool sound = name.len && name.len <= KEY_NAME_BYTES_MAX;
    for (size_t i = 0; sound && i < name.len; i++)
        sound = (unsigned char)name.ptr[i] >= 0x20 && name.ptr[i] != 0x7f;
    wish->name = name;
    wish->has_name = true;
    if (!sound)
        call_fail(c, ERR_REQUEST_MALFORMED, "name must have 1 to %d bytes and no control characters",
                  KEY_NAME_BYTES_MAX);
    return sound;
}

/* False: answered. */
static bool read_wish(struct call *c, struct key_wish *wish)
{
    const struct json *name = json_get(c->body, "name"), *scopes = json_get(c->body, "scopes"),
                      *queues = json_get(c->body, "queues"), *life = json_get(c->body, "expires_in_seconds");
    enum key_scope scope;
    if (name && !read_name(c, name->text, wish))
        return false;
    for (const struct json *j = scopes ? scopes->child : NULL; j; j = j->next)
        if (key_scope_parse(j->text, &scope))
            wish->power.scopes |= 1u << scope;
    wish->has_scopes = scopes != NULL;
    if (life && !json_to_int(life, &wish->life_seconds))
        wish->life_seconds = INT64_MAX; /* the decider names the limit */
    return !queues || read_queues(c, queues, wish);
}

void handle_create_key(struct call *c)
{
    struct key_command *command = key_command(c, KEY_CREATE);
    if (!command || !call_create_once(c, &command->once) || !read_wish(c, &command->wish))
        return;
    const struct json *rotate = json_get(c->body, "rotate");
    command->rotate = rotate && rotate->type == JSON_TRUE;
    add_new_key(c, command);
    call_post(c, &command->base, &key_command_type, 0, key_created);
}

/* An id that is none is 0: no key has it, which the decider says after it has checked the caller. */
static void read_key_id(struct call *c, const struct json *text, int64_t *ret_id, uint64_t *ret_low)
{
    struct uuid id;
    *ret_id = 0;
    *ret_low = 0;
    if (!uuid_parse(text->text, &id) || !uuid_split_v7(&id, ret_id, ret_low)) {
        *ret_id = 0;
        *ret_low = 0;
        return;
    }
    call_trace_id(c, "weir.key_id", *ret_id, *ret_low);
}

void handle_renew_key(struct call *c)
{
    struct key_command *command = call_needs_caller(c) ? key_command(c, KEY_RENEW) : NULL;
    if (!command || !read_wish(c, &command->wish))
        return;
    const struct json *key_id = json_get(c->body, "key_id");
    command->names_key = key_id != NULL;
    if (key_id)
        read_key_id(c, key_id, &command->named_id, &command->named_low);
    add_new_key(c, command);
    call_post(c, &command->base, &key_command_type, 0, key_renewed);
}

void handle_revoke_key(struct call *c)
{
    struct key_command *command = call_needs_caller(c) ? key_command(c, KEY_REVOKE) : NULL;
    if (!command)
        return;
    read_key_id(c, json_get(c->body, "key_id"), &command->key_id, &command->key_low);
    call_post(c, &command->base, &key_command_type, 0, key_revoked);
}

/* --- list ------------------------------------------------------------------------------------------ */

static const char *state_of(const struct api_key_row *key, int64_t now_ms)
{
    if (key->revoked_ms || (key->ends_ms && key->ends_ms <= now_ms))
        return "revoked";
    if (key->expires_ms <= now_ms)
        return "expired";
    return key->ends_ms ? "replaced" : "active";
}

static void put_scopes(struct json_writer *w, unsigned scopes)
{
    jw_array(w);
    for (int s = 0; s < KEY_SCOPE_COUNT; s++)
        if (scopes & 1u << s)
            jw_text(w, key_scope_text((enum key_scope)s));
    jw_array_end(w);
}

static void encode_listed(struct json_writer *w, const struct api_key_row *key, int64_t now_ms)
{
    jw_object(w);
    KEY_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

/* The keys of a client, newest first; the list of the row bounds them (lifecycle/key_list.h). */
static enum err_code read_keys(struct page *p, int64_t client, struct load_row *rows, size_t *ret_count)
{
    struct key_head_row head = {.client = client};
    bool found;
    if (page_row(p, &table_key_head_row, &head, &found) != ERR_OK)
        return p->err.code;
    struct key_list list = key_list_read(head.listed, head.active);
    *ret_count = found ? list.count : 0;
    for (size_t i = 0; i < *ret_count; i++) {
        struct api_key_row *key = ARENA_NEW(p->c->x->arena, struct api_key_row);
        key->id = list.ids[list.count - 1 - i];
        rows[i] = (struct load_row){.table = &table_api_key_row, .row = key};
    }
    return store_read_rows(p->r, rows, *ret_count, p->c->x->arena, &p->err);
}

/* The number of the path's client, if the caller may see it. False: answered. */
static bool find_client(struct call *c, int64_t *ret_num)
{
    struct uuid id = {{0}};
    struct client_row client = {.uuid = uuid_str(&id)};
    bool found;
    struct reader *r = call_client_param(c, &id) ? call_reader(c) : NULL;
    if (!r || !call_row(c, r, &table_client_row, &client, &found))
        return false;
    *ret_num = client.num;
    if (!found)
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
    else if (c->who.kind == PRINCIPAL_KEY && c->who.client != client.num)
        call_fail(c, ERR_AUTH_FORBIDDEN, "the client is another one");
    else
        return true;
    return false;
}

void handle_list_keys(struct call *c)
{
    struct page p = {.c = c};
    struct load_row rows[KEYS_LISTED_MAX];
    size_t count = 0;
    int64_t client;
    if (!find_client(c, &client) || !page_open(&p))
        return;
    if (read_keys(&p, client, rows, &count) == ERR_OK)
        for (size_t i = 0; i < count; i++)
            if (rows[i].found)
                encode_listed(&p.w, rows[i].row, c->x->received_us / 1000);
    page_close(&p, NULL, STR_ABSENT);
}
