/* One value at a time: bounds, forms, precedence, names. */
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "config/settings.h"
#include "config/settings_internal.h"

#include "base/banned.h"

#define ONE_CLIENT   "6f1c2a54-9a35-4b3e-8f0e-3d7a9f5f8f10"
#define OTHER_CLIENT "0b7c6a0e-53a5-4f0e-a1a8-9b2b7c1f7d55"

static int set_up(void **state)
{
    struct settings *s = must_alloc(sizeof *s);
    settings_init(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    settings_free(*state);
    free(*state);
    return 0;
}

static void set(struct settings *s, const char *key, const char *value, enum settings_origin origin)
{
    struct err err = {0};
    if (settings_set(s, key, value, origin, &err))
        fail_msg("%s=%s refused: %s", key, value, err.detail);
}

static void refused(struct settings *s, const char *key, const char *value)
{
    struct err err = {0};
    if (settings_set(s, key, value, ORIGIN_FLAG, &err) == ERR_OK)
        fail_msg("%s accepted the bad value \"%s\"", key, value);
    assert_int_equal(err.code, ERR_CONFIG_INVALID);
    if (!strstr(err.detail, key))
        fail_msg("the refusal does not name %s: %s", key, err.detail);
    assert_null(strchr(err.detail, '\n'));
}

#define SETTINGS_TEST(name, parameter) TEST_WITH(name, struct settings *parameter, set_up, tear_down)

SETTINGS_TEST(test_defaults_are_those_of_the_list, s)
{
    assert_string_equal(s->environment, "dev");
    assert_string_equal(s->listen, "127.0.0.1:8080");
    assert_string_equal(s->jobs_types, "EXECUTE,DEFERRED,EMIT_EVENT");
    assert_null(s->operator_token);
    assert_int_equal(s->jobs_retry_max, 3);
    assert_int_equal(s->runtime_drain_ms, 8000);
    assert_true(s->runner_time_scale > 0.99 && s->runner_time_scale < 1.01);
    struct err err;
    assert_int_equal(settings_check(s, &err), ERR_OK);
}

SETTINGS_TEST(test_a_default_always_fits_its_own_bounds, s)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        if (d->type == SETTING_INT)
            assert_true(d->int_default >= d->int_min && d->int_default <= d->int_max);
        else if (d->type == SETTING_REAL)
            assert_true(d->real_default >= d->real_min && d->real_default <= d->real_max);
        else if (d->text_default)
            assert_true(setting_form_fits(d->form, str_of(d->text_default)));
        assert_ptr_equal(setting_find(str_of(d->key)), d); /* no key stands in the list twice */
    }
}

SETTINGS_TEST(test_flag_beats_environment_beats_file_beats_default_in_any_order, s)
{
    static const struct {
        enum settings_origin origin;
        const char *value;
    } sources[] = {{ORIGIN_FILE, "11"}, {ORIGIN_ENVIRONMENT, "12"}, {ORIGIN_FLAG, "13"}};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t o = 0; o < LENGTH_OF(orders); o++) {
        settings_free(s);
        settings_init(s);
        int64_t best = 3;
        for (size_t i = 0; i < 3; i++) {
            int source = orders[o][i];
            set(s, "jobs.retry_max", sources[source].value, sources[source].origin);
            best = 11 + source > best ? 11 + source : best;
            assert_int_equal(s->jobs_retry_max, best);
        }
        assert_int_equal(s->origin[SETTING_jobs_retry_max], ORIGIN_FLAG);
    }
}

SETTINGS_TEST(test_the_last_flag_of_the_same_key_wins, s)
{
    set(s, "server.listen", "127.0.0.1:1", ORIGIN_FLAG);
    set(s, "server.listen", "127.0.0.1:2", ORIGIN_FLAG);
    assert_string_equal(s->listen, "127.0.0.1:2");
}

SETTINGS_TEST(test_every_number_refuses_what_lies_outside_its_bounds_or_is_no_number, s)
{
    static const char *const not_numbers[] = {
        "", "many", "1x", " 1", "1 ", "0x10", "nan", "inf", "1e999", "--1", "99999999999999999999"};
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        if (d->type == SETTING_TEXT)
            continue;
        for (size_t k = 0; k < LENGTH_OF(not_numbers); k++)
            refused(s, d->key, not_numbers[k]);
        char text[64];
        double low = d->type == SETTING_INT ? (double)d->int_min : d->real_min;
        double high = d->type == SETTING_INT ? (double)d->int_max : d->real_max;
        snprintf(text, sizeof text, "%.0f", low - 1);
        refused(s, d->key, text);
        snprintf(text, sizeof text, "%.0f", high + 1);
        refused(s, d->key, text);
        snprintf(text, sizeof text, "%.5f", d->type == SETTING_INT ? 1.5 : low);
        if (d->type == SETTING_INT)
            refused(s, d->key, text);
        else
            set(s, d->key, text, ORIGIN_FLAG);
        snprintf(text, sizeof text, "%.0f", high);
        set(s, d->key, text, ORIGIN_FLAG);
    }
}

