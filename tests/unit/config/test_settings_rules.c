/* Rules between keys, advice, values worked out, and how settings are shown. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case.h"

#include "base/json.h"
#include "base/must.h"
#include "config/settings.h"
#include "config/settings_internal.h"

#include "base/banned.h"

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

static void set(struct settings *s, const char *key, const char *value)
{
    struct err err = {0};
    if (settings_set(s, key, value, ORIGIN_FLAG, &err))
        fail_msg("%s=%s refused: %s", key, value, err.detail);
}

/* Whatever `print` writes, as text; the caller frees it. */
static char *printed(void (*print)(const struct settings *s, FILE *out), const struct settings *s)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(s, out);
    fclose(out);
    return text;
}

static void show_table(const struct settings *s, FILE *out)
{
    settings_show(s, false, true, out);
}
static void show_json(const struct settings *s, FILE *out)
{
    settings_show(s, true, false, out);
}
static void show_json_origin(const struct settings *s, FILE *out)
{
    settings_show(s, true, true, out);
}
static void markdown(const struct settings *s, FILE *out)
{
    (void)s;
    settings_markdown(out);
}

TEST(test_keys_that_contradict_each_other_are_refused_by_name)
{
    static const struct {
        const char *key, *value, *other;
    } cases[] = {{"queue.heartbeat_ms", "30000", "queue.lease_ms"},
                 {"jobs.retry_base_ms", "30001", "jobs.retry_cap_ms"},
                 {"webhooks.base_ms", "60001", "webhooks.cap_ms"},
                 {"engine.pseudonymize", "on", "operator.token"}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct settings s;
        struct err err;
        settings_init(&s);
        set(&s, cases[i].key, cases[i].value);
        assert_int_equal(settings_check(&s, &err), ERR_CONFIG_INVALID);
        assert_non_null(strstr(err.detail, cases[i].key));
        assert_non_null(strstr(err.detail, cases[i].other));
        settings_free(&s);
    }
}

#define SETTINGS_TEST(name, parameter) TEST_WITH(name, struct settings *parameter, set_up, tear_down)

SETTINGS_TEST(test_listen_is_taken_apart, s)
{
    static const struct {
        const char *listen, *host;
        uint16_t port;
    } cases[] = {{"127.0.0.1:8080", "127.0.0.1", 8080},
                 {"[::1]:0", "::1", 0},
                 {"localhost:65535", "localhost", 65535},
                 {"my-host.example:1", "my-host.example", 1}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        char host[SETTINGS_HOST_MAX];
        uint16_t port = 1;
        set(s, "server.listen", cases[i].listen);
        assert_true(settings_listen_parts(s, host, sizeof host, &port));
        assert_string_equal(host, cases[i].host);
        assert_int_equal(port, cases[i].port);
    }
    char small[4];
    uint16_t port;
    assert_false(settings_listen_parts(s, small, sizeof small, &port));
}

SETTINGS_TEST(test_the_store_path_comes_from_the_url_or_the_data_directory, s)
{
    struct err err;
    char path[64];
    set(s, "data", "/srv/weir");
    assert_int_equal(settings_store_path(s, path, sizeof path, &err), ERR_OK);
    assert_string_equal(path, "/srv/weir/weir.db");
    set(s, "store.url", "sqlite:/other/place.db");
    assert_int_equal(settings_store_path(s, path, sizeof path, &err), ERR_OK);
    assert_string_equal(path, "/other/place.db");
    assert_int_equal(settings_store_path(s, path, 8, &err), ERR_CONFIG_INVALID);
    assert_int_equal(settings_store_url(s, path, sizeof path, &err), ERR_OK);
    assert_string_equal(path, "sqlite:/other/place.db");
    assert_false(settings_store_is_postgres(s));
    set(s, "store.url", "postgres://weir:hunter2@h/db");
    assert_true(settings_store_is_postgres(s));
    assert_int_equal(settings_store_url(s, path, sizeof path, &err), ERR_OK);
    assert_string_equal(path, "postgres://weir:hunter2@h/db");
    assert_int_equal(settings_store_path(s, path, sizeof path, &err), ERR_CONFIG_INVALID);
    assert_null(strstr(err.detail, "hunter2"));
    assert_int_equal(settings_check(s, &err), ERR_OK);
}

