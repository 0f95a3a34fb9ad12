/* append: events of engines outside. Runs are opened beforehand; then each connection writes to its own
 * producers in turn, `batch` events a call (1: the form without a list), the next call when it has its
 * answer. */
#include <stdio.h>
#include <stdlib.h>

#include "load/event.h"
#include "load/request.h"
#include "load/run.h"
#include "base/must.h"

#include "base/banned.h"

struct append {
    struct run *run;
    struct histogram *times;
    struct event_form form;
    struct event_source *sources; /* of connection i: those numbered i, i + connections, ... */
    uint32_t source_count;
    uint64_t sent, limit; /* calls */
    uint32_t on_way;
    bool opening;
};

struct lane {
    struct append *append;
    struct conn *conn;
    uint32_t own, at; /* number of the connection; the source, or when opening the run, that is next */
    struct strbuf body, request;
};

static bool is_over(const struct append *a)
{
    int64_t deadline = run_deadline_ns(a->run);
    return (a->limit && a->sent >= a->limit) || (deadline && now_ns() >= deadline);
}

static void send_to(struct lane *l, uint32_t run)
{
    struct append *a = l->append;
    struct strbuf path = {0};
    strbuf_add_text(&path, "/engine/v1/runs/");
    event_run_id(&path, &a->form, run);
    strbuf_add_text(&path, "/events");
    request_post(&l->request, path.ptr, a->run->key, strbuf_str(&l->body));
    strbuf_free(&path);
    a->on_way++;
    conn_send(l->conn, strbuf_str(&l->request));
}

static void send_opening(struct lane *l)
{
    strbuf_clear(&l->body);
    strbuf_add_text(&l->body, "{\"events\":[");
    event_add_opening(&l->body, &l->append->form, l->at);
    strbuf_add_text(&l->body, "]}");
    send_to(l, l->at);
    l->at += l->append->run->options.connections;
}

static void send_next(struct lane *l)
{
    struct append *a = l->append;
    uint32_t batch = a->run->options.batch;
    if (l->at >= a->source_count)
        l->at = l->own;
    struct event_source *s = &a->sources[l->at];
    strbuf_clear(&l->body);
    if (batch > 1)
        strbuf_add_text(&l->body, "{\"events\":[");
    for (uint32_t i = 0; i < batch; i++) {
        if (i)
            strbuf_add_char(&l->body, ',');
        event_add(&l->body, &a->form, s);
    }
    if (batch > 1)
        strbuf_add_text(&l->body, "]}");
    a->sent++;
    send_to(l, s->run);
    l->at += a->run->options.connections;
}

/* A refused event, or one that was there already, is an error. */
static void count_events(struct append *a, const struct answer *answer, uint32_t wanted)
{
    uint32_t written = count_text(answer->body, STR("\"duplicate\":false"));
    a->run->errors += wanted - written;
    if (!a->opening)
        a->run->jobs += written;
    else if (written != wanted)
        give_up("a run was not opened: %.*s", STR_ARG(answer->body));
}

static void on_answer(struct conn *c, const struct answer *answer, void *self)
{
    (void)c;
    struct lane *l = self;
    struct append *a = l->append;
    a->on_way--;
    if (!a->opening)
        run_answer(a->run, a->times, answer);
    count_events(a, answer, a->opening ? 2 : a->run->options.batch);
    bool goes_on = a->opening ? l->at < a->run->options.runs : !is_over(a);
    if (goes_on && a->opening)
        send_opening(l);
    else if (goes_on)
        send_next(l);
    else if (!a->on_way)
        loop_stop(a->run->loop);
}

static void make_sources(struct append *a)
{
    const struct options *o = &a->run->options;
    a->source_count = o->runs > o->connections ? o->runs : o->connections;
    a->sources = must_alloc(a->source_count * sizeof *a->sources);
    for (uint32_t i = 0; i < a->source_count; i++)
        a->sources[i] = (struct event_source){.run = i % o->runs, .producer = i / o->runs};
}

/* Each lane's first call, and all that follow from the answers. */
static void run_lanes(struct append *a, struct lane *lanes, void (*send)(struct lane *l), uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        lanes[i].at = i;
        send(&lanes[i]);
    }
    loop_run(a->run->loop, 0);
}

void mode_append(struct run *r)
{
    const struct options *o = &r->options;
    struct append a = {.run = r, .limit = (o->count + o->batch - 1) / o->batch, .opening = true};
    if (!a.limit && o->seconds <= 0)
        give_up("say --seconds or --count");
    struct lane *lanes = must_alloc(o->connections * sizeof *lanes);
    for (uint32_t i = 0; i < o->connections; i++) {
        lanes[i] = (struct lane){.append = &a, .own = i};
        lanes[i].conn = loop_connect(r->loop, on_answer, &lanes[i]);
    }
    event_form_make(&a.form, o->payload_bytes);
    make_sources(&a);
    a.times = run_call(r, "append");
    run_lanes(&a, lanes, send_opening, o->runs < o->connections ? o->runs : o->connections);
    a.opening = false;
    puts("ready"); /* for whoever counts the server's work from here on */
    fflush(stdout);
    run_begin(r);
    run_lanes(&a, lanes, send_next, o->connections);
    run_end(r);
    for (uint32_t i = 0; i < o->connections; i++) {
        strbuf_free(&lanes[i].body);
        strbuf_free(&lanes[i].request);
    }
    free(lanes);
    free(a.sources);
    event_form_free(&a.form);
}
