#include <stdlib.h>

#include "case.h"

#include "base/arena.h"
#include "base/must.h"

#include "base/banned.h"

TEST(memory_is_zeroed_and_aligned)
{
    struct arena *a = arena_new(64);
    for (size_t size = 1; size < 300; size += 7) {
        unsigned char *p = arena_alloc(a, size);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xAA, size);
    }
    arena_free(a);
}

TEST(reused_memory_is_zeroed_again)
{
    struct arena *a = arena_new(256);
    memset(arena_alloc(a, 200), 0xFF, 200);
    arena_reset(a);
    const unsigned char *p = arena_alloc(a, 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(p[i], 0);
    arena_free(a);
}

TEST(pieces_do_not_overlap_across_chunks)
{
    enum { PIECES = 500 };
    struct arena *a = arena_new(32);
    unsigned char *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = arena_alloc(a, 1 + i % 97);
        memset(pieces[i], (int)(i & 0xFF), 1 + i % 97);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t b = 0; b < 1 + i % 97; b++)
            assert_int_equal(pieces[i][b], i & 0xFF);
    arena_free(a);
}

TEST(bytes_count_what_was_handed_out_since_reset)
{
    struct arena *a = arena_new(64);
    assert_int_equal(arena_bytes(a), 0);
    arena_alloc(a, 10);
    assert_true(arena_bytes(a) >= 10);
    arena_alloc(a, 1 << 20);
    assert_true(arena_bytes(a) >= (1 << 20) + 10);
    arena_reset(a);
    assert_int_equal(arena_bytes(a), 0);
    arena_free(a);
}

TEST(copies_end_in_nul_and_own_their_bytes)
{
    struct arena *a = arena_new(64);
    char source[] = "abc";
    char *copy = arena_copy(a, source, 3);
    struct str s = arena_str(a, (struct str){"a\0b", 3});
    source[0] = 'X';
    assert_string_equal(copy, "abc");
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.ptr, "a\0b", 4);
    assert_string_equal(arena_copy(a, NULL, 0), "");
    assert_null(arena_str(a, STR_ABSENT).ptr);
    assert_non_null(arena_str(a, STR("")).ptr);
    struct str text = arena_printf(a, "%d-%s", 42, "long enough to leave the first chunk, surely so");
    assert_true(str_is(text, "42-long enough to leave the first chunk, surely so"));
    arena_free(a);
}

/* Fills it with `count` pieces of 1000 bytes; the addresses go into pieces. */
static void fill(struct arena *a, void **pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char *p = arena_alloc(a, 1000);
        for (size_t k = 0; k < 1000; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xEE, 1000);
        pieces[i] = p;
    }
}

TEST(a_reset_keeps_what_it_was_told_to_keep)
{
    enum { PIECES = 300 };
    void *first[PIECES], *again[PIECES];
    struct arena *a = arena_new(2048);
    arena_keep(a, 1 << 20);
    fill(a, first, PIECES);
    arena_reset(a);
    fill(a, again, PIECES);
    assert_memory_equal(first, again, sizeof first); /* the same places, in the same order, zeroed */
    arena_reset(a);
    fill(a, again, 1); /* a small round: what it did not use is given back at the next reset */
    arena_reset(a);
    fill(a, again, PIECES);
    arena_reset(a);
    arena_alloc(a, 3 << 20); /* larger than any spare chunk, and than what may be kept */
    arena_reset(a);
    fill(a, again, PIECES);
    arena_free(a);
}

TEST(freeing_nothing_is_fine)
{
    assert_null(arena_free(NULL));
    assert_null(arena_free(arena_new(1)));
}
