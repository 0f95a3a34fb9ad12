#include "runtime/process_table.h"

#include "base/must.h"

#include "base/banned.h"

const struct process_kind process_kinds[PROCESS_COUNT] = {
#define X(id, name, does, domain, instances, store) {PROCESS_##id, name, does, DOMAIN_##domain, store},
    PROCESS_LIST(X)
#undef X
};

int64_t process_instances(enum process_id id, const struct settings *s)
{
    switch (id) {
#define X(id, name, does, domain, instances, store)                                                          \
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

const char *domain_name(enum domain_id id)
{
    static const char *const names[] = {
#define X(id, name, restarts, seconds) [DOMAIN_##id] = name,
        DOMAIN_LIST(X)
#undef X
    };
    return names[id];
}

struct domain_limits domain_limits(enum domain_id id, const struct settings *s)
{
    const struct domain_limits limits[] = {
#define X(id, name, restarts, seconds) [DOMAIN_##id] = {s->restarts, s->seconds},
        DOMAIN_LIST(X)
#undef X
    };
    return limits[id];
}
