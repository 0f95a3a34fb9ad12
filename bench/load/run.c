#include "load/run.h"

#include <stdio.h>
#include <sys/resource.h>

#include "load/request.h"
#include "base/must.h"

#include "base/banned.h"

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void cpu_so_far(double *ret_user_s, double *ret_system_s)
{
    struct rusage use;
    MUST(getrusage(RUSAGE_SELF, &use) == 0);
    *ret_user_s = seconds_of(use.ru_utime);
    *ret_system_s = seconds_of(use.ru_stime);
}

void run_begin(struct run *r)
{
    cpu_so_far(&r->begin_user_s, &r->begin_system_s);
    r->start_ns = now_ns();
}

void run_end(struct run *r)
{
    r->end_ns = now_ns();
    cpu_so_far(&r->cpu_user_s, &r->cpu_system_s);
    r->cpu_user_s -= r->begin_user_s;
    r->cpu_system_s -= r->begin_system_s;
}

struct histogram *run_call(struct run *r, const char *name)
{
    MUST(r->call_count < RUN_CALLS_MAX);
    r->calls[r->call_count].name = name;
    return &r->calls[r->call_count++].times;
}

void run_answer(struct run *r, struct histogram *h, const struct answer *a)
{
    histogram_add(h, a->now_ns - a->sent_ns);
    r->requests++;
    if (a->status >= 200 && a->status < 300)
        return;
    if (!r->errors++)
        fprintf(stderr, "weir-load: status %d: %.*s\n", a->status, STR_ARG(a->body));
}

int64_t run_deadline_ns(const struct run *r)
{
    return r->options.seconds > 0 ? r->start_ns + (int64_t)(r->options.seconds * 1e9) : 0;
}

struct asked {
    struct run *run;
    struct strbuf body;
};

static void asked_answer(struct conn *c, const struct answer *a, void *self)
{
    struct asked *asked = self;
    if (a->status < 200 || a->status >= 300)
        give_up("status %d: %.*s", a->status, STR_ARG(a->body));
    strbuf_add_str(&asked->body, a->body);
    conn_hang_up(c);
    loop_stop(asked->run->loop);
}

struct strbuf ask(struct run *r, struct str request)
{
    struct asked asked = {.run = r};
    conn_send(loop_connect(r->loop, asked_answer, &asked), request);
    loop_run(r->loop, 0);
    return asked.body;
}

struct str next_member(struct str *at, struct str quoted_name)
{
    const char *found = memmem(at->ptr, at->len, quoted_name.ptr, quoted_name.len);
    if (!found)
        return STR_ABSENT;
    const char *end = at->ptr + at->len;
    struct str rest = {found + quoted_name.len, (size_t)(end - found) - quoted_name.len};
    struct str text = str_cut(&rest, '"');
    *at = rest;
    return text;
}

uint32_t count_text(struct str in, struct str what)
{
    uint32_t count = 0;
    const char *end = in.ptr + in.len;
    for (const char *at = in.ptr; (at = memmem(at, (size_t)(end - at), what.ptr, what.len)); at += what.len)
        count++;
    return count;
}

/* The member's text from a POST without a body. */
static void post_for(struct run *r, const char *path, struct str quoted_name, char *out, size_t size)
{
    struct strbuf request = {0};
    request_post(&request, path, NULL, STR(""));
    struct strbuf body = ask(r, strbuf_str(&request));
    struct str rest = strbuf_str(&body), text = next_member(&rest, quoted_name);
    if (!text.ptr || text.len >= size)
        give_up("POST %s did not answer with %.*s", path, STR_ARG(quoted_name));
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
    strbuf_free(&body);
    strbuf_free(&request);
}

void make_client_and_key(struct run *r)
{
    if (r->options.key) {
        snprintf(r->key, sizeof r->key, "%s", r->options.key);
        return;
    }
    char client[64], path[128];
    post_for(r, "/v1/clients", STR("\"client_id\":\""), client, sizeof client);
    snprintf(path, sizeof path, "/v1/clients/%s/keys", client);
    post_for(r, path, STR("\"api_key\":\""), r->key, sizeof r->key);
}
