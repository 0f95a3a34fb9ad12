/* The link to core: that it is lost and each try are told by the crash policy, that it is back by core, which
 * counts how long it took. How full the rooms are is told with it (api/overload.h has the form). */
#include "base/json_members.h"
#include "domains/skeleton/domain_internal.h"

#include "base/banned.h"

enum {
    REPORT_BUSY_MS = 1000,
    REPORT_IDLE_MS = 4000, /* core forgets a process after PRESSURE_REPORT_MS without a report */
    REPORT_ANSWER_MAX = 4096,
};

void domain_report_rooms(struct domain *d, const char *component)
{
    d->component = component;
    d->report_at_ms = 0;
}

static uint32_t depth_of(const struct domain_room *room)
{
    return room->taken - room->asked;
}

/* True when a room's level is another than core was told. */
static bool levels_moved(struct domain *d)
{
    bool moved = false;
    for (struct domain_room *room = TAILQ_FIRST(&d->rooms); room; room = TAILQ_NEXT(room, link)) {
        enum pressure_level now = pressure_next_level(room->level, depth_of(room), room->places);
        moved |= now != room->level;
        room->level = now;
    }
    return moved;
}

static void write_rooms(struct json_writer *w, const struct domain *d)
{
    int64_t number = 0;
    jw_key(w, "queues");
    jw_array(w);
    for (const struct domain_room *room = TAILQ_FIRST(&d->rooms); room; room = TAILQ_NEXT(room, link)) {
        jw_object(w);
        encode_text(w, "component", d->component);
        encode_int(w, "partition", number++);
        encode_int(w, "depth", depth_of(room));
        encode_int(w, "capacity", room->places);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void reported(void *self, const struct worker_answer *answer)
{
    struct domain *d = self;
    d->report = NULL;
    /* An empty report may have brought the link back itself; a refused one would be refused again. */
    if (answer->kind == WORKER_REFUSED || (answer->kind == WORKER_ANSWERED && d->report_tells_return))
        d->returned.attempts = 0;
    if (answer->kind == WORKER_AWAY || d->returned.attempts)
        d->report_at_ms = 0;
}

void domain_report(struct domain *d, int64_t now_ms)
{
    if (d->component && levels_moved(d))
        d->report_at_ms = 0;
    if (d->report || now_ms < d->report_at_ms || !worker_client_can_call(d->client))
        return;
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    encode_text(&w, "process", d->process->name);
    if (d->component)
        write_rooms(&w, d);
    link_write_return(&w, d->process->name, &d->returned);
    jw_object_end(&w);
    struct worker_post post = {
        .path = LINK_REPORT_PATH, .body = strbuf_str(&body), .answer_bytes_max = REPORT_ANSWER_MAX};
    d->report_tells_return = d->returned.attempts != 0;
    d->report = worker_client_post(d->client, &post, reported, d);
    d->report_at_ms = !d->component ? INT64_MAX : now_ms + (d->task_count ? REPORT_BUSY_MS : REPORT_IDLE_MS);
}

/* A claim may wait for long: so the report also asks whether core is there, as soon as one may. */
void domain_link(void *domain, bool works, const char *why)
{
    struct domain *d = domain;
    int64_t now_ms = domain_now_ms();
    if (!works)
        link_failed(&d->link, why, now_ms);
    else if (!link_works(&d->link, now_ms, &d->returned))
        return;
    d->report_at_ms = 0;
}
