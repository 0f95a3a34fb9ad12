/* jobs/inbox.h - jobs that applications put into a table of the shared database, in their own transactions.
 *
 * A row of `weir_inbox` becomes a job exactly once: the job, its events and the end of the row are one
 * commit, and a row that another process took first makes that commit fail. The rules are those of a
 * submit over HTTP (decide_submit.c): same checks, same limits, same idempotency. Full limits let rows wait;
 * a row that can never be a job stays, with the reason (`error`) and the time (`failed_ms`), for people to
 * look at. An application takes it up again by setting failed_ms to 0.
 *
 * Process: core of the node that has the duties; called like the purge (kernel_config.housekeep). Two at
 *          once do no harm. With SQLite no other process can write the table, so it stays empty, except
 *          after a copy.
 * Bounded: INBOX_ROWS_A_TURN rows a call, or about INBOX_BYTES_A_TURN; the table refuses a payload over
 *          1 MiB. */
#ifndef WEIR_JOBS_INBOX_H
#define WEIR_JOBS_INBOX_H

#include <stdatomic.h>

#include "base/json.h"
#include "kernel/unit.h"

enum { INBOX_ROWS_A_TURN = 500, INBOX_BYTES_A_TURN = 16 << 20, INBOX_KEY_BYTES_MAX = 255 };

struct inbox {
    /* The digest that tells bodies under one idempotency key apart; the same as for submits over HTTP. */
    void (*fingerprint)(const struct json *body, uint8_t out[16]);
    _Atomic uint64_t taken, refused; /* rows so far: became jobs, stay with an error */
    _Atomic uint32_t found;          /* by the last look; INBOX_ROWS_A_TURN: there may be more */
};

/* A decider like any other; u->reader finds the rows. True when there is more to do at once. */
bool inbox_drain(struct inbox *in, struct unit *u);

#endif
