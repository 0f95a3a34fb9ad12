#include "engine/alert.h"

#include "base/must.h"
#include "engine/run_notices.h"

#include "base/banned.h"

#define X(name) #name,
static const char *const severities[SEVERITY_COUNT] = {ALERT_SEVERITIES(X)};
#undef X
#define X(id, name) name,
static const char *const categories[ALERT_CATEGORY_COUNT] = {ALERT_CATEGORIES(X)};
#undef X

const char *alert_severity_text(enum alert_severity s)
{
    MUST((unsigned)s < SEVERITY_COUNT);
    return severities[s];
}

bool alert_severity_of(struct str name, enum alert_severity *ret)
{
    for (int i = 0; i < SEVERITY_COUNT; i++)
        if (str_is(name, severities[i])) {
            *ret = (enum alert_severity)i;
            return true;
        }
    return false;
}

const char *alert_category_text(enum alert_category c)
{
    MUST((unsigned)c < ALERT_CATEGORY_COUNT);
    return categories[c];
}

void alert_raise(struct unit *u, const struct run_row *run, const struct alert_row *what)
{
    struct alert_row *a = ARENA_NEW(u->arena, struct alert_row);
    *a = *what;
    a->id = unit_id_at(u, u->locked_at_ms);
    a->low = unit_uuid_tail(u);
    a->tenant = run->tenant;
    a->run = run->num;
    a->created_ms = u->locked_at_ms;
    unit_insert(u, &table_alert_row, a);
    unit_notify(u, &alert_notices, a);
    unit_list(u, run->tenant, LIST_ALERTS, a->id, false);
    unit_list(u, run->num, LIST_ALERTS_OF_RUN, a->id, false);
}
