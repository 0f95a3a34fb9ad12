/* Service levels: synthetic samples just below, at and above each bound; windows; stricter targets. */
#include <math.h>
#include <string.h>

#include "case.h"

#include "runtime/slo.h"

struct told {
    int count;
    enum slo_id last;
    enum slo_level level;
};

static void hear(void *self, enum slo_id id, const struct slo_state *now, const struct slo_state *before)
{
    struct told *t = self;
    assert_string_not_equal(slo_level_text(id, now), slo_level_text(id, before));
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
TEST(ingest_latency_warns_above_75_ms_and_is_critical_above_100_ms)
{
    check_latency(SLO_INGEST, 75000, 100000);
}

/* [TOP-063] */
TEST(enqueue_latency_warns_above_40_ms_and_is_critical_above_50_ms)
{
    check_latency(SLO_ENQUEUE, 40000, 50000);
}

/* [TOP-069] */
TEST(a_reconnect_warns_above_30_s_and_is_critical_above_60_s)
{
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
TEST(delivery_warns_below_997_and_is_critical_below_995_of_a_thousand)
{
    assert_int_equal(level_of_results(9971, 29), SLO_OK);
    assert_int_equal(level_of_results(9970, 30), SLO_OK);
    assert_int_equal(level_of_results(9969, 31), SLO_WARN);
    assert_int_equal(level_of_results(9951, 49), SLO_WARN);
    assert_int_equal(level_of_results(9950, 50), SLO_WARN);
    assert_int_equal(level_of_results(9949, 51), SLO_CRITICAL);
}

/* [TOP-075] */
TEST(one_cascade_is_critical)
{
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
TEST(without_samples_all_is_well)
{
    struct slo_board *b = slo_board_new(NULL, NULL, NULL);
    struct slo_tally t = {0};
    for (int id = 0; id < SLO_COUNT; id++) {
        struct slo_state s;
        slo_take(b, (enum slo_id)id, &t, 1000);
        slo_state(b, (enum slo_id)id, &s);
        assert_int_equal(s.level, SLO_OK);
        assert_int_equal(s.samples, 0);
        if (id == SLO_DELIVERY)
            assert_true(s.value > 0.999);
    }
    slo_board_free(b);
}

TEST(samples_leave_after_five_minutes_and_levels_are_told_once)
{
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
TEST(a_stricter_target_moves_its_warning_and_a_looser_one_is_refused)
{
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

TEST(each_row_names_its_event_and_dimensions)
{
    for (int id = 0; id < SLO_COUNT; id++) {
        assert_non_null(strchr(slo_rows[id].event, '.'));
        int commas = 0;
        for (const char *c = slo_rows[id].dimensions; *c; c++)
            commas += *c == ',';
        assert_int_equal(commas, 2);
    }
}

/* A board whose fullest queue is looked at, once a second. */
struct looks {
    struct slo_board *slos;
    struct pressure_board *queues;
    struct slo_tally tally;
    int64_t now_ms;
};

static struct slo_state look_for(struct looks *l, int seconds, int64_t depth_of_100)
{
    struct slo_state s;
    pressure_set(l->queues, PRESSURE_OF_TASKS, 0, depth_of_100, 100);
    for (int i = 0; i < seconds; i++) {
        slo_tally_look(&l->tally, l->queues);
        slo_take(l->slos, SLO_PRESSURE, &l->tally, l->now_ms += 1000);
    }
    slo_state(l->slos, SLO_PRESSURE, &s);
    return s;
}

/* What the fullest queue is all the time, in the words of queues. [TOP-072] */
TEST(queue_pressure_is_an_slo_in_words_of_its_own)
{
    static const struct {
        int64_t depth;
        double value;
        const char *word;
        enum slo_level level;
    } steps[] = {{0, 0, "normal", SLO_OK},         {69, 0.7, "normal", SLO_OK},
                 {70, 0.7, "warn", SLO_WARN},      {85, 0.85, "degraded", SLO_CRITICAL},
                 {95, 0.95, "shed", SLO_CRITICAL}, {100, 1, "shed", SLO_CRITICAL}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct looks l = {slo_board_new(NULL, NULL, NULL), pressure_board_new(NULL, NULL), {0}, 0};
        struct slo_state s = look_for(&l, 1, steps[i].depth);
        assert_string_equal(slo_level_text(SLO_PRESSURE, &s), steps[i].word);
        assert_int_equal(s.level, steps[i].level);
        assert_true(fabs(s.value - steps[i].value) < 1e-9);
        pressure_board_free(l.queues);
        slo_board_free(l.slos);
    }
}

/* AT-11: five minutes, like every other. Less than a twentieth of it is no steady state, more is; and it
 * is remembered after the queue has drained, until its minutes are over. Each change is told once. */
TEST(queue_pressure_is_that_of_the_window)
{
    struct told told = {0};
    struct looks l = {slo_board_new(NULL, hear, &told), pressure_board_new(NULL, NULL), {0}, 9000};
    struct slo_state s = look_for(&l, 280, 10);
    s = look_for(&l, 14, 96);
    assert_int_equal(s.level, SLO_OK);
    s = look_for(&l, 3, 96);
    assert_string_equal(slo_level_text(SLO_PRESSURE, &s), "shed");
    s = look_for(&l, 260, 10);
    assert_string_equal(slo_level_text(SLO_PRESSURE, &s), "shed");
    assert_int_equal(told.count, 1);
    s = look_for(&l, 40, 10);
    assert_int_equal(s.level, SLO_OK);
    assert_true(fabs(s.value - 0.1) < 1e-9);
    assert_int_equal(told.count, 2);
    pressure_board_free(l.queues);
    slo_board_free(l.slos);
}

TEST(the_board_is_written_as_the_contract_says)
{
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
