#include "case.h"

#include "base/must.h"
#include "base/varint.h"

#include "base/banned.h"

TEST(what_is_put_is_taken)
{
    static const uint64_t edges[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    struct strbuf b = {0};
    for (size_t i = 0; i < LENGTH_OF(edges); i++)
        varint_put(&b, edges[i]);
    for (unsigned bit = 0; bit < 64; bit++)
        varint_put(&b, UINT64_C(1) << bit);
    struct str rest = strbuf_str(&b);
    uint64_t n = 5;
    for (size_t i = 0; i < LENGTH_OF(edges); i++) {
        assert_true(varint_take(&rest, &n));
        assert_true(n == edges[i]);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_true(varint_take(&rest, &n));
        assert_true(n == UINT64_C(1) << bit);
    }
    assert_int_equal(rest.len, 0);
    assert_false(varint_take(&rest, &n));
    strbuf_free(&b);
}

TEST(sizes_are_as_few_bytes_as_needed)
{
    struct strbuf b = {0};
    varint_put(&b, 127);
    assert_int_equal(b.len, 1);
    varint_put(&b, 128);
    assert_int_equal(b.len, 3);
    strbuf_clear(&b);
    varint_put(&b, UINT64_MAX);
    assert_int_equal(b.len, VARINT_BYTES_MAX);
    strbuf_free(&b);
}

TEST(what_does_not_end_is_refused)
{
    const struct str bad[] = {STR("\x80"), STR("\xFF\xFF"),
                              STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
                              STR("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02")};
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        struct str rest = bad[i];
        uint64_t n;
        assert_false(varint_take(&rest, &n));
    }
}
