/* Request heads. Properties:
 *   - the scan finds the same end in one piece and byte by byte, and never looks behind it;
 *   - the verdict on a head does not depend on what follows it in memory;
 *   - an accepted head, written out again from its parts, is accepted and means the same;
 *   - an accepted head has exactly one way to find its body. */
#include <stdlib.h>

#include "base/must.h"
#include "http/head.h"

#include "base/banned.h"

enum { FIELDS_MAX = 100 };

static struct http_header room[FIELDS_MAX], room_again[FIELDS_MAX];

static enum head_end scan_bytewise(struct str bytes, struct head_scan *ret_scan)
{
    enum head_end end = HEAD_INCOMPLETE;
    *ret_scan = (struct head_scan){0};
    for (size_t n = 1; n <= bytes.len && end == HEAD_INCOMPLETE; n++)
        end = head_scan(ret_scan, (struct str){bytes.ptr, n});
    return end;
}

static void check_one_framing(const struct head *h)
{
    uint32_t lengths = 0, codings = 0, hosts = 0;
    for (uint32_t i = 0; i < h->header_count; i++) {
        lengths += str_equal_nocase(h->headers[i].name, STR("content-length"));
        codings += str_equal_nocase(h->headers[i].name, STR("transfer-encoding"));
        hosts += str_equal_nocase(h->headers[i].name, STR("host"));
    }
    MUST(lengths + codings <= 1 && hosts <= 1);
    MUST(hosts == 1 || h->http_1_0);
    MUST((h->body == HEAD_BODY_CHUNKED) == (codings == 1));
    MUST(h->body != HEAD_BODY_LENGTH || lengths == 1);
    MUST(h->content_length >= 0);
}

static void write_again(const struct head *h, struct strbuf *out)
{
    strbuf_add_str(out, h->method_text);
    strbuf_add_char(out, ' ');
    strbuf_add_str(out, h->path);
    if (h->query.ptr) {
        strbuf_add_char(out, '?');
        strbuf_add_str(out, h->query);
    }
    strbuf_add_text(out, h->http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    for (uint32_t i = 0; i < h->header_count; i++) {
        strbuf_add_str(out, h->headers[i].name);
        strbuf_add_text(out, ": ");
        strbuf_add_str(out, h->headers[i].value);
        strbuf_add_text(out, "\r\n");
    }
    strbuf_add_text(out, "\r\n");
}

static void check_same(const struct head *a, const struct head *b)
{
    MUST(a->method == b->method && str_equal(a->method_text, b->method_text));
    MUST(str_equal(a->path, b->path) && str_equal(a->query, b->query));
    MUST(!a->query.ptr == !b->query.ptr);
    MUST(a->body == b->body && a->content_length == b->content_length);
    MUST(a->http_1_0 == b->http_1_0 && a->keep_alive == b->keep_alive);
    MUST(a->expect_continue == b->expect_continue && a->header_count == b->header_count);
    for (uint32_t i = 0; i < a->header_count; i++)
        MUST(str_equal(a->headers[i].name, b->headers[i].name) &&
             str_equal(a->headers[i].value, b->headers[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct head_scan scan = {0}, bytewise;
    struct err err;
    enum head_end end = head_scan(&scan, bytes);
    MUST(scan_bytewise(bytes, &bytewise) == end || size == 0);
    if (end != HEAD_COMPLETE)
        return 0;
    MUST(bytewise.at == scan.at && bytewise.lines == scan.lines);

    char *alone = must_alloc(scan.at); /* so a read behind the end is seen by the sanitizer */
    memcpy(alone, data, scan.at);
    struct head in_place, head;
    int status = head_parse((struct str){bytes.ptr, scan.at}, room_again, FIELDS_MAX, &in_place, &err);
    MUST(head_parse((struct str){alone, scan.at}, room, FIELDS_MAX, &head, &err) == status);
    MUST(status == 0 || status == 400 || status == 417 || status == 431 || status == 505);
    if (status == 0) {
        check_same(&head, &in_place);
        check_one_framing(&head);
        struct strbuf text = {0};
        struct head again;
        write_again(&head, &text);
        MUST(head_parse(strbuf_str(&text), room_again, FIELDS_MAX, &again, &err) == 0);
        check_same(&head, &again);
        strbuf_free(&text);
    }
    free(alone);
    return 0;
}
