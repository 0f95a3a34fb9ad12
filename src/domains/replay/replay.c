#include "domains/replay/replay.h"

#include "base/banned.h"

const struct gateway_role replay_role = {
    .name = "replay", .queue = "~replay", .domain = DOMAIN_OPERATIONS, .component = "replay"};
