#include "load/event.h"

#include <stdio.h>
#include <time.h>

#include "load/request.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/time_text.h"
#include "base/uuid.h"

#include "base/banned.h"

#define PLAN_KEY "|load|1" /* planId and planVersion, as they end a key */
#define ENVELOPE                                                                                             \
    "\",\"tenantId\":\"bench\",\"projectId\":\"load\",\"environmentId\":\"bench\","                          \
    "\"planId\":\"load\",\"planVersion\":\"1\""

void event_form_make(struct event_form *f, uint32_t payload_bytes)
{
    *f = (struct event_form){0};
    snprintf(f->prefix, sizeof f->prefix, "%016llx-", (unsigned long long)random_u64());
    time_text_ms((int64_t)time(NULL) * 1000, f->emitted);
    payload_text(&f->payload, payload_bytes);
}

void event_form_free(struct event_form *f)
{
    strbuf_free(&f->payload);
}

void event_run_id(struct strbuf *out, const struct event_form *f, uint32_t run)
{
    strbuf_add_text(out, f->prefix);
    strbuf_add_int(out, run);
}

struct event {
    const char *type;
    uint32_t run;
    struct str step; /* absent: about the run */
    int64_t attempt;
    struct str payload;
};

static void add_key(struct strbuf *out, const struct event_form *f, const struct event *e)
{
    static const char hex[] = "0123456789abcdef";
    static struct strbuf text; /* one thread; kept from call to call */
    uint8_t digest[DIGEST_BYTES];
    strbuf_clear(&text);
    event_run_id(&text, f, e->run);
    strbuf_add_char(&text, '|');
    strbuf_add_str(&text, e->step.ptr ? e->step : STR("RUN"));
    strbuf_add_char(&text, '|');
    strbuf_add_int(&text, e->attempt);
    strbuf_add_char(&text, '|');
    strbuf_add_text(&text, e->type);
    strbuf_add_text(&text, PLAN_KEY);
    digest_sha256(text.ptr, text.len, digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        strbuf_add_char(out, hex[digest[i] >> 4]);
        strbuf_add_char(out, hex[digest[i] & 15]);
    }
}

static void add_event(struct strbuf *out, const struct event_form *f, const struct event *e)
{
    struct uuid id = uuid_v4();
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    strbuf_add_str(out, STR("{\"eventId\":\""));
    strbuf_add(out, text, UUID_TEXT_LEN);
    strbuf_add_str(out, STR("\",\"eventType\":\""));
    strbuf_add_text(out, e->type);
    strbuf_add_str(out, STR("\",\"runId\":\""));
    event_run_id(out, f, e->run);
    strbuf_add_str(out, STR(ENVELOPE));
    if (e->step.ptr) {
        strbuf_add_str(out, STR(",\"stepId\":\""));
        strbuf_add_str(out, e->step);
        strbuf_add_char(out, '"');
    }
    strbuf_add_str(out, STR(",\"engineAttemptId\":1,\"logicalAttemptId\":"));
    strbuf_add_int(out, e->attempt);
    strbuf_add_str(out, STR(",\"idempotencyKey\":\""));
    add_key(out, f, e);
    strbuf_add_str(out, STR("\",\"emittedAt\":\""));
    strbuf_add_text(out, f->emitted);
    strbuf_add_char(out, '"');
    if (e->payload.ptr) {
        strbuf_add_str(out, STR(",\"payload\":"));
        strbuf_add_str(out, e->payload);
    }
    strbuf_add_char(out, '}');
}

void event_add_opening(struct strbuf *out, const struct event_form *f, uint32_t run)
{
    add_event(out, f, &(struct event){.type = "RunQueued", .run = run, .attempt = 1});
    strbuf_add_char(out, ',');
    add_event(out, f, &(struct event){.type = "RunStarted", .run = run, .attempt = 1});
}

void event_add(struct strbuf *out, const struct event_form *f, struct event_source *s)
{
    char step[32];
    uint64_t turn = s->next / 2;
    bool starts = s->next++ % 2 == 0;
    snprintf(step, sizeof step, "step-%u-%u", s->producer, (unsigned)(turn % EVENT_STEPS));
    add_event(out, f,
              &(struct event){.type = starts ? "StepStarted" : "StepFailed",
                              .run = s->run,
                              .step = str_of(step),
                              .attempt = 1 + (int64_t)(turn / EVENT_STEPS),
                              .payload = starts ? STR_ABSENT : strbuf_str(&f->payload)});
}
