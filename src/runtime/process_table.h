/* runtime/process_table.h - the rows of runtime/process_list.h, for root and other readers. */
#ifndef WEIR_RUNTIME_PROCESS_TABLE_H
#define WEIR_RUNTIME_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bus.h"
#include "config/settings.h"
#include "runtime/domain_table.h"
#include "runtime/process_list.h"

#define X(id, ...) PROCESS_##id,
enum process_id { PROCESS_LIST(X) PROCESS_COUNT };
#undef X

struct process_kind {
    enum process_id id;
    const char *name, *does;
    enum domain_id domain;
    bool owns_store;
    enum bus_topic asked; /* BUS_NONE: it starts with the others and runs all the time */
};

extern const struct process_kind process_kinds[PROCESS_COUNT];

int64_t process_instances(enum process_id id, const struct settings *s);
/* Is it started on demand only? Not on a shared store: work of another node wakes no process here. */
bool process_is_on_demand(enum process_id id, const struct settings *s);

#endif
