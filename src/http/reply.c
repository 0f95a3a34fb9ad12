#include <time.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/problem.h"

#include "base/banned.h"

#define HTTP_STATUSES(X)                                                                                     \
    X(200, "OK")                                                                                             \
    X(201, "Created")                                                                                        \
    X(202, "Accepted")                                                                                       \
    X(204, "No Content")                                                                                     \
    X(301, "Moved Permanently")                                                                              \
    X(302, "Found")                                                                                          \
    X(303, "See Other")                                                                                      \
    X(304, "Not Modified")                                                                                   \
    X(307, "Temporary Redirect")                                                                             \
    X(308, "Permanent Redirect")                                                                             \
    X(400, "Bad Request")                                                                                    \
    X(401, "Unauthorized")                                                                                   \
    X(403, "Forbidden")                                                                                      \
    X(404, "Not Found")                                                                                      \
    X(405, "Method Not Allowed")                                                                             \
    X(406, "Not Acceptable")                                                                                 \
    X(408, "Request Timeout")                                                                                \
    X(409, "Conflict")                                                                                       \
    X(410, "Gone")                                                                                           \
    X(412, "Precondition Failed")                                                                            \
    X(413, "Content Too Large")                                                                              \
    X(415, "Unsupported Media Type")                                                                         \
    X(417, "Expectation Failed")                                                                             \
    X(421, "Misdirected Request")                                                                            \
    X(422, "Unprocessable Content")                                                                          \
    X(429, "Too Many Requests")                                                                              \
    X(431, "Request Header Fields Too Large")                                                                \
    X(500, "Internal Server Error")                                                                          \
    X(501, "Not Implemented")                                                                                \
    X(502, "Bad Gateway")                                                                                    \
    X(503, "Service Unavailable")                                                                            \
    X(504, "Gateway Timeout")                                                                                \
    X(505, "HTTP Version Not Supported")

static void add_status_line(struct strbuf *out, int status)
{
#define X(code, reason)                                                                                      \
    [code - 200] = {"HTTP/1.1 " #code " " reason "\r\n", sizeof("HTTP/1.1 " #code " " reason) + 1},
    static const struct str lines[] = {HTTP_STATUSES(X)};
#undef X
    size_t i = (size_t)(status - 200);
    if (i < LENGTH_OF(lines) && lines[i].ptr)
        strbuf_add_str(out, lines[i]);
    else
        strbuf_addf(out, "HTTP/1.1 %d \r\n", status); /* the reason may be empty, its space may not */
}

/* "Date: Sun, 15 Nov 2026 23:10:00 GMT\r\n", made once a second. */
static void add_date(struct http_loop *l, struct strbuf *out, int64_t wall_us)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t second = wall_us / 1000000;
    if (second != l->date_second) {
        time_t t = (time_t)second;
        struct tm utc;
        MUST(gmtime_r(&t, &utc));
        struct strbuf text = {0};
        strbuf_addf(&text, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday,
                    months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
        MUST(text.len < sizeof l->date);
        memcpy(l->date, text.ptr, text.len + 1);
        strbuf_free(&text);
        l->date_second = second;
    }
    strbuf_add(out, "Date: ", 6);
    strbuf_add_text(out, l->date);
    strbuf_add(out, "\r\n", 2);
}

static void add_request_id(struct strbuf *out, const struct uuid *id)
{
    char text[UUID_TEXT_LEN + 1];
    uuid_text(id, text);
    strbuf_add(out, "X-Request-Id: ", 14);
    strbuf_add(out, text, UUID_TEXT_LEN);
    strbuf_add(out, "\r\n", 2);
}

static bool names_field(struct str headers, struct str name)
{
    while (headers.len) {
        struct str line = str_cut(&headers, '\n');
        if (str_equal_nocase(str_cut(&line, ':'), name))
            return true;
    }
    return false;
}

static void add_framing(struct exchange *ex, bool stream)
{
    struct http_exchange *x = &ex->pub;
    struct strbuf *out = &ex->out;
    bool bodiless = x->status == 204 || x->status == 304;
    if (stream) {
        if (!ex->stream_bare)
            strbuf_add_text(out, "Transfer-Encoding: chunked\r\n");
    } else if (!bodiless) {
        strbuf_add_text(out, "Content-Length: ");
        strbuf_add_int(out, (int64_t)x->reply_body.len);
        strbuf_add(out, "\r\n", 2);
    }
    if (x->content_type && !bodiless && (stream || x->reply_body.len)) {
        strbuf_add_text(out, "Content-Type: ");
        strbuf_add_text(out, x->content_type);
        strbuf_add(out, "\r\n", 2);
    }
    if (bodiless)
        strbuf_clear(&x->reply_body);
}

void reply_write_head(struct exchange *ex, bool stream)
{
    struct http_exchange *x = &ex->pub;
    struct http_loop *l = x->loop;
    struct strbuf *out = &ex->out;
    ex->closing = x->close_after || !ex->keep_alive || ex->unread_input ||
                  atomic_load_explicit(&l->server->draining, memory_order_relaxed);
    strbuf_reserve(out, 512);
    add_status_line(out, x->status);
    add_date(l, out, loop_wall_us(l));
    add_framing(ex, stream);
    add_request_id(out, &x->request_id);
    if (!names_field(strbuf_str(&x->reply_headers), STR("Cache-Control")))
        strbuf_add_text(out, "Cache-Control: no-store\r\n");
    if (ex->closing)
        strbuf_add_text(out, "Connection: close\r\n");
    else if (ex->http_1_0)
        strbuf_add_text(out, "Connection: keep-alive\r\n");
    strbuf_add_str(out, strbuf_str(&x->reply_headers));
    strbuf_add(out, "\r\n", 2);
}

void reply_bad_request(struct exchange *ex, int status, const struct err *why)
{
    struct http_exchange *x = &ex->pub;
    x->status = status;
    if (x->loop->server->config.on_bad_request)
        x->loop->server->config.on_bad_request(x, status, why);
    else
        problem_reply_status(x, status, why);
    MUST(x->status >= 400);
}
