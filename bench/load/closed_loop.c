/* submit, batch, get, null, connect: C connections, each sends its next request when it has its answer. */
#include <stdio.h>
#include <stdlib.h>

#include "load/request.h"
#include "load/run.h"
#include "base/must.h"
#include "base/random.h"
#include "base/uuid.h"

#include "base/banned.h"

struct closed_loop {
    struct run *run;
    struct histogram *times;
    struct strbuf *requests; /* chosen from; one per connection when `keyed` */
    size_t request_count;
    uint64_t sent, limit, on_way; /* limit 0: until time is over */
    uint64_t choice;              /* state of the choice among requests */
    uint64_t first_key;           /* so that two runs share no idempotency key */
    uint32_t jobs_per_request;
    bool keyed, renews, resumes; /* renews: a connection of its own for each request */
    FILE *ids_out;
};

static bool is_over(const struct closed_loop *l)
{
    int64_t deadline = run_deadline_ns(l->run);
    return (l->limit && l->sent >= l->limit) || (deadline && now_ns() >= deadline);
}

static void send_next(struct closed_loop *l, struct conn *c, size_t own)
{
    size_t i = own;
    if (l->keyed) {
        request_renumber(&l->requests[own], l->first_key + l->sent);
    } else if (l->request_count > 1) {
        l->choice += UINT64_C(0x9E3779B97F4A7C15);
        i = (size_t)(((l->choice >> 33) * l->request_count) >> 31);
    } else {
        i = 0;
    }
    l->sent++;
    l->on_way++;
    conn_send(c, strbuf_str(&l->requests[i]));
}

static void save_ids(FILE *out, struct str body)
{
    struct str id;
    while ((id = next_member(&body, STR("\"job_id\":\""))).ptr)
        fprintf(out, "%.*s\n", STR_ARG(id));
}

/* An item refused inside an accepted batch is an error too. */
static void count_jobs(struct closed_loop *l, const struct answer *a)
{
    if (!l->jobs_per_request || a->status != 202)
        return;
    uint32_t accepted = count_text(a->body, STR("\"job_id\":"));
    l->run->jobs += accepted;
    l->run->errors += l->jobs_per_request - accepted;
}

struct lane {
    struct closed_loop *loop;
    size_t own;
};

static void on_answer(struct conn *c, const struct answer *a, void *self)
{
    struct lane *lane = self;
    struct closed_loop *l = lane->loop;
    l->on_way--;
    run_answer(l->run, l->times, a);
    count_jobs(l, a);
    if (l->ids_out)
        save_ids(l->ids_out, a->body);
    if (l->resumes && !conn_resumed(c))
        give_up("a session was not resumed");
    if (!is_over(l)) {
        if (l->renews)
            conn_renew(c);
        send_next(l, c, lane->own);
    } else if (!l->on_way)
        loop_stop(l->run->loop);
}

static void run_closed(struct closed_loop *l)
{
    struct run *r = l->run;
    uint32_t connections = r->options.connections;
    struct lane *lanes = must_alloc(connections * sizeof *lanes);
    struct conn **conns = must_alloc(connections * sizeof(struct conn *));
    if (!l->limit && r->options.seconds <= 0)
        give_up("say --seconds or --count");
    for (uint32_t i = 0; i < connections; i++) {
        lanes[i] = (struct lane){l, i};
        conns[i] = loop_connect(r->loop, on_answer, &lanes[i]);
        if (!l->renews)
            conn_settle(conns[i]);
    }
    l->choice = random_u64();
    run_begin(r);
    for (uint32_t i = 0; i < connections && !is_over(l); i++)
        send_next(l, conns[i], i);
    loop_run(r->loop, 0);
    run_end(r);
    free(conns);
    free(lanes);
}

static void free_requests(struct closed_loop *l)
{
    for (size_t i = 0; i < l->request_count; i++)
        strbuf_free(&l->requests[i]);
    free(l->requests);
}

