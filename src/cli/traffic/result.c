/* The end of a run: a table for people or JSON for programs, and every surprise that was kept. */
#include <stdio.h>

#include "base/must.h"
#include "cli/traffic/traffic_internal.h"
#include "cli/table.h"

#include "base/banned.h"

static double ms_at(const struct traffic_kind_count *n, double share)
{
    return (double)latency_at(&n->latency, share) / 1000;
}

static int64_t took_ms(const struct traffic *s)
{
    return s->worked_ms ? s->worked_ms : traffic_now_ms() - s->started_ms;
}

static double per_second(const struct traffic *s)
{
    return took_ms(s) ? (double)s->judged * 1000 / (double)took_ms(s) : 0;
}

static const char *kind_name(const struct traffic_surprise *u)
{
    return u->kind == WORK_KIND_COUNT ? "all kinds" : traffic_expectations[u->kind].name;
}

/* --- JSON ------------------------------------------------------------------------------------------- */

static void write_kind(const struct traffic *s, int kind, struct json_writer *w)
{
    const struct traffic_kind_count *n = &s->kinds[kind];
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"sent", n->sent},
                  {"as_expected", n->as_expected},
                  {"unexpected", n->unexpected},
                  {"again", n->again}};
    jw_object(w);
    encode_text(w, "kind", s->expected[kind].name);
    encode_text(w, "expected", traffic_end_text(&s->expected[kind]));
    for (size_t i = 0; i < LENGTH_OF(counts); i++)
        encode_int(w, counts[i].name, counts[i].value);
    jw_key(w, "p50_ms");
    jw_double(w, ms_at(n, 0.5));
    jw_key(w, "p99_ms");
    jw_double(w, ms_at(n, 0.99));
    jw_object_end(w);
}

static void write_surprise(const struct traffic_surprise *u, struct json_writer *w)
{
    jw_object(w);
    encode_text(w, "kind", kind_name(u));
    encode_text(w, "job_id", u->job_id[0] ? u->job_id : NULL);
    encode_text(w, "expected", u->finding.expected);
    encode_text(w, "found", u->finding.found);
    encode_text(w, "look_at", u->finding.next);
    jw_object_end(w);
}

static void write_totals(const struct traffic *s, struct json_writer *w)
{
    struct traffic_calls_count calls = s->calls ? traffic_calls_count(s->calls) : s->calls_made;
    const struct {
        const char *name;
        int64_t value;
    } totals[] = {
        {"seed", (int64_t)s->seed},
        {"judged", s->judged},
        {"not_judged", s->not_judged},
        {"surprise_count", s->surprise_count},
        {"duration_ms", traffic_now_ms() - s->started_ms},
        {"calls", (int64_t)calls.answered},
        {"waited_429", (int64_t)calls.refused_429},
        {"waited_503", (int64_t)calls.refused_503},
        {"broken", (int64_t)calls.broken},
    };
    for (size_t i = 0; i < LENGTH_OF(totals); i++)
        encode_int(w, totals[i].name, totals[i].value);
    jw_key(w, "time_scale");
    jw_double(w, s->time_scale);
    jw_key(w, "per_second");
    jw_double(w, per_second(s));
}

static void write_left_out(const struct traffic *s, struct json_writer *w)
{
    jw_array(w);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (s->left_out[k]) {
            jw_object(w);
            encode_text(w, "kind", s->expected[k].name);
            encode_text(w, "why", s->left_out[k]);
            jw_object_end(w);
        }
    jw_array_end(w);
}

