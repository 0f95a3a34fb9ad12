/* runtime/process_table.h - which processes there are, and in which restart domain each stands.
 *
 * To add a process: one line in PROCESS_LIST, its main function in the table that cli/serve.c hands to the
 * supervisor and, if its domain is new, its lines in runtime/domain_table.h. */
#ifndef WEIR_RUNTIME_PROCESS_TABLE_H
#define WEIR_RUNTIME_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/settings.h"
#include "runtime/domain_table.h"

/* X(id, name, what it does, domain, instances (`s` is the settings), owns the store)
 * The owner of the store starts first and stops last, and holds the lock of the data directory. */
#define PROCESS_LIST(X)                                                                                      \
    X(CORE, "core", "HTTP API, commit loop, timers, projections", ROOT, 1, true)                             \
    X(RUNNER, "runner", "executes tasks of the built-in work catalog", AGENTS, s->runner_processes, false)   \
    X(GATEWAY, "gateway", "every connection out: deliveries, spans, policy", OUTBOUND, s->gateway_processes, \
      false)

#define X(id, name, does, domain, instances, store) PROCESS_##id,
enum process_id { PROCESS_LIST(X) PROCESS_COUNT };
#undef X

struct process_kind {
    enum process_id id;
    const char *name, *does;
    enum domain_id domain;
    bool owns_store;
};

extern const struct process_kind process_kinds[PROCESS_COUNT];

int64_t process_instances(enum process_id id, const struct settings *s);

#endif
