#include "domains/runner/simulated_work.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

enum {
    SMALL_OUTPUT_BYTES = 256,
    SMALL_OUTPUT_JSON_BYTES = 40, /* {"output":1024,"bytes":256}, and a comma */
    RESULT_FRAME_BYTES = 256,     /* everything but outputs and data */
    CHECKSUMS_KEPT = 16,          /* the catalog has seven payload sizes */
};

static bool read_int(const struct json *object, const char *key, int64_t max, int64_t *ret_value)
{
    const struct json *j = json_get(object, key);
    return j && json_to_int(j, ret_value) && *ret_value >= 0 && *ret_value <= max;
}

bool simulated_work_read(const struct json *definition, struct work_definition *ret)
{
    const struct json *kind = json_get(definition, "work_kind");
    const struct json *fails = json_get(definition, "should_fail");
    if (!kind || kind->type != JSON_STRING || !work_kind_parse(kind->text, &ret->kind))
        return false;
    if (!fails || (fails->type != JSON_TRUE && fails->type != JSON_FALSE))
        return false;
    ret->should_fail = fails->type == JSON_TRUE;
    return read_int(definition, "duration_ms", SIMULATED_DURATION_MS_MAX, &ret->duration_ms) &&
           read_int(definition, "payload_size", WORK_PAYLOAD_BYTES_MAX, &ret->payload_size);
}

bool simulated_work_read_step(const struct json *definition, int64_t max_runtime_ms,
                              struct work_definition *ret)
{
    const struct json *kind = NULL;
    if (json_get(definition, "override"))
        kind = json_get(json_get(definition, "override"), "work_kind");
    if (!kind && json_get(definition, "config"))
        kind = json_get(json_get(definition, "config"), "work_kind");
    *ret = (struct work_definition){.kind = WORK_SUCCESS_FAST};
    if (!kind)
        return true;
    if (kind->type != JSON_STRING || !work_kind_parse(kind->text, &ret->kind))
        return false;
    work_define(ret->kind, max_runtime_ms, ret);
    return true;
}

int64_t simulated_work_scaled_ms(int64_t ms, double time_scale)
{
    return (int64_t)ceil((double)ms * time_scale);
}

/* Payloads are the alphabet over and over: any reader can check them without asking us. */
static void fabricate(struct strbuf *out, size_t len)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";
    strbuf_reserve(out, len);
    for (size_t rest = len; rest;) {
        size_t n = rest < 26 ? rest : 26;
        strbuf_add(out, alphabet, n);
        rest -= n;
    }
}

static uint64_t checksum_of_fabricated(size_t len)
{
    static struct {
        size_t len;
        uint64_t sum;
    } kept[CHECKSUMS_KEPT];
    static size_t next;
    for (size_t i = 0; i < CHECKSUMS_KEPT; i++)
        if (kept[i].len == len && len)
            return kept[i].sum;
    struct strbuf payload = {0};
    fabricate(&payload, len);
    uint64_t sum = hash_fnv1a(HASH_FNV_START, payload.ptr, payload.len);
    strbuf_free(&payload);
    kept[next].len = len;
    kept[next].sum = sum;
    next = (next + 1) % CHECKSUMS_KEPT;
    return sum;
}

static void write_outputs(struct json_writer *w, int64_t payload_size)
{
    jw_key(w, "outputs");
    jw_array(w);
    for (int64_t i = 0; i * SMALL_OUTPUT_BYTES < payload_size; i++) {
        jw_object(w);
        encode_int(w, "output", i + 1);
        encode_int(w, "bytes", SMALL_OUTPUT_BYTES);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_frame(struct json_writer *w, const struct work_definition *d, size_t bytes)
{
    char sum[32];
    snprintf(sum, sizeof sum, "fnv1a:%016" PRIx64, checksum_of_fabricated(bytes));
    jw_object(w);
    encode_text(w, "scenario", work_kind_text(d->kind));
    encode_int(w, "payload_bytes", (int64_t)bytes);
    encode_text(w, "checksum", sum);
}

/* The frame's own length depends on the number in it: take the widest, so the whole always fits. */
static size_t data_bytes_that_fit(const struct work_definition *d)
{
    struct strbuf frame = {0};
    struct json_writer w;
    jw_start(&w, &frame);
    write_frame(&w, d, (size_t)d->payload_size);
    size_t frame_bytes = frame.len + sizeof ",\"data\":\"\"}" - 1;
    strbuf_free(&frame);
    return (size_t)d->payload_size > frame_bytes ? (size_t)d->payload_size - frame_bytes : 0;
}

void simulated_work_write_result(const struct work_definition *d, struct strbuf *out)
{
    enum work_behaviour behaviour = work_kind_behaviour(d->kind);
    bool carries_data = behaviour == BEHAVE_LARGE_OUTPUT;
    size_t bytes = carries_data ? data_bytes_that_fit(d) : (size_t)d->payload_size;
    struct json_writer w;
    jw_start(&w, out);
    write_frame(&w, d, bytes);
    if (behaviour == BEHAVE_MANY_OUTPUTS)
        write_outputs(&w, d->payload_size);
    if (carries_data) {
        struct strbuf data = {0};
        fabricate(&data, bytes);
        encode_str(&w, "data", (struct str){data.ptr ? data.ptr : "", data.len});
        strbuf_free(&data);
    }
    jw_object_end(&w);
}

size_t simulated_work_result_bytes_max(const struct work_definition *d)
{
    size_t payload = (size_t)d->payload_size, outputs = payload / SMALL_OUTPUT_BYTES + 1;
    enum work_behaviour behaviour = work_kind_behaviour(d->kind);
    if (behaviour == BEHAVE_LARGE_OUTPUT)
        return RESULT_FRAME_BYTES + payload;
    if (behaviour == BEHAVE_MANY_OUTPUTS)
        return RESULT_FRAME_BYTES + outputs * SMALL_OUTPUT_JSON_BYTES;
    return RESULT_FRAME_BYTES;
}
