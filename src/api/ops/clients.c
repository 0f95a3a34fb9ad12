/* GET /ops/v1/clients, and what an operator does to one of them. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "api/ops/operators.h"
#include "base/log.h"
#include "jobs/operator_commands.h"

#include "base/banned.h"

enum { CLIENTS_LOOK_MAX = 2000, NUMBERS_A_READ = 64 };

/* --- who is asked about -------------------------------------------------------------------------- */

enum err_code encode_client_id(struct json_writer *w, struct reader *r, struct arena *a, int64_t client,
                               struct err *err)
{
    struct client_number_row row = {.num = client};
    bool found = false;
    for (row.keyless = 0; row.keyless <= 1 && !found; row.keyless++)
        if (r->ops->reader_row(r, &table_client_number_row, &row, a, &found, err) != ERR_OK)
            return err->code;
    char text[UUID_TEXT_LEN + 1];
    struct uuid id;
    found = found && row.uuid.len == sizeof id.bytes;
    if (found) {
        memcpy(id.bytes, row.uuid.ptr, sizeof id.bytes);
        uuid_text(&id, text);
    }
    encode_text(w, "client_id", found ? text : NULL);
    return ERR_OK;
}

bool call_query_client(struct call *c, struct reader *r, int64_t *ret_client)
{
    struct str text;
    struct uuid id;
    struct err err;
    bool found = false;
    *ret_client = 0;
    if (http_query(c->x, "client_id", &text, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!text.ptr)
        return true;
    if (!uuid_parse(text, &id)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "client_id is not a UUID");
        return false;
    }
    struct client_row row = {.uuid = {(const char *)id.bytes, sizeof id.bytes}};
    if (r->ops->reader_row(r, &table_client_row, &row, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!found)
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
    *ret_client = row.num;
    return found;
}

/* --- the list ------------------------------------------------------------------------------------ */

struct client_page {
    struct call *c;
    struct reader *r;
    struct json_writer w;
    struct client_number_row at; /* the next one to look at */
    int64_t limit, shown, looked;
    bool has_state, full;
    enum client_state state;
    struct err err;
};

struct usable_keys {
    int64_t now_ms, count, used_ms;
};

static bool count_key(const void *row, void *arg)
{
    struct usable_keys *k = arg;
    const struct api_key_row *key = row;
    k->count +=
        !key->revoked_ms && (!key->ends_ms || key->ends_ms > k->now_ms) && key->expires_ms > k->now_ms;
    k->used_ms = key->used_ms > k->used_ms ? key->used_ms : k->used_ms;
    return true;
}

struct client_facts {
    struct client_row client;
    struct client_state_row state;
    struct client_counts counts;
    int64_t keys, seen_ms;
    bool is_there;
};

static enum err_code read_facts(struct client_page *p, const struct client_number_row *number,
                                struct client_facts *f)
{
    struct reader *r = p->r;
    struct arena *a = p->c->x->arena;
    struct stats_row stats = {.client = number->num};
    struct usable_keys keys = {.now_ms = p->c->x->received_us / 1000};
    bool found, counted = false;
    *f = (struct client_facts){.client.uuid = arena_str(a, number->uuid), .state.client = number->num};
    if (r->ops->reader_row(r, &table_client_row, &f->client, a, &f->is_there, &p->err) != ERR_OK ||
        r->ops->reader_row(r, &table_client_state_row, &f->state, a, &found, &p->err) != ERR_OK)
        return p->err.code;
    if (!found)
        f->state.state = CLIENT_ACTIVE;
    if (p->has_state && f->state.state != (int64_t)p->state)
        return ERR_OK;
    if (r->ops->reader_row(r, &table_stats_row, &stats, a, &counted, &p->err) != ERR_OK ||
        r->ops->reader_of_client(r, &table_api_key_row, number->num, count_key, &keys, &p->err) != ERR_OK)
        return p->err.code;
    f->keys = keys.count;
    f->seen_ms = keys.used_ms;
    counts_from_bytes(&f->counts, counted ? stats.counts : STR(""));
    return ERR_OK;
}

static void encode_client(struct json_writer *w, const struct client_facts *f)
{
    struct uuid id = {{0}};
    char text[UUID_TEXT_LEN + 1];
    if (f->client.uuid.len == sizeof id.bytes)
        memcpy(id.bytes, f->client.uuid.ptr, sizeof id.bytes);
    uuid_text(&id, text);
    jw_object(w);
    encode_text(w, "client_id", text);
    encode_text(w, "state", client_state_text((enum client_state)f->state.state));
    encode_time_ms(w, "created_at", f->client.created_ms);
    encode_time_ms(w, "changed_at", f->state.changed_ms);
    encode_time_ms(w, "last_seen_at", f->seen_ms);
    encode_int(w, "keys", f->keys);
    encode_int(w, "active_jobs", counts_unfinished(&f->counts));
    encode_int(w, "queued_jobs", f->counts.by_state[JOB_QUEUED]);
    jw_object_end(w);
}

static bool show_client(const void *row, void *arg)
{
    struct client_page *p = arg;
    struct client_facts f;
    p->at = *(const struct client_number_row *)row;
    if (p->shown == p->limit || p->looked++ == CLIENTS_LOOK_MAX) {
        p->full = true;
        return false;
    }
    if (read_facts(p, row, &f) != ERR_OK)
        return false;
    if (f.is_there && (!p->has_state || f.state.state == (int64_t)p->state)) {
        encode_client(&p->w, &f);
        p->shown++;
    }
    p->at.num++;
    return true;
}

/* In the order of their creation: first those that have had a key. */
static enum err_code show_all(struct client_page *p)
{
    for (; p->at.keyless <= 1; p->at = (struct client_number_row){.keyless = p->at.keyless + 1}) {
        int64_t before;
        do {
            struct client_number_row from = p->at;
            before = p->looked;
            if (p->r->ops->reader_range(p->r, &table_client_number_row, &from, NUMBERS_A_READ, show_client, p,
                                        &p->err) != ERR_OK ||
                p->err.code != ERR_OK)
                return p->err.code;
        } while (!p->full && p->looked - before == NUMBERS_A_READ);
        if (p->full)
            return ERR_OK;
    }
    return ERR_OK;
}

/* "0-17": go on with number 17 among those that have had a key. */
static bool parse_cursor(struct str text, struct client_number_row *ret)
{
    struct str rest = text;
    struct str keyless = str_cut(&rest, '-');
    return str_to_int(keyless, 0, 1, &ret->keyless) && str_to_int(rest, 0, INT64_MAX, &ret->num);
}

/* False: answered. */
static bool read_query(struct call *c, struct client_page *p)
{
    struct str cursor, state;
    if (!call_limit(c, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, &p->limit))
        return false;
    if (http_query(c->x, "cursor", &cursor, &p->err) != ERR_OK ||
        http_query(c->x, "state", &state, &p->err) != ERR_OK) {
        call_problem(c, &p->err);
        return false;
    }
    p->has_state = state.ptr != NULL;
    if (p->has_state && !client_state_parse(state, &p->state)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "state is active, suspended or deleted");
        return false;
    }
    if (cursor.ptr && !parse_cursor(cursor, &p->at)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "cursor is not one that a page gave");
        return false;
    }
    return true;
}

