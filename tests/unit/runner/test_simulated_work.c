#include "case.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/must.h"
#include "domains/runner/simulated_work.h"

#include "base/banned.h"

static bool read_text(const char *text, struct work_definition *ret)
{
    struct arena *a = arena_new(1024);
    struct err err;
    const struct json *root;
    assert_int_equal(json_parse(a, str_of(text), &root, &err), ERR_OK);
    bool usable = simulated_work_read(root, ret);
    arena_free(a);
    return usable;
}

TEST(test_a_stored_definition_is_read_as_it_stands)
{
    struct work_definition d;
    assert_true(read_text("{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":7,\"should_fail\":true,"
                          "\"payload_size\":1,\"execution_at\":\"2030-01-01T00:00:00Z\"}",
                          &d));
    assert_int_equal(d.kind, WORK_SUCCESS_FAST);
    assert_int_equal(d.duration_ms, 7); /* not the table's 1000 */
    assert_true(d.should_fail);
    assert_int_equal(d.payload_size, 1);
}

TEST(test_an_unusable_definition_is_refused)
{
#define REST "\"should_fail\":false,\"payload_size\":1}"
    static const char *const bad[] = {
        "null",
        "[]",
        "{}",
        "{\"work_kind\":\"NOPE\",\"duration_ms\":1," REST,
        "{\"work_kind\":7,\"duration_ms\":1," REST,
        "{\"work_kind\":\"SUCCESS_FAST\"," REST,
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":-1," REST,
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1.5," REST,
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":99999999999," REST,
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1,\"payload_size\":1}",
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1,\"should_fail\":0,\"payload_size\":1}",
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1,\"should_fail\":false}",
        "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1,\"should_fail\":false,"
        "\"payload_size\":262145}",
    };
    struct work_definition d;
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_false(read_text(bad[i], &d));
    assert_false(simulated_work_read(NULL, &d));
}

TEST(test_scaling_never_shortens_a_wait_below_its_share)
{
    assert_int_equal(simulated_work_scaled_ms(1000, 1.0), 1000);
    assert_int_equal(simulated_work_scaled_ms(1000, 0.01), 10);
    assert_int_equal(simulated_work_scaled_ms(1001, 0.01), 11);
    assert_int_equal(simulated_work_scaled_ms(500, 0.00001), 1);
    assert_int_equal(simulated_work_scaled_ms(0, 1.0), 0);
    assert_int_equal(simulated_work_scaled_ms(1000, 1000.0), 1000000);
}

TEST(test_a_definition_fails_when_it_says_so_and_retry_on_fail_only_once)
{
    struct work_definition plain = {.kind = WORK_SUCCESS_FAST, .should_fail = false};
    struct work_definition once = {.kind = WORK_RETRY_ON_FAIL, .should_fail = true};
    struct work_definition always = {.kind = WORK_RETRY_LIMIT_REACHED, .should_fail = true};
    assert_false(work_fails_on_attempt(&plain, 1));
    assert_true(work_fails_on_attempt(&once, 1));
    assert_false(work_fails_on_attempt(&once, 2));
    assert_true(work_fails_on_attempt(&always, 4));
}

/* Checks what holds for every result; gives the text of the whole. */
static void check_result(enum work_kind kind, struct strbuf *out)
{
    struct work_definition d;
    struct arena *a = arena_new(1024);
    struct err err;
    const struct json *root;
    int64_t bytes = -1;
    work_define(kind, 125000, &d);
    strbuf_clear(out);
    simulated_work_write_result(&d, out);
    assert_true(out->len <= simulated_work_result_bytes_max(&d));
    assert_int_equal(json_parse(a, strbuf_str(out), &root, &err), ERR_OK);
    assert_true(str_is(json_get(root, "scenario")->text, work_kind_text(kind)));
    assert_true(json_to_int(json_get(root, "payload_bytes"), &bytes));
    const struct json *data = json_get(root, "data");
    assert_int_equal(bytes, data ? (int64_t)data->text.len : d.payload_size);

    struct strbuf payload = {0};
    for (int64_t i = 0; i < bytes; i++)
        strbuf_add_char(&payload, (char)('a' + i % 26));
    char sum[32];
    snprintf(sum, sizeof sum, "fnv1a:%016llx",
             (unsigned long long)hash_fnv1a(HASH_FNV_START, payload.ptr, payload.len));
    assert_true(str_is(json_get(root, "checksum")->text, sum));
    if (data)
        assert_true(str_equal(data->text, strbuf_str(&payload)));
    strbuf_free(&payload);
    arena_free(a);
}

TEST(test_every_result_names_its_scenario_and_checks_its_payload)
{
    struct strbuf out = {0};
    for (int round = 0; round < 2; round++) /* the second from kept checksums */
        for (unsigned k = 0; k < WORK_KIND_COUNT; k++)
            check_result((enum work_kind)k, &out);
    strbuf_free(&out);
}

TEST(test_large_output_fills_its_payload_size_and_never_exceeds_it)
{
    struct strbuf out = {0};
    check_result(WORK_LARGE_OUTPUT, &out);
    assert_in_range(out.len, 262144 - 8, 262144);
    for (int64_t size = 0; size < 2000; size++) {
        struct work_definition d = {.kind = WORK_LARGE_OUTPUT, .payload_size = size};
        strbuf_clear(&out);
        simulated_work_write_result(&d, &out);
        if (size > 200)
            assert_true(out.len <= (size_t)size);
        assert_true(out.len <= simulated_work_result_bytes_max(&d));
    }
    strbuf_free(&out);
}

TEST(test_many_small_outputs_are_listed_one_by_one)
{
    struct strbuf out = {0};
    struct arena *a = arena_new(1024);
    struct err err;
    const struct json *root;
    check_result(WORK_MANY_SMALL_OUTPUTS, &out);
    assert_int_equal(json_parse(a, strbuf_str(&out), &root, &err), ERR_OK);
    assert_int_equal(json_get(root, "outputs")->count, 64);
    assert_true(out.len <= 16384);
    arena_free(a);
    strbuf_free(&out);
}
