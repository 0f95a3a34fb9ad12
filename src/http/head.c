#include "http/head.h"

#include "base/must.h"

#include "base/banned.h"

/* Classes of bytes (RFC 9110 5.6.2, 5.5; RFC 3986). */
enum { T = 1 /* token */, V = 2 /* field value */, U = 4 /* request target */, H = 8 /* host */ };

static const uint8_t byte_class[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = T | V | U,
    ['"'] = V | U,
    ['#'] = T | V,
    ['$'] = T | V | U,
    ['%'] = T | V | U | H,
    ['&'] = T | V | U,
    ['\''] = T | V | U,
    ['('] = V | U,
    [')'] = V | U,
    ['*'] = T | V | U,
    ['+'] = T | V | U,
    [','] = V | U,
    ['-'] = T | V | U | H,
    ['.'] = T | V | U | H,
    ['/'] = V | U,
    ['0' ... '9'] = T | V | U | H,
    [':'] = V | U | H,
    [';' ... '@'] = V | U,
    ['A' ... 'Z'] = T | V | U | H,
    ['['] = V | U | H,
    ['\\'] = V | U,
    [']'] = V | U | H,
    ['^'] = T | V | U,
    ['_'] = T | V | U | H,
    ['`'] = T | V | U,
    ['a' ... 'z'] = T | V | U | H,
    ['{'] = V | U,
    ['|'] = T | V | U,
    ['}'] = V | U,
    ['~'] = T | V | U | H,
    [0x80 ... 0xFF] = V,
};

static bool all_of(struct str s, uint8_t class)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(byte_class[(unsigned char)s.ptr[i]] & class))
            return false;
    return true;
}

/* Fields that steer the server or the handler: said twice, they are an attack or a mistake. */
#define HEAD_SINGLETONS(X)                                                                                   \
    X(HOST, "host")                                                                                          \
    X(CONTENT_LENGTH, "content-length")                                                                      \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                                \
    X(EXPECT, "expect")                                                                                      \
    X(CONTENT_TYPE, "content-type")                                                                          \
    X(AUTHORIZATION, "authorization")                                                                        \
    X(IDEMPOTENCY_KEY, "idempotency-key")

#define X(name, text) ONCE_##name,
enum once { HEAD_SINGLETONS(X) ONCE_COUNT };
#undef X

#define X(name, text) [ONCE_##name] = {text, sizeof(text) - 1},
static const struct str once_names[ONCE_COUNT] = {HEAD_SINGLETONS(X)};
#undef X

struct parsing {
    struct head *head;
    struct str authority;                           /* of an absolute-form target */
    struct str values[ONCE_COUNT], raw[ONCE_COUNT]; /* ptr NULL: not seen */
    bool close, keep_alive;
    struct err *err;
};

static int refuse(struct err *err, int status, const char *why)
{
    (void)err_set(err, ERR_REQUEST_MALFORMED, "%s", why);
    return status;
}

enum head_end head_scan(struct head_scan *scan, struct str bytes)
{
    if (bytes.len && bytes.ptr[0] != '\r' && !(byte_class[(unsigned char)bytes.ptr[0]] & T))
        return HEAD_BROKEN;
    while (scan->at < bytes.len) {
        const char *lf = memchr(bytes.ptr + scan->at, '\n', bytes.len - scan->at);
        if (!lf) {
            scan->at = (uint32_t)bytes.len;
            break;
        }
        uint32_t end = (uint32_t)(lf - bytes.ptr);
        if (end == scan->line || lf[-1] != '\r')
            return HEAD_BROKEN;
        bool empty = end - scan->line == 1;
        scan->at = end + 1;
        if (empty && scan->lines)
            return HEAD_COMPLETE;
        if (empty && scan->line) /* the second empty line before a request line */
            return HEAD_BROKEN;
        scan->line = end + 1;
        scan->lines += !empty;
    }
    return HEAD_INCOMPLETE;
}

static struct str next_line(struct str *rest)
{
    struct str line = str_cut(rest, '\n');
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--; /* head_scan saw to it that it is there */
    return line;
}

