/* The link to core: that it is lost and each try are told by the crash policy, that it is back by core, which
 * counts how long it took (api/overload.h has the form). */
#include "base/json.h"
#include "domains/runner/runner_internal.h"

#include "base/banned.h"

enum { REPORT_ANSWER_MAX = 4096 };

static void reported(void *self, const struct worker_answer *answer)
{
    struct runner *r = self;
    r->report = NULL;
    if (answer->kind == WORKER_AWAY)
        return; /* and another is wanted */
    /* One that told nothing may have brought the link back itself; one that was refused would be again. */
    if (r->report_tells_return || answer->kind == WORKER_REFUSED)
        r->returned.attempts = 0;
    r->wants_report = r->returned.attempts != 0;
}

void runner_report(struct runner *r)
{
    if (r->report || !r->wants_report || !worker_client_can_call(r->client))
        return;
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    jw_key(&w, "process");
    jw_text(&w, r->name);
    link_write_return(&w, r->name, &r->returned);
    jw_object_end(&w);
    struct worker_post post = {
        .path = LINK_REPORT_PATH, .body = strbuf_str(&body), .answer_bytes_max = REPORT_ANSWER_MAX};
    r->report_tells_return = r->returned.attempts != 0;
    r->report = worker_client_post(r->client, &post, reported, r);
}

/* A claim may wait for long: so the report also asks whether core is there, as soon as one may. */
void runner_link(void *runner, bool works, const char *why)
{
    struct runner *r = runner;
    int64_t now_ms = clock_mono_ms(r->clock);
    if (!works)
        link_failed(&r->link, why, now_ms);
    else if (!link_works(&r->link, now_ms, &r->returned))
        return;
    r->wants_report = true;
}
