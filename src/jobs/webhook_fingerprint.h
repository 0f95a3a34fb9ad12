/* jobs/webhook_fingerprint.h - what makes two webhooks the same: url and set of events. */
#ifndef WEIR_JOBS_WEBHOOK_FINGERPRINT_H
#define WEIR_JOBS_WEBHOOK_FINGERPRINT_H

#include <stdint.h>

#include "base/str.h"

/* A stable 128-bit digest of "url\nevents". */
void webhook_fingerprint(struct str url, struct str events, uint8_t out[16]);

#endif
