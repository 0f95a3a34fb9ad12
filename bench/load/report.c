/* One measurement as one line of JSON on stdout. */
#include <stdio.h>

#include "load/run.h"
#include "base/json.h"

#include "base/banned.h"

static void add_double(struct json_writer *w, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.3f", value);
    jw_key(w, key);
    jw_raw(w, str_of(text));
}

static void add_count(struct json_writer *w, const char *key, uint64_t value)
{
    jw_key(w, key);
    jw_int(w, (int64_t)value);
}

static void add_times(struct json_writer *w, const struct call_times *c)
{
    const struct histogram *h = &c->times;
    jw_key(w, c->name);
    jw_object(w);
    add_count(w, "count", h->count);
    add_double(w, "p50_us", (double)histogram_at(h, 0.5) / 1e3);
    add_double(w, "p99_us", (double)histogram_at(h, 0.99) / 1e3);
    add_double(w, "p999_us", (double)histogram_at(h, 0.999) / 1e3);
    add_double(w, "max_us", (double)h->max_ns / 1e3);
    jw_object_end(w);
}

static double each(double total, uint64_t count)
{
    return count ? total / (double)count : 0;
}

void report_print(const struct run *r)
{
    struct strbuf out = {0};
    struct json_writer w;
    double seconds = (double)(r->end_ns - r->start_ns) / 1e9, cpu = r->cpu_user_s + r->cpu_system_s;
    jw_start(&w, &out);
    jw_object(&w);
    jw_key(&w, "mode");
    jw_text(&w, r->options.mode);
    add_count(&w, "connections", r->options.connections);
    add_count(&w, "workers", r->options.workers);
    add_double(&w, "seconds", seconds);
    add_count(&w, "requests", r->requests);
    add_count(&w, "jobs", r->jobs);
    add_count(&w, "errors", r->errors);
    add_double(&w, "requests_per_second", (double)r->requests / seconds);
    add_double(&w, "jobs_per_second", (double)r->jobs / seconds);
    add_double(&w, "cpu_user_s", r->cpu_user_s);
    add_double(&w, "cpu_system_s", r->cpu_system_s);
    add_double(&w, "cpu_us_per_request", each(cpu * 1e6, r->requests));
    add_double(&w, "cpu_us_per_job", each(cpu * 1e6, r->jobs));
    jw_key(&w, "calls");
    jw_object(&w);
    for (uint32_t i = 0; i < r->call_count; i++)
        add_times(&w, &r->calls[i]);
    jw_object_end(&w);
    jw_object_end(&w);
    puts(out.ptr);
    strbuf_free(&out);
}
