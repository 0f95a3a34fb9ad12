/* OTEL_EXPORTER_OTLP_HEADERS: commonly holds a secret, so nothing of it stands in an error. */
#include <stdlib.h>

#include "telemetry/otlp.h"

#include "base/banned.h"

const char *otlp_headers(void)
{
    return getenv("OTEL_EXPORTER_OTLP_HEADERS");
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: a % without two digits behind it. */
static bool add_decoded(struct strbuf *b, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            strbuf_add_char(b, text.ptr[i]);
            continue;
        }
        int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
        if (low < 0)
            return false;
        strbuf_add_char(b, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}

/* A token as RFC 9110 has it, as far as header names are made of it anywhere. */
static bool is_name(struct str name)
{
    static const char others[] = "!#$&'*+-.^_`|~0123456789";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i], small = (char)(c | 0x20);
        if (!c || ((small < 'a' || small > 'z') && !strchr(others, c)))
            return false;
    }
    return name.len > 0;
}

/* "name: value" */
static bool read_item(struct arena *a, struct str item, struct str *ret_line)
{
    struct str value = item, name = str_trim(str_cut(&value, '='));
    struct strbuf line = {0};
    strbuf_addf(&line, "%.*s: ", STR_ARG(name));
    bool ok = is_name(name) && str_trim(value).len && add_decoded(&line, str_trim(value));
    if (ok)
        *ret_line = arena_str(a, strbuf_str(&line));
    strbuf_free(&line);
    return ok;
}

enum err_code otlp_headers_parse(struct arena *a, struct str text, struct str lines[OTLP_HEADERS_MAX],
                                 size_t *ret_count, struct err *err)
{
    size_t count = 0;
    for (int number = 1; text.len; number++) {
        struct str item = str_trim(str_cut(&text, ','));
        if (!item.len)
            continue;
        if (count == OTLP_HEADERS_MAX)
            return err_set(err, ERR_CONFIG_INVALID, "there are more than %d items", OTLP_HEADERS_MAX);
        if (!read_item(a, item, &lines[count++]))
            return err_set(err, ERR_CONFIG_INVALID, "item %d is not NAME=VALUE with a percent-encoded value",
                           number);
    }
    *ret_count = count;
    return ERR_OK;
}
