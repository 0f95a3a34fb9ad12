/* GET /ops/v1/clients, and what an operator does to one of them. */
#include "api/handlers.h"
#include "api/ops/operators.h"
#include "api/page.h"
#include "base/log.h"
#include "base/must.h"
#include "fields/operator_fields.h"
#include "jobs/operator_commands.h"

#include "base/banned.h"

enum { NUMBERS_A_READ = 64 };

/* --- who is asked about -------------------------------------------------------------------------- */

enum err_code encode_client_id(struct json_writer *w, struct reader *r, struct arena *a, int64_t client,
                               struct err *err)
{
    struct client_number_row row = {.num = client};
    bool found = false;
    for (row.keyless = 0; row.keyless <= 1 && !found; row.keyless++)
        if (r->ops->reader_row(r, &table_client_number_row, &row, a, &found, err) != ERR_OK)
            return err->code;
    encode_uuid_bytes(w, "client_id", found ? row.uuid : STR_ABSENT);
    return ERR_OK;
}

bool call_query_client(struct call *c, struct reader *r, int64_t *ret_client)
{
    struct str text;
    struct uuid id = {{0}};
    struct client_row row = {.uuid = uuid_str(&id)};
    bool found;
    *ret_client = 0;
    if (!call_query(c, "client_id", &text))
        return false;
    if (!text.ptr)
        return true;
    if (!uuid_parse(text, &id)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "client_id is not a UUID");
        return false;
    }
    if (!call_row(c, r, &table_client_row, &row, &found))
        return false;
    if (!found)
        call_fail(c, ERR_CLIENT_NOT_FOUND, "no client has this id");
    *ret_client = row.num;
    return found;
}

/* --- the list ------------------------------------------------------------------------------------ */

struct client_list {
    struct page page;
    struct client_number_row at; /* the next one to look at */
    bool has_state;
    enum client_state state;
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

static bool is_asked_for(const struct client_list *l, const struct client_facts *f)
{
    return !l->has_state || f->state.state == (int64_t)l->state;
}

static enum err_code read_facts(struct client_list *l, const struct client_number_row *number,
                                struct client_facts *f)
{
    struct page *p = &l->page;
    struct arena *a = p->c->x->arena;
    struct stats_row stats = {.client = number->num};
    struct usable_keys keys = {.now_ms = p->c->x->received_us / 1000};
    bool found, counted;
    *f = (struct client_facts){.client.uuid = arena_str(a, number->uuid), .state.client = number->num};
    if (page_row(p, &table_client_row, &f->client, &f->is_there) != ERR_OK ||
        page_row(p, &table_client_state_row, &f->state, &found) != ERR_OK)
        return p->err.code;
    if (!found)
        f->state.state = CLIENT_ACTIVE;
    if (!is_asked_for(l, f))
        return ERR_OK;
    if (page_row(p, &table_stats_row, &stats, &counted) != ERR_OK ||
        p->r->ops->reader_of_client(p->r, &table_api_key_row, number->num, count_key, &keys, &p->err) !=
            ERR_OK)
        return p->err.code;
    f->keys = keys.count;
    f->seen_ms = keys.used_ms;
    counts_from_bytes(&f->counts, counted ? stats.counts : STR(""));
    return ERR_OK;
}

static enum err_code show_client(struct page *p, const void *row)
{
    struct client_list *l = CONTAINER_OF(p, struct client_list, page);
    struct json_writer *w = &p->w;
    struct client_facts facts, *f = &facts;
    l->at = *(const struct client_number_row *)row;
    l->at.num++;
    if (read_facts(l, row, f) != ERR_OK || !f->is_there || !is_asked_for(l, f))
        return p->err.code;
    jw_object(w);
    CLIENT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    p->given++;
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
static bool read_query(struct call *c, struct client_list *l)
{
    struct str cursor, state;
    if (!page_limit(&l->page) || !call_query(c, "cursor", &cursor) || !call_query(c, "state", &state))
        return false;
    l->has_state = state.ptr != NULL;
    if (l->has_state && !client_state_parse(state, &l->state)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "state is active, suspended or deleted");
        return false;
    }
    return !cursor.ptr || parse_cursor(cursor, &l->at) || call_bad_cursor(c);
}

/* In the order of their creation: first those that have had a key. */
void handle_list_clients(struct call *c)
{
    struct client_list l = {.page.c = c};
    struct page *p = &l.page;
    if (!read_query(c, &l) || !page_open(p))
        return;
    while (l.at.keyless <= 1 && !p->more && p->err.code == ERR_OK) {
        int64_t keyless = l.at.keyless;
        page_walk_rows(p, &table_client_number_row, &l.at, NUMBERS_A_READ, show_client);
        if (!p->more)
            l.at = (struct client_number_row){.keyless = keyless + 1};
    }
    page_close(p, "next_cursor",
               arena_printf(c->x->arena, "%lld-%lld", (long long)l.at.keyless, (long long)l.at.num));
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
    call_object(c, 200, &w);
    encode_text(&w, "client_id", id);
    encode_text(&w, "state", client_state_text(command->state));
    if (command->action == OPERATOR_PURGE_JOBS) {
        encode_int(&w, "canceled", command->changed);
        encode_bool(&w, "more", command->id_count == OPERATOR_IDS_MAX);
    }
    call_send_object(c, &w);
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
    struct client_row client = {.uuid = uuid_str(&command->client_id)};
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
    if (!call_client_param(c, &command->client_id))
        return;
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
