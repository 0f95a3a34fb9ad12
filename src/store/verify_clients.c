/* Clients and what belongs to them: secrets, API keys, webhooks. */
#include "base/hash.h"
#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/key_list.h"
#include "store/row_rules.h"
#include "store/verify_jobs.h"

#include "base/banned.h"

/* An API key or a webhook that another row names. */
struct checked_named {
    struct map_node node;
    int64_t id, client;
    bool usable;  /* a key that was not revoked */
    bool listed;  /* a key that its client's row lists */
    bool guarded; /* a webhook whose url and events are taken */
};

struct client_pass {
    struct verify *v;
    struct map keys, webhooks;
};

static struct checked_named *find_named(const struct map *m, int64_t id)
{
    for (struct map_node *n = map_first(m, hash_mix((uint64_t)id)); n; n = map_next(n)) {
        struct checked_named *x = CONTAINER_OF(n, struct checked_named, node);
        if (x->id == id)
            return x;
    }
    return NULL;
}

static struct checked_named *add_named(struct client_pass *p, struct map *m, int64_t id, int64_t client)
{
    struct checked_named *x = ARENA_NEW(p->v->arena, struct checked_named);
    x->id = id;
    x->client = client;
    map_put(m, &x->node, hash_mix((uint64_t)id));
    return x;
}

static bool note_client(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct client_row *r = row;
    verify_seen(v);
    v->result->clients++;
    struct checked_client *c = verify_client(v, r->num);
    if (r->uuid.len != sizeof c->uuid || r->num < 1)
        verify_say(v, "client %lld: its id is not one", (long long)r->num);
    else
        memcpy(c->uuid, r->uuid.ptr, sizeof c->uuid);
    if (c->has_row)
        verify_say(v, "client %lld: two clients have this number", (long long)r->num);
    c->has_row = true;
    return true;
}

static bool note_state(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct client_state_row *r = row;
    struct checked_client *c = verify_client(v, r->client);
    verify_seen(v);
    if (!c->has_row || r->state < 0 || r->state >= CLIENT_STATE_COUNT)
        verify_say(v, "client %lld: has a state but %s", (long long)r->client,
                   c->has_row ? "it is none" : "does not exist");
    c->is_deleted = r->state == CLIENT_DELETED;
    return true;
}

static bool note_queue(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct queue_row *r = row;
    verify_seen(v);
    if (!verify_client(v, r->client)->has_row)
        verify_say(v, "client %lld: has settings of a queue but does not exist", (long long)r->client);
    const char *broken = queue_broken_rule(r);
    if (broken)
        verify_say(v, "client %lld: settings of its queue %.*s break a rule: %s", (long long)r->client,
                   STR_ARG(r->queue), broken);
    return true;
}

static bool note_flow(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct queue_flow_row *r = row;
    verify_seen(v);
    if (!r->queue.len || r->slot < 0 || !r->counts.ptr)
        verify_say(v, "client %lld: the flow of a queue is damaged", (long long)r->client);
    return true;
}

static bool note_number(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct client_number_row *r = row;
    struct checked_client *c = verify_client(v, r->num);
    struct str uuid = {(const char *)c->uuid, sizeof c->uuid};
    verify_seen(v);
    c->numbers = c->numbers ? 2 : 1;
    if (!c->has_row || !str_equal(uuid, r->uuid) || (r->keyless != 0 && r->keyless != 1))
        verify_say(v, "client %lld: its number leads to another client or to none", (long long)r->num);
    return true;
}

static bool note_action(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct operator_action_row *r = row;
    verify_seen(v);
    if (r->part || r->back >= 0 || r->client.len != 16 || !r->actor.ptr || r->action < 0 ||
        r->action >= OPERATOR_ACTION_COUNT)
        verify_say(v, "operator action %lld: is damaged", (long long)-r->back);
    return true;
}

static void check_number(struct map_node *n, void *arg)
{
    const struct checked_client *c = CONTAINER_OF(n, struct checked_client, node);
    if (c->has_row && c->numbers != 1)
        verify_say(arg, "client %lld: %s by its number", (long long)c->num,
                   c->numbers ? "is found twice" : "is not found");
}

static bool note_secret(const void *row, void *arg)
{
    struct verify *v = ((struct client_pass *)arg)->v;
    const struct client_secret_row *r = row;
    struct checked_client *c = verify_client(v, r->client);
    verify_seen(v);
    c->has_secret = true;
    if (!c->has_row || !r->secret.len)
        verify_say(v, "client %lld: has a secret row but %s", (long long)r->client,
                   c->has_row ? "no secret in it" : "does not exist");
    return true;
}

