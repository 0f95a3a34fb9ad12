#include "base/log_text.h"

#include "base/banned.h"

#define RESET "\033[0m"
#define BOLD  "\033[1m"
#define DIM   "\033[2m"

static const struct {
    const char *name, *colour;
} levels[] = {
    [LOG_DEBUG] = {"DEBUG", DIM},
    [LOG_INFO] = {"INFO", "\033[32m"},
    [LOG_WARN] = {"WARN", "\033[33m"},
    [LOG_ERROR] = {"ERROR", "\033[1;31m"},
};

static struct str time_of_day(struct str time)
{
    enum { SECONDS_END = 8, MILLIS_END = 12 };
    struct str rest = time;
    (void)str_cut(&rest, 'T');
    return (struct str){rest.ptr, rest.len < MILLIS_END ? SECONDS_END : MILLIS_END};
}

void log_text_begin(struct strbuf *out, bool coloured, enum log_level level, struct str time,
                    const char *process, const char *event)
{
    const char *dim = coloured ? DIM : "", *bold = coloured ? BOLD : "", *reset = coloured ? RESET : "";
    const char *colour = coloured ? levels[level].colour : "";
    strbuf_addf(out, "%s%.*sZ%s %s%-5s%s %s%-9s%s %s%s%s", dim, STR_ARG(time_of_day(time)), reset, colour,
                levels[level].name, reset, dim, process, reset, bold, event, reset);
}

void log_text_name(struct strbuf *out, bool coloured, const char *name)
{
    strbuf_addf(out, " %s%s=%s", coloured ? DIM : "", name, coloured ? RESET : "");
}

/* As it is: visible characters without spaces or quotes; or an object of ours, which has its own quotes. */
static bool is_plain(struct str text)
{
    bool object = text.len && text.ptr[0] == '{' && text.ptr[text.len - 1] == '}';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c < ' ' || c > '~' || (!object && (c == ' ' || c == '"' || c == '\\')))
            return false;
    }
    return text.len > 0;
}

/* C2 80 to C2 9F in UTF-8: control characters, too. */
static bool is_upper_control(struct str text, size_t at)
{
    return at + 1 < text.len && (unsigned char)text.ptr[at] == 0xC2 && (unsigned char)text.ptr[at + 1] < 0xA0;
}

void log_text_value(struct strbuf *out, struct str text)
{
    if (is_plain(text)) {
        strbuf_add_str(out, text);
        return;
    }
    strbuf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\')
            strbuf_addf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7F)
            strbuf_addf(out, "\\x%02x", c);
        else if (is_upper_control(text, i))
            strbuf_addf(out, "\\u00%02x", (unsigned char)text.ptr[++i]);
        else
            strbuf_add_char(out, (char)c);
    }
    strbuf_add_char(out, '"');
}
