#include "kernel/timer_kind.h"

#include "base/banned.h"

static struct timer_row key_of(const struct timer_kind *kind, int64_t owner)
{
    return (struct timer_row){.owner = owner, .kind = kind->number};
}

void unit_timer_set(struct unit *u, const struct timer_kind *kind, int64_t owner, int64_t due_ms)
{
    struct timer_row key = key_of(kind, owner), *row = unit_fetch(u, &table_timer_row, &key);
    if (row) {
        row->due_ms = due_ms;
        unit_update(u, &table_timer_row, row);
        return;
    }
    row = ARENA_NEW(u->arena, struct timer_row);
    *row = key;
    row->owner_kind = kind->owner_kind;
    row->due_ms = due_ms;
    unit_insert(u, &table_timer_row, row);
}

void unit_timer_cancel(struct unit *u, const struct timer_kind *kind, int64_t owner)
{
    struct timer_row key = key_of(kind, owner);
    if (unit_fetch(u, &table_timer_row, &key))
        unit_delete(u, &table_timer_row, &key);
}

int64_t unit_timer_due_ms(struct unit *u, const struct timer_kind *kind, int64_t owner)
{
    struct timer_row key = key_of(kind, owner);
    const struct timer_row *row = unit_fetch(u, &table_timer_row, &key);
    return row ? row->due_ms : INT64_MAX;
}
