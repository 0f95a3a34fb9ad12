#include "core/contracts.h"

#include "api/engine/engine_contract.h"
#include "api/jobs/jobs_contract.h"
#include "api/ops/ops_contract.h"

#include "base/banned.h"

const struct contract *const contracts[] = {&jobs_contract, &engine_contract, &ops_contract, NULL};
