/* The certificate of server.tls_listen. */
#include <inttypes.h>

#include "base/clock.h"
#include "cli/doctor.h"
#include "http/tls.h"

#include "base/banned.h"

enum { DAY_SECONDS = 86400, WARN_DAYS = 14 };

static const char renew[] = "put a renewed one in its place; it is read without a restart";

struct finding doctor_tls(const struct doctor *d)
{
    const struct settings *s = &d->settings;
    struct tls_files files = {.cert = s->tls_cert, .key = s->tls_key, .client_ca = s->tls_client_ca};
    struct tls *t = NULL;
    struct err err;
    if (!s->tls_listen)
        return finding(FINDING_OK, "", "%s", "");
    if (tls_open(&files, &t, &err) != ERR_OK)
        return finding(FINDING_FAIL, "a server does not start with it; one that runs keeps what it has",
                       "%.240s", err.detail);
    int64_t left = tls_expires_at(t) - clock_wall_ms(&clock_system) / 1000;
    tls_close(t);
    if (left <= 0)
        return finding(FINDING_FAIL, renew, "expired %" PRId64 " days ago", -left / DAY_SECONDS);
    return finding(left < (int64_t)WARN_DAYS * DAY_SECONDS ? FINDING_WARN : FINDING_OK, renew,
                   "expires in %" PRId64 " days", left / DAY_SECONDS);
}
