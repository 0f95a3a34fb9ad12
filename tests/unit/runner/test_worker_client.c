#include "case.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/must.h"
#include "unit/runner/fake_core.h"
#include "worker_client/worker_client.h"
#include "worker_client/worker_message.h"

#include "base/banned.h"

enum { PATIENCE_MS = 60000 };
static const char definition[] = "{\"work_kind\":\"SUCCESS_FAST\",\"duration_ms\":1000,"
                                 "\"should_fail\":false,\"payload_size\":4096}";
static const struct str default_queue = {"default", 7};

struct world {
    char dir[64], socket_path[96];
    struct fake_core *core;
    struct worker_client *client;
    struct clock clock; /* the system's, plus what a test has skipped */
    int64_t skipped_ms;
    /* of the last answer */
    int answers;
    enum worker_answer_kind kind;
    int http_status;
    char detail[256];
    size_t task_count, result_count;
    char task_id[64], token[64], job_id[64], code[64];
    bool ok, cancel, has_definition;
    int64_t attempt, max_runtime_ms;
};

static void copy(char to[64], struct str from)
{
    snprintf(to, 64, "%.*s", STR_ARG(from));
}

static void answered(void *self, const struct worker_answer *a)
{
    struct world *w = self;
    w->answers++;
    w->kind = a->kind;
    w->http_status = a->http_status;
    snprintf(w->detail, sizeof w->detail, "%s", a->detail);
    w->task_count = a->task_count;
    w->result_count = a->result_count;
    if (a->task_count) {
        copy(w->task_id, a->tasks[0].ref.task_id);
        copy(w->token, a->tasks[0].ref.token);
        copy(w->job_id, a->tasks[0].job_id);
        w->attempt = a->tasks[0].attempt;
        w->max_runtime_ms = a->tasks[0].max_runtime_ms;
        w->has_definition = json_get(a->tasks[0].definition, "work_kind") != NULL;
    }
    if (a->result_count) {
        copy(w->code, a->results[0].code);
        w->ok = a->results[0].ok;
        w->cancel = a->results[0].cancel;
    }
}

static int64_t skipping_mono_ms(void *self)
{
    return clock_mono_ms(&clock_system) + ((struct world *)self)->skipped_ms;
}

