/* Levels of queues: exactly at their bounds, left 0.05 below, one word for each change. */
#include "case.h"

#include "runtime/pressure.h"

struct told {
    int count;
    struct pressure_gauge last;
    enum pressure_level before;
};

static void hear(void *self, const struct pressure_gauge *g, enum pressure_level before)
{
    struct told *t = self;
    t->count++;
    t->last = *g;
    t->before = before;
}

static const struct {
    enum pressure_level level;
    int64_t at; /* of 1000 */
} bounds[] = {{PRESSURE_WARN, 700}, {PRESSURE_DEGRADED, 850}, {PRESSURE_SHED, 950}};

/* Just below, at and above each bound. [TOP-072] [TOP-077] [TOP-078] [TOP-079] [TOP-080] */
TEST(a_level_is_entered_exactly_at_its_bound)
{
    for (size_t i = 0; i < 3; i++) {
        enum pressure_level below = (enum pressure_level)(bounds[i].level - 1);
        assert_int_equal(pressure_next_level(PRESSURE_NORMAL, bounds[i].at - 1, 1000), below);
        assert_int_equal(pressure_next_level(PRESSURE_NORMAL, bounds[i].at, 1000), bounds[i].level);
        assert_int_equal(pressure_next_level(PRESSURE_NORMAL, bounds[i].at + 1, 1000), bounds[i].level);
    }
    assert_int_equal(pressure_next_level(PRESSURE_NORMAL, 0, 1000), PRESSURE_NORMAL);
    assert_int_equal(pressure_next_level(PRESSURE_NORMAL, 5000, 1000), PRESSURE_SHED);
    /* no rounding: 69.99999 % of a large one */
    assert_int_equal(pressure_next_level(PRESSURE_NORMAL, 69999999, 100000000), PRESSURE_NORMAL);
    assert_int_equal(pressure_next_level(PRESSURE_NORMAL, 70000000, 100000000), PRESSURE_WARN);
}

/* [TOP-072] */
TEST(a_level_is_left_a_twentieth_below_its_bound)
{
    for (size_t i = 0; i < 3; i++) {
        enum pressure_level held = bounds[i].level, below = (enum pressure_level)(held - 1);
        assert_int_equal(pressure_next_level(held, bounds[i].at - 1, 1000), held);
        assert_int_equal(pressure_next_level(held, bounds[i].at - 49, 1000), held);
        assert_int_equal(pressure_next_level(held, bounds[i].at - 50, 1000), below);
    }
    assert_int_equal(pressure_next_level(PRESSURE_SHED, 0, 1000), PRESSURE_NORMAL);
    assert_int_equal(pressure_next_level(PRESSURE_SHED, 810, 1000), PRESSURE_DEGRADED);
    assert_int_equal(pressure_next_level(PRESSURE_WARN, 960, 1000), PRESSURE_SHED);
}

TEST(a_queue_without_capacity_is_empty)
{
    assert_int_equal(pressure_next_level(PRESSURE_SHED, 10, 0), PRESSURE_NORMAL);
}

/* [TOP-073] [TOP-078] */
TEST(each_change_is_told_once)
{
    struct told told = {0};
    struct pressure_board *b = pressure_board_new(hear, &told);
    pressure_set(b, PRESSURE_OF_TASKS, 0, 69, 100);
    assert_int_equal(told.count, 0);
    pressure_set(b, PRESSURE_OF_TASKS, 0, 70, 100);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.last.component, PRESSURE_OF_TASKS);
    assert_int_equal(told.last.level, PRESSURE_WARN);
    assert_int_equal(told.before, PRESSURE_NORMAL);
    for (int64_t depth = 66; depth < 85; depth++) /* it hovers: silence */
        pressure_set(b, PRESSURE_OF_TASKS, 0, depth, 100);
    assert_int_equal(told.count, 1);
    pressure_set(b, PRESSURE_OF_TASKS, 0, 100, 100); /* two levels at once are one change */
    assert_int_equal(told.count, 2);
    assert_int_equal(told.last.level, PRESSURE_SHED);
    pressure_set(b, PRESSURE_OF_TASKS, 0, 0, 100);
    assert_int_equal(told.count, 3);
    assert_int_equal(pressure_entered(b, PRESSURE_OF_TASKS, PRESSURE_SHED), 1);
    assert_int_equal(pressure_entered(b, PRESSURE_OF_TASKS, PRESSURE_DEGRADED), 0);
    assert_int_equal(pressure_entered(b, PRESSURE_OF_TASKS, PRESSURE_NORMAL), 1);
    pressure_board_free(b);
}

