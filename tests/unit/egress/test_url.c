/* URLs as text. The table of cases is tests/egress/ssrf_urls.tsv. */
#include "case.h"

#include "base/url.h"
#include "egress/address.h"
#include "vectors.h"

#include "base/banned.h"

static void check_refused(struct str text, struct str says)
{
    struct url url = {.port = 7};
    const char *fault = url_parse(text, &url);
    if (!fault)
        fail_msg("taken: %.*s", STR_ARG(text));
    if (!memmem(fault, strlen(fault), says.ptr, says.len))
        fail_msg("%.*s: %s", STR_ARG(text), fault);
    assert_int_equal(url.port, 7); /* untouched */
}

static void check_row(const struct str columns[VECTOR_COLUMNS_MAX], void *self)
{
    struct url url;
    struct egress_policy strict = {0};
    const char *reason;
    (void)self;
    if (str_is(columns[0], "refused")) {
        check_refused(columns[1], columns[2]);
        return;
    }
    assert_true(str_is(columns[0], "taken") || str_is(columns[0], "denied"));
    const char *fault = url_parse(columns[1], &url);
    if (fault)
        fail_msg("%.*s: %s", STR_ARG(columns[1]), fault);
    if (!str_is(columns[2], url.endpoint))
        fail_msg("%.*s: %s", STR_ARG(columns[1]), url.endpoint);
    if (url.is_address)
        assert_int_equal(egress_address_text_allowed(&strict, url.host, &reason),
                         str_is(columns[0], "taken"));
    assert_true(url.tls == str_starts(columns[2], "https"));
}

TEST(every_url_of_the_table_has_its_verdict)
{
    assert_true(vectors_each("ssrf_urls.tsv", check_row, NULL) > 110);
}

static void repeat(struct strbuf *out, const char *text, size_t times)
{
    while (times--)
        strbuf_add_text(out, text);
}

TEST(lengths_are_bounded)
{
    struct strbuf text = {0};
    struct url url;
    strbuf_add_text(&text, "http://example.com/");
    repeat(&text, "a", URL_BYTES_MAX - text.len);
    assert_null(url_parse(strbuf_str(&text), &url));
    repeat(&text, "a", 1);
    check_refused(strbuf_str(&text), STR("longer than 2048"));
    strbuf_clear(&text);
    strbuf_add_text(&text, "https://");
    repeat(&text, "abcdefghi.", 25);
    strbuf_add_text(&text, "abc:65535"); /* a host of 253 bytes, the longest endpoint there is */
    assert_null(url_parse(strbuf_str(&text), &url));
    assert_true(str_equal(str_of(url.endpoint), strbuf_str(&text)));
    strbuf_clear(&text);
    strbuf_add_text(&text, "http://");
    repeat(&text, "abcdefghi.", 25);
    strbuf_add_text(&text, "abcd");
    check_refused(strbuf_str(&text), STR("more than 253"));
    strbuf_clear(&text);
    strbuf_add_text(&text, "http://");
    repeat(&text, "a", 64);
    check_refused(strbuf_str(&text), STR("no name"));
    strbuf_free(&text);
}
