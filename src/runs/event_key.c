#include "runs/event_key.h"

#include "base/err.h"

#include "base/banned.h"

struct str event_key_step(struct str step_id)
{
    return step_id.ptr ? step_id : STR("RUN");
}

void event_key_preimage(const struct event_key_parts *p, struct strbuf *out)
{
    strbuf_add_str(out, p->run_id);
    strbuf_add_char(out, '|');
    strbuf_add_str(out, event_key_step(p->step_id));
    strbuf_addf(out, "|%lld|", (long long)p->logical_attempt);
    strbuf_add_str(out, p->event_type);
    strbuf_add_char(out, '|');
    strbuf_add_str(out, p->plan_id);
    strbuf_add_char(out, '|');
    strbuf_add_str(out, p->plan_version);
}

void event_key_digest(const struct event_key_parts *p, uint8_t out[DIGEST_BYTES])
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    event_key_preimage(p, &text);
    digest_sha256(text.ptr, text.len, out);
}

void event_key(const struct event_key_parts *p, char out[EVENT_KEY_LEN + 1])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t digest[DIGEST_BYTES];
    event_key_digest(p, digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[EVENT_KEY_LEN] = '\0';
}
