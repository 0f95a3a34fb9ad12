#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "base/random.h"
#include "base/uuid.h"

#include "base/banned.h"

TEST(text_and_bytes_convert_both_ways)
{
    struct uuid u;
    char out[UUID_TEXT_LEN + 1];
    assert_true(uuid_parse(STR("00112233-4455-6677-8899-aAbBcCdDeEfF"), &u));
    static const uint8_t bytes[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                      0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    assert_memory_equal(u.bytes, bytes, 16);
    uuid_text(&u, out);
    assert_string_equal(out, "00112233-4455-6677-8899-aabbccddeeff");
}

TEST(malformed_text_is_refused)
{
    static const char *const bad[] = {
        "",
        "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeeff0",
        "001122334455-6677-8899-aabbccddeeff--",
        "00112233-4455-6677-8899-aabbccddeegg",
        "00112233_4455_6677_8899_aabbccddeeff",
        "{0112233-4455-6677-8899-aabbccddeef}",
        " 0112233-4455-6677-8899-aabbccddeeff",
        "0-112233-4455-6677-8899-aabbccddeeff",
    };
    for (size_t i = 0; i < LENGTH_OF(bad); i++) {
        struct uuid u;
        if (uuid_parse(str_of(bad[i]), &u))
            fail_msg("%s", bad[i]);
    }
}

TEST(v4_has_its_version_and_variant_and_is_random)
{
    struct uuid before = {0};
    for (int i = 0; i < 1000; i++) {
        struct uuid u = uuid_v4();
        assert_int_equal(u.bytes[6] >> 4, 4);
        assert_int_equal(u.bytes[8] >> 6, 2);
        assert_true(memcmp(u.bytes, before.bytes, 16) != 0);
        before = u;
    }
}

TEST(v7_splits_into_time_order_and_the_rest)
{
    struct uuid_v7_source source = {0};
    int64_t now_ms = 1763248200123;
    int64_t key = uuid_v7_next_key(&source, now_ms);
    uint64_t low = uuid_v7_low_of(random_u64());
    struct uuid u = uuid_from_v7(key, low);
    int64_t key_again;
    uint64_t low_again;
    assert_int_equal(u.bytes[6] >> 4, 7);
    assert_int_equal(u.bytes[8] >> 6, 2);
    assert_true(uuid_split_v7(&u, &key_again, &low_again));
    assert_true(key_again == key && low_again == low);
    assert_true(uuid_v7_ms(key) == now_ms);
    struct uuid v4 = uuid_v4();
    assert_false(uuid_split_v7(&v4, &key_again, &low_again));
    u.bytes[8] = 0;
    assert_false(uuid_split_v7(&u, &key_again, &low_again));
}

/* RFC 9562, appendix A.6. */
TEST(v7_reads_the_example_of_the_standard)
{
    struct uuid u;
    int64_t key;
    uint64_t low;
    assert_true(uuid_parse(STR("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), &u));
    assert_true(uuid_split_v7(&u, &key, &low));
    assert_true(uuid_v7_ms(key) == 1645557742000);
    assert_int_equal(key & 0xFFF, 0xCC3);
    assert_true(low == UINT64_C(0x98C4DC0C0C07398F));
}

TEST(keys_only_rise_also_when_the_clock_goes_back)
{
    struct uuid_v7_source source = {0};
    int64_t before = 0;
    for (int i = 0; i < 10000; i++) { /* more than 4096 in one millisecond */
        int64_t key = uuid_v7_next_key(&source, 1000);
        assert_true(key > before);
        before = key;
    }
    assert_int_equal(uuid_v7_ms(before), 1000 + 10000 / 4096);
    assert_true(uuid_v7_next_key(&source, 5) == before + 1);
    assert_true(uuid_v7_next_key(&source, 2000) == INT64_C(2000) << 12);
}
