/* runtime/process_table.h - which processes there are, and in which restart domain each stands.
 *
 * A process that is asked for (base/bus.h) rests until it is, ends by itself when it has nothing to do, and
 * rests again: an idle server does not pay for it.
 *
 * To add a process: one line in PROCESS_LIST, its main function in the table that cli/serve.c hands to the
 * supervisor and, if its domain is new, its lines in runtime/domain_table.h. */
#ifndef WEIR_RUNTIME_PROCESS_TABLE_H
#define WEIR_RUNTIME_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bus.h"
#include "config/settings.h"
#include "runtime/domain_table.h"

/* X(id, name, what it does, domain, instances (`s` is the settings), owns the store, topic that starts it)
 * The owner of the store starts first and stops last, and holds the lock of the data directory. */
#define PROCESS_LIST(X)                                                                                      \
    X(CORE, "core", "HTTP API, commit loop, timers, projections", ROOT, 1, true, NONE)                       \
    X(RUNNER, "runner", "executes tasks of the built-in work catalog", AGENTS, s->runner_processes, false,   \
      NONE)                                                                                                  \
    X(GATEWAY, "gateway", "every connection out: deliveries, spans, policy", OUTBOUND, s->gateway_processes, \
      false, NONE)                                                                                           \
    X(REPLAY, "replay", "sends dead letters again, apart from live deliveries", OPERATIONS,                  \
      s->replay_processes, false, REPLAY)

#define X(id, name, does, domain, instances, store, asked) PROCESS_##id,
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
/* Does it rest until it is asked for? Not on a shared store: another node's work asks nobody here. */
bool process_rests(enum process_id id, const struct settings *s);

#endif
