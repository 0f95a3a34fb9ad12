#include "jobs/inbox.h"

#include "base/json_members.h"
#include "base/must.h"
#include "base/time_text.h"
#include "jobs/job_commands.h"

#include "base/banned.h"

/* A row on its way to be a job. */
struct candidate {
    struct inbox_row key;
    const struct inbox_row *row; /* NULL: somebody was faster */
    struct submit_command command;
    struct submit_item item; /* the job's row will borrow from it */
    struct err err;          /* code ERR_OK: nothing speaks against it so far */
};

struct candidates {
    struct candidate *list; /* of the batch's arena */
    int64_t *ids;
    size_t count, bytes;
};

/* --- which rows wait --------------------------------------------------------------------------------- */

/* In key order: those that failed stand behind all that wait. */
static bool note_row(const void *row, void *arg)
{
    struct candidates *c = arg;
    const struct inbox_row *r = row;
    if (r->failed_ms)
        return false;
    c->ids[c->count++] = r->id;
    c->bytes += r->payload.len;
    return c->count < INBOX_ROWS_A_TURN && c->bytes < INBOX_BYTES_A_TURN;
}

static bool find_rows(struct unit *u, struct candidates *c)
{
    struct err err;
    c->ids = ARENA_ROOM(u->arena, int64_t, INBOX_ROWS_A_TURN);
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_scan(u->reader, &table_inbox_row, note_row, c, &err);
    u->reader->ops->reader_end(u->reader);
    if (code != ERR_OK || !c->count)
        return false;
    c->list = ARENA_ARRAY(u->arena, struct candidate, c->count);
    for (size_t i = 0; i < c->count; i++)
        c->list[i].key.id = c->ids[i];
    return true;
}

/* --- a row as a submit -------------------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, struct str text)
{
    if (!text.ptr)
        return;
    encode_str(w, key, text);
}

static void put_number(struct json_writer *w, const char *key, int64_t number)
{
    if (number < 0)
        return;
    encode_int(w, key, number);
}

static struct str time_of(struct unit *u, int64_t ms)
{
    return ms ? time_text_ms(ms, arena_alloc(u->arena, TIME_TEXT_MAX)) : STR_ABSENT;
}

/* The body that would have been sent over HTTP, for its fingerprint: with the time as it was asked for. */
static void fingerprint(const struct inbox *in, struct unit *u, const struct inbox_row *r,
                        struct submit_item *item)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    struct err err;
    const struct json *body;
    jw_start(&w, &text);
    jw_object(&w);
    put_text(&w, "type", item->type);
    put_text(&w, "kind", item->kind);
    put_text(&w, "work_kind", item->work_kind);
    put_text(&w, "retry", item->retry);
    put_text(&w, "execution_at", time_of(u, r->execution_ms));
    put_text(&w, "callback", item->callback);
    put_text(&w, "queue", item->queue);
    put_number(&w, "priority", item->has_priority ? item->priority : -1);
    put_number(&w, "max_runtime_ms", item->has_max_runtime ? item->max_runtime_ms : -1);
    put_number(&w, "max_retries", item->has_max_retries ? item->max_retries : -1);
    if (item->payload.ptr) {
        jw_key(&w, "payload");
        jw_raw(&w, item->payload);
    }
    jw_object_end(&w);
    MUST(json_parse(u->arena, strbuf_str(&text), &body, &err) == ERR_OK);
    in->fingerprint(body, item->fingerprint);
}

/* What the contract's schema checks of a request. */
static enum err_code check_shape(struct unit *u, const struct inbox_row *r, struct err *err)
{
    const struct json *payload = NULL;
    struct err fault;
    if (r->payload.ptr && (int64_t)r->payload.len > u->settings->body_max_bytes)
        return err_set(err, ERR_REQUEST_PAYLOAD_TOO_LARGE, "payload is %zu bytes", r->payload.len);
    if (r->payload.ptr && json_parse(u->arena, r->payload, &payload, &fault) != ERR_OK)
        return err_set(err, ERR_REQUEST_MALFORMED, "payload: %.200s", fault.detail);
    if (payload && payload->type != JSON_OBJECT)
        return err_set(err, ERR_REQUEST_MALFORMED, "payload must be an object");
    if (r->idempotency_key.ptr && (!r->idempotency_key.len || r->idempotency_key.len > INBOX_KEY_BYTES_MAX))
        return err_set(err, ERR_REQUEST_MALFORMED, "idempotency_key must have 1 to %d bytes",
                       INBOX_KEY_BYTES_MAX);
    const struct str texts[] = {r->type,  r->kind,     r->work_kind,      r->retry,
                                r->queue, r->callback, r->idempotency_key};
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        if (!str_is_utf8(texts[i]))
            return err_set(err, ERR_REQUEST_MALFORMED, "texts must be UTF-8");
    return ERR_OK;
}

