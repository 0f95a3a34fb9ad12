#include "base/err.h"

#include <stdio.h>

#include "base/banned.h"

static const struct {
    const char *wire, *title, *advice;
    int http;
} err_table[] = {
#define X(name, wire, http, title, advice) [ERR_##name] = {wire, title, advice, http},
    ERR_LIST(X)
#undef X
};

enum err_code err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list ap;
    err->code = code;
    err->retry_after_s = 0;
    err->conflict = err->for_log = err->no_room = false;
    va_start(ap, fmt);
    vsnprintf(err->detail, sizeof err->detail, fmt, ap);
    va_end(ap);
    return code;
}

const char *err_told(const struct err *err)
{
    if (err->for_log)
        return "the store could not do it now; the server's log has the reason";
    return err->detail[0] ? err->detail : err_title(err->code);
}

const char *err_wire(enum err_code code)
{
    return err_table[code].wire;
}
const char *err_title(enum err_code code)
{
    return err_table[code].title;
}
const char *err_advice(enum err_code code)
{
    return err_table[code].advice;
}
int err_http_status(enum err_code code)
{
    return err_table[code].http;
}
