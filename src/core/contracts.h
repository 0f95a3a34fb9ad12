/* core/contracts.h - the contracts of the program (api/contract.h). */
#ifndef WEIR_CORE_CONTRACTS_H
#define WEIR_CORE_CONTRACTS_H

#include "api/contract.h"

/* In the order in which they hear of things; ends with NULL. A program with more has a file of its own in the
 * place of core/contracts.c: it is linked instead, for an archive gives only what is not there yet. */
extern const struct contract *const contracts[];

#endif
