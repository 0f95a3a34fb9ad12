#include "worker_client/worker_message.h"

#include "base/json_members.h"

#include "base/banned.h"

void worker_message_claim(const struct worker_claim *claim, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    encode_str(&w, "worker_id", claim->worker_id);
    jw_key(&w, "queues");
    jw_array(&w);
    for (size_t i = 0; i < claim->queue_count; i++)
        jw_str(&w, claim->queues[i]);
    jw_array_end(&w);
    encode_int(&w, "max", claim->max);
    encode_int(&w, "wait_ms", claim->wait_ms);
    encode_bool(&w, "start", claim->start);
    jw_object_end(&w);
}

static void write_ref(struct json_writer *w, const struct worker_task_ref *ref)
{
    encode_str(w, "task_id", ref->task_id);
    encode_str(w, "token", ref->token);
}

void worker_message_refs(const struct worker_task_ref *tasks, size_t count, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        jw_object(&w);
        write_ref(&w, &tasks[i]);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
}

static void write_finish(struct json_writer *w, const struct worker_finish *f)
{
    jw_object(w);
    write_ref(w, &f->ref);
    encode_text(w, "outcome", f->success ? "success" : "failure");
    if (f->result.ptr) {
        jw_key(w, "result");
        jw_raw(w, f->result);
    }
    if (!f->success) {
        jw_key(w, "error");
        jw_object(w);
        encode_str(w, "code", f->error_code);
        encode_str(w, "message", f->error_message);
        encode_bool(w, "retryable", f->retryable);
        jw_object_end(w);
    }
    jw_object_end(w);
}

void worker_message_finish(const struct worker_finish *tasks, size_t count, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (size_t i = 0; i < count; i++)
        write_finish(&w, &tasks[i]);
    jw_array_end(&w);
    jw_object_end(&w);
}

static struct str text_of(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

static int64_t int_of(const struct json *object, const char *key, int64_t otherwise)
{
    const struct json *j = json_get(object, key);
    int64_t value;
    return j && json_to_int(j, &value) ? value : otherwise;
}

static bool bool_of(const struct json *object, const char *key)
{
    const struct json *j = json_get(object, key);
    return j && j->type == JSON_TRUE;
}

static enum err_code read_list(struct arena *a, struct str body, const char *key,
                               const struct json **ret_list, struct err *err)
{
    const struct json *root;
    if (json_parse(a, body, &root, err) != ERR_OK)
        return err->code;
    const struct json *list = json_get(root, key);
    if (!list || list->type != JSON_ARRAY)
        return err_set(err, ERR_REQUEST_MALFORMED, "answer has no array \"%s\"", key);
    *ret_list = list;
    return ERR_OK;
}

static bool read_task(const struct json *j, struct worker_task *ret_task)
{
    *ret_task = (struct worker_task){
        .ref = {text_of(j, "task_id"), text_of(j, "token")},
        .is_step = str_is(text_of(j, "kind"), "step"),
        .job_id = text_of(j, "job_id"),
        .run_id = text_of(j, "run_id"),
        .step_id = text_of(j, "step_id"),
        .queue = text_of(j, "queue"),
        .traceparent = text_of(j, "traceparent"),
        .attempt = int_of(j, "attempt", 1),
        .max_runtime_ms = int_of(j, "max_runtime_ms", 0),
        .definition = json_get(j, "definition"),
        .payload = json_get(j, "payload"),
    };
    return ret_task->ref.task_id.len && ret_task->ref.token.len;
}

enum err_code worker_message_read_tasks(struct arena *a, struct str body, size_t max,
                                        struct worker_answer *ret_answer, struct err *err)
{
    const struct json *list;
    if (read_list(a, body, "tasks", &list, err) != ERR_OK)
        return err->code;
    struct worker_task *tasks = ARENA_ARRAY(a, struct worker_task, list->count);
    size_t count = 0;
    /* More than was asked for is not ours to keep: its lease runs out and it is handed on. */
    for (const struct json *j = list->child; j && count < max; j = j->next)
        if (read_task(j, &tasks[count]))
            count++;
    ret_answer->tasks = tasks;
    ret_answer->task_count = count;
    return ERR_OK;
}

enum err_code worker_message_read_results(struct arena *a, struct str body, struct worker_answer *ret_answer,
                                          struct err *err)
{
    const struct json *list;
    if (read_list(a, body, "results", &list, err) != ERR_OK)
        return err->code;
    struct worker_result *results = ARENA_ARRAY(a, struct worker_result, list->count);
    size_t count = 0;
    for (const struct json *j = list->child; j; j = j->next) {
        results[count] = (struct worker_result){
            .task_id = text_of(j, "task_id"),
            .ok = bool_of(j, "ok"),
            .code = text_of(j, "code"),
            .cancel = bool_of(j, "cancel"),
        };
        if (results[count].task_id.len)
            count++;
    }
    ret_answer->results = results;
    ret_answer->result_count = count;
    return ERR_OK;
}
