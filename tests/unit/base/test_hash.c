#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/hash.h"
#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

/* The key 00..0f and messages 00, 00 01, ... of the paper by Aumasson and Bernstein, appendix A. */
TEST(siphash_gives_the_reference_vectors)
{
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char message[64];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)i;
    assert_true(hash_sip(key, message, 15) == UINT64_C(0xa129ca6149be45e5));
    assert_true(hash_sip(key, message, 0) == UINT64_C(0x726fdb47dd0e0e31));
    assert_true(hash_sip(key, message, 1) == UINT64_C(0x74f839c593dc67fd));
    assert_true(hash_sip(key, message, 8) == UINT64_C(0x93f5f5799a932462));
}

TEST(siphash_depends_on_its_key)
{
    assert_true(hash_sip((uint64_t[]){0, 0}, "a", 1) != hash_sip((uint64_t[]){1, 0}, "a", 1));
    assert_true(hash_sip((uint64_t[]){0, 0}, "a", 1) != hash_sip((uint64_t[]){0, 1}, "a", 1));
}

TEST(siphash_reads_unaligned_bytes_alike)
{
    static const uint64_t key[2] = {1, 2};
    char room[40];
    const char text[] = "0123456789abcdefghijkl";
    uint64_t wanted = hash_sip(key, text, 22);
    for (size_t shift = 0; shift < 16; shift++) {
        memcpy(room + shift, text, 22);
        assert_true(hash_sip(key, room + shift, 22) == wanted);
    }
}

TEST(fnv1a_gives_the_published_values_and_continues)
{
    assert_true(hash_fnv1a(HASH_FNV_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_fnv1a(HASH_FNV_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_fnv1a(HASH_FNV_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    uint64_t half = hash_fnv1a(HASH_FNV_START, "foo", 3);
    assert_true(hash_fnv1a(half, "bar", 3) == UINT64_C(0x85944171f73967e8));
}

TEST(mix_spreads_neighbours)
{
    unsigned char seen[256] = {0};
    for (uint64_t i = 1; i <= 4096; i++)
        seen[hash_mix(i) & 255]++;
    for (size_t i = 0; i < sizeof seen; i++)
        assert_true(seen[i] > 0);
}

/* A program that is started twice hashes differently; a test may choose. */
TEST(the_secret_is_drawn_anew_by_each_program)
{
    char first[32] = "", second[32] = "";
    char *const texts[] = {first, second};
    for (int i = 0; i < 2; i++) {
        FILE *again = popen("/proc/$PPID/exe --show", "r");
        assert_non_null(again);
        assert_non_null(fgets(texts[i], sizeof first, again));
        pclose(again);
    }
    assert_string_not_equal(first, second);
    const uint64_t key[2] = {1, 2};
    hash_secret_set(key);
    assert_true(hash_secret("a", 1) == hash_sip(key, "a", 1));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--show") == 0) {
        printf("%016llx\n", (unsigned long long)hash_secret("a", 1));
        return 0;
    }
    return test_run("tests", NULL, NULL);
}
