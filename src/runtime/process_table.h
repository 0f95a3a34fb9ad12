/* runtime/process_table.h - which processes there are, and in which restart domain each stands.
 *
 * One list per fact. To add a process: one line in PROCESS_LIST, its main function in the table
 * that main.c hands to the supervisor and, if its domain is new, one line in DOMAIN_LIST with the
 * two settings that hold its limits (their defaults are seed 004's topology matrix). */
#ifndef WEIR_RUNTIME_PROCESS_TABLE_H
#define WEIR_RUNTIME_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/settings.h"

/* X(id, name, settings field of max_restarts, settings field of the window in seconds)
 * Strategy is one_for_one in all of them. ROOT is the domain of the program itself. */
#define DOMAIN_LIST(X)                                                                                       \
    X(ROOT, "root", runtime_root_max_restarts, runtime_root_max_seconds)                                     \
    X(AGENTS, "agents", runtime_agents_max_restarts, runtime_agents_max_seconds)                             \
    X(OUTBOUND, "outbound", runtime_outbound_max_restarts, runtime_outbound_max_seconds)

/* X(id, name, what it does, domain, instances (`s` is the settings), owns the store)
 * The owner of the store starts first and stops last, and holds the lock of the data directory. */
#define PROCESS_LIST(X)                                                                                      \
    X(CORE, "core", "HTTP API, commit loop, timers, projections", ROOT, 1, true)                             \
    X(RUNNER, "runner", "executes tasks of the built-in work catalog", AGENTS, s->runner_processes, false)   \
    X(GATEWAY, "gateway", "every connection out: deliveries, spans, policy", OUTBOUND, s->gateway_processes, \
      false)

#define X(id, name, restarts, seconds) DOMAIN_##id,
enum domain_id { DOMAIN_LIST(X) DOMAIN_COUNT };
#undef X

#define X(id, name, does, domain, instances, store) PROCESS_##id,
enum process_id { PROCESS_LIST(X) PROCESS_COUNT };
#undef X

struct process_kind {
    enum process_id id;
    const char *name, *does;
    enum domain_id domain;
    bool owns_store;
};

struct domain_limits {
    int64_t max_restarts, window_seconds;
};

extern const struct process_kind process_kinds[PROCESS_COUNT];

int64_t process_instances(enum process_id id, const struct settings *s);
const char *domain_name(enum domain_id id);
struct domain_limits domain_limits(enum domain_id id, const struct settings *s);

#endif
