/* The YAML file: both spellings of a key, lists, and faults that name file, line and key. */
#include <stdlib.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "config/settings.h"

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

static void load(struct settings *s, const char *text)
{
    struct err err = {0};
    if (settings_load_text(s, "weir.yaml", str_of(text), &err))
        fail_msg("refused: %s", err.detail);
}

/* The message starts with `start` and holds `part` (NULL: whatever). */
static void refused(struct settings *s, const char *text, const char *start, const char *part)
{
    struct err err = {0};
    if (settings_load_text(s, "weir.yaml", str_of(text), &err) == ERR_OK)
        fail_msg("accepted: %s", text);
    assert_int_equal(err.code, ERR_CONFIG_INVALID);
    if (!str_starts(str_of(err.detail), start) || (part && !strstr(err.detail, part)))
        fail_msg("expected \"%s ... %s\", got \"%s\"", start, part ? part : "", err.detail);
    assert_null(strchr(err.detail, '\n'));
}

#define SETTINGS_TEST(name, parameter) TEST_WITH(name, struct settings *parameter, set_up, tear_down)

SETTINGS_TEST(test_nested_and_dotted_keys_mean_the_same, s)
{
    load(s, "server: {listen: '0.0.0.0:81'}\n"
            "jobs.retry_max: 7\n"
            "runtime:\n"
            "  agents.max_restarts: 4\n"
            "  root:\n"
            "    max_seconds: 11\n"
            "jobs:\n"
            "  retry_jitter: 0.5\n");
    assert_string_equal(s->listen, "0.0.0.0:81");
    assert_int_equal(s->jobs_retry_max, 7);
    assert_int_equal(s->runtime_agents_max_restarts, 4);
    assert_int_equal(s->runtime_root_max_seconds, 11);
    assert_true(s->jobs_retry_jitter > 0.49 && s->jobs_retry_jitter < 0.51);
    assert_int_equal(s->origin[SETTING_jobs_retry_max], ORIGIN_FILE);
    assert_int_equal(s->origin[SETTING_jobs_retry_base_ms], ORIGIN_DEFAULT);
}

SETTINGS_TEST(test_a_list_may_be_a_yaml_list_or_a_comma_list, s)
{
    load(s, "jobs: {types: [EXECUTE, DEFERRED]}\nwebhooks.allow_cidrs:\n  - 10.0.0.0/8\n  - ::1\n");
    assert_string_equal(s->jobs_types, "EXECUTE,DEFERRED");
    assert_string_equal(s->webhooks_allow_cidrs, "10.0.0.0/8,::1");
    load(s, "jobs.types: EXECUTE, EMIT_EVENT\n");
    assert_string_equal(s->jobs_types, "EXECUTE,EMIT_EVENT");
}

SETTINGS_TEST(test_empty_files_empty_sections_and_null_are_fine, s)
{
    load(s, "");
    load(s, "# only a comment\n");
    load(s, "---\n");
    load(s, "server:\n# listen: x\njobs: ~\n");
    load(s, "operator.token: null\nstore: {url: }\n");
    assert_null(s->operator_token);
    assert_null(s->store_url);
}

SETTINGS_TEST(test_a_flag_stays_stronger_than_a_file_read_later, s)
{
    struct err err;
    assert_int_equal(settings_set(s, "jobs.retry_max", "9", ORIGIN_FLAG, &err), ERR_OK);
    load(s, "jobs.retry_max: 2\n");
    assert_int_equal(s->jobs_retry_max, 9);
}

SETTINGS_TEST(test_a_bad_value_names_file_line_and_key, s)
{
    refused(s, "# first\n\njobs:\n  retry_max: many\n",
            "weir.yaml:4: jobs.retry_max must be an integer from 0 to 1000, got \"many\"", NULL);
    refused(s, "jobs.retry_max: [1]\n", "weir.yaml:1: jobs.retry_max must be one value", "list");
    refused(s, "jobs.retry_max: {a: 1}\n", "weir.yaml:1: jobs.retry_max must be one value", "map");
    refused(s, "jobs.retry_max:\n", "weir.yaml:1: jobs.retry_max must be an integer", NULL);
    refused(s, "jobs.types:\n  - EXECUTE\n  - Fun\n", "weir.yaml:", "jobs.types must be a comma list");
    refused(s, "jobs.types: [[EXECUTE]]\n", "weir.yaml:1: jobs.types", NULL);
    refused(s, "jobs.types: ['EXECUTE,DEFERRED']\n", "weir.yaml:1: jobs.types", "comma");
    refused(s, "store.url: mysql://db/weir\n",
            "weir.yaml:1: store.url must be sqlite:FILE or postgres://USER@HOST:PORT/NAME, got "
            "\"mysql://db/weir\"",
            NULL);
}

SETTINGS_TEST(test_an_unknown_key_names_file_line_and_the_nearest_key, s)
{
    refused(s, "jobs:\n  retry_mx: 3\n", "weir.yaml:2: unknown key \"jobs.retry_mx\"",
            "did you mean jobs.retry_max?");
    refused(s, "sever:\n  listen: x\n", "weir.yaml:1: unknown key \"sever\"", NULL);
    refused(s, "server: 8080\n", "weir.yaml:1: server is a section", NULL);
    refused(s, "jobs.retry_max.more: 8080\n", "weir.yaml:1: unknown key", NULL);
    refused(s, "? [a]\n: 1\n", "weir.yaml:1: a key must be plain text", NULL);
    char text[400];
    memset(text, 'k', sizeof text - 1);
    text[300] = ':';
    text[301] = ' ';
    text[sizeof text - 1] = 0;
    refused(s, text, "weir.yaml:1: unknown key", NULL);
}

SETTINGS_TEST(test_a_key_set_twice_is_refused, s)
{
    refused(s, "jobs.retry_max: 1\njobs:\n  retry_max: 2\n",
            "weir.yaml:3: jobs.retry_max is set twice, first in line 1", NULL);
}

SETTINGS_TEST(test_what_is_not_a_tree_of_keys_is_refused_with_its_line, s)
{
    refused(s, "jobs: {retry_max: 1\n", "weir.yaml:", "not valid YAML");
    refused(s, "\n\tjobs: 1\n", "weir.yaml:2: not valid YAML", NULL);
    refused(s, "- a\n", "weir.yaml:1: expected lines such as", NULL);
    refused(s, "just text\n", "weir.yaml:1: expected lines such as", NULL);
    refused(s, "jobs.retry_max: &a 1\n", "weir.yaml:1: anchors and aliases", NULL);
    refused(s, "jobs.retry_max: *a\n", "weir.yaml:1: ", NULL);
    refused(s, "jobs.retry_max: 1\n---\njobs.retry_cap_ms: 2\n", "weir.yaml:2: a second document", NULL);
}

SETTINGS_TEST(test_a_file_is_read_from_disk_and_a_missing_one_is_named, s)
{
    struct err err;
    char path[] = "settings-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "server.listen: localhost:0\nlog: {level: debug}\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(settings_load_file(s, path, &err), ERR_OK);
    unlink(path);
    assert_string_equal(s->listen, "localhost:0");
    assert_int_equal(settings_log_level(s), LOG_DEBUG);
    assert_int_equal(settings_load_file(s, path, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, path));
    assert_non_null(strstr(err.detail, "No such file"));
    assert_int_equal(settings_load_file(s, ".", &err), ERR_CONFIG_INVALID);
}
