/* http/head.h - one request head (request line and fields), parsed strictly. Pure: no I/O, no clock.
 *
 * Two steps, so that the caller may collect bytes in any pieces: head_scan() finds where the head ends
 * without looking at the meaning, head_parse() judges a whole head. Anything two parsers could read
 * differently is refused; there is no lenient mode (RFC 9112, and the rules below).
 *
 * Stricter than the RFC on purpose:
 *   - Content-Length and Transfer-Encoding may have one space before the value and no other padding;
 *     the only transfer coding is "chunked", once, and never beside Content-Length or on HTTP/1.0;
 *   - fields that decide something (HEAD_SINGLETONS) may not be repeated, not even with equal values;
 *   - at most one empty line before the request line; no bare LF, no bare CR, no folded lines. */
#ifndef WEIR_HTTP_HEAD_H
#define WEIR_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "http/server.h"

enum { HEAD_METHOD_BYTES_MAX = 32, HEAD_LENGTH_DIGITS_MAX = 18 };

enum head_end { HEAD_INCOMPLETE, HEAD_COMPLETE, HEAD_BROKEN };

/* Where a scan stands; zero it for a new head, keep it while bytes are added behind. */
struct head_scan {
    uint32_t at;    /* bytes looked at; the head's length once complete */
    uint32_t line;  /* where the current line starts */
    uint32_t lines; /* complete lines that are not empty: the request line and the fields */
};

/* HEAD_BROKEN: a bare LF, a flood of empty lines, or a first byte no request can start with. */
enum head_end head_scan(struct head_scan *scan, struct str bytes);

enum head_body { HEAD_BODY_NONE, HEAD_BODY_LENGTH, HEAD_BODY_CHUNKED };

/* Everything borrows from the bytes that were parsed. */
struct head {
    enum http_method method;
    struct str method_text;
    struct str path;  /* raw: still percent-encoded; "*" for OPTIONS * */
    struct str query; /* raw, absent without '?' */
    struct http_header *headers;
    uint32_t header_count;
    enum head_body body;
    int64_t content_length;
    bool http_1_0;
    bool keep_alive;
    bool expect_continue;
};

/* Parses the whole head `bytes` (as found by head_scan) and fills `room` with at most `room_count`
 * fields. Gives 0, or the status to refuse with (400, 417, 431, 505) and the reason in *err. */
MUST_CHECK int head_parse(struct str bytes, struct http_header *room, uint32_t room_count,
                          struct head *ret_head, struct err *err);

/* One field line without its CRLF. False when it is not exactly `name: value`. Also for trailers. */
bool head_parse_field(struct str line, struct http_header *ret_field, struct str *ret_raw_value);

#endif