SETTINGS_TEST(test_the_password_of_a_store_is_never_shown, s)
{
    struct err err;
    char *text = NULL;
    size_t len = 0;
    set(s, "store.url", "postgres://weir:hunter2@h/db?password=hunter2");
    for (int json = 0; json < 2; json++) {
        FILE *out = open_memstream(&text, &len);
        settings_show(s, json, true, out);
        fclose(out);
        assert_null(strstr(text, "hunter2"));
        assert_non_null(strstr(text, "postgres://weir:***@h/db?password=***"));
        free(text);
    }
    static const char *const slips[] = {"postgre://weir:hunter2@h/db", "dbname=weir password=hunter2"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        assert_int_equal(settings_set(s, "store.url", slips[i], ORIGIN_FLAG, &err), ERR_CONFIG_INVALID);
        assert_null(strstr(err.detail, "hunter2"));
    }
}

SETTINGS_TEST(test_dev_with_defaults_has_nothing_to_warn_of, s)
{
    char *text = printed(settings_warn, s);
    assert_string_equal(text, "");
    free(text);
}

SETTINGS_TEST(test_risky_settings_are_warned_about_by_key, s)
{
    set(s, "environment", "prod");
    set(s, "jobs.max_runtime_ms", "120499"); /* AJ-06 */
    set(s, "webhooks.allow_private", "true");
    set(s, "runner.time_scale", "0.01");
    set(s, "queue.lease_ms", "14999");
    set(s, "server.body_max_bytes", "2048");
    char *text = printed(settings_warn, s);
    static const char *const keys[] = {"operator.token",    "jobs.max_runtime_ms", "webhooks.allow_private",
                                       "runner.time_scale", "queue.lease_ms",      "server.body_max_bytes"};
    for (size_t i = 0; i < LENGTH_OF(keys); i++)
        if (!strstr(text, keys[i]))
            fail_msg("no warning names %s in:\n%s", keys[i], text);
    free(text);
    set(s, "jobs.max_runtime_ms", "120500");
    text = printed(settings_warn, s);
    assert_null(strstr(text, "jobs.max_runtime_ms"));
    free(text);
}

SETTINGS_TEST(test_dev_open_to_other_machines_is_warned_about, s)
{
    set(s, "server.listen", "0.0.0.0:8080");
    char *text = printed(settings_warn, s);
    assert_non_null(strstr(text, "server.listen"));
    free(text);
}

SETTINGS_TEST(test_private_webhooks_follow_the_environment_unless_set, s)
{
    assert_true(settings_webhooks_private(s));
    set(s, "environment", "stage");
    assert_false(settings_webhooks_private(s));
    set(s, "webhooks.allow_private", "true");
    assert_true(settings_webhooks_private(s));
}

SETTINGS_TEST(test_some_defaults_follow_the_environment_unless_set, s)
{
    settings_complete(s);
    assert_int_equal(s->runner_processes, 2);
    assert_int_equal(s->limits_requests_per_minute, 0);
    set(s, "environment", "prod");
    settings_complete(s);
    assert_int_equal(s->runner_processes, 0);
    assert_int_equal(s->limits_requests_per_minute, 600);
    set(s, "runner.processes", "2");
    set(s, "limits.requests_per_minute", "0");
    settings_complete(s);
    assert_int_equal(s->runner_processes, 2);
    assert_int_equal(s->limits_requests_per_minute, 0);
    char *text = printed(markdown, s);
    assert_non_null(strstr(text, "| `runner.processes` | 2 in dev, else 0 |"));
    assert_non_null(strstr(text, "| `limits.requests_per_minute` | 0 in dev, else 600 |"));
    free(text);
}

SETTINGS_TEST(test_threads_follow_the_machine_unless_set, s)
{
    assert_true(settings_http_threads(s) >= 1);
    set(s, "server.threads", "5");
    assert_int_equal(settings_http_threads(s), 5);
}

