/* load/request.h - complete HTTP requests as text. The caller frees each strbuf. */
#ifndef WEIR_BENCH_REQUEST_H
#define WEIR_BENCH_REQUEST_H

#include "load/options.h"
#include "base/str.h"

enum { REQUEST_KEY_DIGITS = 16 };

/* Puts a request into *out in place of what stood there. `key` NULL: no Authorization. */
void request_post(struct strbuf *out, const char *path, const char *key, struct str body);
void request_get(struct strbuf *out, const char *path, const char *key);

/* {"text":"..."} of exactly so many bytes, added: letters, as most payloads are text without escapes. */
void payload_text(struct strbuf *out, uint32_t bytes);
void job_body(struct strbuf *out, const struct options *o); /* one job, appended */
void batch_body(struct strbuf *out, const struct options *o, uint32_t jobs);
/* A job with an idempotency key of hex digits; request_renumber() gives it the next one. */
void request_keyed_submit(struct strbuf *out, const struct options *o, const char *key);
void request_renumber(struct strbuf *request, uint64_t number);

#endif
