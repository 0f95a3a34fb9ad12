/* Service levels: synthetic samples just below, at and above each bound; windows; stricter targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/slo.h"

struct told {
    int count;
    enum slo_id last;
    enum slo_level level;
};

static void hear(void *self, enum slo_id id, const struct slo_state *now, enum slo_level before)
{
    struct told *t = self;
    assert_int_not_equal(now->level, before);
    t->count++;
    t->last = id;
    t->level = now->level;
}

/* `low` samples of 1 ms, then `high` samples of us. */
static enum slo_level level_of(enum slo_id id, int low, int high, int64_t us)
{
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct slo_bounds bounds = slo_bounds(id, NULL);
    struct slo_tally t = {0};
    struct slo_state s;
    for (int i = 0; i < low; i++)
        slo_tally_sample(&t, &bounds, 1000);
    for (int i = 0; i < high; i++)
        slo_tally_sample(&t, &bounds, us);
    slo_take(b, id, &t, 1000);
    slo_state(b, id, &s);
    slo_board_free(b);
    return s.level;
}

static void check_latency(enum slo_id id, int64_t warn_us, int64_t target_us)
{
    assert_int_equal(level_of(id, 0, 20, warn_us - 1), SLO_OK);
    assert_int_equal(level_of(id, 0, 20, warn_us), SLO_OK);
    assert_int_equal(level_of(id, 0, 20, warn_us + 1), SLO_WARN);
    assert_int_equal(level_of(id, 0, 20, target_us - 1), SLO_WARN);
    assert_int_equal(level_of(id, 0, 20, target_us), SLO_WARN);
    assert_int_equal(level_of(id, 0, 20, target_us + 1), SLO_CRITICAL);
    /* It is the 95th of a hundred: five may be slow, six may not. */
    assert_int_equal(level_of(id, 95, 5, target_us * 2), SLO_OK);
    assert_int_equal(level_of(id, 94, 6, target_us * 2), SLO_CRITICAL);
}

/* [TOP-060] */
static void ingest_latency_warns_above_75_ms_and_is_critical_above_100_ms(void **state)
{
    (void)state;
    check_latency(SLO_INGEST, 75000, 100000);
}

/* [TOP-063] */
static void enqueue_latency_warns_above_40_ms_and_is_critical_above_50_ms(void **state)
{
    (void)state;
    check_latency(SLO_ENQUEUE, 40000, 50000);
}

/* [TOP-069] */
static void a_reconnect_warns_above_30_s_and_is_critical_above_60_s(void **state)
{
    (void)state;
    check_latency(SLO_RECONNECT, 30000000, 60000000);
}

static enum slo_level level_of_results(int good, int bad)
{
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct slo_tally t = {0};
    struct slo_state s;
    for (int i = 0; i < good; i++)
        slo_tally_result(&t, true);
    for (int i = 0; i < bad; i++)
        slo_tally_result(&t, false);
    slo_take(b, SLO_DELIVERY, &t, 1000);
    slo_state(b, SLO_DELIVERY, &s);
    slo_board_free(b);
    return s.level;
}

/* [TOP-066] */
static void delivery_warns_below_997_and_is_critical_below_995_of_a_thousand(void **state)
{
    (void)state;
    assert_int_equal(level_of_results(9971, 29), SLO_OK);
    assert_int_equal(level_of_results(9970, 30), SLO_OK);
    assert_int_equal(level_of_results(9969, 31), SLO_WARN);
    assert_int_equal(level_of_results(9951, 49), SLO_WARN);
    assert_int_equal(level_of_results(9950, 50), SLO_WARN);
    assert_int_equal(level_of_results(9949, 51), SLO_CRITICAL);
}

/* [TOP-075] */
static void one_cascade_is_critical(void **state)
{
    (void)state;
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct slo_tally t = {0};
    struct slo_state s;
    slo_take(b, SLO_CASCADES, &t, 1000);
    slo_state(b, SLO_CASCADES, &s);
    assert_int_equal(s.level, SLO_OK);
    slo_tally_count(&t, 1);
    slo_take(b, SLO_CASCADES, &t, 2000);
    slo_state(b, SLO_CASCADES, &s);
    assert_int_equal(s.level, SLO_CRITICAL);
    assert_true(s.value > 0.5 && s.value < 1.5);
    slo_board_free(b);
}

/* AT-11. */
static void without_samples_all_is_well(void **state)
{
    (void)state;
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct slo_tally t = {0};
    for (int id = 0; id < SLO_COUNT; id++) {
        struct slo_state s;
        if (id != SLO_PRESSURE)
            slo_take(b, (enum slo_id)id, &t, 1000);
        slo_state(b, (enum slo_id)id, &s);
        assert_int_equal(s.level, SLO_OK);
        assert_int_equal(s.samples, 0);
        if (id == SLO_DELIVERY)
            assert_true(s.value > 0.999);
    }
    slo_board_free(b);
}

