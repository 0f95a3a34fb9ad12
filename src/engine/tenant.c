#include "engine/tenant.h"

#include "base/must.h"

#include "base/banned.h"

/* In the one spelling that the Jobs API uses: two names never have one number. */
static bool is_client_id(struct str name, struct uuid *ret)
{
    char text[UUID_TEXT_LEN + 1];
    if (!uuid_parse(name, ret))
        return false;
    uuid_text(ret, text);
    return str_is(name, text);
}

/* In the arena: the unit keeps the bytes of a key for as long as the batch lasts. */
static struct client_row client_key(struct unit *u, const struct uuid *id)
{
    return (struct client_row){
        .uuid = arena_str(u->arena, (struct str){(const char *)id->bytes, sizeof id->bytes})};
}

void tenant_prefetch(struct unit *u, struct str name)
{
    struct uuid id;
    unit_prefetch(u, &table_tenant_row, &(struct tenant_row){.name = name});
    if (is_client_id(name, &id)) {
        struct client_row key = client_key(u, &id);
        unit_prefetch(u, &table_client_row, &key);
    }
}

static int64_t new_number(struct unit *u, struct str name)
{
    struct uuid id;
    if (is_client_id(name, &id)) {
        struct client_row key = client_key(u, &id);
        const struct client_row *client = unit_fetch(u, &table_client_row, &key);
        if (client)
            return client->num;
    }
    return u->store->next_tenant++; /* a failed commit leaves a gap, nothing more */
}

int64_t tenant_number(struct unit *u, struct str name)
{
    struct tenant_row key = {.name = name};
    const struct tenant_row *known = unit_fetch(u, &table_tenant_row, &key);
    if (known)
        return known->num;
    struct tenant_row *t = ARENA_NEW(u->arena, struct tenant_row);
    *t = (struct tenant_row){.name = arena_str(u->arena, name), .num = new_number(u, name)};
    unit_insert(u, &table_tenant_row, t);
    return t->num;
}
