#include "api/ops/ops_contract.h"

#include "base/banned.h"

static const char *const ops_openapi[] = {"ops", NULL};

const struct contract ops_contract = {.name = "ops", .openapi = ops_openapi};
