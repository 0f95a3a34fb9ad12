/* http/chunked.h - the chunked transfer coding, decoded strictly and in any pieces. Pure.
 *
 * Extensions: `;name` or `;name=value` of token bytes, bounded, ignored; quoted ones are refused.
 * Trailers:   checked, bounded, ignored; one that names a field the head already settled (framing,
 *             routing, credentials) is refused instead of silently dropped. */
#ifndef WEIR_HTTP_CHUNKED_H
#define WEIR_HTTP_CHUNKED_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
    CHUNKED_SIZE_DIGITS_MAX = 15,        /* so a size cannot overflow */
    CHUNKED_EXTENSION_BYTES_MAX = 128,   /* a chunk */
    CHUNKED_EXTENSIONS_BYTES_MAX = 4096, /* a body */
    CHUNKED_TRAILER_LINE_MAX = 256,
    CHUNKED_TRAILERS_MAX = 16,
};

enum chunked_state {
    CHUNKED_SIZE,
    CHUNKED_EXTENSION,
    CHUNKED_SIZE_LF,
    CHUNKED_DATA,
    CHUNKED_DATA_CR,
    CHUNKED_DATA_LF,
    CHUNKED_TRAILER,
    CHUNKED_TRAILER_LF,
    CHUNKED_ENDED,
};

/* Zero it for a new body. */
struct chunked {
    enum chunked_state state;
    uint32_t digits;          /* of the size being read */
    int64_t left;             /* size so far, then bytes of data to come */
    uint32_t extension_bytes; /* of this chunk */
    uint32_t extensions_bytes;
    uint32_t trailers;
    uint32_t line_len;
    char line[CHUNKED_TRAILER_LINE_MAX];
};

enum chunked_result { CHUNKED_MORE, CHUNKED_DONE, CHUNKED_BAD, CHUNKED_TOO_LARGE };

/* Takes bytes off the front of *in and adds the data to `body`, which never grows beyond
 * body_bytes_max. After CHUNKED_DONE *in holds what follows the body. */
MUST_CHECK enum chunked_result chunked_feed(struct chunked *c, struct str *in, int64_t body_bytes_max,
                                            struct strbuf *body, struct err *err);

#endif
