/* Tells core how full the partitions are, and of a link to it that was lost (api/overload.h has the form). */
#include <stdio.h>

#include "base/json.h"
#include "domains/gateway/gateway_internal.h"
#include "runtime/pressure.h"

#include "base/banned.h"

enum {
    REPORT_BUSY_MS = 1000,
    REPORT_IDLE_MS = 4000, /* core forgets whom it has not heard of for PRESSURE_REPORT_MS */
    REPORT_ANSWER_MAX = 4096,
};

static uint32_t depth_of(const struct outbound *p)
{
    return p->count - p->asked;
}

/* True when a partition's level is another than core was told. */
static bool levels_moved(struct gateway *g)
{
    bool moved = false;
    for (uint32_t i = 0; i < g->partition_count; i++) {
        struct outbound *p = &g->partitions[i];
        enum pressure_level now = pressure_next_level(p->level, depth_of(p), g->partition_room);
        moved |= now != p->level;
        p->level = now;
    }
    return moved;
}

static void write_queues(struct json_writer *w, const struct gateway *g)
{
    jw_key(w, "queues");
    jw_array(w);
    for (uint32_t i = 0; i < g->partition_count; i++) {
        jw_object(w);
        jw_key(w, "component");
        jw_text(w, g->config->role->component);
        jw_key(w, "partition");
        jw_int(w, i);
        jw_key(w, "depth");
        jw_int(w, depth_of(&g->partitions[i]));
        jw_key(w, "capacity");
        jw_int(w, g->partition_room);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void reported(void *self, const struct worker_answer *answer)
{
    struct gateway *g = self;
    g->report = NULL;
    if (answer->kind != WORKER_ANSWERED)
        g->report_at_ms = clock_mono_ms(g->clock) + REPORT_BUSY_MS;
    else if (g->report_tells_return) /* else its own answer was what brought the link back */
        g->returned.attempts = 0;
}

void gateway_report(struct gateway *g, int64_t now_ms)
{
    bool moved = levels_moved(g);
    g->report_at_ms = moved ? 0 : g->report_at_ms;
    if (g->report || now_ms < g->report_at_ms || !worker_client_can_call(g->client))
        return;
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    jw_key(&w, "process");
    jw_text(&w, g->name);
    write_queues(&w, g);
    link_write_return(&w, g->name, &g->returned);
    jw_object_end(&w);
    struct worker_post post = {
        .path = LINK_REPORT_PATH, .body = strbuf_str(&body), .answer_bytes_max = REPORT_ANSWER_MAX};
    g->report_tells_return = g->returned.attempts != 0;
    g->report = worker_client_post(g->client, &post, reported, g);
    g->report_at_ms = now_ms + (egress_in_flight(g->egress) ? REPORT_BUSY_MS : REPORT_IDLE_MS);
}

/* --- the link to core ----------------------------------------------------------------------------- */

void gateway_link(void *gateway, bool works, const char *why)
{
    struct gateway *g = gateway;
    int64_t now_ms = clock_mono_ms(g->clock);
    if (!works)
        link_failed(&g->link, why, now_ms);
    else if (!link_works(&g->link, now_ms, &g->returned))
        return;
    /* It asks whether core is there, as soon as one may; then it tells how long it took. */
    g->report_at_ms = 0;
}
