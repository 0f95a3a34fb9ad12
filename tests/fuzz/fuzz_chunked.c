/* Chunked bodies. Properties:
 *   - result, body and rest are the same in one piece, byte by byte, and cut at a place the input names;
 *   - the body never exceeds the limit;
 *   - a decoded body, encoded plainly, decodes to itself. */
#include "base/must.h"
#include "http/chunked.h"

#include "base/banned.h"

enum { BODY_MAX = 256 };

struct outcome {
    enum chunked_result result;
    struct strbuf body;
    size_t used;
};

static struct outcome decode(struct str bytes, size_t first, size_t step)
{
    struct chunked c = {0};
    struct outcome o = {.result = CHUNKED_MORE};
    struct err err;
    while (o.used < bytes.len && o.result == CHUNKED_MORE) {
        size_t left = bytes.len - o.used, n = o.used < first ? first - o.used : step;
        struct str piece = {bytes.ptr + o.used, n < left ? n : left};
        size_t offered = piece.len;
        o.result = chunked_feed(&c, &piece, BODY_MAX, &o.body, &err);
        MUST(o.result != CHUNKED_MORE || !piece.len);
        o.used += offered - piece.len;
        MUST(o.body.len <= BODY_MAX);
    }
    return o;
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
    MUST(a->result == b->result && a->used == b->used);
    MUST(str_equal(strbuf_str(&a->body), strbuf_str(&b->body)));
}

static void check_plain_form(const struct outcome *o)
{
    struct strbuf text = {0};
    if (o->body.len)
        strbuf_addf(&text, "%zx\r\n", o->body.len);
    strbuf_add_str(&text, strbuf_str(&o->body));
    strbuf_add_text(&text, o->body.len ? "\r\n0\r\n\r\n" : "0\r\n\r\n");
    struct outcome again = decode(strbuf_str(&text), 0, text.len);
    MUST(again.result == CHUNKED_DONE && again.used == text.len);
    MUST(str_equal(strbuf_str(&again.body), strbuf_str(&o->body)));
    strbuf_free(&again.body);
    strbuf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct str bytes = {(const char *)data + 1, size - 1};
    struct outcome whole = decode(bytes, 0, size), bytewise = decode(bytes, 0, 1);
    struct outcome cut = decode(bytes, data[0], size);
    check_same(&whole, &bytewise);
    check_same(&whole, &cut);
    if (whole.result == CHUNKED_DONE)
        check_plain_form(&whole);
    strbuf_free(&whole.body);
    strbuf_free(&bytewise.body);
    strbuf_free(&cut.body);
    return 0;
}
