/* The reports of other processes about their queues and lost connections. */
#include "api/overload_internal.h"
#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

static int64_t integer(const struct json *object, const char *key, int64_t min, int64_t max, bool *ok)
{
    const struct json *j = json_get(object, key);
    int64_t value = 0;
    if (!j || !json_to_int(j, &value) || value < min || value > max)
        *ok = false;
    return value;
}

static struct str text(const struct json *object, const char *key, bool *ok)
{
    const struct json *j = json_get(object, key);
    if (j && j->type == JSON_STRING)
        return (struct str){j->text.ptr ? j->text.ptr : "", j->text.len};
    *ok = false;
    return STR("");
}

static const struct json *list(const struct json *root, const char *key, size_t max, bool *ok)
{
    const struct json *j = json_get(root, key);
    if (!j)
        return NULL;
    if (j->type != JSON_ARRAY || j->count > max) {
        *ok = false;
        return NULL;
    }
    return j->child;
}

static bool read_queue(const struct json *j, struct pressure_part *ret)
{
    bool ok = true;
    ret->partition = (uint32_t)integer(j, "partition", 0, PRESSURE_PARTITION_MAX, &ok);
    ret->depth = integer(j, "depth", 0, INT32_MAX, &ok);
    ret->capacity = integer(j, "capacity", 1, INT32_MAX, &ok);
    struct str component = text(j, "component", &ok);
    return ok && pressure_component_parse(component, &ret->component);
}

static bool take_reconnect(struct overload *o, const struct json *j)
{
    bool ok = true;
    int64_t elapsed = integer(j, "elapsed_ms", 0, INT32_MAX, &ok);
    int64_t attempts = integer(j, "attempts", 0, INT32_MAX, &ok);
    struct str instance = text(j, "instance_id", &ok), reason = text(j, "reason", &ok);
    if (ok)
        overload_reconnected(o, instance, elapsed, attempts, reason);
    return ok;
}

static bool take_queues(struct overload *o, const struct json *root, struct str process)
{
    struct pressure_part parts[OVERLOAD_REPORT_QUEUES_MAX];
    size_t count = 0;
    bool ok = process.len && process.len < PRESSURE_PROCESS_MAX;
    char name[PRESSURE_PROCESS_MAX] = "";
    for (const struct json *j = list(root, "queues", LENGTH_OF(parts), &ok); j && ok; j = j->next)
        ok = read_queue(j, &parts[count++]);
    if (!ok || !json_get(root, "queues")) /* no word of them: they are as they were */
        return ok;
    memcpy(name, process.ptr, process.len);
    pthread_mutex_lock(&o->lock);
    ok = pressure_report(o->board, name, parts, count, clock_mono_ms(o->clock));
    overload_settle(o);
    pthread_mutex_unlock(&o->lock);
    return ok;
}

static bool take_report(struct overload *o, const struct json *root)
{
    bool ok = true;
    struct str process = text(root, "process", &ok);
    const struct json *reconnects = list(root, "reconnects", OVERLOAD_REPORT_ITEMS_MAX, &ok);
    if (!ok || !take_queues(o, root, process))
        return false;
    for (const struct json *j = reconnects; j; j = j->next)
        ok = take_reconnect(o, j) && ok;
    return ok;
}

bool overload_serve(struct overload *o, struct http_exchange *x)
{
    const struct json *root;
    struct err err;
    if (!x->over_unix_socket || x->method != HTTP_POST || !str_is(x->path, OVERLOAD_REPORT_PATH))
        return false;
    bool taken = json_parse(x->arena, x->body, &root, &err) == ERR_OK && take_report(o, root);
    x->status = taken ? 200 : 400;
    x->content_type = "application/json";
    struct json_writer w;
    jw_start(&w, &x->reply_body);
    jw_object(&w);
    encode_text(&w, "level", pressure_level_text(overload_level(o)));
    jw_object_end(&w);
    http_answer(x);
    return true;
}
