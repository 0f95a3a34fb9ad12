/* engine/tenant.h - a tenant's number: the client's when its name is the id of a client of the Jobs API, so
 * that a client's workers find its steps; else one that no client has. */
#ifndef WEIR_ENGINE_TENANT_H
#define WEIR_ENGINE_TENANT_H

#include "kernel/unit.h"

void tenant_prefetch(struct unit *u, struct str name); /* load step */
/* Its number; given now, if it has none. */
int64_t tenant_number(struct unit *u, struct str name);

#endif
