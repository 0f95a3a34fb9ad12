/* cli/doctor.h - `weir doctor`: a list of checks, each with what it found and what to do.
 *
 * A check looks and changes nothing (the disk test removes its file). To add one: a function in a
 * doctor_*.c file and one line in DOCTOR_CHECKS. */
#ifndef WEIR_CLI_DOCTOR_H
#define WEIR_CLI_DOCTOR_H

#include "cli/command.h"
#include "store/postgres/postgres_look.h"

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_LEVEL_COUNT };

struct finding {
    enum finding_level level;
    char found[256];    /* "": the check is about an unused feature; it is not shown */
    const char *advice; /* "" when there is nothing to do */
};

struct doctor {
    const struct invocation *in;
    struct settings settings; /* defaults where the given ones are not valid */
    struct err settings_err;  /* code ERR_OK: they are valid */
    char store_url[SETTINGS_STORE_URL_MAX];
    char store_path[4096]; /* of SQLite; "" with PostgreSQL */
    bool on_postgres;
    struct postgres_look look;
    struct err look_err; /* code ERR_OK: it answered */
    char lock_path[4096];
};

/* X(function, name shown), in the order of the list */
#define DOCTOR_CHECKS(X)                                                                                     \
    X(config, "settings")                                                                                    \
    X(data_dir, "data directory")                                                                            \
    X(disk_space, "disk space")                                                                              \
    X(disk_sync, "disk sync time")                                                                           \
    X(sqlite, "SQLite")                                                                                      \
    X(postgres, "PostgreSQL")                                                                                \
    X(postgres_durability, "PostgreSQL durability")                                                          \
    X(postgres_role, "PostgreSQL role")                                                                      \
    X(postgres_connections, "PostgreSQL connections")                                                        \
    X(postgres_clock, "PostgreSQL clock")                                                                    \
    X(schema, "database schema")                                                                             \
    X(store, "database content")                                                                             \
    X(high_water, "high-water mark")                                                                         \
    X(issuers, "outside issuers")                                                                            \
    X(token_keys, "token keys")                                                                              \
    X(tls, "TLS certificate")                                                                                \
    X(policy_point, "policy point")                                                                          \
    X(lock, "data directory lock")                                                                           \
    X(server, "server")                                                                                      \
    X(sandbox, "sandbox")                                                                                    \
    X(open_files, "open file limit")                                                                         \
    X(clock, "clock")

#define X(function, name) struct finding doctor_##function(const struct doctor *d);
DOCTOR_CHECKS(X)
#undef X

/* Advice is dropped when the level is FINDING_OK. */
struct finding finding(enum finding_level level, const char *advice, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