void handle_list_clients(struct call *c)
{
    struct client_page p = {.c = c};
    if (!read_query(c, &p))
        return;
    p.r = api_read_begin(c->api, &p.err);
    if (!p.r) {
        call_problem(c, &p.err);
        return;
    }
    call_json(c, 200, &p.w);
    jw_object(&p.w);
    jw_key(&p.w, "items");
    jw_array(&p.w);
    if (show_all(&p) != ERR_OK) {
        call_problem(c, &p.err);
        return;
    }
    jw_array_end(&p.w);
    jw_key(&p.w, "next_cursor");
    jw_str(&p.w, p.full ? arena_printf(c->x->arena, "%lld-%lld", (long long)p.at.keyless, (long long)p.at.num)
                        : STR_ABSENT);
    jw_object_end(&p.w);
    call_send(c);
}

/* --- one of them --------------------------------------------------------------------------------- */

static void acted(struct call *c)
{
    const struct operator_command *command = (const struct operator_command *)c->command;
    struct json_writer w;
    char id[UUID_TEXT_LEN + 1];
    uuid_text(&command->client_id, id);
    if (command->moved || command->changed)
        log_line(LOG_WARN, "operator_action", "action", LOG_TEXT(operator_action_text(command->action)),
                 "client_id", LOG_TEXT(id), "actor", LOG_STR(command->actor), "state",
                 LOG_TEXT(client_state_text(command->state)), "changed", LOG_INT(command->changed), NULL);
    call_json(c, 200, &w);
    jw_object(&w);
    encode_text(&w, "client_id", id);
    encode_text(&w, "state", client_state_text(command->state));
    if (command->action == OPERATOR_PURGE_JOBS) {
        encode_int(&w, "canceled", command->changed);
        encode_bool(&w, "more", command->id_count == OPERATOR_IDS_MAX);
    }
    jw_object_end(&w);
    call_send(c);
}

