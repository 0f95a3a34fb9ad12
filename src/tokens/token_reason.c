#include "tokens/token_reason.h"

#include "base/banned.h"

static const struct {
    const char *wire;
    int status;
} classes[] = {
#define X(name, wire, status) [TOKEN_CLASS_##name] = {wire, status},
    TOKEN_CLASSES(X)
#undef X
};

static const struct {
    const char *name;
    enum token_class class;
    const char *text;
} reasons[] = {
#define X(name, wire, class, text) [TOKEN_##name] = {wire, TOKEN_CLASS_##class, text},
    TOKEN_REASONS(X)
#undef X
};

const char *token_reason_name(enum token_reason reason)
{
    return reasons[reason].name;
}
const char *token_reason_text(enum token_reason reason)
{
    return reasons[reason].text;
}
const char *token_reason_wire(enum token_reason reason)
{
    return classes[reasons[reason].class].wire;
}
int token_reason_status(enum token_reason reason)
{
    return classes[reasons[reason].class].status;
}

bool token_reason_parse(struct str name, enum token_reason *ret_reason)
{
    for (int i = 0; i < TOKEN_REASON_COUNT; i++)
        if (str_is(name, reasons[i].name)) {
            *ret_reason = (enum token_reason)i;
            return true;
        }
    return false;
}
