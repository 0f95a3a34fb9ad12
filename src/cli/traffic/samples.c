/* Rates and memory over the time of a run: when the table is full, every second line goes and the steps
 * double, so an hour has as many as a minute. */
#include <stdlib.h>

#include "cli/http_call.h"
#include "cli/server_call.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum { FIRST_STEP_MS = 5000, METRICS_MS_MAX = 2000 };

/* Of core, by its metrics; -1: it does not tell. */
static int64_t core_bytes(struct traffic *s)
{
    static const char name[] = "\nweir_process_resident_memory_bytes ";
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct http_answer answer;
    struct err err;
    int64_t bytes = -1;
    server_url(s->in, &url);
    strbuf_add_text(&url, "/metrics");
    struct http_call call = {.method = "GET",
                             .url = url.ptr,
                             .trust = server_trust(s->in),
                             .accept = "text/plain",
                             .timeout_ms = METRICS_MS_MAX};
    if (http_call(&call, &answer, &err) == ERR_OK && answer.status == 200 && answer.body.len) {
        const char *line = memmem(answer.body.ptr, answer.body.len, name, sizeof name - 1);
        struct str rest = {line ? line + sizeof name - 1 : NULL, 0};
        if (line)
            rest.len = (size_t)(answer.body.ptr + answer.body.len - rest.ptr);
        struct str number = str_cut(&rest, '\n');
        if (!number.len || !str_to_int(number, 0, INT64_MAX, &bytes))
            bytes = -1;
    }
    http_answer_free(&answer);
    return bytes;
}

static void thin(struct traffic *s)
{
    int kept = 0;
    for (int i = 0; i < s->sample_count; i += 2)
        s->samples[kept++] = s->samples[i];
    s->sample_count = kept;
    s->sample_every_ms *= 2;
}

void traffic_sample(struct traffic *s)
{
    int64_t now_ms = traffic_now_ms();
    if (!s->sample_every_ms)
        s->sample_every_ms = FIRST_STEP_MS;
    if (s->sample_count == TRAFFIC_SAMPLES_MAX)
        thin(s);
    s->samples[s->sample_count++] = (struct traffic_sample){.at_ms = now_ms - s->started_ms,
                                                            .judged = s->judged,
                                                            .in_flight = s->in_flight,
                                                            .core_bytes = core_bytes(s)};
    s->sample_at_ms = now_ms + s->sample_every_ms;
}

void traffic_samples_work(struct traffic *s)
{
    if (!s->worked_ms && !s->absence_told && traffic_now_ms() >= s->sample_at_ms)
        traffic_sample(s);
}