TEST(the_worst_of_those_that_govern_is_not_the_worst_of_all)
{
    struct pressure_board *b = pressure_board_new(NULL, NULL);
    pressure_set(b, PRESSURE_OF_SPANS, 0, 99, 100);
    pressure_set(b, PRESSURE_OF_ACTIVE, 0, 86, 100);
    assert_int_equal(pressure_worst(b, true), PRESSURE_DEGRADED);
    assert_int_equal(pressure_worst(b, false), PRESSURE_SHED);
    assert_true(pressure_worst_ratio(b) > 0.98);
    pressure_board_free(b);
}

static size_t count_of(struct pressure_board *b)
{
    size_t count;
    (void)pressure_gauges(b, &count);
    return count;
}

TEST(reports_of_two_processes_are_added_up)
{
    struct told told = {0};
    struct pressure_board *b = pressure_board_new(hear, &told);
    struct pressure_part busy[] = {{PRESSURE_OF_OUTBOUND, 0, 100, 100}, {PRESSURE_OF_OUTBOUND, 3, 10, 100}};
    struct pressure_part idle[] = {{PRESSURE_OF_OUTBOUND, 0, 0, 100}};
    assert_true(pressure_report(b, "gateway 1", busy, 2, 1000));
    size_t count;
    const struct pressure_gauge *g = pressure_gauges(b, &count);
    assert_int_equal(count, 2);
    assert_int_equal(g[0].level, PRESSURE_SHED);
    assert_int_equal(g[1].partition, 3);
    assert_true(pressure_report(b, "gateway 2", idle, 1, 1000));
    assert_int_equal(g[0].depth, 100);
    assert_int_equal(g[0].capacity, 200);
    assert_int_equal(g[0].level, PRESSURE_NORMAL);
    assert_true(pressure_report(b, "gateway 1", busy, 1, 2000)); /* no word of partition 3 any more */
    assert_int_equal(count_of(b), 1);
    pressure_board_free(b);
}

TEST(a_process_that_is_silent_for_ten_seconds_is_forgotten)
{
    struct told told = {0};
    struct pressure_board *b = pressure_board_new(hear, &told);
    struct pressure_part full = {PRESSURE_OF_OUTBOUND, 1, 100, 100};
    pressure_set(b, PRESSURE_OF_TASKS, 0, 1, 100);
    assert_true(pressure_report(b, "gateway 1", &full, 1, 1000));
    pressure_forget(b, 1000 + PRESSURE_REPORT_MS - 1);
    assert_int_equal(count_of(b), 2);
    pressure_forget(b, 1000 + PRESSURE_REPORT_MS);
    assert_int_equal(count_of(b), 1); /* what core measures itself stays */
    assert_int_equal(told.count, 2);  /* and its end is told */
    assert_int_equal(told.last.level, PRESSURE_NORMAL);
    pressure_board_free(b);
}

TEST(reports_are_bounded)
{
    struct pressure_board *b = pressure_board_new(NULL, NULL);
    struct pressure_part parts[256];
    char name[16] = "gateway a";
    for (uint32_t i = 0; i < 256; i++)
        parts[i] = (struct pressure_part){PRESSURE_OF_OUTBOUND, i, 1, 2};
    for (int i = 0; i < 4; i++, name[8]++)
        assert_true(pressure_report(b, name, parts, 256, 1));
    assert_false(pressure_report(b, name, parts, 1, 1));
    name[8] = 'a';
    assert_true(pressure_report(b, name, parts, 256, 1)); /* a report replaces the one before it */
    assert_false(pressure_report(b, "a name of a process that is much too long", parts, 1, 1));
    assert_int_equal(count_of(b), 256);
    for (uint32_t i = 0; i < 2 * PRESSURE_GAUGES_MAX; i++)
        pressure_set(b, PRESSURE_OF_REPLAY, i, 1, 2);
    assert_int_equal(count_of(b), PRESSURE_GAUGES_MAX);
    pressure_board_free(b);
}

TEST(names_are_read_as_they_are_written)
{
    for (int c = 0; c < PRESSURE_COMPONENT_COUNT; c++) {
        enum pressure_component read;
        const char *text = pressure_component_text((enum pressure_component)c);
        assert_true(pressure_component_parse(str_of(text), &read));
        assert_int_equal(read, c);
    }
    enum pressure_component ignored;
    assert_false(pressure_component_parse(STR("queue"), &ignored));
}

TEST(the_board_is_written_as_the_contract_says)
{
    struct pressure_board *b = pressure_board_new(NULL, NULL);
    struct strbuf out = {0};
    struct json_writer w;
    pressure_set(b, PRESSURE_OF_TASKS, 0, 3, 4);
    jw_start(&w, &out);
    pressure_board_write(b, &w);
    strbuf_add_char(&out, 0);
    assert_string_equal(out.ptr,
                        "[{\"component\":\"task_queue\",\"partition\":0,\"ratio\":0.75,\"level\":\"warn\"}]");
    strbuf_free(&out);
    pressure_board_free(b);
}
