/* traceparent: a parsed header is written back as version 00 with the same ids, and parses again to the same.
 * */
#include "base/must.h"
#include "telemetry/trace_context.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct trace_context c, again;
    char out[TRACEPARENT_LEN + 1];
    if (!traceparent_parse(text, &c))
        return 0;
    struct str written = traceparent_text(&c, out);
    MUST(written.len == TRACEPARENT_LEN && strlen(out) == TRACEPARENT_LEN);
    MUST(memcmp(out, "00-", 3) == 0 && memcmp(out + 3, text.ptr + 3, 50) == 0);
    MUST(traceparent_parse(written, &again) && memcmp(&c, &again, sizeof c) == 0);
    MUST(size == TRACEPARENT_LEN || (size > TRACEPARENT_LEN && memcmp(data, "00", 2) != 0));
    return 0;
}