SETTINGS_TEST(test_show_never_reveals_the_operator_token, s)
{
    set(s, "operator.token", "planted-secret-value");
    void (*const prints[])(const struct settings *, FILE *) = {show_table, show_json, show_json_origin};
    for (size_t i = 0; i < LENGTH_OF(prints); i++) {
        char *text = printed(prints[i], s);
        assert_null(strstr(text, "planted-secret-value"));
        assert_non_null(strstr(text, "(set)"));
        for (size_t k = 0; k < SETTING_COUNT; k++)
            assert_non_null(strstr(text, settings_table[k].key));
        free(text);
    }
}

SETTINGS_TEST(test_show_gives_json_with_values_and_origins, s)
{
    struct err err;
    int64_t value;
    set(s, "jobs.retry_max", "8");
    char *text = printed(show_json_origin, s);
    struct arena *a = arena_new(4096);
    const struct json *root;
    assert_int_equal(json_parse(a, str_trim((struct str){text, strlen(text) - 1}), &root, &err), ERR_OK);
    const struct json *retry = json_get(root, "jobs.retry_max");
    assert_true(json_to_int(json_get(retry, "value"), &value));
    assert_int_equal(value, 8);
    assert_true(str_is(json_get(retry, "origin")->text, "flag"));
    assert_true(str_is(json_get(json_get(root, "jobs.types"), "origin")->text, "default"));
    assert_int_equal(json_get(json_get(root, "operator.token"), "value")->type, JSON_NULL);
    arena_free(a);
    free(text);
}

SETTINGS_TEST(test_the_document_lists_every_key_with_its_environment_name, s)
{
    char *text = printed(markdown, s);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        char name[SETTING_ENV_NAME_MAX];
        setting_env_name(&settings_table[i], name);
        assert_non_null(strstr(text, settings_table[i].key));
        assert_non_null(strstr(text, name));
    }
    free(text);
}

/* Only what core needs is handed to it, and what others get has no secret in it. */
SETTINGS_TEST(test_settings_are_handed_on_without_their_secrets, s)
{
    struct settings other;
    struct err err;
    static char bytes[65536];
    int public_fd = memfd_create("public", 0), secret_fd = memfd_create("secret", 0);
    set(s, "operator.token", "planted-token");
    set(s, "tokens.key_passphrase", "planted-passphrase");
    set(s, "store.url", "postgres://weir:planted-password@db/weir?sslmode=require");
    set(s, "jobs.retry_max", "8");
    set(s, "jobs.retry_jitter", "0.75");
    assert_int_equal(settings_hand_over(s, public_fd, secret_fd, &err), ERR_OK);
    ssize_t len = pread(public_fd, bytes, sizeof bytes, 0);
    assert_true(len > 0 && !memmem(bytes, (size_t)len, "planted", 7));
    len = pread(secret_fd, bytes, sizeof bytes, 0);
    assert_true(len > 0 && !memmem(bytes, (size_t)len, "passphrase", 10));

    assert_int_equal(settings_take_public(&other, public_fd, &err), ERR_OK);
    assert_int_equal(other.jobs_retry_max, 8);
    assert_int_equal(other.origin[SETTING_operator_token], ORIGIN_FLAG);
    assert_true(other.jobs_retry_jitter > 0.74 && other.jobs_retry_jitter < 0.76);
    assert_null(other.operator_token);
    assert_string_equal(other.store_url, "postgres://weir:***@db/weir?sslmode=require");
    assert_int_equal(settings_take_secrets(&other, secret_fd, &err), ERR_OK);
    assert_string_equal(other.operator_token, "planted-token");
    assert_string_equal(other.store_url, s->store_url);
    assert_null(other.tokens_key_passphrase);
    settings_free(&other);

    assert_int_equal(ftruncate(public_fd, 1000), 0);
    assert_int_equal(settings_take_public(&other, public_fd, &err), ERR_INTERNAL);
    settings_free(&other);
    close(public_fd);
    close(secret_fd);
}