static struct closed_loop closed_loop(struct run *r, const char *call, size_t requests)
{
    return (struct closed_loop){.run = r,
                                .times = run_call(r, call),
                                .limit = r->options.count,
                                .requests = must_alloc(requests * sizeof(struct strbuf)),
                                .request_count = requests};
}

void mode_null(struct run *r)
{
    struct closed_loop l = closed_loop(r, "healthz", 1);
    request_get(&l.requests[0], "/healthz", NULL);
    run_closed(&l);
    free_requests(&l);
}

void mode_connect(struct run *r)
{
    struct closed_loop l = closed_loop(r, "connect", 1);
    request_get(&l.requests[0], "/healthz", NULL);
    l.renews = true;
    l.resumes = r->options.resume;
    if (l.resumes) {
        struct strbuf first = ask(r, strbuf_str(&l.requests[0])); /* brings the session */
        strbuf_free(&first);
        loop_resume(r->loop);
    }
    run_closed(&l);
    free_requests(&l);
}

void mode_submit(struct run *r)
{
    bool keyed = r->options.idempotency;
    struct closed_loop l = closed_loop(r, "submit", keyed ? r->options.connections : 1);
    struct strbuf body = {0};
    l.keyed = keyed;
    l.first_key = random_u64();
    l.jobs_per_request = 1;
    job_body(&body, &r->options);
    for (size_t i = 0; i < l.request_count; i++)
        if (keyed)
            request_keyed_submit(&l.requests[i], &r->options, r->key);
        else
            request_post(&l.requests[i], "/v1/jobs", r->key, strbuf_str(&body));
    run_closed(&l);
    strbuf_free(&body);
    free_requests(&l);
}

void mode_batch(struct run *r)
{
    struct closed_loop l = closed_loop(r, "batch", 1);
    struct strbuf body = {0};
    l.jobs_per_request = r->options.batch;
    l.limit = (r->options.count + r->options.batch - 1) / r->options.batch;
    batch_body(&body, &r->options, r->options.batch);
    request_post(&l.requests[0], "/v1/jobs:batch", r->key, strbuf_str(&body));
    if (r->options.ids && !(l.ids_out = fopen(r->options.ids, "w")))
        give_up("cannot write %s", r->options.ids);
    run_closed(&l);
    if (l.ids_out && fclose(l.ids_out) != 0)
        give_up("cannot write %s", r->options.ids);
    strbuf_free(&body);
    free_requests(&l);
}

enum { KNOWN_JOBS_MAX = 100000 };

/* Up to KNOWN_JOBS_MAX ids, spread evenly over the file. */
static size_t read_ids(const char *path, char (*ids)[UUID_TEXT_LEN + 1])
{
    FILE *in = path ? fopen(path, "r") : NULL;
    if (!in || fseek(in, 0, SEEK_END) != 0)
        give_up("get needs --ids FILE, as batch writes it");
    long lines = ftell(in) / (UUID_TEXT_LEN + 1);
    size_t count = lines < KNOWN_JOBS_MAX ? (size_t)lines : KNOWN_JOBS_MAX;
    for (size_t i = 0; i < count; i++) {
        long line = (long)((double)lines * (double)i / (double)count);
        if (fseek(in, line * (UUID_TEXT_LEN + 1), SEEK_SET) != 0 ||
            fread(ids[i], 1, UUID_TEXT_LEN, in) != UUID_TEXT_LEN)
            give_up("cannot read %s", path);
    }
    fclose(in);
    if (!count)
        give_up("no ids in %s", path);
    return count;
}

void mode_get(struct run *r)
{
    char(*ids)[UUID_TEXT_LEN + 1] = must_alloc(KNOWN_JOBS_MAX * sizeof *ids);
    struct closed_loop l = closed_loop(r, "get", read_ids(r->options.ids, ids));
    for (size_t i = 0; i < l.request_count; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/jobs/%s", ids[i]);
        request_get(&l.requests[i], path, r->key);
    }
    run_closed(&l);
    free(ids);
    free_requests(&l);
}
