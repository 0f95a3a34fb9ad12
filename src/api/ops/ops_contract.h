/* api/ops/ops_contract.h - probes, metrics, documents and the calls of operators as a contract: routes. */
#ifndef WEIR_API_OPS_OPS_CONTRACT_H
#define WEIR_API_OPS_OPS_CONTRACT_H

#include "api/contract.h"

extern const struct contract ops_contract;

#endif
