/* api/engine/audit.h - what is told of runs after each commit: a log line for every decision and every alert,
 * and counters. The records themselves are rows; this is for those who watch logs (seed 003 section 6.2). */
#ifndef WEIR_API_ENGINE_AUDIT_H
#define WEIR_API_ENGINE_AUDIT_H

#include "api/api.h"

void engine_committed(struct api *a, const struct unit *u); /* commit thread */

#endif
