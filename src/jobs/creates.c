#include "jobs/creates.h"

#include "base/banned.h"

static struct create_row key_of(struct str scope, const struct create_once *once)
{
    return (struct create_row){.scope = scope, .name = once->name};
}

static struct str fingerprint_of(const struct create_once *once)
{
    return (struct str){(const char *)once->fingerprint, sizeof once->fingerprint};
}

void creates_want(struct unit *u, struct str scope, const struct create_once *once)
{
    struct create_row key = key_of(scope, once);
    if (once->name.ptr)
        unit_want(u, &table_create_row, &key);
}

const struct create_row *creates_find(struct unit *u, struct str scope, const struct create_once *once,
                                      struct err *err)
{
    struct create_row key = key_of(scope, once);
    if (!once->name.ptr || !unit_knows(u, &table_create_row, &key))
        return NULL;
    const struct create_row *row = unit_row(u, &table_create_row, &key);
    if (row && !str_equal(row->fingerprint, fingerprint_of(once)))
        err_set(err, ERR_EXEC_IDEMPOTENCY_CONFLICT, "this idempotency key was used before with another body");
    return row;
}

void creates_add(struct unit *u, struct str scope, const struct create_once *once, const struct uuid *id)
{
    if (!once->name.ptr)
        return;
    struct create_row *row = ARENA_NEW(u->arena, struct create_row);
    *row = key_of(scope, once);
    row->fingerprint = arena_str(u->arena, fingerprint_of(once));
    row->uuid = (struct str){arena_copy(u->arena, id->bytes, sizeof id->bytes), sizeof id->bytes};
    row->created_ms = u->now_ms;
    unit_insert(u, &table_create_row, row);
}
