/* api/worker/encode_delivery.h - a claimed delivery as the gateway gets it: where to, which headers,
 * which body.
 *
 * Signed here, so that no secret leaves core: a claim is an attempt, and its time is the attempt's
 * timestamp. A delivery that cannot be sent any more (its webhook is gone or disabled, its event was
 * purged, what is stored cannot be read) comes without a definition but with the reason; the gateway hands it
 * back as undeliverable. */
#ifndef WEIR_API_WORKER_ENCODE_DELIVERY_H
#define WEIR_API_WORKER_ENCODE_DELIVERY_H

#include "api/api.h"
#include "kernel/worker_commands.h"

/* Writes one task object. False with err set when the store cannot be read. What the deliveries of one claim
 * share is read once: it stands at the call's `data`. */
bool encode_delivery_task(struct call *c, struct json_writer *w, struct reader *r,
                          const struct claimed_task *t, struct err *err);

#endif
