#include "domains/exporter/exporter.h"

#include <curl/curl.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "base/must.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

enum {
    IDLE_MS = 500, /* between two looks at an empty ring */
    CALL_MS = 5000,
    CONNECT_MS = 3000,
    STOP_MS = 1500,
    EXPORT_TRIES = 6,
    PAUSE_FIRST_MS = 500,
    PAUSE_MAX_MS = 8000,
    ANSWER_BYTES_MAX = 4 << 20, /* core's largest batch is well below */
    COMPLAINT_MAX = 200,
};

struct exporter {
    const struct exporter_config *config;
    CURL *core, *collector;
    struct curl_slist *json;
    struct strbuf answer;
    struct arena *arena;
    bool complained; /* once for each time the collector goes away */
    bool stopping;   /* as it was when the call under way began */
};

static size_t keep(char *bytes, size_t size, size_t count, void *into)
{
    struct strbuf *answer = into;
    if (answer->len + size * count > ANSWER_BYTES_MAX)
        return 0; /* ends the call with an error */
    strbuf_add(answer, bytes, size * count);
    return size * count;
}

static size_t ignore(char *bytes, size_t size, size_t count, void *into)
{
    (void)bytes;
    (void)into;
    return size * count;
}

/* A call that was under way when a stop came is cut off; those begun after it have a short limit. */
static int on_progress(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct exporter *e = self;
    (void)a, (void)b, (void)c, (void)d;
    return !e->stopping && e->config->stop_requested();
}

static CURL *new_handle(struct exporter *e, const char *url)
{
    CURL *h = curl_easy_init();
    MUST(h != NULL);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_POST, 1L);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, e->json);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, e);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    return h;
}

static bool open_handles(struct exporter *e)
{
    char url[2048];
    if (!otlp_traces_url(e->config->endpoint, url, sizeof url))
        return false;
    e->json = curl_slist_append(NULL, "Content-Type: application/json");
    e->core = new_handle(e, "http://core/internal/v1/spans:take");
    curl_easy_setopt(e->core, CURLOPT_UNIX_SOCKET_PATH, e->config->socket_path);
    curl_easy_setopt(e->core, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(e->core, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(e->core, CURLOPT_WRITEDATA, &e->answer);
    e->collector = new_handle(e, url);
    curl_easy_setopt(e->collector, CURLOPT_WRITEFUNCTION, ignore);
    return true;
}

static void close_handles(struct exporter *e)
{
    curl_easy_cleanup(e->core);
    curl_easy_cleanup(e->collector);
    curl_slist_free_all(e->json);
    strbuf_free(&e->answer);
    arena_free(e->arena);
}

static bool call(struct exporter *e, CURL *h, long *ret_status, char *ret_why)
{
    e->stopping = e->config->stop_requested();
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)(e->stopping ? STOP_MS : CALL_MS));
    CURLcode code = curl_easy_perform(h);
    *ret_status = 0;
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, ret_status);
    snprintf(ret_why, COMPLAINT_MAX, "%s", code == CURLE_OK ? "" : curl_easy_strerror(code));
    return code == CURLE_OK;
}

/* The next batch, as JSON text in e->answer; absent when there is none, or core is away. */
static struct str take(struct exporter *e, int64_t *ret_count)
{
    long status;
    char why[COMPLAINT_MAX];
    const struct json *root, *count, *otlp;
    struct err err;
    strbuf_clear(&e->answer);
    arena_reset(e->arena);
    *ret_count = 0;
    if (!call(e, e->core, &status, why) || status != 200 ||
        json_parse(e->arena, strbuf_str(&e->answer), &root, &err) != ERR_OK ||
        !(count = json_get(root, "count")) || !json_to_int(count, ret_count) || *ret_count == 0 ||
        !(otlp = json_get(root, "otlp")))
        return STR_ABSENT;
    return otlp->source;
}

/* 4xx but 429: the collector will never take this batch. */
static bool is_final(long status)
{
    return (status >= 200 && status < 300) || (status >= 400 && status < 500 && status != 429);
}

static void complain(struct exporter *e, long status, const char *why)
{
    if (!e->complained)
        log_line(LOG_WARN, "collector_away", "status", LOG_INT(status), "error_message",
                 LOG_TEXT(*why ? why : "the collector did not take the spans"), NULL);
    e->complained = true;
}

static void send_batch(struct exporter *e, struct str batch, int64_t count)
{
    long status = 0;
    char why[COMPLAINT_MAX];
    int64_t pause_ms = PAUSE_FIRST_MS;
    curl_easy_setopt(e->collector, CURLOPT_POSTFIELDS, batch.ptr);
    curl_easy_setopt(e->collector, CURLOPT_POSTFIELDSIZE, (long)batch.len);
    for (int tries = 0; tries < EXPORT_TRIES; tries++) {
        bool answered = call(e, e->collector, &status, why);
        if ((answered && is_final(status)) || e->stopping)
            break; /* the last try is the one that began after the stop */
        complain(e, status, why);
        if (tries + 1 < EXPORT_TRIES)
            e->config->wait_stop(pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
    if (status >= 200 && status < 300) {
        if (e->complained)
            log_line(LOG_INFO, "collector_back", NULL);
        e->complained = false;
        return;
    }
    complain(e, status, why);
    log_line(LOG_WARN, "spans_lost", "spans", LOG_INT(count), "status", LOG_INT(status), NULL);
}

int exporter_main(const struct exporter_config *config)
{
    struct exporter e = {.config = config, .arena = arena_new(64 << 10)};
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (!open_handles(&e)) {
        log_line(LOG_ERROR, "endpoint_too_long", NULL);
        close_handles(&e);
        return 1;
    }
    bool stopping;
    do {
        int64_t count;
        stopping = config->stop_requested(); /* before the take: the last one comes after the stop */
        struct str batch = take(&e, &count);
        if (batch.ptr)
            send_batch(&e, batch, count);
        else if (!stopping)
            config->wait_stop(IDLE_MS);
    } while (!stopping);
    close_handles(&e);
    curl_global_cleanup();
    return 0;
}