static enum http_method method_of(struct str text)
{
#define X(name) {#name, sizeof(#name) - 1},
    static const struct str names[] = {HTTP_METHODS(X)};
#undef X
    for (int m = 0; m < HTTP_OTHER; m++)
        if (str_equal(names[m], text))
            return (enum http_method)m;
    return HTTP_OTHER;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int parse_version(struct parsing *p, struct str v)
{
    if (v.len != 8 || memcmp(v.ptr, "HTTP/", 5) != 0 || !is_digit(v.ptr[5]) || v.ptr[6] != '.' ||
        !is_digit(v.ptr[7]))
        return refuse(p->err, 400, "the request line does not end in HTTP/1.1");
    if (v.ptr[5] != '1' || v.ptr[7] > '1')
        return refuse(p->err, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    p->head->http_1_0 = v.ptr[7] == '0';
    return 0;
}

/* "http://host[:port]/path?query"; the path may be missing. */
static int parse_absolute_target(struct parsing *p, struct str target)
{
    struct str scheme = str_cut(&target, ':');
    if (!str_equal_nocase(scheme, STR("http")) && !str_equal_nocase(scheme, STR("https")))
        return refuse(p->err, 400, "the request target is neither a path nor an http URI");
    if (!str_starts(target, "//"))
        return refuse(p->err, 400, "the request target has no authority");
    target.ptr += 2;
    target.len -= 2;
    size_t n = 0;
    while (n < target.len && target.ptr[n] != '/' && target.ptr[n] != '?')
        n++;
    p->authority = (struct str){target.ptr, n};
    if (!n || !all_of(p->authority, H))
        return refuse(p->err, 400, "the request target's authority is not a host");
    target.ptr += n;
    target.len -= n;
    bool query = memchr(target.ptr, '?', target.len) != NULL;
    struct str path = str_cut(&target, '?');
    p->head->path = path.len ? path : STR("/");
    p->head->query = query ? target : STR_ABSENT;
    return 0;
}

static int parse_target(struct parsing *p, struct str target)
{
    if (!target.len || !all_of(target, U))
        return refuse(p->err, 400, "the request target holds a byte that no URI may hold");
    if (target.ptr[0] == '/') {
        bool query = memchr(target.ptr, '?', target.len) != NULL;
        p->head->path = str_cut(&target, '?');
        p->head->query = query ? target : STR_ABSENT;
        return 0;
    }
    p->head->query = STR_ABSENT;
    p->head->path = target;
    if (str_is(target, "*")) {
        if (p->head->method == HTTP_OPTIONS)
            return 0;
        return refuse(p->err, 400, "the target * goes with OPTIONS only");
    }
    return parse_absolute_target(p, target);
}

static int parse_request_line(struct parsing *p, struct str line)
{
    struct str method = str_cut(&line, ' ');
    struct str target = str_cut(&line, ' ');
    if (!method.len || method.len > HEAD_METHOD_BYTES_MAX || !all_of(method, T))
        return refuse(p->err, 400, "the request line does not start with a method");
    int status = parse_version(p, line);
    if (status)
        return status;
    p->head->method_text = method;
    p->head->method = method_of(method);
    return parse_target(p, target);
}

bool head_parse_field(struct str line, struct http_header *ret_field, struct str *ret_raw_value)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon)
        return false;
    struct str name = str_cut(&line, ':');
    if (!name.len || !all_of(name, T) || !all_of(line, V))
        return false;
    *ret_raw_value = line;
    *ret_field = (struct http_header){name, str_trim(line)};
    return true;
}

/* Connection is a list and may be repeated. */
static void note_connection(struct parsing *p, struct str value)
{
    while (value.len) {
        struct str option = str_trim(str_cut(&value, ','));
        p->close |= str_equal_nocase(option, STR("close"));
        p->keep_alive |= str_equal_nocase(option, STR("keep-alive"));
    }
}

static int note_field(struct parsing *p, const struct http_header *field, struct str raw)
{
    if (field->name.len == 10 && str_equal_nocase(field->name, STR("connection")))
        note_connection(p, field->value);
    for (int i = 0; i < ONCE_COUNT; i++) {
        if (once_names[i].len != field->name.len || !str_equal_nocase(once_names[i], field->name))
            continue;
        if (p->raw[i].ptr) {
            (void)err_set(p->err, ERR_REQUEST_MALFORMED, "the field %s is repeated", once_names[i].ptr);
            return 400;
        }
        p->values[i] = field->value;
        p->raw[i] = raw;
    }
    return 0;
}