SETTINGS_TEST(test_every_text_with_a_form_refuses_another_form, s)
{
    static const struct {
        const char *key, *value;
    } bad[] = {
        {"environment", "production"},
        {"environment", ""},
        {"data", ""},
        {"data", "a\nb"},
        {"data", "\xff\xfe"},
        {"store.url", "mysql://x"},
        {"store.url", "sqlite:"},
        {"server.listen", "8080"},
        {"server.listen", ":8080"},
        {"server.listen", "127.0.0.1"},
        {"server.listen", "127.0.0.1:"},
        {"server.listen", "127.0.0.1:65536"},
        {"server.listen", "127.0.0.1:-1"},
        {"server.listen", "127.0.0.256:80"},
        {"server.listen", "::1:8080"},
        {"server.listen", "[::1]8080"},
        {"server.listen", "[::1"},
        {"server.listen", "[127.0.0.1]:80"},
        {"server.listen", "my host:80"},
        {"operator.token", "with space"},
        {"jobs.types", "execute"},
        {"jobs.types", "EXECUTE,"},
        {"jobs.types", ",EXECUTE"},
        {"jobs.types", "EXECUTE,,DEFERRED"},
        {"jobs.types", ""},
        {"limits.overrides", "abc"},
        {"limits.overrides", "=5"},
        {"limits.overrides", "abc=5"},
        {"limits.overrides", ONE_CLIENT "=-1"},
        {"limits.overrides", ONE_CLIENT "=5,"},
        {"webhooks.allow_private", "yes"},
        {"webhooks.allow_cidrs", "10.0.0.0/33"},
        {"webhooks.allow_cidrs", "10.0.0.0/"},
        {"webhooks.allow_cidrs", "10.0.0/8"},
        {"webhooks.allow_cidrs", "fd00::/129"},
        {"log.level", "verbose"},
    };
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        refused(s, bad[i].key, bad[i].value);
    char long_text[SETTING_TEXT_MAX + 2];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    refused(s, "data", long_text);
}

SETTINGS_TEST(test_good_texts_are_kept_and_lists_lose_their_spaces, s)
{
    set(s, "webhooks.allow_cidrs", "10.0.0.0/8, fd00::/8 ,192.168.1.1", ORIGIN_FLAG);
    assert_string_equal(s->webhooks_allow_cidrs, "10.0.0.0/8,fd00::/8,192.168.1.1");
    set(s, "limits.overrides", ONE_CLIENT "=0," OTHER_CLIENT "=100", ORIGIN_FLAG);
    assert_string_equal(s->limits_overrides, ONE_CLIENT "=0," OTHER_CLIENT "=100");
    set(s, "jobs.types", "EXECUTE", ORIGIN_FLAG);
    assert_string_equal(s->jobs_types, "EXECUTE");
    set(s, "data", "/srv/we ir", ORIGIN_FLAG);
    assert_string_equal(s->data_dir, "/srv/we ir");
}

SETTINGS_TEST(test_an_empty_text_takes_an_optional_value_away, s)
{
    set(s, "operator.token", "first-secret", ORIGIN_FILE);
    set(s, "operator.token", "", ORIGIN_FLAG);
    assert_null(s->operator_token);
}

SETTINGS_TEST(test_a_bad_value_of_a_weaker_source_is_refused_all_the_same, s)
{
    struct err err;
    set(s, "jobs.retry_max", "5", ORIGIN_FLAG);
    assert_int_equal(settings_set(s, "jobs.retry_max", "many", ORIGIN_FILE, &err), ERR_CONFIG_INVALID);
    assert_string_equal(err.detail, "jobs.retry_max must be an integer from 0 to 1000, got \"many\"");
    assert_int_equal(s->jobs_retry_max, 5);
}

