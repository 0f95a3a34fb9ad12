/* api/credential.h - do the credentials of a request still hold? For calls that last: streams and long polls.
 *
 * When a key is revoked or replaced, or its client is suspended, the generation of the keys rises
 * (api/auth.h), and every lasting call looks again; likewise within a second or two when the keys that sign
 * tokens have changed on disk (api_tick). A credential with an end is looked at when its time has come. A
 * stream looks with each ping, too, because nothing announces that an outside issuer has dropped a key. While
 * the store cannot be read no call is turned away.
 *
 * Threads: a call's own loop thread; credential_is_stale() any. */
#ifndef WEIR_API_CREDENTIAL_H
#define WEIR_API_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct call;

struct credential {
    uint64_t generation; /* of the keys, before it was last found to hold */
    int64_t look_at_ms;  /* wall clock: when it ends by itself; INT64_MAX: it does not */
};

/* Before a call is let in: later changes make the credential stale. */
void credential_note(struct call *c);
/* The call was let in, and lasts from here on. */
void credential_begin(struct call *c);
/* Keys have changed since then. Never of a process of our own. */
bool credential_is_stale(const struct call *c);
bool credential_is_due(const struct call *c, int64_t wall_ms); /* stale, or its time has come */
/* Looks again. The error says why it does not hold any more. */
MUST_CHECK enum err_code credential_check(struct call *c, struct arena *scratch, int64_t wall_ms,
                                          struct err *err);

#endif
