/* store/postgres/postgres_look.h - what `weir doctor` asks a PostgreSQL server about itself. Looks only. */
#ifndef WEIR_STORE_POSTGRES_LOOK_H
#define WEIR_STORE_POSTGRES_LOOK_H

#include "store/store.h"

enum { POSTGRES_VERSION_MIN = 150000 };

struct postgres_look {
    int64_t version_number; /* 150004 */
    char version[64];       /* "15.4 (Debian ...)" */
    char synchronous_commit[32];
    bool fsync, full_page_writes;
    bool is_standby;
    bool superuser;
    char schema[64];       /* the first of the search path that exists; "": none */
    bool may_create;       /* in that schema */
    bool has_tables;       /* of Weir */
    int64_t foreign_owned; /* of these, so many belong to a role that is not ours to act for */
    int64_t connections, connections_max;
    int64_t clock_ahead_us; /* its clock minus ours */
};

/* STORAGE_UNAVAILABLE: it cannot be reached, or does not let us in. CONFIG_INVALID: the URL is none. */
MUST_CHECK enum err_code postgres_look(const struct postgres_options *options, struct postgres_look *ret_look,
                                       struct err *err);

#endif
