#include "domains/gateway/span_export.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/must.h"
#include "base/random.h"
#include "base/url.h"
#include "domains/gateway/request_owner.h"
#include "egress/trusted.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

enum {
    IDLE_MS = 500, /* between two looks at an empty ring */
    SEND_TIMEOUT_MS = 5000,
    SEND_CONNECT_MS = 3000,
    SEND_TRIES = 6,
    PAUSE_FIRST_MS = 500,
    PAUSE_MAX_MS = 8000,
    BATCH_BYTES_KEPT = 64 << 10, /* between two batches */
    TAKE_BYTES_MAX = 4 << 20,    /* core's largest batch is well below */
};

enum export_phase { EXPORT_IDLE, EXPORT_TAKING, EXPORT_HOLDING, EXPORT_SENDING };

struct span_export {
    struct request_owner owner;
    struct worker_client *client;
    struct egress *egress;
    const struct clock *clock;
    struct arena *arena; /* url and headers */
    struct str url, headers[OTLP_HEADERS_MAX + 1];
    size_t header_count;

    enum export_phase phase;
    int64_t at_ms; /* when the next take (IDLE) or the next try (HOLDING) is due */
    struct strbuf batch;
    int64_t count; /* spans in it */
    int tries;
    int64_t lost;    /* given up, and core does not know yet */
    bool complained; /* once for each time the collector goes away */

    bool stopping, last_take, empty; /* the take under way began after the stop; it brought nothing */
    int64_t until_ms;
};

static void over(struct request_owner *owner, const struct egress_result *r);

/* --- where to ------------------------------------------------------------------------------------- */

static enum err_code read_url(struct span_export *x, const char *endpoint, struct err *err)
{
    char text[URL_BYTES_MAX + 1];
    struct url url;
    if (!otlp_traces_url(endpoint, text, sizeof text))
        return err_set(err, ERR_CONFIG_INVALID, "url is too long");
    x->url = arena_str(x->arena, str_of(text));
    const char *fault = url_parse(x->url, &url);
    return fault ? err_set(err, ERR_CONFIG_INVALID, "url %s", fault) : ERR_OK;
}

/* Their values are secrets, and a name in the wrong place may be one too: only numbers are told. */
static enum err_code read_headers(struct span_export *x, const char *headers, struct err *err)
{
    size_t count = 0;
    if (headers && otlp_headers_parse(x->arena, str_of(headers), x->headers, &count, err) != ERR_OK)
        return err->code;
    for (size_t i = 0; i < count; i++) {
        struct str rest = x->headers[i];
        if (str_equal_nocase(str_cut(&rest, ':'), STR("content-type")) ||
            egress_header_check(x->headers[i], err) != ERR_OK)
            return err_set(err, ERR_CONFIG_INVALID, "header %zu is none that may be sent", i + 1);
    }
    x->headers[count++] = STR("content-type: application/json");
    x->header_count = count;
    return ERR_OK;
}

struct span_export *span_export_new(const struct span_export_config *config)
{
    struct err err;
    if (!config->endpoint)
        return NULL;
    struct span_export *x = must_alloc(sizeof *x);
    x->owner.over = over;
    x->client = config->client;
    x->egress = config->egress;
    x->clock = config->clock;
    x->arena = arena_new(1024);
    const char *variable = "OTEL_EXPORTER_OTLP_ENDPOINT";
    if (read_url(x, config->endpoint, &err) == ERR_OK) {
        variable = "OTEL_EXPORTER_OTLP_HEADERS";
        if (read_headers(x, config->headers, &err) == ERR_OK)
            return x;
    }
    log_line(LOG_ERROR, "spans_not_exported", "variable", LOG_TEXT(variable), "error_message",
             LOG_TEXT(err.detail), NULL);
    return span_export_free(x);
}

struct span_export *span_export_free(struct span_export *x)
{
    if (!x)
        return NULL;
    if (x->count)
        log_line(LOG_WARN, "spans_lost", "spans", LOG_INT(x->count), NULL);
    arena_free(x->arena);
    strbuf_free(&x->batch);
    free(x);
    return NULL;
}

/* --- a batch comes -------------------------------------------------------------------------------- */

static void rest(struct span_export *x, int64_t ms)
{
    x->phase = EXPORT_IDLE;
    x->at_ms = clock_mono_ms(x->clock) + (x->stopping ? 0 : ms);
}

int64_t span_export_read(const struct json *answer, struct str *ret_otlp)
{
    const struct json *count = json_get(answer, "count"), *otlp = json_get(answer, "otlp");
    int64_t spans;
    if (!count || !json_to_int(count, &spans) || spans < 0 || !otlp || otlp->type != JSON_OBJECT)
        return 0;
    *ret_otlp = otlp->source;
    return spans;
}

static void took(void *self, const struct worker_answer *answer)
{
    struct span_export *x = self;
    struct str otlp;
    int64_t spans = span_export_read(answer->root, &otlp);
    if (answer->kind == WORKER_ANSWERED) {
        x->lost = 0;
        x->empty = x->last_take && spans == 0;
    }
    if (spans == 0) {
        rest(x, IDLE_MS);
        return;
    }
    strbuf_clear(&x->batch);
    strbuf_add_str(&x->batch, otlp);
    x->count = spans;
    x->tries = 0;
    x->phase = EXPORT_HOLDING;
    x->at_ms = clock_mono_ms(x->clock);
}