static void samples_leave_after_five_minutes_and_levels_are_told_once(void **state)
{
    (void)state;
    struct told told = {0};
    struct slo_board *b = slo_board_new(NULL, hear, &told);
    struct slo_bounds bounds = slo_bounds(SLO_INGEST, NULL);
    struct slo_tally t = {0};
    struct slo_state s;
    for (int i = 0; i < 10; i++)
        slo_tally_sample(&t, &bounds, 200000);
    for (int64_t ms = 5000; ms < 5000 + 290000; ms += 1000) {
        slo_take(b, SLO_INGEST, &t, ms);
        slo_state(b, SLO_INGEST, &s);
        assert_int_equal(s.samples, 10);
        assert_int_equal(s.level, SLO_CRITICAL);
    }
    assert_int_equal(told.count, 1);
    slo_take(b, SLO_INGEST, &t, 5000 + 300000);
    slo_state(b, SLO_INGEST, &s);
    assert_int_equal(s.samples, 0);
    assert_int_equal(s.level, SLO_OK);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.last, SLO_INGEST);
    slo_tally_sample(&t, &bounds, 80000); /* and it goes on, also after a long silence */
    slo_take(b, SLO_INGEST, &t, 5000 + 3000000);
    slo_state(b, SLO_INGEST, &s);
    assert_int_equal(s.samples, 1);
    assert_int_equal(s.level, SLO_WARN);
    assert_true(s.value >= 80 && s.value <= 90);
    slo_board_free(b);
}

/* [TOP-058] */
static void a_stricter_target_moves_its_warning_and_a_looser_one_is_refused(void **state)
{
    (void)state;
    struct settings s;
    struct err err;
    settings_init(&s);
    assert_int_equal(settings_set(&s, "slo.ingest_p95_ms", "40", ORIGIN_FLAG, &err), ERR_OK);
    assert_int_equal(settings_set(&s, "slo.delivery_ratio", "0.999", ORIGIN_FLAG, &err), ERR_OK);
    struct slo_bounds ingest = slo_bounds(SLO_INGEST, &s), delivery = slo_bounds(SLO_DELIVERY, &s);
    assert_int_equal(ingest.target, 40000);
    assert_int_equal(ingest.warn, 30000);
    assert_int_equal(delivery.target, 999000);
    assert_int_equal(delivery.warn, 999400);
    static const char *const looser[][2] = {{"slo.ingest_p95_ms", "101"},
                                            {"slo.enqueue_p95_ms", "51"},
                                            {"slo.delivery_ratio", "0.9949"},
                                            {"slo.reconnect_p95_ms", "60001"}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(settings_set(&s, looser[i][0], looser[i][1], ORIGIN_FLAG, &err), ERR_CONFIG_INVALID);
        assert_non_null(strstr(err.detail, looser[i][0]));
    }
    settings_free(&s);
}

static void each_row_names_its_event_and_dimensions(void **state)
{
    (void)state;
    for (int id = 0; id < SLO_COUNT; id++) {
        assert_non_null(strchr(slo_rows[id].event, '.'));
        int commas = 0;
        for (const char *c = slo_rows[id].dimensions; *c; c++)
            commas += *c == ',';
        assert_int_equal(commas, 2);
    }
}

/* The level of the fullest queue, in the words of queues. [TOP-072] */
static void queue_pressure_is_an_slo_in_words_of_its_own(void **state)
{
    (void)state;
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct pressure_board *p = pressure_board_new(NULL, NULL);
    struct slo_state s;
    static const struct {
        int64_t depth;
        const char *word;
    } steps[] = {{69, "normal"}, {70, "warn"}, {85, "degraded"}, {95, "shed"}, {60, "normal"}};
    for (size_t i = 0; i < 5; i++) {
        pressure_set(p, PRESSURE_OF_TASKS, 0, steps[i].depth, 100);
        slo_take_occupancy(b, p);
        slo_state(b, SLO_PRESSURE, &s);
        assert_string_equal(slo_level_text(SLO_PRESSURE, &s), steps[i].word);
    }
    pressure_board_free(p);
    slo_board_free(b);
}

static void the_board_is_written_as_the_contract_says(void **state)
{
    (void)state;
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct strbuf out = {0};
    struct json_writer w;
    jw_start(&w, &out);
    slo_board_write(b, &w);
    strbuf_add_char(&out, 0);
    assert_non_null(strstr(out.ptr, "{\"name\":\"ingest_decision_latency\",\"sli\":\"ingest_latency_ms\","
                                    "\"window_s\":300,\"value\":0,\"target\":100,\"level\":\"ok\","
                                    "\"samples\":0}"));
    assert_non_null(strstr(out.ptr, "\"value\":1,\"target\":0.995,\"level\":\"ok\""));
    strbuf_free(&out);
    slo_board_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ingest_latency_warns_above_75_ms_and_is_critical_above_100_ms),
        cmocka_unit_test(enqueue_latency_warns_above_40_ms_and_is_critical_above_50_ms),
        cmocka_unit_test(a_reconnect_warns_above_30_s_and_is_critical_above_60_s),
        cmocka_unit_test(delivery_warns_below_997_and_is_critical_below_995_of_a_thousand),
        cmocka_unit_test(one_cascade_is_critical),
        cmocka_unit_test(without_samples_all_is_well),
        cmocka_unit_test(samples_leave_after_five_minutes_and_levels_are_told_once),
        cmocka_unit_test(a_stricter_target_moves_its_warning_and_a_looser_one_is_refused),
        cmocka_unit_test(each_row_names_its_event_and_dimensions),
        cmocka_unit_test(queue_pressure_is_an_slo_in_words_of_its_own),
        cmocka_unit_test(the_board_is_written_as_the_contract_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