static bool note_key(const void *row, void *arg)
{
    struct client_pass *p = arg;
    const struct api_key_row *r = row;
    const struct checked_client *c = verify_client(p->v, r->client);
    verify_seen(p->v);
    add_named(p, &p->keys, r->id, r->client)->usable = !r->revoked_ms && !r->ends_ms;
    struct str uuid = {(const char *)c->uuid, sizeof c->uuid};
    if (!c->has_row || !str_equal(uuid, r->client_uuid))
        verify_say(p->v, "API key %lld: its client does not exist or is another one", (long long)r->id);
    const char *broken = api_key_broken_rule(r);
    if (broken)
        verify_say(p->v, "API key %lld: the rule is broken that %s", (long long)r->id, broken);
    return true;
}

static bool note_head(const void *row, void *arg)
{
    struct client_pass *p = arg;
    const struct key_head_row *r = row;
    verify_seen(p->v);
    const struct checked_named *key = find_named(&p->keys, r->active);
    if (r->active && (!key || key->client != r->client || !key->usable))
        verify_say(p->v, "client %lld: its active key is revoked, missing or another client's",
                   (long long)r->client);
    if (r->listed.len % sizeof(int64_t) || r->listed.len > KEYS_LISTED_MAX * sizeof(int64_t))
        verify_say(p->v, "client %lld: its list of keys is none", (long long)r->client);
    struct key_list list = key_list_read(r->listed, r->active);
    bool has_active = !r->active;
    for (size_t i = 0; i < list.count; i++) {
        struct checked_named *listed = find_named(&p->keys, list.ids[i]);
        has_active |= list.ids[i] == r->active;
        if (!listed || listed->client != r->client || listed->listed)
            verify_say(p->v, "client %lld: lists a key twice, or one that is missing or another client's",
                       (long long)r->client);
        else
            listed->listed = true;
    }
    if (!has_active)
        verify_say(p->v, "client %lld: its active key is not in its list", (long long)r->client);
    return true;
}

static bool note_webhook(const void *row, void *arg)
{
    struct client_pass *p = arg;
    const struct webhook_row *r = row;
    verify_seen(p->v);
    add_named(p, &p->webhooks, r->id, r->client);
    if (r->disabled_why < 0 || r->disabled_why >= WEBHOOK_FAULT_COUNT)
        verify_say(p->v, "webhook %lld: the reason why it was disabled is none", (long long)r->id);
    if (!verify_client(p->v, r->client)->has_row)
        verify_say(p->v, "webhook %lld: its client does not exist", (long long)r->id);
    return true;
}

static bool note_guard(const void *row, void *arg)
{
    struct client_pass *p = arg;
    const struct webhook_key_row *r = row;
    verify_seen(p->v);
    struct checked_named *hook = find_named(&p->webhooks, r->webhook);
    if (!hook || hook->client != r->client || hook->guarded)
        verify_say(p->v, "webhook %lld: its guard row stands for no webhook of its own",
                   (long long)r->webhook);
    else
        hook->guarded = true;
    return true;
}

static bool note_request_day(const void *row, void *arg)
{
    struct client_pass *p = arg;
    const struct request_day_row *r = row;
    verify_seen(p->v);
    if (!verify_client(p->v, r->client)->has_row || r->requests < 0)
        verify_say(p->v, "client %lld: does not exist and has made %lld requests", (long long)r->client,
                   (long long)r->requests);
    return true;
}

static void check_guarded(struct map_node *n, void *arg)
{
    const struct checked_named *hook = CONTAINER_OF(n, struct checked_named, node);
    if (!hook->guarded)
        verify_say(arg, "webhook %lld: has no guard row", (long long)hook->id);
}

enum err_code verify_clients(struct verify *v, struct err *err)
{
    const struct {
        const struct table *table;
        store_row_fn *note;
    } scans[] = {{&table_client_row, note_client},        {&table_client_state_row, note_state},
                 {&table_client_number_row, note_number}, {&table_operator_action_row, note_action},
                 {&table_client_secret_row, note_secret}, {&table_api_key_row, note_key},
                 {&table_key_head_row, note_head},        {&table_webhook_row, note_webhook},
                 {&table_webhook_key_row, note_guard},    {&table_request_day_row, note_request_day},
                 {&table_queue_row, note_queue},          {&table_queue_flow_row, note_flow}};
    struct client_pass p = {.v = v};
    enum err_code code = ERR_OK;
    for (size_t i = 0; code == ERR_OK && i < sizeof scans / sizeof *scans; i++)
        code = verify_scan(v, scans[i].table, scans[i].note, &p, err);
    if (code == ERR_OK) {
        map_each(&p.webhooks, check_guarded, v);
        map_each(&job_check(v)->clients, check_number, v);
    }
    map_free(&p.keys);
    map_free(&p.webhooks);
    return code;
}
