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
