/* egress_probe [OPTIONS] < REQUESTS > RESULTS - a sender on the command line, for tests/egress.
 *
 * Each line read is a JSON object: url, and optionally headers (array of "name: value"), body, timeout_ms,
 * connect_timeout_ms, label (comes back), times (default 1), quiet (counted only), trusted. Each result is a
 * line: label, failure, error, status, duration_ms, retry_after_ms, excerpt (ASCII; other bytes as ?), cut;
 * or label and refused. The last line is {"summary":{...}}. Requests are sent in order, as many at once as
 * --at-once says. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/must.h"
#include "egress/scripted_resolver.h"
#include "egress/sender.h"
#include "egress/trusted.h"

#include "base/banned.h"

enum { LINE_BYTES_MAX = 8 * 1024 * 1024 };

struct line {
    struct line *next;
    struct egress_request request;
    struct str headers[EGRESS_HEADERS_MAX + 1]; /* one more than a sender takes */
    struct str label;
    int64_t times;
    bool quiet, trusted;
};

struct probe {
    struct egress_config config;
    struct egress *egress;
    uint32_t at_once;
    bool cancel; /* as soon as everything is sent */
    struct line *lines;
    uint64_t results, successes;
    int64_t duration_ms_max;
    struct strbuf out;
};

static int64_t memory_kib(const char *field)
{
    char line[256];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtoll(line + strlen(field) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void print_line(struct probe *p)
{
    strbuf_add_char(&p->out, '\n');
    fwrite(p->out.ptr, 1, p->out.len, stdout);
    fflush(stdout);
    strbuf_clear(&p->out);
}

static void print_result(struct probe *p, const struct line *line, const struct egress_result *r)
{
    struct json_writer w;
    char text[EGRESS_EXCERPT_BYTES];
    for (size_t i = 0; i < r->excerpt.len; i++)
        text[i] = r->excerpt.ptr[i] >= ' ' && r->excerpt.ptr[i] < 0x7f ? r->excerpt.ptr[i] : '?';
    jw_start(&w, &p->out);
    jw_object(&w);
    jw_key(&w, "label");
    jw_str(&w, line->label);
    jw_key(&w, "failure");
    jw_text(&w, egress_failure_wire(r->failure));
    jw_key(&w, "error");
    jw_text(&w, r->error);
    jw_key(&w, "status");
    jw_int(&w, r->status);
    jw_key(&w, "duration_ms");
    jw_int(&w, r->duration_ms);
    jw_key(&w, "retry_after_ms");
    jw_int(&w, r->retry_after_ms);
    jw_key(&w, "excerpt");
    jw_str(&w, (struct str){text, r->excerpt.len});
    jw_key(&w, "cut");
    jw_bool(&w, r->cut);
    jw_object_end(&w);
    print_line(p);
}

static void print_refusal(struct probe *p, const struct line *line, const struct err *err)
{
    struct json_writer w;
    jw_start(&w, &p->out);
    jw_object(&w);
    jw_key(&w, "label");
    jw_str(&w, line->label);
    jw_key(&w, "refused");
    jw_text(&w, err->detail);
    jw_key(&w, "code");
    jw_text(&w, err_wire(err->code));
    jw_object_end(&w);
    print_line(p);
}

static void print_summary(struct probe *p, int64_t took_us, int64_t kib_before)
{
    struct json_writer w;
    jw_start(&w, &p->out);
    jw_object(&w);
    jw_key(&w, "summary");
    jw_object(&w);
    jw_key(&w, "results");
    jw_int(&w, (int64_t)p->results);
    jw_key(&w, "successes");
    jw_int(&w, (int64_t)p->successes);
    jw_key(&w, "seconds");
    jw_double(&w, (double)took_us / 1e6);
    jw_key(&w, "rate");
    jw_double(&w, (double)p->results * 1e6 / (double)(took_us ? took_us : 1));
    jw_key(&w, "duration_ms_max");
    jw_int(&w, p->duration_ms_max);
    jw_key(&w, "lookups");
    jw_int(&w, scripted_resolver_lookups());
    jw_key(&w, "rss_kib_before");
    jw_int(&w, kib_before);
    jw_key(&w, "rss_kib_peak");
    jw_int(&w, memory_kib("VmHWM:"));
    jw_object_end(&w);
    jw_object_end(&w);
    print_line(p);
}

static void on_done(void *self, const struct egress_result *result)
{
    struct probe *p = self;
    const struct line *line = result->owner;
    p->results++;
    p->successes += result->failure == EGRESS_NONE && result->status >= 200 && result->status <= 299;
    if (result->duration_ms > p->duration_ms_max)
        p->duration_ms_max = result->duration_ms;
    if (!line->quiet)
        print_result(p, line, result);
}

static struct str text_of(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_STRING ? j->text : STR("");
}

static int64_t int_of(const struct json *object, const char *key, int64_t otherwise)
{
    const struct json *j = json_get(object, key);
    int64_t value;
    return j && json_to_int(j, &value) ? value : otherwise;
}

static bool is_true(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_TRUE;
}

static struct line *line_read(struct arena *a, struct str text)
{
    const struct json *root;
    struct err err;
    struct line *line = ARENA_NEW(a, struct line);
    if (json_parse(a, text, &root, &err) != ERR_OK) {
        fprintf(stderr, "egress_probe: %s\n", err.detail);
        exit(2);
    }
    line->quiet = is_true(root, "quiet");
    line->trusted = is_true(root, "trusted");
    line->label = text_of(root, "label");
    line->times = int_of(root, "times", 1);
    line->request = (struct egress_request){.url = text_of(root, "url"),
                                            .headers = line->headers,
                                            .body = text_of(root, "body"),
                                            .timeout_ms = int_of(root, "timeout_ms", 5000),
                                            .connect_timeout_ms = int_of(root, "connect_timeout_ms", 2000),
                                            .owner = line};
    const struct json *headers = json_get(root, "headers");
    for (const struct json *h = headers ? headers->child : NULL; h; h = h->next)
        if (line->request.header_count < LENGTH_OF(line->headers))
            line->headers[line->request.header_count++] = h->text;
    return line;
}

static void read_lines(struct probe *p, struct arena *a)
{
    struct line **last = &p->lines;
    char *buffer = must_alloc(LINE_BYTES_MAX);
    while (fgets(buffer, LINE_BYTES_MAX, stdin)) {
        struct str text = arena_str(a, (struct str){buffer, strcspn(buffer, "\n")});
        *last = line_read(a, text);
        last = &(*last)->next;
    }
    free(buffer);
}

static void run(struct probe *p)
{
    struct err err;
    for (struct line *line = p->lines; line; line = line->next)
        for (int64_t i = 0; i < line->times; i++) {
            while (egress_in_flight(p->egress) >= p->at_once)
                egress_poll(p->egress, -1);
            if ((line->trusted ? egress_send_trusted : egress_send)(p->egress, &line->request, &err) !=
                ERR_OK)
                print_refusal(p, line, &err);
        }
    if (p->cancel) {
        egress_poll(p->egress, 0);
        egress_cancel_all(p->egress);
    }
    while (egress_in_flight(p->egress))
        egress_poll(p->egress, -1);
}

static void bad_option(const char *option)
{
    fprintf(stderr, "egress_probe: bad option or value: %s\n", option);
    exit(2);
}

static uint32_t number_of(const char *text)
{
    int64_t value;
    if (!text || !str_to_int(str_of(text), 0, 1000000000, &value))
        bad_option(text ? text : "(none)");
    return (uint32_t)value;
}

static void read_options(struct probe *p, char **argv)
{
    bool allow_private = false;
    const char *networks = "";
    struct err err;
    for (char **arg = argv + 1; *arg; arg++) {
        struct str name = str_of(*arg);
        if (str_is(name, "--allow-private"))
            allow_private = true;
        else if (str_is(name, "--cancel"))
            p->cancel = true;
        else if (!arg[1])
            bad_option(*arg);
        else if (str_is(name, "--allow"))
            networks = *++arg;
        else if (str_is(name, "--ca"))
            p->config.ca_file = *++arg;
        else if (str_is(name, "--in-flight"))
            p->config.in_flight_max = number_of(*++arg);
        else if (str_is(name, "--connections"))
            p->config.connections_max = number_of(*++arg);
        else if (str_is(name, "--lookups"))
            p->config.lookups_max = number_of(*++arg);
        else if (str_is(name, "--bytes"))
            p->config.bytes_max = number_of(*++arg);
        else if (str_is(name, "--at-once"))
            p->at_once = number_of(*++arg);
        else if (!str_is(name, "--resolve") || !scripted_resolver_add(*++arg))
            bad_option(*arg);
    }
    if (egress_policy_parse(str_of(networks), allow_private, &p->config.policy, &err) != ERR_OK)
        bad_option(err.detail);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct probe p = {.at_once = UINT32_MAX,
                      .config = {.in_flight_max = 10000,
                                 .connections_max = 256,
                                 .lookups_max = 256,
                                 .bytes_max = 256 * 1024 * 1024,
                                 .clock = &clock_system,
                                 .done = on_done}};
    p.config.self = &p;
    read_options(&p, argv);
    struct arena *a = arena_new(64 * 1024);
    read_lines(&p, a);
    p.egress = egress_new(&p.config);
    int64_t kib_before = memory_kib("VmRSS:"), start_us = clock_mono_us(&clock_system);
    run(&p);
    print_summary(&p, clock_mono_us(&clock_system) - start_us, kib_before);
    egress_free(p.egress);
    arena_free(a);
    strbuf_free(&p.out);
    return 0;
}