static void write_samples(const struct traffic *s, struct json_writer *w)
{
    jw_array(w);
    for (int i = 0; i < s->sample_count; i++) {
        const struct traffic_sample *p = &s->samples[i];
        jw_object(w);
        encode_int(w, "at_ms", p->at_ms);
        encode_int(w, "judged", p->judged);
        encode_int(w, "in_flight", p->in_flight);
        jw_key(w, "core_bytes");
        if (p->core_bytes >= 0)
            jw_int(w, p->core_bytes);
        else
            jw_null(w);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static int64_t shown_surprises(const struct traffic *s)
{
    return s->surprise_count < TRAFFIC_SURPRISES_SHOWN ? s->surprise_count : TRAFFIC_SURPRISES_SHOWN;
}

static void show_json(const struct traffic *s)
{
    struct strbuf out CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &out);
    jw_object(&w);
    write_totals(s, &w);
    jw_key(&w, "kinds");
    jw_array(&w);
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (s->kinds[k].sent)
            write_kind(s, k, &w);
    jw_array_end(&w);
    jw_key(&w, "left_out");
    write_left_out(s, &w);
    jw_key(&w, "samples");
    write_samples(s, &w);
    jw_key(&w, "surprises");
    jw_array(&w);
    for (int64_t i = 0; i < shown_surprises(s); i++)
        write_surprise(&s->surprises[i], &w);
    jw_array_end(&w);
    jw_object_end(&w);
    strbuf_add_char(&out, '\n');
    fwrite(out.ptr, 1, out.len, stdout);
}

/* --- for people ------------------------------------------------------------------------------------- */

static void add_ms(struct text_table *t, double ms)
{
    text_table_addf(t, "%.*f", ms < 100 ? 1 : 0, ms);
}

static void add_row(struct text_table *t, const char *name, const char *expected,
                    const struct traffic_kind_count *n)
{
    text_table_add(t, str_of(name));
    text_table_addf(t, "%lld", (long long)n->sent);
    text_table_add(t, str_of(expected));
    text_table_addf(t, "%lld", (long long)n->as_expected);
    char unexpected[24];
    snprintf(unexpected, sizeof unexpected, "%lld", (long long)n->unexpected);
    text_table_add_tone(t, str_of(unexpected), n->unexpected ? TONE_BAD : TONE_GOOD);
    if (n->latency.count) {
        add_ms(t, ms_at(n, 0.5));
        add_ms(t, ms_at(n, 0.99));
    } else {
        text_table_add(t, STR_ABSENT);
        text_table_add(t, STR_ABSENT);
    }
}

static void add_left_out(struct text_table *t, const char *name)
{
    text_table_add(t, str_of(name));
    text_table_add(t, STR_ABSENT);
    text_table_add_tone(t, STR("left out"), TONE_BUSY);
    for (int i = 0; i < 4; i++)
        text_table_add(t, STR_ABSENT);
}

/* One line for each reason, with the kinds it is about. */
static void show_left_out(const struct traffic *s)
{
    for (int k = 0; k < WORK_KIND_COUNT; k++) {
        bool told = !s->left_out[k];
        for (int i = 0; i < k && !told; i++)
            told = s->left_out[i] == s->left_out[k];
        if (told)
            continue;
        fputs("left out:", stdout);
        for (int i = k; i < WORK_KIND_COUNT; i++)
            if (s->left_out[i] == s->left_out[k])
                printf("%s %s", i > k ? "," : "", s->expected[i].name);
        printf(": %s\n", s->left_out[k]);
    }
}

static void show_summary(const struct traffic *s)
{
    const struct traffic_sample *first = s->samples, *last = &s->samples[s->sample_count - 1];
    double seconds = (double)took_ms(s) / 1000, mb = 1024 * 1024;
    printf("%lld jobs in %.*f %s, %.1f a second", (long long)s->judged, seconds < 100 ? 1 : 0,
           seconds < 600 ? seconds : seconds / 60, seconds < 600 ? "s" : "min", per_second(s));
    if (s->sample_count && first->core_bytes >= 0 && last->core_bytes >= 0)
        printf("; memory of core %.1f MB at the beginning, %.1f MB at the end",
               (double)first->core_bytes / mb, (double)last->core_bytes / mb);
    fputc('\n', stdout);
    if (s->not_judged)
        printf("%lld jobs were sent and not judged\n", (long long)s->not_judged);
}

static void show_table(const struct traffic *s)
{
    static const char *const headings[] = {"!KIND",       ">SENT",   "!EXPECTED", ">AS EXPECTED",
                                           ">UNEXPECTED", ">P50 MS", ">P99 MS"};
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    struct traffic_kind_count all = {0};
    for (int k = 0; k < WORK_KIND_COUNT; k++) {
        const struct traffic_kind_count *n = &s->kinds[k];
        if (s->left_out[k])
            add_left_out(t, s->expected[k].name);
        if (!n->sent)
            continue;
        add_row(t, s->expected[k].name, traffic_end_text(&s->expected[k]), n);
        all.sent += n->sent;
        all.as_expected += n->as_expected;
        all.unexpected += n->unexpected;
        all.latency.count += n->latency.count;
        for (int i = 0; i < LATENCY_SLOTS; i++)
            all.latency.slots[i] += n->latency.slots[i];
    }
    add_row(t, "all", "", &all);
    text_table_show_and_free(t);
}

static void add_line(struct text_table *t, const char *name, const char *text)
{
    text_table_add(t, str_of(name));
    text_table_add(t, str_of(text));
}

static void show_surprises(const struct traffic *s)
{
    struct text_table *t = text_table_new(NULL, 2); /* makes text from outside harmless */
    printf("\n%lld surprise%s (seed %llu):\n", (long long)s->surprise_count,
           s->surprise_count == 1 ? "" : "s", (unsigned long long)s->seed);
    for (int64_t i = 0; i < shown_surprises(s); i++) {
        const struct traffic_surprise *u = &s->surprises[i];
        add_line(t, kind_name(u), u->job_id[0] ? u->job_id : "no job");
        add_line(t, "  expected", u->finding.expected);
        add_line(t, "  found", u->finding.found);
        add_line(t, "  look at", u->finding.next);
    }
    text_table_print(t, stdout, 0, false);
    text_table_free(t);
    if (s->surprise_count > TRAFFIC_SURPRISES_SHOWN)
        printf("and %lld more\n", (long long)(s->surprise_count - TRAFFIC_SURPRISES_SHOWN));
}

void traffic_result_show(struct traffic *s)
{
    if (s->in->json) {
        show_json(s);
    } else {
        show_table(s);
        show_left_out(s);
        show_summary(s);
        if (s->surprise_count)
            show_surprises(s);
    }
    if (s->time_surprises && s->scale_seen > 0)
        cli_fault("%lld runs had another length than --time-scale %g says; the runs look like a "
                  "runner.time_scale of %g",
                  (long long)s->time_surprises, s->time_scale, s->scale_seen);
}
