#include "core/tls_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/time_text.h"

#include "base/banned.h"

enum { LOOK_EVERY_MS = 1000, WARN_DAYS = 14, DAY_SECONDS = 86400 };

static void tell_loaded(const struct tls *t)
{
    int64_t expires_at = tls_expires_at(t), now = clock_wall_ms(&clock_system) / 1000;
    char text[TIME_TEXT_MAX];
    log_line(expires_at - now < (int64_t)WARN_DAYS * DAY_SECONDS ? LOG_WARN : LOG_INFO, "tls_loaded",
             "certificate_expires_at", LOG_STR(time_text_ms(expires_at * 1000, text)), NULL);
}

enum err_code tls_watch_open(struct tls_watch *w, const struct settings *s, struct err *err)
{
    if (!s->tls_listen)
        return ERR_OK;
    struct tls_files files = {.cert = s->tls_cert, .key = s->tls_key, .client_ca = s->tls_client_ca};
    if (tls_open(&files, &w->tls, err) != ERR_OK)
        return err->code;
    tell_loaded(w->tls);
    return ERR_OK;
}

void tls_watch_tick(struct tls_watch *w, bool asked, int64_t now_ms)
{
    struct err err;
    if (!w->tls || (!asked && now_ms < w->look_ms))
        return;
    w->look_ms = now_ms + LOOK_EVERY_MS;
    if (!tls_look(w->tls) && !asked)
        return;
    if (tls_reload(w->tls, &err) == ERR_OK)
        tell_loaded(w->tls);
    else
        log_line(LOG_ERROR, "tls_not_loaded", "error_code", LOG_TEXT(err_wire(err.code)), "error_message",
                 LOG_TEXT(err.detail), NULL);
}

void tls_watch_close(struct tls_watch *w)
{
    w->tls = tls_close(w->tls);
}
