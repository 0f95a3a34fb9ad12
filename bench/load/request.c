#include "load/request.h"

#include <stdio.h>

#include "load/client.h"
#include "base/must.h"

#include "base/banned.h"

static const char keyed[] = "\"idempotency_key\":\"";

static void add_head(struct strbuf *out, const char *method, const char *path, const char *key)
{
    strbuf_clear(out);
    strbuf_addf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path);
    if (key)
        strbuf_addf(out, "Authorization: Bearer %s\r\n", key);
}

void request_post(struct strbuf *out, const char *path, const char *key, struct str body)
{
    add_head(out, "POST", path, key);
    strbuf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
    strbuf_add_str(out, body);
}

void request_get(struct strbuf *out, const char *path, const char *key)
{
    add_head(out, "GET", path, key);
    strbuf_add_text(out, "\r\n");
}

void payload_text(struct strbuf *out, uint32_t bytes)
{
    static const char open[] = "{\"text\":\"", shut[] = "\"}";
    size_t fill = bytes - (sizeof open - 1) - (sizeof shut - 1);
    strbuf_add_text(out, open);
    for (size_t i = 0; i < fill; i++)
        strbuf_add_char(out, "all work and no play "[i % 21]);
    strbuf_add_text(out, shut);
}

static void add_job(struct strbuf *out, const struct options *o, const char *extra)
{
    strbuf_addf(out,
                "{\"type\":\"%s\",\"queue\":\"%s\",%s\"payload\":", o->execution_at ? "DEFERRED" : "EXECUTE",
                o->queue, extra);
    payload_text(out, o->payload_bytes);
    if (o->execution_at)
        strbuf_addf(out, ",\"execution_at\":\"%s\"", o->execution_at);
    strbuf_add_char(out, '}');
}

void job_body(struct strbuf *out, const struct options *o)
{
    add_job(out, o, "");
}

void batch_body(struct strbuf *out, const struct options *o, uint32_t jobs)
{
    strbuf_add_text(out, "{\"jobs\":[");
    for (uint32_t i = 0; i < jobs; i++) {
        if (i)
            strbuf_add_char(out, ',');
        job_body(out, o);
    }
    strbuf_add_text(out, "]}");
}

void request_keyed_submit(struct strbuf *out, const struct options *o, const char *key)
{
    char extra[64];
    struct strbuf body = {0};
    snprintf(extra, sizeof extra, "%s%0*d\",", keyed, REQUEST_KEY_DIGITS, 0);
    add_job(&body, o, extra);
    request_post(out, "/v1/jobs", key, strbuf_str(&body));
    strbuf_free(&body);
}

void request_renumber(struct strbuf *request, uint64_t number)
{
    char *at = memmem(request->ptr, request->len, keyed, sizeof keyed - 1);
    MUST(at);
    at += sizeof keyed - 1;
    for (int i = REQUEST_KEY_DIGITS - 1; i >= 0; i--, number >>= 4)
        at[i] = "0123456789abcdef"[number & 15];
}
