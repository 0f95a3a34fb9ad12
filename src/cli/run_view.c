/* How the parts of the Engine API's answers are shown to people. */
#include <inttypes.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/run_internal.h"

#include "base/banned.h"

void run_show_pairs(const struct json *object, const char *const *names, size_t count)
{
    struct text_table *t = text_table_new(NULL, 2);
    for (size_t i = 0; i < count; i++) {
        const struct json *value = json_get(object, names[i]);
        if (value && value->type != JSON_NULL)
            text_table_pair(t, names[i], value);
    }
    text_table_show_and_free(t);
}

void run_took_text(struct str from, struct str to, char *out, size_t size)
{
    int64_t from_us, to_us;
    out[0] = 0;
    if (!from.ptr || !to.ptr || !time_parse_us(from, &from_us) || !time_parse_us(to, &to_us))
        return;
    int64_t ms = to_us > from_us ? (to_us - from_us) / 1000 : 0;
    if (ms < 60000)
        snprintf(out, size, "%" PRId64 ".%03" PRId64 " s", ms / 1000, ms % 1000);
    else if (ms < 3600000)
        snprintf(out, size, "%" PRId64 " min %" PRId64 " s", ms / 60000, ms % 60000 / 1000);
    else
        snprintf(out, size, "%" PRId64 " h %" PRId64 " min", ms / 3600000, ms % 3600000 / 60000);
}

struct str run_failure_text(struct arena *a, const struct json *failure)
{
    const struct json *error = json_get(failure, "error");
    struct str reason = json_text(failure, "reason"), message = json_text(error, "message");
    struct str code = json_text(error, "code");
    if (!reason.ptr)
        reason = code;
    if (reason.ptr && message.ptr)
        return arena_printf(a, "%.*s: %.*s", STR_ARG(reason), STR_ARG(message));
    if (reason.ptr || message.ptr)
        return arena_str(a, reason.ptr ? reason : message);
    return STR_ABSENT;
}
