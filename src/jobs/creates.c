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

const struct create_row *creates_prefetch(struct unit *u, struct str scope, const struct create_once *once)
{
    struct create_row key = key_of(scope, once);
    return once->name.ptr ? unit_prefetch(u, &table_create_row, &key) : NULL;
}

const struct create_row *creates_find(struct unit *u, struct str scope, const struct create_once *once,
                                      struct err *err)
{
    struct create_row key = key_of(scope, once);
    if (!once->name.ptr || !unit_has(u, &table_create_row, &key))
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

/* --- retention ------------------------------------------------------------------------------------- */

enum { CREATES_A_TURN = 200 };

struct old_creates {
    struct arena *arena;
    int64_t cutoff_ms;
    struct create_row keys[CREATES_A_TURN];
    size_t count;
};

static bool note_old(const void *stored, void *arg)
{
    struct old_creates *o = arg;
    const struct create_row *row = stored;
    if (row->created_ms < o->cutoff_ms)
        o->keys[o->count++] = (struct create_row){.scope = arena_str(o->arena, row->scope),
                                                  .name = arena_str(o->arena, row->name)};
    return o->count < CREATES_A_TURN;
}

bool creates_drop_old(struct unit *u)
{
    struct err err;
    struct old_creates o = {.arena = u->arena,
                            .cutoff_ms = u->now_ms - u->settings->jobs_retention_seconds * 1000};
    if (u->reader->ops->reader_begin(u->reader, &err) != ERR_OK)
        return false;
    enum err_code code = u->reader->ops->reader_scan(u->reader, &table_create_row, note_old, &o, &err);
    u->reader->ops->reader_end(u->reader);
    if (code != ERR_OK)
        return false;
    for (size_t i = 0; i < o.count; i++)
        unit_prefetch(u, &table_create_row, &o.keys[i]);
    (void)unit_load(u);
    for (size_t i = 0; i < o.count && u->load_err.code == ERR_OK; i++)
        if (unit_row(u, &table_create_row, &o.keys[i]))
            unit_delete(u, &table_create_row, &o.keys[i]);
    return o.count == CREATES_A_TURN;
}
