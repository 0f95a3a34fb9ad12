/* runtime/process_list.h - the processes of the program: one row each.
 *
 * A process is its row and its folder. The folder defines the main function of the row (process_signals.h
 * declares it); a row without its function does not link. Root's children, their sandboxes and restart
 * windows and docs/operations/processes.md follow from the rows. tests/unit/domains has a list of its own. */
#ifndef WEIR_RUNTIME_PROCESS_LIST_H
#define WEIR_RUNTIME_PROCESS_LIST_H

/* X(id, name, what it does, failure domain (DOMAIN_LIST), how many, sandbox (SANDBOX_LIST), owns the store,
 *   topic that starts it (base/bus.h), main function). `s` is the settings.
 * The owner of the store starts first and stops last, and holds the lock of the data directory.
 * A process with a topic is on demand: root starts it when core asks for it, and it ends by itself when it is
 * idle, so that an idle server does not pay for it. NONE: it runs all the time. */
#define WEIR_PROCESSES(X)                                                                                    \
    X(CORE, "core", "HTTP API, commit loop, timers; the only process with the store", ROOT, 1,               \
      !settings_store_is_postgres(s) ? SANDBOX_CORE : SANDBOX_CORE_SHARED, true, NONE, core_main)            \
    X(RUNNER, "runner", "runs the built-in work catalog", AGENTS, s->runner_processes, SANDBOX_RUNNER,       \
      false, NONE, runner_main)                                                                              \
    X(GATEWAY, "gateway",                                                                                    \
      "every connection out: deliveries to callbacks and webhooks, trace spans to the collector, questions " \
      "to the policy decision point",                                                                        \
      OUTBOUND, s->gateway_processes, SANDBOX_GATEWAY, false, NONE, gateway_main)                            \
    X(REPLAY, "replay", "deliveries that somebody wants sent again, apart from live ones", OPERATIONS,       \
      s->replay_processes, SANDBOX_GATEWAY, false, REPLAY, replay_main)

/* A program that has others, too, says so before this (tests/sample_contract). */
#ifndef PROCESS_LIST
#define PROCESS_LIST(X) WEIR_PROCESSES(X)
#endif

#endif
