/* kernel/unit_internal.h - what the unit's own files share: unit.c (rows and tasks),
 * unit_commit.c (writing and undoing), unit_shared.c (having a shared store's part in memory). */
#ifndef WEIR_KERNEL_UNIT_INTERNAL_H
#define WEIR_KERNEL_UNIT_INTERNAL_H

#include "kernel/unit.h"

/* One row this batch knows: as the store has it, and as it shall be. */
struct unit_row {
    struct map_node node;
    struct unit_row *next;
    const struct table *table;
    void *row;
    bool stored;   /* the store has a row of this key */
    bool exists;   /* after this batch there is one */
    bool dirty;    /* `row` differs from the stored one in columns an UPDATE writes */
    bool replaced; /* deleted and inserted again: fixed columns may differ */
    bool pending;  /* wanted, and not read yet */
};

/* Before-image of a live task, for undo and to know what to write. */
struct task_touch {
    struct task_touch *next;
    struct task *task;
    struct task_row before;
    struct str worker_before;
    int64_t run_until_before;
    bool is_new, ended;
};

struct unit_row *unit_find_row(const struct unit *u, const struct table *t, const void *key);
struct unit_row *unit_add_row(struct unit *u, const struct table *t, void *row);
/* Room for one element more in an arena array; it is not cleared. */
void *unit_grow(struct unit *u, void *array, size_t count, size_t *capacity, size_t size);

/* Of a shared store: the row is read with the next ones. */
struct unit_row *unit_prefetch_later(struct unit *u, const struct table *t, void *row);
/* One round trip for all that is wanted, and for up to due_max tasks whose time has come. */
void unit_load_all(struct unit *u, uint32_t due_max);
/* Of a shared store: a task that nobody prefetched. */
struct task *unit_fetch_task(struct unit *u, int64_t id);
/* It is in memory, or there is none, or it has left: not to be looked for in the store. */
void unit_know_task(struct unit *u, int64_t id);

#endif
