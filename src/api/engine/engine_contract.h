/* api/engine/engine_contract.h - runs as a contract, with their plans, signals, decisions and alerts. */
#ifndef WEIR_API_ENGINE_ENGINE_CONTRACT_H
#define WEIR_API_ENGINE_ENGINE_CONTRACT_H

#include "api/api.h"
#include "api/engine/policy_point.h"
#include "api/engine/signal_limits.h"
#include "api/engine/signal_schemas.h"

extern const struct contract engine_contract;

/* The parts of the API that are there for runs alone. */
struct engine_api {
    struct api *api;
    struct signal_schemas *signal_schemas;
    struct signal_limits *signal_limits;
    struct policy_point *policy_point; /* NULL: none is asked */
};

static inline struct engine_api *engine_api(const struct api *a)
{
    return contract_set_self(&a->contracts, &engine_contract);
}

#endif
