/* Clients that never got a key: no caller can use them, and their creators have gone. */
#include "base/must.h"
#include "jobs/client_state.h"

#include "base/banned.h"

enum { CLIENTS_A_TURN = 200 };

struct keyless {
    const struct client_number_row *rows[CLIENTS_A_TURN];
    size_t count;
};

static void note_keyless(struct unit *u, void *row, void *arg)
{
    struct keyless *k = arg;
    struct client_row key = {.uuid = ((const struct client_number_row *)row)->uuid};
    k->rows[k->count++] = row;
    unit_prefetch(u, &table_client_row, &key);
}

static struct tenant_row tenant_key(struct unit *u, const struct client_row *client)
{
    struct uuid id;
    char *text = arena_alloc(u->arena, UUID_TEXT_LEN + 1);
    memcpy(id.bytes, client->uuid.ptr, sizeof id.bytes);
    uuid_text(&id, text);
    return (struct tenant_row){.name = str_of(text)};
}

static void prefetch_rows(struct unit *u, const struct client_row *client)
{
    struct tenant_row tenant = tenant_key(u, client);
    unit_prefetch(u, &table_tenant_row, &tenant);
    unit_prefetch(u, &table_client_state_row, &(struct client_state_row){.client = client->num});
    unit_prefetch(u, &table_client_secret_row, &(struct client_secret_row){.client = client->num});
    unit_prefetch(u, &table_stats_row, &(struct stats_row){.client = client->num});
}

static void delete_if_there(struct unit *u, const struct table *t, const void *key)
{
    if (unit_row(u, t, key))
        unit_delete(u, t, key);
}

/* The client is the tenant of runs, an operator has touched it, or an application has sent jobs for it
 * (inbox.h). */
static bool is_in_use(struct unit *u, const struct client_row *client)
{
    struct tenant_row tenant = tenant_key(u, client);
    const struct stats_row *stats = unit_row(u, &table_stats_row, &(struct stats_row){.client = client->num});
    struct client_counts counts;
    int64_t jobs = 0;
    counts_from_bytes(&counts, stats ? stats->counts : STR(""));
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        jobs += counts.by_state[i];
    return jobs || unit_row(u, &table_tenant_row, &tenant) ||
           unit_row(u, &table_client_state_row, &(struct client_state_row){.client = client->num});
}

static void drop(struct unit *u, const struct client_number_row *number, const struct client_row *client)
{
    if (is_in_use(u, client)) {
        client_number_has_key(u, client);
        return;
    }
    delete_if_there(u, &table_client_secret_row, &(struct client_secret_row){.client = client->num});
    delete_if_there(u, &table_stats_row, &(struct stats_row){.client = client->num});
    unit_delete(u, &table_client_number_row, number);
    unit_delete(u, &table_client_row, client);
}

/* They stand in the order of their creation: behind the first young one all are young. */
bool drop_keyless_clients(struct unit *u)
{
    int64_t cutoff_ms = u->now_ms - u->settings->clients_keyless_ttl_seconds * 1000;
    struct keyless k = {.count = 0};
    const struct client_row *old[CLIENTS_A_TURN];
    size_t n = 0;
    unit_each_of_range(u, &table_client_number_row, &(struct client_number_row){.keyless = 1}, CLIENTS_A_TURN,
                       note_keyless, &k);
    (void)unit_load(u);
    for (; n < k.count && u->load_err.code == ERR_OK; n++) {
        struct client_row key = {.uuid = k.rows[n]->uuid};
        old[n] = unit_row(u, &table_client_row, &key);
        if (!old[n] || old[n]->uuid.len != sizeof(struct uuid) || old[n]->created_ms > cutoff_ms)
            break;
        prefetch_rows(u, old[n]);
    }
    (void)unit_load(u);
    for (size_t i = 0; i < n && u->load_err.code == ERR_OK; i++)
        drop(u, k.rows[i], old[i]);
    return n == CLIENTS_A_TURN;
}
