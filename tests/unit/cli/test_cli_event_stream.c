/* text/event-stream in whatever pieces the network makes of it. */
#include "case.h"

#include "base/must.h"
#include "cli/event_stream.h"

#include "base/banned.h"

struct heard {
    struct strbuf text; /* "id=data;" for each event */
    int stop_after;     /* 0: never */
    int count;
};

static bool hear(void *self, struct str id, struct str data)
{
    struct heard *h = self;
    strbuf_addf(&h->text, "%.*s=%.*s;", STR_ARG(id), STR_ARG(data));
    return ++h->count != h->stop_after;
}

/* Feeds in pieces of `piece` bytes. */
static void heard_is(const char *stream, size_t piece, const char *expected)
{
    struct event_stream s = {0};
    struct heard h = {0};
    for (size_t at = 0, len = strlen(stream); at < len; at += piece)
        assert_true(
            event_stream_feed(&s, (struct str){stream + at, len - at < piece ? len - at : piece}, hear, &h));
    assert_string_equal(h.text.ptr ? h.text.ptr : "", expected);
    strbuf_free(&h.text);
    event_stream_free(&s);
}

TEST(test_events_come_out_alike_however_the_bytes_are_cut)
{
    static const char stream[] = ": hello\n\nid: 1\nevent: job.created\ndata: {\"seq\":1}\n\n"
                                 "id:2\ndata:a\ndata: b\n\nretry: 100\n\ndata\n\nid: 3\ndata: x\n\n";
    for (size_t piece = 1; piece <= sizeof stream; piece++)
        heard_is(stream, piece, "1={\"seq\":1};2=a\nb;2=;3=x;");
}

TEST(test_lines_may_end_by_lf_cr_or_both)
{
    for (size_t piece = 1; piece < 8; piece++) {
        heard_is("id: 1\r\ndata: a\r\n\r\nid: 2\r\ndata: b\r\n\r\n", piece, "1=a;2=b;");
        heard_is("id: 1\rdata: a\r\rid: 2\rdata: b\r\r", piece, "1=a;2=b;");
    }
}

TEST(test_an_event_without_its_empty_line_is_not_heard)
{
    heard_is("id: 1\ndata: a\n\nid: 2\ndata: b\n", 3, "1=a;");
}

TEST(test_a_new_connection_forgets_half_an_event_but_not_the_last_id)
{
    struct event_stream s = {0};
    struct heard h = {0};
    assert_true(event_stream_feed(&s, STR("id: 7\ndata: a\n\ndata: half"), hear, &h));
    event_stream_reset(&s);
    assert_string_equal(s.last_id.ptr, "7");
    assert_true(event_stream_feed(&s, STR("data: b\n\n"), hear, &h));
    assert_string_equal(h.text.ptr, "7=a;7=b;");
    strbuf_free(&h.text);
    event_stream_free(&s);
}

TEST(test_the_listener_can_stop_the_stream)
{
    struct event_stream s = {0};
    struct heard h = {.stop_after = 1};
    assert_false(event_stream_feed(&s, STR("data: a\n\ndata: b\n\n"), hear, &h));
    assert_int_equal(h.count, 1);
    assert_false(s.broken);
    strbuf_free(&h.text);
    event_stream_free(&s);
}

TEST(test_an_event_without_end_is_given_up)
{
    static char block[65536];
    struct event_stream s = {0};
    struct heard h = {0};
    size_t fed = 0;
    memset(block, 'x', sizeof block);
    while (event_stream_feed(&s, (struct str){block, sizeof block}, hear, &h))
        assert_true((fed += sizeof block) <= EVENT_STREAM_BYTES_MAX);
    assert_true(s.broken);
    assert_int_equal(h.count, 0);
    event_stream_free(&s);
}
