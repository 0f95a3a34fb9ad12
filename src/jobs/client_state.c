#include "jobs/client_state.h"

#include "jobs/job_notices.h"

#include "base/banned.h"

enum client_state client_state_of(struct unit *u, int64_t client)
{
    const struct client_state_row *row =
        unit_fetch(u, &table_client_state_row, &(struct client_state_row){.client = client});
    return row ? (enum client_state)row->state : CLIENT_ACTIVE;
}

void client_state_set(struct unit *u, int64_t client, enum client_state state)
{
    struct client_state_row *row =
        unit_fetch(u, &table_client_state_row, &(struct client_state_row){.client = client});
    bool is_new = !row;
    if (is_new)
        row = ARENA_NEW(u->arena, struct client_state_row);
    *row = (struct client_state_row){.client = client, .state = state, .changed_ms = u->now_ms};
    if (is_new)
        unit_insert(u, &table_client_state_row, row);
    else
        unit_update(u, &table_client_state_row, row);
    unit_notify(u, &key_change_notices, NULL);
}

void client_number_insert(struct unit *u, const struct client_row *client, bool keyless)
{
    struct client_number_row *row = ARENA_NEW(u->arena, struct client_number_row);
    *row = (struct client_number_row){
        .keyless = keyless, .num = client->num, .uuid = arena_str(u->arena, client->uuid)};
    unit_insert(u, &table_client_number_row, row);
}

void client_number_has_key(struct unit *u, const struct client_row *client)
{
    struct client_number_row key = {.keyless = 1, .num = client->num};
    if (!unit_fetch(u, &table_client_number_row, &key))
        return;
    unit_delete(u, &table_client_number_row, &key);
    client_number_insert(u, client, false);
}
