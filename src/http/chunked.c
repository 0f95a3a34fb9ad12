#include "http/chunked.h"

#include "http/head.h"
#include "http/hex.h"

#include "base/banned.h"

static enum chunked_result bad(struct err *err, const char *why)
{
    (void)err_set(err, ERR_REQUEST_MALFORMED, "chunked body: %s", why);
    return CHUNKED_BAD;
}

static bool is_extension_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ';' ||
           c == '=' || c == '-' || c == '_' || c == '.';
}

static enum chunked_result size_byte(struct chunked *c, char byte, struct err *err)
{
    int digit = hex_digit(byte);
    if (digit >= 0) {
        if (c->digits == CHUNKED_SIZE_DIGITS_MAX)
            return bad(err, "a size has too many digits");
        c->digits++;
        c->left = c->left * 16 + digit;
        return CHUNKED_MORE;
    }
    if (!c->digits)
        return bad(err, "a size does not start with a hex digit");
    if (byte == '\r')
        c->state = CHUNKED_SIZE_LF;
    else if (byte == ';')
        c->state = CHUNKED_EXTENSION;
    else
        return bad(err, "a size is followed by something else than CRLF");
    return CHUNKED_MORE;
}

static enum chunked_result extension_byte(struct chunked *c, char byte, struct err *err)
{
    if (byte == '\r') {
        c->state = CHUNKED_SIZE_LF;
        return CHUNKED_MORE;
    }
    if (!is_extension_byte(byte))
        return bad(err, "an extension holds a byte that is not taken");
    if (++c->extension_bytes > CHUNKED_EXTENSION_BYTES_MAX ||
        ++c->extensions_bytes > CHUNKED_EXTENSIONS_BYTES_MAX)
        return bad(err, "the extensions are too long");
    return CHUNKED_MORE;
}

/* The size line is whole: data follows, or after size 0 the trailers. */
static enum chunked_result size_ends(struct chunked *c, const struct strbuf *body, int64_t body_bytes_max,
                                     struct err *err)
{
    if (c->left > body_bytes_max - (int64_t)body->len) {
        (void)err_set(err, ERR_REQUEST_PAYLOAD_TOO_LARGE, "the body is larger than %lld bytes",
                      (long long)body_bytes_max);
        return CHUNKED_TOO_LARGE;
    }
    c->state = c->left ? CHUNKED_DATA : CHUNKED_TRAILER;
    c->digits = 0;
    c->extension_bytes = 0;
    return CHUNKED_MORE;
}

static bool is_settled_by_the_head(struct str name)
{
    static const char *const names[] = {"content-length",
                                        "transfer-encoding",
                                        "host",
                                        "authorization",
                                        "content-type",
                                        "content-encoding",
                                        "connection",
                                        "expect",
                                        "trailer",
                                        "te",
                                        "idempotency-key",
                                        "cookie"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_equal_nocase(name, str_of(names[i])))
            return true;
    return false;
}

static enum chunked_result trailer_ends(struct chunked *c, struct err *err)
{
    if (!c->line_len) {
        c->state = CHUNKED_ENDED;
        return CHUNKED_DONE;
    }
    struct http_header field;
    struct str raw;
    if (!head_parse_field((struct str){c->line, c->line_len}, &field, &raw))
        return bad(err, "a trailer is not `name: value`");
    if (is_settled_by_the_head(field.name))
        return bad(err, "a trailer names a field that belongs into the head");
    if (++c->trailers > CHUNKED_TRAILERS_MAX)
        return bad(err, "too many trailers");
    c->line_len = 0;
    c->state = CHUNKED_TRAILER;
    return CHUNKED_MORE;
}

static enum chunked_result trailer_byte(struct chunked *c, char byte, struct err *err)
{
    if (byte == '\r') {
        c->state = CHUNKED_TRAILER_LF;
        return CHUNKED_MORE;
    }
    if (byte == '\n')
        return bad(err, "a trailer line ends in a bare LF");
    if (c->line_len == CHUNKED_TRAILER_LINE_MAX)
        return bad(err, "a trailer is too long");
    c->line[c->line_len++] = byte;
    return CHUNKED_MORE;
}

static void take_data(struct chunked *c, struct str *in, struct strbuf *body)
{
    size_t n = (uint64_t)c->left < in->len ? (size_t)c->left : in->len;
    strbuf_add(body, in->ptr, n);
    in->ptr += n;
    in->len -= n;
    c->left -= (int64_t)n;
    if (!c->left)
        c->state = CHUNKED_DATA_CR;
}

static enum chunked_result expect_byte(struct chunked *c, char byte, char want, enum chunked_state next,
                                       struct err *err)
{
    if (byte != want)
        return bad(err, "CRLF is missing");
    c->state = next;
    return CHUNKED_MORE;
}

static enum chunked_result feed_byte(struct chunked *c, char byte, int64_t body_bytes_max,
                                     const struct strbuf *body, struct err *err)
{
    switch (c->state) {
    case CHUNKED_SIZE:
        return size_byte(c, byte, err);
    case CHUNKED_EXTENSION:
        return extension_byte(c, byte, err);
    case CHUNKED_SIZE_LF:
        return byte == '\n' ? size_ends(c, body, body_bytes_max, err) : bad(err, "CRLF is missing");
    case CHUNKED_DATA_CR:
        return expect_byte(c, byte, '\r', CHUNKED_DATA_LF, err);
    case CHUNKED_DATA_LF:
        return expect_byte(c, byte, '\n', CHUNKED_SIZE, err);
    case CHUNKED_TRAILER:
        return trailer_byte(c, byte, err);
    case CHUNKED_TRAILER_LF:
        return byte == '\n' ? trailer_ends(c, err) : bad(err, "CRLF is missing");
    case CHUNKED_DATA:
    case CHUNKED_ENDED:
        break;
    }
    return bad(err, "bytes after the end");
}

enum chunked_result chunked_feed(struct chunked *c, struct str *in, int64_t body_bytes_max,
                                 struct strbuf *body, struct err *err)
{
    while (in->len) {
        if (c->state == CHUNKED_DATA) {
            take_data(c, in, body);
            continue;
        }
        char byte = *in->ptr;
        in->ptr++;
        in->len--;
        enum chunked_result r = feed_byte(c, byte, body_bytes_max, body, err);
        if (r != CHUNKED_MORE)
            return r;
    }
    return CHUNKED_MORE;
}