/* A time that was to come when the row was written and has come since is now, not an error. */
static struct str execution_at(struct unit *u, const struct inbox_row *r)
{
    bool came = r->execution_ms > r->created_ms && r->execution_ms <= u->now_ms;
    return time_of(u, came ? u->now_ms + 1 : r->execution_ms);
}

static struct submit_item item_of(struct unit *u, const struct inbox_row *r)
{
    return (struct submit_item){.type = r->type.ptr       ? r->type
                                        : r->execution_ms ? STR("DEFERRED")
                                                          : STR("EXECUTE"),
                                .kind = r->kind,
                                .work_kind = r->work_kind,
                                .retry = r->retry,
                                .execution_at = execution_at(u, r),
                                .callback = r->callback,
                                .queue = r->queue,
                                .priority = r->priority,
                                .max_runtime_ms = r->max_runtime_ms,
                                .max_retries = r->max_retries,
                                .has_priority = r->priority != -1,
                                .has_max_runtime = r->max_runtime_ms != -1,
                                .has_max_retries = r->max_retries != -1,
                                .payload = r->payload,
                                .idem_key = r->idempotency_key};
}

/* --- what the batch has to know ------------------------------------------------------------------------ */

/* Afterwards it is a command like one that came over HTTP. */
static void make_command(const struct inbox *in, struct unit *u, struct candidate *c,
                         const struct client_row *client)
{
    if (check_shape(u, c->row, &c->err) != ERR_OK)
        return;
    c->item = item_of(u, c->row);
    if (c->item.idem_key.ptr)
        fingerprint(in, u, c->row, &c->item);
    c->command = (struct submit_command){.client = client->num, .items = &c->item, .item_count = 1};
}

static void load_client(const struct inbox *in, struct unit *u, struct candidate *c)
{
    struct uuid id;
    if (!uuid_parse(c->row->client, &id)) {
        err_set(&c->err, ERR_CLIENT_NOT_FOUND, "client is no client_id");
        return;
    }
    struct client_row key = {.uuid = {arena_copy(u->arena, id.bytes, sizeof id.bytes), sizeof id.bytes}};
    const struct client_row *client = unit_prefetch(u, &table_client_row, &key);
    if (client)
        make_command(in, u, c, client);
}

static void load_one(const struct inbox *in, struct unit *u, struct candidate *c)
{
    c->row = unit_prefetch(u, &table_inbox_row, &c->key);
    if (c->row && c->err.code == ERR_OK && !c->command.item_count)
        load_client(in, u, c);
    if (c->command.item_count)
        submit_command_type.load(u, &c->command.base);
}

/* One round trip for all of them at each step, where the store is a shared one. */
static bool load(const struct inbox *in, struct unit *u, const struct candidates *all)
{
    do {
        for (size_t i = 0; i < all->count && u->load_err.code == ERR_OK; i++)
            load_one(in, u, &all->list[i]);
    } while (unit_load(u));
    return u->load_err.code == ERR_OK;
}

/* --- what becomes of it ------------------------------------------------------------------------------- */

static bool is_full(enum err_code code)
{
    return code == ERR_REQUEST_RATE_LIMITED || code == ERR_EXEC_QUEUE_FULL;
}

/* Its key changes, so that those that wait stay together. */
static void put_aside(struct unit *u, const struct inbox_row *r, const struct err *why)
{
    struct inbox_row *failed = ARENA_NEW(u->arena, struct inbox_row);
    *failed = *r;
    failed->failed_ms = u->now_ms;
    failed->error = arena_printf(u->arena, "%s: %s", err_wire(why->code), why->detail);
    unit_delete(u, &table_inbox_row, r);
    unit_insert(u, &table_inbox_row, failed);
}

/* False: no more rows this time. */
static bool decide(struct inbox *in, struct unit *u, struct candidate *c, int64_t nth)
{
    if (!c->row)
        return true;
    if (c->err.code == ERR_OK && !c->command.item_count)
        err_set(&c->err, ERR_CLIENT_NOT_FOUND, "no client has the id %.36s", c->row->client.ptr);
    if (c->err.code == ERR_OK) {
        c->command.base.received_us = u->now_us + nth * 1000; /* the seed of a drawn kind: each its own */
        if (submit_command_type.decide(u, &c->command.base, &c->err) == ERR_OK)
            c->err = c->item.err;
    }
    if (is_full(c->err.code))
        return false;
    if (c->err.code == ERR_OK) {
        unit_delete(u, &table_inbox_row, c->row);
        in->taken++;
    } else {
        put_aside(u, c->row, &c->err);
        in->refused++;
    }
    return true;
}

bool inbox_drain(struct inbox *in, struct unit *u)
{
    struct candidates all = {.count = 0};
    bool found = find_rows(u, &all);
    in->found = (uint32_t)all.count;
    if (!found || !load(in, u, &all))
        return false;
    for (size_t i = 0; i < all.count; i++)
        if (!decide(in, u, &all.list[i], (int64_t)i))
            return false;
    return all.count == INBOX_ROWS_A_TURN || all.bytes >= INBOX_BYTES_A_TURN;
}
