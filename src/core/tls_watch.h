/* core/tls_watch.h - TLS as the settings say: opened at the start, read again on SIGHUP and by itself.
 *
 * Every outcome is one line of log: tls_loaded, or tls_not_loaded with what is wrong; the old files stay in
 * force then. Thread: core's first. */
#ifndef WEIR_CORE_TLS_WATCH_H
#define WEIR_CORE_TLS_WATCH_H

#include "config/settings.h"
#include "http/tls.h"

struct tls_watch {
    struct tls *tls; /* NULL: server.tls_listen is not set */
    int64_t look_ms; /* steady: the next look at the files */
};

MUST_CHECK enum err_code tls_watch_open(struct tls_watch *w, const struct settings *s, struct err *err);
void tls_watch_tick(struct tls_watch *w, bool asked, int64_t now_ms); /* asked: by SIGHUP */
void tls_watch_close(struct tls_watch *w);

#endif