static void take(struct span_export *x)
{
    struct strbuf body CLEANUP(strbuf_free) = {0};
    strbuf_addf(&body, "{\"lost\":%lld}", (long long)x->lost);
    struct worker_post post = {
        .path = "/internal/v1/spans:take", .body = strbuf_str(&body), .answer_bytes_max = TAKE_BYTES_MAX};
    x->phase = EXPORT_TAKING;
    x->last_take = x->stopping;
    worker_client_post(x->client, &post, took, x);
}

/* --- and goes ------------------------------------------------------------------------------------- */

static void drop_batch(struct span_export *x)
{
    if (x->batch.cap > BATCH_BYTES_KEPT)
        strbuf_free(&x->batch);
    x->count = 0;
}

static void complain(struct span_export *x, int status, const char *why)
{
    if (!x->complained)
        log_line(LOG_WARN, "collector_away", "status", LOG_INT(status), "error_message",
                 LOG_TEXT(*why ? why : "the collector did not take the spans"), NULL);
    x->complained = true;
}

static void delivered(struct span_export *x)
{
    if (x->complained)
        log_line(LOG_INFO, "collector_back", NULL);
    x->complained = false;
    drop_batch(x);
    rest(x, 0);
}

static void give_up(struct span_export *x, int status)
{
    log_line(LOG_WARN, "spans_lost", "spans", LOG_INT(x->count), "status", LOG_INT(status), NULL);
    x->lost += x->count;
    drop_batch(x);
    rest(x, IDLE_MS);
}

/* Twice as long after each try, half of it at random; the collector's own wish, if that is longer. */
static int64_t pause_ms(const struct span_export *x, int64_t retry_after_ms)
{
    int64_t pause = PAUSE_FIRST_MS;
    for (int i = 1; i < x->tries && pause < PAUSE_MAX_MS; i++)
        pause *= 2;
    pause -= (int64_t)(random_u64() % (uint64_t)(pause / 2 + 1));
    if (retry_after_ms > pause)
        pause = retry_after_ms;
    return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}

static void failed(struct span_export *x, int status, const char *why, bool again, int64_t retry_after_ms)
{
    complain(x, status, why);
    if (!again || x->tries >= SEND_TRIES || x->stopping) {
        give_up(x, status);
        return;
    }
    x->phase = EXPORT_HOLDING;
    x->at_ms = clock_mono_ms(x->clock) + pause_ms(x, retry_after_ms);
}

/* The answers after which OTLP/HTTP lets a request be sent again. */
static bool is_for_later(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void over(struct request_owner *owner, const struct egress_result *r)
{
    struct span_export *x = CONTAINER_OF(owner, struct span_export, owner);
    bool answered = r->failure == EGRESS_NONE;
    if (answered && r->status >= 200 && r->status < 300)
        delivered(x);
    else
        failed(x, r->status, r->error, !answered || is_for_later(r->status), r->retry_after_ms);
}

static void send_batch(struct span_export *x)
{
    struct err err;
    struct egress_request request = {.url = x->url,
                                     .headers = x->headers,
                                     .header_count = x->header_count,
                                     .body = strbuf_str(&x->batch),
                                     .timeout_ms = SEND_TIMEOUT_MS,
                                     .connect_timeout_ms = SEND_CONNECT_MS,
                                     .owner = &x->owner};
    x->tries++;
    x->phase = EXPORT_SENDING;
    if (egress_send_trusted(x->egress, &request, &err) != ERR_OK)
        failed(x, 0, err.detail, err.code == ERR_EXEC_QUEUE_FULL, 0);
}

void span_export_pump(struct span_export *x, int64_t now_ms)
{
    if (!x || now_ms < x->at_ms)
        return;
    if (x->phase == EXPORT_HOLDING) {
        send_batch(x);
    } else if (x->phase == EXPORT_IDLE && worker_client_can_call(x->client)) {
        take(x);
    }
}

int64_t span_export_next_at_ms(const struct span_export *x)
{
    if (!x)
        return INT64_MAX;
    int64_t at = x->phase == EXPORT_IDLE || x->phase == EXPORT_HOLDING ? x->at_ms : INT64_MAX;
    int64_t core = worker_client_ready_at_ms(x->client);
    if (x->phase == EXPORT_IDLE && core > at)
        at = core;
    return x->stopping && x->until_ms < at ? x->until_ms : at;
}

/* --- the end -------------------------------------------------------------------------------------- */

void span_export_stop(struct span_export *x, int64_t now_ms, int64_t until_ms)
{
    if (!x || x->stopping)
        return;
    x->stopping = true;
    x->until_ms = until_ms;
    if (x->at_ms > now_ms)
        x->at_ms = now_ms;
}

bool span_export_is_over(const struct span_export *x, int64_t now_ms)
{
    return !x || x->empty || now_ms >= x->until_ms;
}
