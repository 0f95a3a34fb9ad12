#include "runtime/process_table.h"

#include "base/must.h"

#include "base/banned.h"

const struct process_kind process_kinds[PROCESS_COUNT] = {
#define X(id, name, does, domain, instances, sandbox, store, asked, main)                                    \
    {PROCESS_##id, name, does, DOMAIN_##domain, store, BUS_##asked},
    PROCESS_LIST(X)
#undef X
};

int64_t process_instances(enum process_id id, const struct settings *s)
{
    switch (id) {
#define X(id, name, does, domain, instances, ...)                                                            \
    case PROCESS_##id:                                                                                       \
        return instances;
        PROCESS_LIST(X)
#undef X
    case PROCESS_COUNT:
        break;
    }
    MUST(id < PROCESS_COUNT);
    return 0;
}

bool process_is_on_demand(enum process_id id, const struct settings *s)
{
    return process_kinds[id].asked != BUS_NONE && !settings_store_is_postgres(s);
}
