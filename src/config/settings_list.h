/* config/settings_list.h - every setting there is, in one list; a part of config/settings.h. */
#ifndef WEIR_CONFIG_SETTINGS_LIST_H
#define WEIR_CONFIG_SETTINGS_LIST_H

/* INT(field, key, default, min, max, meaning)  REAL(same)  TEXT(field, key, form, default, meaning)
 * SECRET(field, key, form, meaning)
 * A SECRET is two settings: `key`, never shown, and `key_file`, the path of a file that holds it. It is unset
 * by default, may be a systemd credential named `key`, and reaches core alone (settings_handover.c).
 * A TEXT default of NULL means unset. Times are milliseconds unless the key says seconds. The form
 * of a TEXT is a name from SETTING_FORMS (settings_internal.h): what its value must look like. */
#define SETTINGS_LIST(INT, REAL, TEXT, SECRET)                                                               \
    TEXT(environment, "environment", ENVIRONMENT, "dev", "dev, stage or prod; sets defaults and warnings")   \
    TEXT(data_dir, "data", ANY, "./data", "directory that holds everything Weir keeps")                      \
    TEXT(store_url, "store.url", STORE, NULL,                                                                \
         "one machine or many: SQLite or PostgreSQL; default sqlite:DATA/weir.db")                           \
    SECRET(store_password, "store.password", ANY,                                                            \
           "password of the PostgreSQL user, unless store.url has it")                                       \
    INT(store_lanes, "store.lanes", 2, 1, 8, "commits at a time on PostgreSQL, a connection each")           \
    INT(store_timeout_ms, "store.timeout_ms", 2000, 10, 600000, "longest wait for the store")                \
    TEXT(listen, "server.listen", LISTEN_OR_OFF, "127.0.0.1:8080",                                           \
         "HOST:PORT of the HTTP API; off: only TLS")                                                         \
    TEXT(tls_listen, "server.tls_listen", LISTEN, NULL, "HOST:PORT of the HTTP API over TLS")                \
    TEXT(tls_cert, "server.tls_cert", PATH, NULL,                                                            \
         "PEM file: the server's certificate, then the chain to its authority")                              \
    TEXT(tls_key, "server.tls_key", PATH, NULL, "PEM file: its private key, without a passphrase")           \
    TEXT(tls_client_ca, "server.tls_client_ca", PATH, NULL,                                                  \
         "PEM file of authorities: over TLS only clients with a certificate of theirs are served")           \
    INT(server_threads, "server.threads", 0, 0, 256, "HTTP threads; 0 = online CPUs")                        \
    INT(body_max_bytes, "server.body_max_bytes", 1048576, 1024, 1073741824, "largest HTTP body")             \
    INT(bodies_max_bytes, "server.bodies_max_bytes", 268435456, 1048576, 1099511627776,                      \
        "bodies of requests in memory, together; more are answered 503; of unread answers a quarter")        \
    INT(request_timeout_ms, "server.request_timeout_ms", 5000, 100, 600000,                                  \
        "a request that takes longer is answered 504")                                                       \
    INT(connections_max, "server.connections_max", 16384, 16, 1000000, "open connections of clients")        \
    INT(connections_per_address, "server.connections_per_address", 1024, 1, 1000000,                         \
        "of them from one address, IPv6 by /64; one more closes the longest idle")                           \
    INT(unauthenticated_per_minute, "server.unauthenticated_per_minute", 600, 0, 1000000000,                 \
        "requests without good credentials from one address, IPv6 by /64; 0 = off; probes count apart")      \
    TEXT(hosts, "server.hosts", NAMES, NULL,                                                                 \
         "NAME,... that a loopback caller may use as Host in dev, besides localhost and addresses")          \
    INT(commands_max, "server.commands_max", 8192, 16, 1000000,                                              \
        "changes that wait for the commit loop; more are answered 503")                                      \
    INT(commands_max_bytes, "server.commands_max_bytes", 67108864, 65536, 17179869184,                       \
        "their bodies together; one alone always fits")                                                      \
    INT(idle_timeout_ms, "server.idle_timeout_ms", 60000, 100, 3600000, "idle connection closed")            \
    SECRET(operator_token, "operator.token", WORD, "secret that may manage any client's keys")               \
    INT(clients_per_address_minute, "clients.per_address_minute", 60, 0, 1000000000,                         \
        "clients made from one address without the operator token; 0 = off")                                 \
    INT(jobs_max_active, "jobs.max_active", 100000, 1, 100000000, "unfinished jobs, all clients")            \
    INT(jobs_max_active_per_client, "jobs.max_active_per_client", 0, 0, 100000000,                           \
        "unfinished jobs of one client, which has the same share of the queue; 0 = three quarters of all")   \
    INT(jobs_queue_size, "jobs.queue_size", 100000, 1, 100000000, "QUEUED jobs, all queues")                 \
    INT(jobs_queue_ttl_seconds, "jobs.queue_ttl_seconds", 0, 0, 31536000,                                    \
        "a job that nobody claims so long after it was QUEUED is CANCELED, `expired`; 0 = off")              \
    INT(jobs_max_runtime_ms, "jobs.max_runtime_ms", 0, 0, 86400000,                                          \
        "longest run that a job may ask for; 0 = 24 hours, for jobs of the catalog 125000")                  \
    INT(jobs_payload_max_bytes, "jobs.payload_max_bytes", 262144, 0, 104857600, "largest payload")           \
    INT(jobs_retry_max, "jobs.retry_max", 3, 0, 1000, "retries of a failed job")                             \
    INT(jobs_retry_base_ms, "jobs.retry_base_ms", 1000, 0, 86400000, "first backoff")                        \
    INT(jobs_retry_cap_ms, "jobs.retry_cap_ms", 30000, 0, 86400000, "longest backoff")                       \
    REAL(jobs_retry_jitter, "jobs.retry_jitter", 0.2, 0, 1, "backoff spread, part of it")                    \
    INT(jobs_retention_seconds, "jobs.retention_seconds", 2592000, 1, 3153600000,                            \
        "finished jobs are kept this long")                                                                  \
    REAL(jobs_failure_probability, "jobs.failure_probability", 0.2, 0, 1,                                    \
         "share of failing kinds among drawn ones")                                                          \
    TEXT(jobs_types, "jobs.types", TYPES, "EXECUTE,DEFERRED,EMIT_EVENT", "job types accepted")               \
    TEXT(clients_registration, "clients.registration", REGISTRATION, NULL,                                   \
         "who makes clients and their first keys: open = anybody, operator; unset = open in dev, else "      \
         "operator")                                                                                         \
    INT(clients_keyless_ttl_seconds, "clients.keyless_ttl_seconds", 3600, 1, 3153600000,                     \
        "a client that never got a key is dropped after this long")                                          \
    INT(keys_ttl_seconds, "keys.ttl_seconds", 7776000, 1, 3153600000, "life of an API key, at most")         \
    INT(keys_overlap_seconds, "keys.overlap_seconds", 3600, 0, 7776000,                                      \
        "a key that was rotated or renewed still works so long; 0 = not at all")                             \
    INT(keys_revoked_retention_seconds, "keys.revoked_retention_seconds", 7776000, 1, 3153600000,            \
        "revoked keys are kept this long")                                                                   \
    INT(limits_requests_per_minute, "limits.requests_per_minute", 0, 0, 1000000000,                          \
        "per client; 0 = off; worker calls do not count")                                                    \
    INT(limits_requests_per_day, "limits.requests_per_day", 0, 0, 1000000000,                                \
        "per client and UTC day, also over a restart; 0 = off")                                              \
    TEXT(limits_overrides, "limits.overrides", OVERRIDES, NULL,                                              \
         "CLIENT_ID=PER_MINUTE,... beats the default")                                                       \
    INT(queue_lease_ms, "queue.lease_ms", 30000, 100, 86400000, "life of a lease")                           \
    INT(queue_heartbeat_ms, "queue.heartbeat_ms", 5000, 10, 86400000, "workers renew this often")            \
    INT(runner_processes, "runner.processes", 2, 0, 64,                                                      \
        "built-in runner processes, which work on queue `default`; 0 = off, outside workers do")             \
    INT(runner_workers, "runner.workers", 4, 1, 10000, "workers per runner process")                         \
    INT(runner_concurrency, "runner.concurrency", 1, 1, 10000, "jobs at once per worker")                    \
    REAL(runner_time_scale, "runner.time_scale", 1.0, 0.00001, 1000,                                         \
         "0.01 = catalog jobs run a hundred times faster")                                                   \
    INT(webhooks_timeout_ms, "webhooks.timeout_ms", 5000, 10, 600000, "one delivery attempt")                \
    INT(webhooks_max_attempts, "webhooks.max_attempts", 6, 1, 100,                                           \
        "tries of a delivery before it is given up")                                                         \
    INT(webhooks_max_per_client, "webhooks.max_per_client", 100, 1, 100000,                                  \
        "webhooks a client may register")                                                                    \
    INT(webhooks_slots, "webhooks.slots", 8, 1, 1000, "deliveries to one receiver at a time")                \
    INT(webhooks_outbox_size, "webhooks.outbox_size", 100000, 1, 1000000000,                                 \
        "deliveries not yet made that count as a full outbox; nothing is refused for it")                    \
    INT(webhooks_base_ms, "webhooks.base_ms", 1000, 0, 86400000, "first backoff")                            \
    INT(webhooks_cap_ms, "webhooks.cap_ms", 60000, 0, 86400000, "longest backoff")                           \
    INT(webhooks_disable_after_seconds, "webhooks.disable_after_seconds", 432000, 0, 31536000,               \
        "a webhook that has only failed for so long is disabled; 0: never")                                  \
    TEXT(webhooks_allow_private, "webhooks.allow_private", BOOLEAN, NULL,                                    \
         "webhooks may reach private addresses; unset = true in dev, false else")                            \
    TEXT(webhooks_allow_cidrs, "webhooks.allow_cidrs", CIDRS, NULL,                                          \
         "CIDR,... that webhooks may reach all the same")                                                    \
    INT(runtime_drain_ms, "runtime.drain_ms", 8000, 0, 600000, "time to finish on SIGTERM")                  \
    INT(runtime_heartbeat_timeout_ms, "runtime.heartbeat_timeout_ms", 10000, 0, 600000,                      \
        "a process with a loop silent for so long is killed and started again; 0: never")                    \
    TEXT(runtime_sandbox, "runtime.sandbox", SANDBOX, "enforce",                                             \
         "each process may only do what it is there for; log: tell the kernel's log, refuse nothing")        \
    TEXT(runtime_core_dumps, "runtime.core_dumps", SWITCH, "off",                                            \
         "on: a crash may leave a core dump, with payloads and secrets in it")                               \
    INT(runtime_root_max_restarts, "runtime.root.max_restarts", 3, 0, 1000,                                  \
        "restarts of core and of whole domains within the window; one more ends the program")                \
    INT(runtime_root_max_seconds, "runtime.root.max_seconds", 10, 1, 86400, "length of the root window")     \
    INT(runtime_rooms_max_restarts, "runtime.rooms.max_restarts", 20, 0, 1000,                               \
        "restarts of rooms within the window; one more ends and renews the domain")                          \
    INT(runtime_rooms_max_seconds, "runtime.rooms.max_seconds", 60, 1, 86400, "length of the rooms window")  \
    INT(runtime_agents_max_restarts, "runtime.agents.max_restarts", 10, 0, 1000,                             \
        "restarts of runners within the window; one more ends and renews the domain")                        \
    INT(runtime_agents_max_seconds, "runtime.agents.max_seconds", 60, 1, 86400,                              \
        "length of the agents window")                                                                       \
    INT(runtime_instances_max_restarts, "runtime.instances.max_restarts", 6, 0, 1000,                        \
        "restarts of channel instances within the window; one more ends and renews the domain")              \
    INT(runtime_instances_max_seconds, "runtime.instances.max_seconds", 30, 1, 86400,                        \
        "length of the instances window")                                                                    \
    INT(runtime_instance_subtree_max_restarts, "runtime.instance_subtree.max_restarts", 5, 0, 1000,          \
        "restarts inside one channel instance within the window; one more ends that instance")               \
    INT(runtime_instance_subtree_max_seconds, "runtime.instance_subtree.max_seconds", 30, 1, 86400,          \
        "length of the instance_subtree window")                                                             \
    INT(runtime_outbound_max_restarts, "runtime.outbound.max_restarts", 30, 0, 1000,                         \
        "restarts of the gateway within the window; one more ends and renews the domain")                    \
    INT(runtime_outbound_max_seconds, "runtime.outbound.max_seconds", 60, 1, 86400,                          \
        "length of the outbound window")                                                                     \
    INT(runtime_sessions_max_restarts, "runtime.sessions.max_restarts", 15, 0, 1000,                         \
        "restarts of session shards within the window; one more ends and renews the domain")                 \
    INT(runtime_sessions_max_seconds, "runtime.sessions.max_seconds", 60, 1, 86400,                          \
        "length of the sessions window")                                                                     \
    INT(runtime_operations_max_restarts, "runtime.operations.max_restarts", 10, 0, 1000,                     \
        "restarts of onboarding and replay within the window; one more ends and renews the domain")          \
    INT(runtime_operations_max_seconds, "runtime.operations.max_seconds", 60, 1, 86400,                      \
        "length of the operations window")                                                                   \
    INT(runtime_cpus, "runtime.cpus", 0, 0, 1024, "CPUs that counts go by; 0 = those online")                \
    INT(runtime_partitions_outbound, "runtime.partitions.outbound", 0, 0, 128,                               \
        "partitions of deliveries, a power of two, at least twice the CPUs; 0 = that. Sessions as many")     \
    INT(runtime_partitions_ingest, "runtime.partitions.ingest", 0, 0, 1024,                                  \
        "partitions of ingest, at least the CPUs; 0 = that")                                                 \
    INT(runtime_partitions_replay, "runtime.partitions.replay", 2, 1, 128,                                   \
        "partitions of dead-letter replay, a power of two, apart from live work")                            \
    INT(gateway_processes, "gateway.processes", 1, 0, 16,                                                    \
        "processes that connect out; 0: no deliveries, no spans")                                            \
    INT(gateway_in_flight, "gateway.in_flight", 4000, 16, 60000,                                             \
        "deliveries under way at a time in one gateway, over all its partitions")                            \
    INT(replay_processes, "replay.processes", 1, 0, 16,                                                      \
        "processes that send dead letters again, started when there are any; 0: none is sent")               \
    INT(replay_in_flight, "replay.in_flight", 128, 8, 60000,                                                 \
        "dead letters under way at a time in one of them, over all its partitions")                          \
    REAL(traces_sample_ratio, "traces.sample_ratio", 1.0, 0, 1,                                              \
         "share of traces begun here that are recorded; a caller's choice goes first")                       \
    TEXT(tokens_issuer, "tokens.issuer", NAME, NULL,                                                         \
         "issuer of the tokens signed and trusted here; unset = weir-ENVIRONMENT")                           \
    TEXT(tokens_audience, "tokens.audience", NAMES, "weir",                                                  \
         "tokens for one of these pass; the first is minted")                                                \
    TEXT(tokens_issuers, "tokens.issuers", ANY, NULL,                                                        \
         "JSON file of outside issuers whose tokens pass, too; docs/tokens.md")                              \
    INT(tokens_jwks_refresh_seconds, "tokens.jwks_refresh_seconds", 300, 1, 86400,                           \
        "keys of an outside issuer are fetched this often; after an unknown kid ten times as often at most") \
    INT(tokens_jwks_max_age_seconds, "tokens.jwks_max_age_seconds", 86400, 60, 2592000,                      \
        "while an issuer does not answer, its last keys count this long")                                    \
    INT(tokens_skew_seconds, "tokens.skew_seconds", 120, 0, 120,                                             \
        "how far a token's iat may lead our clock; nbf likewise, 60 at most")                                \
    INT(tokens_max_ttl_seconds, "tokens.max_ttl_seconds", 28800, 60, 28800, "longest life of a token")       \
    TEXT(tokens_agent_roles, "tokens.agent_roles", AGENTS, "agent",                                          \
         "ROLE or ROLE=SECONDS,...: their tokens live 14400 seconds at most, or less")                       \
    INT(tokens_rotation_days, "tokens.rotation_days", 7, 1, 30,                                              \
        "age at which a signing key is due to be rotated; stage at most 14, prod 7")                         \
    INT(tokens_overlap_seconds, "tokens.overlap_seconds", 28920, 28920, 31536000,                            \
        "a rotated key still verifies this long; at least the longest token and the skew")                   \
    INT(tokens_history_days, "tokens.history_days", 90, 90, 3650,                                            \
        "retired and revoked keys stay listed this long")                                                    \
    SECRET(tokens_key_passphrase, "tokens.key_passphrase", WORD,                                             \
           "encrypts the private keys in DATA/keys; unset = they are in clear, mode 600")                    \
    TEXT(engine_append_validation, "engine.append_validation", SWITCH, "off",                                \
         "on: events that are no valid transition are refused, for good; off: written and flagged")          \
    INT(engine_cancel_grace_ms, "engine.cancel_grace_ms", 10000, 0, 3600000,                                 \
        "running steps of a cancelled run get so long to end by themselves")                                 \
    INT(engine_step_timeout_ms, "engine.step_timeout_ms", 3600000, 1, 86400000,                              \
        "longest run of a step whose plan has no timeoutMs")                                                 \
    TEXT(engine_approval_required, "engine.approval_required", SIGNALS, NULL,                                \
         "signal types that a second Admin has to approve")                                                  \
    TEXT(engine_disabled_signals, "engine.disabled_signals", SIGNALS, NULL, "signal types nobody may send")  \
    INT(engine_signals_per_run_minute, "engine.signals_per_run_minute", 60, 0, 1000000, "0: no limit")       \
    INT(engine_signals_per_tenant_minute, "engine.signals_per_tenant_minute", 600, 0, 1000000,               \
        "0: no limit")                                                                                       \
    INT(engine_refused_signals_per_actor_minute, "engine.refused_signals_per_actor_minute", 30, 1, 1000000,  \
        "signals that policy refuses and that are recorded; later ones are 429")                             \
    INT(engine_decision_retention_days, "engine.decision_retention_days", 2557, 2557, 36525,                 \
        "signal decisions are kept at least so long (nothing deletes them); never less than seven years")    \
    TEXT(engine_pseudonymize, "engine.pseudonymize", SWITCH, "off",                                          \
         "on: decisions name actors by a digest keyed with operator.token instead of their id")              \
    TEXT(engine_source_ip, "engine.source_ip", SWITCH, "off", "on: decisions keep the caller's address")     \
    TEXT(engine_policy_url, "engine.policy_url", URL, NULL,                                                  \
         "policy decision point (OPA's REST shape) asked about signals; unset = the table of roles")         \
    INT(engine_policy_timeout_ms, "engine.policy_timeout_ms", 1000, 10, 60000, "longest wait for it")        \
    TEXT(engine_policy_fallback, "engine.policy_fallback", FALLBACK, "deny",                                 \
         "when it does not answer: deny, allow_with_flag, or builtin = the table of roles; all for review")  \
    INT(slo_ingest_p95_ms, "slo.ingest_p95_ms", 100, 1, 100,                                                 \
        "target of the time from a request to its decision; stricter only")                                  \
    INT(slo_enqueue_p95_ms, "slo.enqueue_p95_ms", 50, 1, 50,                                                 \
        "target of the time from a change to its delivery being stored; stricter only")                      \
    REAL(slo_delivery_ratio, "slo.delivery_ratio", 0.995, 0.995, 1,                                          \
         "target of deliveries that succeed in the end; stricter only")                                      \
    INT(slo_reconnect_p95_ms, "slo.reconnect_p95_ms", 60000, 1, 60000,                                       \
        "target of the time until a lost connection is back; stricter only")                                 \
    INT(metrics_queues_max, "metrics.queues_max", 200, 0, 100000,                                            \
        "queues with series of their own in /metrics; the rest are `other`")                                 \
    TEXT(log_level, "log.level", LEVEL, "info", "debug, info, warn or error")                                \
    TEXT(log_format, "log.format", LOG_FORMAT, "auto",                                                       \
         "text: lines for people; json: an object a line; auto: text when stderr is a terminal, else json")  \
    TEXT(log_transitions, "log.transitions", SWITCH, "off",                                                  \
         "on: every change of a job's state is logged at level info; off: at debug, failures at info")

/* Where stage and prod have another default than dev, whose is in the list above. X(field, default) */
#define SETTINGS_OUTSIDE_DEV(X)                                                                              \
    X(limits_requests_per_minute, 600)                                                                       \
    X(runner_processes, 0)

#endif