SETTINGS_TEST(test_a_refused_secret_is_not_repeated, s)
{
    struct err err;
    assert_int_equal(settings_set(s, "operator.token", "hush hush", ORIGIN_FLAG, &err), ERR_CONFIG_INVALID);
    assert_null(strstr(err.detail, "hush"));
}

SETTINGS_TEST(test_an_unknown_key_is_refused_with_the_nearest_one, s)
{
    static const struct {
        const char *key, *near;
    } cases[] = {{"jobs.retry_maxx", "jobs.retry_max?"},
                 {"server.lisen", "server.listen?"},
                 {"retry_max", "jobs.retry_max?"},
                 {"log_level", "log.level?"},
                 {"zzzzzzzzzzzzzzzz", NULL},
                 {"", NULL}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct err err;
        assert_int_equal(settings_set(s, cases[i].key, "1", ORIGIN_FLAG, &err), ERR_CONFIG_INVALID);
        assert_non_null(strstr(err.detail, cases[i].key));
        if (cases[i].near && !strstr(err.detail, cases[i].near))
            fail_msg("expected a hint at %s in: %s", cases[i].near, err.detail);
        if (!cases[i].near)
            assert_null(strstr(err.detail, "did you mean"));
    }
}

SETTINGS_TEST(test_every_key_can_be_set_by_its_environment_name, s)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting *d = &settings_table[i];
        char entry[256], name[SETTING_ENV_NAME_MAX];
        struct err err = {0};
        setting_env_name(d, name);
        if (d->type == SETTING_INT)
            snprintf(entry, sizeof entry, "%s=%lld", name, (long long)d->int_max);
        else if (d->type == SETTING_REAL)
            snprintf(entry, sizeof entry, "%s=%g", name, d->real_max);
        else
            snprintf(entry, sizeof entry, "%s=%s", name, d->text_default ? d->text_default : "");
        char *list[] = {(char[]){"PATH=/bin"}, entry, NULL};
        if (settings_load_environment(s, list, &err))
            fail_msg("%s: %s", entry, err.detail);
        assert_int_equal(s->origin[i], ORIGIN_ENVIRONMENT);
        if (d->type == SETTING_INT)
            assert_int_equal(*setting_int(s, d), d->int_max);
    }
}

/* What is told of these variables; "" when nothing is. */
static void warned(char **variables, char *out, size_t size)
{
    FILE *file = fmemopen(out, size, "w");
    out[0] = 0;
    settings_warn_of_variables(variables, file);
    fclose(file);
}

SETTINGS_TEST(test_an_unknown_weir_variable_is_warned_of_and_those_of_others_are_not, s)
{
    struct err err;
    char told[1024];
    char *unknown[] = {(char[]){"WEIR_SERVER_LISEN=x"}, (char[]){"WEIR_SERVER_PORT=8080"}, NULL};
    assert_int_equal(settings_load_environment(s, unknown, &err), ERR_OK);
    warned(unknown, told, sizeof told);
    assert_non_null(strstr(told, "WEIR_SERVER_LISEN is no setting"));
    assert_non_null(strstr(told, "did you mean WEIR_SERVER_LISTEN?"));
    assert_non_null(
        strstr(told, "WEIR_SERVER_PORT is no setting and is ignored; did you mean WEIR_SERVER_LISTEN?"));
    char *bad[] = {(char[]){"WEIR_JOBS_RETRY_MAX=many"}, NULL};
    assert_int_equal(settings_load_environment(s, bad, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "WEIR_JOBS_RETRY_MAX: jobs.retry_max must be"));
    char *known[] = {(char[]){"WEIR_URL=http://x"},
                     (char[]){"WEIR_API_KEY=k"},
                     (char[]){"WEIR_PORT=tcp://1"},
                     (char[]){"WEIR_SERVICE_HOST=10.0.0.1"},
                     (char[]){"WEIR_PORT_80_TCP=tcp://"},
                     (char[]){"WEIR_API_PORT=tcp://10.0.0.7:80"},
                     (char[]){"WEIR_API_SERVICE_PORT=80"},
                     (char[]){"WEIR_API_SERVICE_PORT_HTTP=80"},
                     (char[]){"WEIR_API_PORT_80_TCP_PROTO=tcp"},
                     (char[]){"WEIR_JOBS_RETRY_MAX=2"},
                     (char[]){"WEIRD=1"},
                     (char[]){"X"},
                     NULL};
    assert_int_equal(settings_load_environment(s, known, &err), ERR_OK);
    warned(known, told, sizeof told);
    assert_string_equal(told, "");
}
