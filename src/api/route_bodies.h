/* api/route_bodies.h - the contracts in the binary as their routes need them: what each body has to fit.
 *
 * Compiled once at start and never written again, so all threads may use it. */
#ifndef WEIR_API_ROUTE_BODIES_H
#define WEIR_API_ROUTE_BODIES_H

#include "schema/openapi.h"

/* NULL: the route takes no body (an empty one or {} is fine). */
struct route_body {
    const struct schema *described;
    /* The schema that a body must fit before its handler sees it: less than the described one where the
     * handler checks it by itself, item by item or with codes of its own (x-weir-check). */
    const struct schema *checked;
};

struct route_bodies;
/* Of all files and routes; a fault in one is a fault of the build, which `err` names. */
MUST_CHECK enum err_code route_bodies_new(struct route_bodies **ret_bodies, struct err *err);
struct route_bodies *route_bodies_free(struct route_bodies *c); /* NULL is fine; always returns NULL */
const struct route_body *route_bodies_of(const struct route_bodies *c, size_t route_number);
/* "#/components/schemas/TaskRef" of "worker". For bodies whose parts are checked one by one. */
const struct schema *route_bodies_schema(const struct route_bodies *c, const char *contract,
                                         const char *pointer);

#endif