static int parse_fields(struct parsing *p, struct str rest, struct http_header *room, uint32_t room_count)
{
    p->head->headers = room;
    for (struct str line = next_line(&rest); line.len; line = next_line(&rest)) {
        if (p->head->header_count == room_count)
            return refuse(p->err, 431, "too many header fields");
        struct http_header *field = &room[p->head->header_count];
        struct str raw;
        if (!head_parse_field(line, field, &raw))
            return refuse(p->err, 400, "a header line is not `name: value`");
        p->head->header_count++;
        int status = note_field(p, field, raw);
        if (status)
            return status;
    }
    return 0;
}

static int check_host(struct parsing *p)
{
    if (!p->raw[ONCE_HOST].ptr)
        return p->head->http_1_0 ? 0 : refuse(p->err, 400, "the Host field is missing");
    struct str host = p->values[ONCE_HOST];
    if (!host.len || !all_of(host, H))
        return refuse(p->err, 400, "the Host field is not a host");
    if (p->authority.ptr && !str_equal_nocase(host, p->authority))
        return refuse(p->err, 400, "the Host field differs from the request target");
    return 0;
}

/* Parsers have disagreed about padding in the fields that frame a message: only `Name: value` or
 * `Name:value` will do. */
static bool is_padded(struct str raw, struct str value)
{
    return raw.len != value.len && !(raw.len == value.len + 1 && raw.ptr[0] == ' ');
}

static int check_framing(struct parsing *p)
{
    struct str length = p->values[ONCE_CONTENT_LENGTH], coding = p->values[ONCE_TRANSFER_ENCODING];
    bool has_length = p->raw[ONCE_CONTENT_LENGTH].ptr, has_coding = p->raw[ONCE_TRANSFER_ENCODING].ptr;
    if (has_length && has_coding)
        return refuse(p->err, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (has_coding) {
        if (p->head->http_1_0)
            return refuse(p->err, 400, "HTTP/1.0 has no Transfer-Encoding");
        if (is_padded(p->raw[ONCE_TRANSFER_ENCODING], coding) || !str_equal_nocase(coding, STR("chunked")))
            return refuse(p->err, 400, "Transfer-Encoding is not exactly `chunked`");
        p->head->body = HEAD_BODY_CHUNKED;
    }
    if (has_length) {
        if (is_padded(p->raw[ONCE_CONTENT_LENGTH], length) || length.len > HEAD_LENGTH_DIGITS_MAX ||
            !str_to_int(length, 0, INT64_MAX, &p->head->content_length) || !is_digit(length.ptr[0]))
            return refuse(p->err, 400, "Content-Length is not a plain decimal number");
        p->head->body = p->head->content_length ? HEAD_BODY_LENGTH : HEAD_BODY_NONE;
    }
    return 0;
}

static int check_expect(struct parsing *p)
{
    if (!p->raw[ONCE_EXPECT].ptr || p->head->http_1_0)
        return 0;
    if (!str_equal_nocase(p->values[ONCE_EXPECT], STR("100-continue")))
        return refuse(p->err, 417, "the only expectation met here is 100-continue");
    p->head->expect_continue = true;
    return 0;
}

int head_parse(struct str bytes, struct http_header *room, uint32_t room_count, struct head *ret_head,
               struct err *err)
{
    struct head head = {0};
    struct parsing p = {.head = &head, .err = err};
    struct str line = next_line(&bytes);
    if (!line.len)
        line = next_line(&bytes); /* the one empty line that may stand before */
    int status = parse_request_line(&p, line);
    if (!status)
        status = parse_fields(&p, bytes, room, room_count);
    if (!status)
        status = check_host(&p);
    if (!status)
        status = check_framing(&p);
    if (!status)
        status = check_expect(&p);
    head.keep_alive = !p.close && (!head.http_1_0 || p.keep_alive);
    *ret_head = head; /* also when refused: method and path serve the log */
    return status;
}