static int open_world(void **state)
{
    struct world *w = must_alloc(sizeof *w);
    snprintf(w->dir, sizeof w->dir, "/tmp/weir-client-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->socket_path, sizeof w->socket_path, "%s/core.sock", w->dir);
    w->core = fake_core_new(w->socket_path);
    fake_core_run(w->core);
    w->clock = (struct clock){clock_system.wall_us, skipping_mono_ms, w};
    w->client = worker_client_new(&(struct worker_client_config){
        .socket_path = w->socket_path,
        .timeout_ms = PATIENCE_MS,
        .calls_max = 4,
        .clock = &w->clock,
    });
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    worker_client_free(w->client);
    fake_core_free(w->core);
    rmdir(w->dir);
    free(w);
    return 0;
}

/* The caller's event loop: until that many answers have come. */
static void drive(struct world *w, int answers)
{
    int64_t until_ms = clock_mono_ms(&w->clock) + PATIENCE_MS;
    while (w->answers < answers) {
        int64_t now_ms = clock_mono_ms(&w->clock);
        assert_true(now_ms < until_ms);
        int64_t at_ms = worker_client_deadline_ms(w->client);
        int64_t wait_ms = (at_ms < until_ms ? at_ms : until_ms) - now_ms;
        struct pollfd fd = {.fd = worker_client_fd(w->client), .events = POLLIN};
        poll(&fd, 1, wait_ms < 0 ? 0 : (int)wait_ms);
        worker_client_work(w->client);
    }
}

static int64_t backoff_left_ms(struct world *w)
{
    return worker_client_ready_at_ms(w->client) - clock_mono_ms(&w->clock);
}

static struct worker_call *claim(struct world *w, uint32_t max, int64_t wait_ms)
{
    struct worker_claim c = {STR("worker-1"), &default_queue, 1, max, wait_ms};
    return worker_client_claim(w->client, &c, answered, w);
}

static struct worker_task_ref last_ref(const struct world *w)
{
    return (struct worker_task_ref){str_of(w->task_id), str_of(w->token)};
}

#define CORE_TEST(name, parameter) TEST_WITH(name, struct world *parameter, open_world, close_world)

CORE_TEST(test_a_task_is_claimed_started_renewed_and_finished, w)
{
    fake_core_add(w->core, definition, 125000, 2);
    claim(w, 1, 0);
    drive(w, 1);
    assert_int_equal(w->kind, WORKER_ANSWERED);
    assert_int_equal(w->task_count, 1);
    assert_string_equal(w->task_id, "task-0");
    assert_string_equal(w->job_id, "job-0");
    assert_int_equal(w->attempt, 2);
    assert_int_equal(w->max_runtime_ms, 125000);
    assert_true(w->has_definition);

    struct worker_task_ref ref = last_ref(w);
    worker_client_start(w->client, &ref, 1, answered, w);
    drive(w, 2);
    assert_true(w->ok);
    worker_client_heartbeat(w->client, &ref, 1, answered, w);
    drive(w, 3);
    assert_true(w->ok);
    assert_false(w->cancel);
    struct worker_finish f = {.ref = ref, .success = true, .result = STR("{\"n\":1}")};
    worker_client_finish(w->client, &f, 1, answered, w);
    drive(w, 4);
    assert_true(w->ok);
    struct fake_task t = fake_core_task(w->core, 0);
    assert_int_equal(t.state, FAKE_FINISHED);
    assert_true(t.success);
    assert_string_equal(t.result, "{\"n\":1}");
}

CORE_TEST(test_a_failure_carries_code_message_and_retryable, w)
{
    fake_core_add(w->core, definition, 0, 1);
    claim(w, 1, 0);
    drive(w, 1);
    struct worker_task_ref ref = last_ref(w);
    worker_client_start(w->client, &ref, 1, answered, w);
    drive(w, 2);
    struct worker_finish f = {
        .ref = ref, .error_code = STR("work_failed"), .error_message = STR("said \"no\""), .retryable = true};
    worker_client_finish(w->client, &f, 1, answered, w);
    drive(w, 3);
    struct fake_task t = fake_core_task(w->core, 0);
    assert_false(t.success);
    assert_string_equal(t.error_code, "work_failed");
    assert_true(t.retryable);
}

CORE_TEST(test_refusals_of_single_tasks_come_as_results, w)
{
    fake_core_add(w->core, definition, 0, 1);
    claim(w, 1, 0);
    drive(w, 1);
    struct worker_task_ref ref = last_ref(w), stale = {ref.task_id, STR("t0")};
    worker_client_start(w->client, &stale, 1, answered, w);
    drive(w, 2);
    assert_int_equal(w->kind, WORKER_ANSWERED);
    assert_false(w->ok);
    assert_string_equal(w->code, "lease_lost");
    worker_client_start(w->client, &ref, 1, answered, w);
    drive(w, 3);
    worker_client_release(w->client, &ref, 1, answered, w);
    drive(w, 4);
    assert_string_equal(w->code, "not_releasable");
    fake_core_cancel(w->core, 0);
    worker_client_heartbeat(w->client, &ref, 1, answered, w);
    drive(w, 5);
    assert_true(w->ok && w->cancel);
}

static bool one_claim_waits(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).claims_waiting == 1;
}

CORE_TEST(test_a_long_poll_is_answered_when_work_arrives, w)
{
    claim(w, 8, 30000);
    worker_client_work(w->client);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    while (!one_claim_waits(w->core, NULL)) {
        assert_true(clock_mono_ms(&clock_system) - begun_ms < PATIENCE_MS);
        worker_client_work(w->client);
    }
    assert_int_equal(w->answers, 0);
    fake_core_add(w->core, definition, 0, 1);
    drive(w, 1);
    assert_int_equal(w->task_count, 1);
}

CORE_TEST(test_connections_are_kept_and_reused, w)
{
    for (int i = 1; i <= 50; i++) {
        claim(w, 1, 0);
        drive(w, i);
        assert_int_equal(w->kind, WORKER_ANSWERED);
    }
    assert_int_equal(fake_core_counts(w->core).connections, 1);
}

CORE_TEST(test_calls_in_flight_are_bounded, w)
{
    for (int i = 0; i < 4; i++) {
        assert_true(worker_client_can_call(w->client));
        claim(w, 1, 0);
    }
    assert_false(worker_client_can_call(w->client));
    drive(w, 4);
    assert_true(worker_client_can_call(w->client));
}