struct key_ids {
    int64_t *ids;
    size_t count;
};

static bool note_key(const void *row, void *arg)
{
    struct key_ids *k = arg;
    k->ids[k->count++] = ((const struct api_key_row *)row)->id;
    return k->count < OPERATOR_IDS_MAX;
}

/* What the command is about besides the client: its unfinished jobs, or its keys. */
static enum err_code read_ids(struct call *c, struct operator_command *command, struct err *err)
{
    struct client_row client = {
        .uuid = {(const char *)command->client_id.bytes, sizeof command->client_id.bytes}};
    bool found = false;
    struct reader *r = api_read_begin(c->api, err);
    if (!r || r->ops->reader_row(r, &table_client_row, &client, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    if (!found)
        return ERR_OK; /* the decider says so */
    struct key_ids k = {.ids = ARENA_ARRAY(c->x->arena, int64_t, OPERATOR_IDS_MAX)};
    command->ids = k.ids;
    struct list_query q = {.owner_key = client.num, .below_id = INT64_MAX, .limit = OPERATOR_IDS_MAX};
    if (command->action == OPERATOR_PURGE_JOBS)
        return r->ops->reader_live(r, &q, -1, k.ids, &command->id_count, err);
    enum err_code code = r->ops->reader_of_client(r, &table_api_key_row, client.num, note_key, &k, err);
    command->id_count = k.count;
    return code;
}

static void act(struct call *c, enum operator_action action)
{
    struct operator_command *command = ARENA_NEW(c->x->arena, struct operator_command);
    struct err err = {.code = ERR_OK};
    command->action = action;
    command->actor = call_actor(c);
    if (!call_uuid_param(c, "client_id", &command->client_id)) {
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
        return;
    }
    bool reads = action == OPERATOR_PURGE_JOBS || action == OPERATOR_DELETE;
    if (reads && read_ids(c, command, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    command->base.weight = (int64_t)command->id_count;
    call_post(c, &command->base, &operator_command_type, 0, acted);
}

void handle_suspend_client(struct call *c)
{
    act(c, OPERATOR_SUSPEND);
}
void handle_resume_client(struct call *c)
{
    act(c, OPERATOR_RESUME);
}
void handle_purge_jobs_of_client(struct call *c)
{
    act(c, OPERATOR_PURGE_JOBS);
}
void handle_delete_client(struct call *c)
{
    act(c, OPERATOR_DELETE);
}
