/* api/contracts.h - the contracts in the binary as their routes need them: what each body has to fit.
 *
 * Compiled once at start and never written again, so all threads may use it. */
#ifndef WEIR_API_CONTRACTS_H
#define WEIR_API_CONTRACTS_H

#include "schema/contract.h"

/* NULL: the route takes no body (an empty one or {} is fine). */
struct route_body {
    const struct schema *described;
    /* The schema that a body must fit before its handler sees it: less than the described one where the
     * handler checks it by itself, item by item or with codes of its own (x-weir-check). */
    const struct schema *checked;
};

struct contracts;
/* Of all files and routes; a fault in one is a fault of the build, which `err` names. */
MUST_CHECK enum err_code contracts_new(struct contracts **ret_contracts, struct err *err);
struct contracts *contracts_free(struct contracts *c); /* NULL is fine; always returns NULL */
const struct route_body *contracts_body(const struct contracts *c, size_t route_number);
/* "#/components/schemas/TaskRef" of "worker". For bodies whose parts are checked one by one. */
const struct schema *contracts_schema(const struct contracts *c, const char *contract, const char *pointer);

#endif
