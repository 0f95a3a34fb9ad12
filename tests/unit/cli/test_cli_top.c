/* What /metrics says is read as numbers, and a frame of `weir top` shows them. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "cli/top_view.h"

#include "base/banned.h"

#define NEAR(a, b) assert_true((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

struct read {
    struct arena *arena;
    struct metrics_text text;
};

static struct read read_text(const char *text)
{
    struct read r = {.arena = arena_new(1024)};
    metrics_text_read(r.arena, str_of(text), &r.text);
    return r;
}

TEST(test_samples_are_added_up_by_name_and_label)
{
    struct read r =
        read_text("# HELP a what\n# TYPE a counter\na{x=\"1\",y=\"q}\\\"\"} 2\na{x=\"2\"} 3.5 1700\n"
                  "ab 7\nbroken{x=\"\nbroken2\nbad x\n");
    assert_int_equal(r.text.count, 3);
    NEAR(metrics_sum(&r.text, "a", NULL), 5.5);
    NEAR(metrics_sum(&r.text, "a", "x=\"2\""), 3.5);
    NEAR(metrics_sum(&r.text, "ab", NULL), 7);
    NEAR(metrics_sum(&r.text, "none", NULL), 0);
    arena_free(r.arena);
}

static const char before_text[] = "h_bucket{op=\"a\",le=\"0.1\"} 100\nh_bucket{op=\"a\",le=\"1\"} 100\n"
                                  "h_bucket{op=\"a\",le=\"+Inf\"} 100\n";
static const char now_text[] = "h_bucket{op=\"a\",le=\"0.1\"} 150\nh_bucket{op=\"a\",le=\"1\"} 190\n"
                               "h_bucket{op=\"a\",le=\"+Inf\"} 200\nh_bucket{op=\"b\",le=\"0.1\"} 0\n"
                               "h_bucket{op=\"b\",le=\"1\"} 100\nh_bucket{op=\"b\",le=\"+Inf\"} 100\n";

/* Of the hundred that came between, fifty took up to 0.1, forty up to 1, ten longer. */
TEST(test_quantiles_are_of_what_came_between_two_looks)
{
    struct read before = read_text(before_text), now = read_text(now_text), none = read_text("");
    double v;
    assert_true(metrics_quantile(&before.text, &now.text, "h", "op=\"a\"", 0.25, &v));
    NEAR(v, 0.05);
    assert_true(metrics_quantile(&before.text, &now.text, "h", "op=\"a\"", 0.7, &v));
    NEAR(v, 0.1 + 0.9 * 20 / 40);
    assert_true(metrics_quantile(&before.text, &now.text, "h", "op=\"a\"", 0.99, &v));
    NEAR(v, 1); /* longer than the last bound: that much at least */
    assert_true(metrics_quantile(&before.text, &now.text, "h", NULL, 0.25, &v));
    NEAR(v, 0.1); /* both series: fifty of two hundred */
    assert_true(metrics_quantile(&none.text, &now.text, "h", "op=\"b\"", 0.5, &v));
    NEAR(v, 0.55);
    assert_false(metrics_quantile(&now.text, &now.text, "h", NULL, 0.5, &v));
    assert_false(metrics_quantile(&none.text, &now.text, "nothing", NULL, 0.5, &v));
    arena_free(before.arena);
    arena_free(now.arena);
    arena_free(none.arena);
}

static const char topology[] =
    "{\"processes\":[{\"name\":\"core\",\"domain\":\"root\",\"pid\":7,\"state\":\"running\",\"restarts\":2,"
    "\"started_at\":\"2026-01-01T00:00:00Z\"}],\"domains\":[{\"name\":\"root\",\"intensity\":\"3/10s\","
    "\"restarts_in_window\":1,\"state\":\"running\"}],\"pressure\":["
    "{\"component\":\"task_queue\",\"partition\":0,\"ratio\":0.5,\"level\":\"normal\"},"
    "{\"component\":\"outbound\",\"partition\":0,\"ratio\":0.1,\"level\":\"normal\"},"
    "{\"component\":\"outbound\",\"partition\":1,\"ratio\":0.9,\"level\":\"degraded\"},"
    "{\"component\":\"outbound\",\"partition\":2,\"ratio\":0.2,\"level\":\"normal\"},"
    "{\"component\":\"outbound\",\"partition\":3,\"ratio\":0.2,\"level\":\"normal\"},"
    "{\"component\":\"outbound\",\"partition\":4,\"ratio\":0.2,\"level\":\"normal\"}],"
    "\"slos\":[{\"name\":\"queue_pressure\",\"value\":0.9,\"target\":0.7,\"samples\":3,\"level\":"
    "\"critical\"}]}";

/* Two seconds lie between the looks. */
static void frame_with(struct arena *a, struct top_look looks[2], const char *was, const char *is)
{
    struct err err;
    for (int i = 0; i < 2; i++) {
        looks[i] = (struct top_look){.mono_ms = 1000 + 2000 * i, .wall_ms = 1767225600000};
        assert_int_equal(json_parse(a, str_of(topology), &looks[i].topology, &err), ERR_OK);
        metrics_text_read(a, str_of(i ? is : was), &looks[i].metrics);
    }
}

static char *drawn(struct top_look looks[2])
{
    struct top_frame f = {.url = "http://here", .before = &looks[0], .now = &looks[1]};
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    top_draw(&f, out);
    fclose(out);
    return text;
}

ARENA_TEST(test_a_frame_shows_rates_queues_and_processes, a)
{
    struct top_look looks[2];
    frame_with(a, looks, "jobs_submitted_total 1000\n", "jobs_submitted_total 4000\nweir_workers 8\n");
    char *text = drawn(looks);
    assert_non_null(strstr(text, " 1500 "));
    assert_non_null(strstr(text, "core"));
    assert_non_null(strstr(text, "fullest of 5"));
    assert_non_null(strstr(text, "90 %"));
    assert_non_null(strstr(text, "degraded"));
    assert_non_null(strstr(text, "queue_pressure"));
    assert_null(strstr(text, "latency")); /* nothing took any time */
    free(text);
}

/* A core that was started anew counts from zero. */
ARENA_TEST(test_a_counter_that_went_back_is_a_new_core, a)
{
    struct top_look looks[2];
    frame_with(a, looks, "jobs_submitted_total 1000000\n", "jobs_submitted_total 246\n");
    char *text = drawn(looks);
    assert_non_null(strstr(text, " 123 "));
    assert_null(strstr(text, "-4"));
    free(text);
}

ARENA_TEST(test_programs_get_the_same_as_json, a)
{
    struct top_look looks[2];
    struct strbuf out = {0};
    const struct json *root;
    struct err err;
    double rate;
    frame_with(a, looks, "jobs_submitted_total 1\n", "jobs_submitted_total 11\n");
    top_write_json(&(struct top_frame){.url = "u", .before = &looks[0], .now = &looks[1]}, &out);
    assert_int_equal(json_parse(a, strbuf_str(&out), &root, &err), ERR_OK);
    assert_true(json_to_double(json_get(json_get(root, "rates"), "submitted"), &rate));
    NEAR(rate, 5);
    assert_non_null(json_get(json_get(root, "topology"), "processes"));
    strbuf_free(&out);
}