CORE_TEST(test_an_overloaded_core_makes_the_client_back_off_and_come_back, w)
{
    fake_core_refuse(w->core, FAKE_CLAIM, 503, 1);
    claim(w, 1, 0);
    drive(w, 1);
    assert_int_equal(w->kind, WORKER_AWAY);
    assert_int_equal(w->http_status, 503);
    assert_false(worker_client_can_call(w->client));
    w->skipped_ms += WORKER_BACKOFF_MS_MIN;
    assert_true(worker_client_can_call(w->client));
    claim(w, 1, 0);
    drive(w, 2);
    assert_int_equal(w->kind, WORKER_ANSWERED);
    assert_int_equal(worker_client_ready_at_ms(w->client), 0);
}

CORE_TEST(test_a_refused_call_tells_status_and_code, w)
{
    fake_core_refuse(w->core, FAKE_CLAIM, 403, 1);
    claim(w, 1, 0);
    drive(w, 1);
    assert_int_equal(w->kind, WORKER_REFUSED);
    assert_int_equal(w->http_status, 403);
    assert_non_null(strstr(w->detail, "RFA_TEST"));
}

CORE_TEST(test_backoff_grows_to_its_cap_while_core_is_gone, w)
{
    int64_t full_ms = WORKER_BACKOFF_MS_MIN;
    fake_core_stop(w->core);
    for (int i = 1; i <= 9; i++) {
        claim(w, 1, 0);
        drive(w, i);
        assert_int_equal(w->kind, WORKER_AWAY);
        assert_int_equal(w->http_status, 0);
        assert_true(w->detail[0]);
        assert_in_range(backoff_left_ms(w), full_ms / 2 - 20, full_ms);
        w->skipped_ms += full_ms;
        full_ms = full_ms * 2 > WORKER_BACKOFF_MS_MAX ? WORKER_BACKOFF_MS_MAX : full_ms * 2;
    }
    fake_core_run(w->core);
    claim(w, 1, 0);
    drive(w, 10);
    assert_int_equal(w->kind, WORKER_ANSWERED);
}

CORE_TEST(test_a_cut_answer_is_not_taken_for_one, w)
{
    fake_core_add(w->core, definition, 0, 1);
    fake_core_cut_answer(w->core, FAKE_CLAIM, 1);
    claim(w, 1, 0);
    drive(w, 1);
    assert_int_equal(w->kind, WORKER_AWAY);
    assert_int_equal(fake_core_task(w->core, 0).state, FAKE_ASSIGNED); /* yet it was done */
}

CORE_TEST(test_an_abandoned_call_never_answers, w)
{
    struct worker_call *call = claim(w, 1, 30000);
    worker_client_work(w->client);
    worker_client_abandon(w->client, call);
    claim(w, 1, 0);
    drive(w, 1);
    assert_int_equal(w->kind, WORKER_ANSWERED);
    assert_int_equal(w->answers, 1);
}

ARENA_TEST(test_unreadable_answers_are_errors_and_items_without_ids_are_left_out, a)
{
    static const char *const bad[] = {"", "{", "[]", "null", "{}", "\xff", "{\"tasks\":1}", "{\"tasks\":[]"};
    struct worker_answer answer = {0};
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_int_not_equal(worker_message_read_tasks(a, str_of(bad[i]), 9, &answer, &err), ERR_OK);
    assert_int_equal(answer.task_count, 0);
    struct str mixed = STR("{\"tasks\":[1,{\"task_id\":\"a\"},{\"task_id\":\"b\",\"token\":7},"
                           "{\"task_id\":\"c\",\"token\":\"1\",\"attempt\":\"x\"},"
                           "{\"task_id\":\"d\",\"token\":\"1\"},{\"task_id\":\"e\",\"token\":\"1\"}]}");
    assert_int_equal(worker_message_read_tasks(a, mixed, 2, &answer, &err), ERR_OK);
    assert_int_equal(answer.task_count, 2); /* c and d: no more than was asked for */
    assert_true(str_is(answer.tasks[0].ref.task_id, "c"));
    assert_int_equal(answer.tasks[0].attempt, 1);
    assert_null(answer.tasks[0].definition);
    assert_int_equal(worker_message_read_results(a, STR("{\"results\":[{\"ok\":true},{\"task_id\":\"z\"}]}"),
                                                 &answer, &err),
                     ERR_OK);
    assert_int_equal(answer.result_count, 1);
    assert_false(answer.results[0].ok);
}
