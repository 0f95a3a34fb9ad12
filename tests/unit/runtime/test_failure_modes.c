/* The crash policy as a list, and the events it becomes. */
#include "case.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "runtime/failure_modes.h"

#include "base/banned.h"

static struct arena *arena;
static char line[4096];

/* What `emit` writes on stderr, as one JSON object. */
static const struct json *event_of(void (*emit)(void))
{
    int ends[2], kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && pipe(ends) == 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    emit();
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], line, sizeof line);
    close(ends[0]);
    assert_true(n > 0);
    const struct json *event;
    struct err err;
    assert_int_equal(json_parse(arena, (struct str){line, (size_t)n}, &event, &err), ERR_OK);
    return event;
}

static void emit_boot_config_invalid(void)
{
    failure_boot_config_invalid("serve", "no such key", "settings");
}
static void emit_adapter_init_failed(void)
{
    failure_adapter_init_failed("core", "sqlite", "not a database");
}
static void emit_listener_disconnected(void)
{
    failure_listener_disconnected("listener", "instance-1", 2, 350);
}
static void emit_outbound_failed(void)
{
    failure_outbound_failed("gateway", 3, 2, "503");
}
static void emit_poison_message(void)
{
    failure_poison_message("gateway", "m-1", "no JSON", "dead_letter");
}
static void emit_policy_timeout(void)
{
    failure_policy_timeout("engine", "policy_point", 500, "deny");
}
static void emit_restarts_exhausted(void)
{
    failure_restarts_exhausted("supervisor", 10, 60, "agents");
}
static void emit_process_ended(void)
{
    failure_process_ended("core", "root", "signal 11", 99);
}
static void emit_process_hung(void)
{
    failure_process_hung("core", "root", "commit", 10001);
}
static void emit_actor_failed(void)
{
    failure_actor_failed("gateway", "outbound", 3, 1, NULL);
}

static void (*const emitters[FAILURE_MODE_COUNT])(void) = {
#define X(id, function, class, action, handling) [FAILURE_MODE_##id] = emit_##function,
    FAILURE_MODES(X)
#undef X
};

/* [TOP-032] */
TEST(test_there_are_exactly_three_classes)
{
    assert_int_equal(FAILURE_CLASS_COUNT, 3);
    assert_string_equal(failure_class_name(FAILURE_FATAL), "fatal");
    assert_string_equal(failure_class_name(FAILURE_RECOVERABLE), "recoverable");
    assert_string_equal(failure_class_name(FAILURE_DEGRADED), "degraded");
}

TEST(test_an_event_carries_every_dimension_of_its_mode)
{
    for (enum failure_mode mode = 0; mode < FAILURE_MODE_COUNT; mode++) {
        uint64_t before = failure_count(mode);
        const struct json *event = event_of(emitters[mode]);
        assert_int_equal(failure_count(mode), before + 1);
        assert_true(str_is(json_get(event, "event")->text, "weir.runtime.failure"));
        assert_true(str_is(json_get(event, "mode")->text, failure_modes[mode].name));
        struct str rest = str_of(failure_modes[mode].dimensions);
        int dimensions = 0;
        for (; rest.len; dimensions++) {
            char name[40];
            struct str part = str_cut(&rest, ' ');
            snprintf(name, sizeof name, "%.*s", STR_ARG(part));
            const struct json *value = json_get(event, name);
            if (!value)
                fail_msg("%s lacks %s", failure_modes[mode].name, name);
            assert_true(value->type == JSON_STRING || value->type == JSON_NUMBER);
        }
        assert_true(dimensions >= 4);
        assert_true(str_is(json_get(event, "failure_class")->text,
                           failure_class_name(failure_modes[mode].failure_class)));
        bool fatal = failure_modes[mode].failure_class == FAILURE_FATAL;
        assert_true(str_is(json_get(event, "level")->text, fatal ? "error" : "warn"));
    }
}

/* Class and dimensions of each row of the matrix, word by word; what each needs is the seed's. */
TEST(test_the_modes_are_those_of_the_matrix)
{
    static const struct {
        enum failure_mode mode;
        enum failure_class failure_class;
        enum failure_action action;
        const char *dimensions;
    } matrix[] = {
        {FAILURE_MODE_BOOT_CONFIG, FAILURE_FATAL, FAILURE_ACTION_STOP,
         "component failure_class reason boot_stage"},
        {FAILURE_MODE_ADAPTER_INIT, FAILURE_FATAL, FAILURE_ACTION_RESTART,
         "component failure_class adapter reason"},
        {FAILURE_MODE_LISTENER, FAILURE_RECOVERABLE, FAILURE_ACTION_RESTART,
         "component failure_class instance_id attempt elapsed_ms"},
        {FAILURE_MODE_OUTBOUND, FAILURE_RECOVERABLE, FAILURE_ACTION_RESTART,
         "component failure_class partition attempt provider_code"},
        {FAILURE_MODE_POISON, FAILURE_DEGRADED, FAILURE_ACTION_NONE,
         "component failure_class message_id reason disposition"},
        {FAILURE_MODE_POLICY_TIMEOUT, FAILURE_DEGRADED, FAILURE_ACTION_NONE,
         "component failure_class policy_module timeout_ms fallback"},
        {FAILURE_MODE_EXHAUSTED, FAILURE_FATAL, FAILURE_ACTION_END,
         "component failure_class restart_count window_s domain"},
    };
    for (size_t i = 0; i < sizeof matrix / sizeof matrix[0]; i++) {
        const struct failure_mode_info *info = &failure_modes[matrix[i].mode];
        assert_int_equal(info->failure_class, matrix[i].failure_class);
        assert_int_equal(info->action, matrix[i].action);
        assert_string_equal(info->dimensions, matrix[i].dimensions);
        assert_true(info->handling[0]);
    }
}

/* A dimension without a value is told as such, never left out. */
TEST(test_a_missing_text_is_told_as_none)
{
    const struct json *event = event_of(emit_actor_failed);
    assert_true(str_is(json_get(event, "reason")->text, "none"));
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_new(4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    return test_run("tests", set_up, tear_down);
}
