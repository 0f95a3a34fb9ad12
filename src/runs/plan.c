#include "runs/plan.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"

#include "base/banned.h"

#define X(id, name) name,
static const char *const on_failures[PLAN_ON_FAILURE_COUNT] = {PLAN_ON_FAILURES(X)};
#undef X

const char *plan_on_failure_text(enum plan_on_failure f)
{
    MUST((unsigned)f < PLAN_ON_FAILURE_COUNT);
    return on_failures[f];
}

bool plan_queue_is_good(struct str name)
{
    if (!name.len || name.len > 64)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || !strchr("_.-", c) || !c))
            return false;
    }
    return true;
}

/* --- members --------------------------------------------------------------------------------------- */

static enum err_code only(const struct json *j, const char *what, const char *const *names, size_t count,
                          struct err *err)
{
    if (!j || j->type != JSON_OBJECT)
        return err_set(err, ERR_PLAN_INVALID, "%s has to be a JSON object", what);
    for (const struct json *m = j->child; m; m = m->next) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = str_is(m->key, names[i]);
        if (!known)
            return err_set(err, ERR_PLAN_INVALID, "%.*s is no member of %s",
                           (int)(m->key.len > 64 ? 64 : m->key.len), m->key.ptr, what);
    }
    return ERR_OK;
}

static enum err_code read_id(const struct json *j, const char *name, struct str *ret, struct err *err)
{
    const struct json *m = json_get(j, name);
    if (!m || m->type != JSON_STRING || !m->text.len || m->text.len > PLAN_TEXT_MAX)
        return err_set(err, ERR_PLAN_INVALID, "%s has to be a text of 1 to %d bytes", name, PLAN_TEXT_MAX);
    if (memchr(m->text.ptr, '|', m->text.len) || memchr(m->text.ptr, '\0', m->text.len))
        return err_set(err, ERR_PLAN_INVALID, "%s may hold neither | nor a zero byte", name);
    *ret = m->text;
    return ERR_OK;
}

static enum err_code read_on_failure(const struct json *j, enum plan_on_failure *ret, struct err *err)
{
    const struct json *m = json_get(j, "onFailure");
    *ret = PLAN_FAIL;
    if (!m)
        return ERR_OK;
    for (int i = 0; m->type == JSON_STRING && i < PLAN_ON_FAILURE_COUNT; i++)
        if (str_is(m->text, on_failures[i])) {
            *ret = (enum plan_on_failure)i;
            return ERR_OK;
        }
    return err_set(err, ERR_PLAN_INVALID, "onFailure has to be fail or wait");
}

/* A number of a step; absent: *ret is left alone. */
static enum err_code read_number(const struct json *j, const char *name, struct str step, int64_t min,
                                 int64_t max, int64_t *ret, struct err *err)
{
    const struct json *m = json_get(j, name);
    if (!m || (m->type == JSON_NUMBER && json_to_int(m, ret) && *ret >= min && *ret <= max))
        return ERR_OK;
    return err_set(err, ERR_PLAN_INVALID, "step %.*s: %s has to be %lld to %lld", STR_ARG(step), name,
                   (long long)min, (long long)max);
}

static enum err_code read_numbers(const struct json *j, struct plan_step *s, struct err *err)
{
    s->max_attempts = 1;
    if (read_number(j, "maxAttempts", s->id, 1, PLAN_ATTEMPTS_MAX, &s->max_attempts, err) != ERR_OK ||
        read_number(j, "timeoutMs", s->id, 1, PLAN_TIMEOUT_MS_MAX, &s->timeout_ms, err) != ERR_OK)
        return err->code;
    return read_number(j, "delayMs", s->id, 0, PLAN_DELAY_MS_MAX, &s->delay_ms, err);
}

static enum err_code read_step(const struct json *j, struct plan_step *s, struct err *err)
{
    static const char *const names[] = {"stepId",      "dependsOn", "queue",  "config",
                                        "maxAttempts", "timeoutMs", "delayMs"};
    const struct json *queue = json_get(j, "queue"), *config = json_get(j, "config");
    if (only(j, "a step", names, LENGTH_OF(names), err) != ERR_OK ||
        read_id(j, "stepId", &s->id, err) != ERR_OK)
        return err->code;
    s->queue = queue ? queue->text : STR("default");
    if (queue && (queue->type != JSON_STRING || !plan_queue_is_good(queue->text)))
        return err_set(err, ERR_PLAN_INVALID, "step %.*s: queue has to be [a-z0-9][a-z0-9_.-]{0,63}",
                       STR_ARG(s->id));
    if (config && (config->type != JSON_OBJECT || config->source.len > PLAN_CONFIG_BYTES_MAX))
        return err_set(err, ERR_PLAN_INVALID, "step %.*s: config has to be an object of at most %d bytes",
                       STR_ARG(s->id), PLAN_CONFIG_BYTES_MAX);
    if (config)
        s->config = config->source;
    return read_numbers(j, s, err);
}

/* --- dependencies ---------------------------------------------------------------------------------- */

struct named {
    struct map_node node;
    struct str id;
    uint32_t number;
};

static uint64_t name_hash(struct str name)
{
    return hash_secret(name.ptr, name.len);
}

static const struct named *find(const struct map *names, struct str id)
{
    for (struct map_node *n = map_first(names, name_hash(id)); n; n = map_next(n))
        if (str_equal(CONTAINER_OF(n, struct named, node)->id, id))
            return CONTAINER_OF(n, struct named, node);
    return NULL;
}

static enum err_code name_steps(struct plan *p, struct map *names, struct arena *a, struct err *err)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        if (find(names, p->steps[i].id))
            return err_set(err, ERR_PLAN_INVALID, "step %.*s stands there twice", STR_ARG(p->steps[i].id));
        struct named *n = ARENA_NEW(a, struct named);
        n->id = p->steps[i].id;
        n->number = i;
        map_put(names, &n->node, name_hash(n->id));
    }
    return ERR_OK;
}

static int shown_length(struct str text)
{
    enum { SHOWN_MAX = 64 };
    return (int)(text.len < SHOWN_MAX ? text.len : SHOWN_MAX);
}

static enum err_code unknown_dependency(struct str step, uint32_t number, uint32_t place,
                                        const struct json *named, struct err *err)
{
    if (named->type != JSON_STRING)
        return err_set(err, ERR_PLAN_INVALID, "step %.*s: /steps/%u/dependsOn/%u has to be a stepId",
                       shown_length(step), step.ptr, number, place);
    return err_set(err, ERR_PLAN_INVALID,
                   "step %.*s depends on %.*s, which is no step of the plan (/steps/%u/dependsOn/%u)",
                   shown_length(step), step.ptr, shown_length(named->text), named->text.ptr, number, place);
}

static enum err_code read_dependencies(const struct json *j, struct plan *p, uint32_t number,
                                       const struct map *names, struct arena *a, struct err *err)
{
    struct plan_step *s = &p->steps[number];
    const struct json *list = json_get(j, "dependsOn");
    if (!list)
        return ERR_OK;
    if (list->type != JSON_ARRAY)
        return err_set(err, ERR_PLAN_INVALID, "step %.*s: dependsOn has to be a list", STR_ARG(s->id));
    s->dependencies = ARENA_ARRAY(a, uint32_t, list->count + 1);
    for (const struct json *d = list->child; d; d = d->next) {
        const struct named *n = d->type == JSON_STRING ? find(names, d->text) : NULL;
        if (!n)
            return unknown_dependency(s->id, number, s->dependency_count, d, err);
        struct plan_step *other = &p->steps[n->number];
        if (other->named_by == number + 1)
            return err_set(err, ERR_PLAN_INVALID, "step %.*s names a dependency twice", STR_ARG(s->id));
        other->named_by = number + 1;
        s->dependencies[s->dependency_count++] = n->number;
        other->dependent_count++;
    }
    return ERR_OK;
}

/* The other direction. */
static void turn_round(struct plan *p, struct arena *a)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        p->steps[i].dependents = ARENA_ARRAY(a, uint32_t, p->steps[i].dependent_count + 1);
        p->steps[i].dependent_count = 0;
    }
    for (uint32_t i = 0; i < p->step_count; i++)
        for (uint32_t k = 0; k < p->steps[i].dependency_count; k++) {
            struct plan_step *other = &p->steps[p->steps[i].dependencies[k]];
            other->dependents[other->dependent_count++] = i;
        }
}

/* A dependency of `s` that waits, too. */
static uint32_t waiting_dependency(const struct plan_step *s, const uint32_t *waits)
{
    uint32_t k = 0;
    while (!waits[s->dependencies[k]])
        MUST(++k < s->dependency_count);
    return s->dependencies[k];
}

/* Each waiting step depends on another waiting one: following these comes to a step twice. `seen` has room
 * for all steps. */
static uint32_t first_of_cycle(const struct plan *p, const uint32_t *waits, uint32_t *seen)
{
    uint32_t at = 0;
    memset(seen, 0, sizeof *seen * p->step_count);
    while (!waits[at])
        at++;
    for (; !seen[at]; at = waiting_dependency(&p->steps[at], waits))
        seen[at] = 1;
    uint32_t first = at;
    for (uint32_t i = waiting_dependency(&p->steps[at], waits); i != at;
         i = waiting_dependency(&p->steps[i], waits))
        first = i < first ? i : first;
    return first;
}

/* "a -> b -> a"; a long one is cut in the middle. */
static enum err_code name_cycle(const struct plan *p, const uint32_t *waits, uint32_t first, struct err *err)
{
    enum { PATH_BYTES_MAX = 100 };
    struct str name = p->steps[first].id;
    struct strbuf path = {0};
    strbuf_add(&path, name.ptr, (size_t)shown_length(name));
    uint32_t at = waiting_dependency(&p->steps[first], waits);
    for (; at != first && path.len < PATH_BYTES_MAX; at = waiting_dependency(&p->steps[at], waits))
        strbuf_addf(&path, " -> %.*s", shown_length(p->steps[at].id), p->steps[at].id.ptr);
    enum err_code code =
        err_set(err, ERR_PLAN_INVALID, "steps depend on each other in a circle: %.*s%s -> %.*s",
                STR_ARG(strbuf_str(&path)), at == first ? "" : " -> ...", shown_length(name), name.ptr);
    strbuf_free(&path);
    return code;
}

/* Removes steps that wait for nothing, again and again: the remaining steps are in a cycle, or depend on one.
 * */
static enum err_code check_cycles(const struct plan *p, struct arena *a, struct err *err)
{
    uint32_t *waits = ARENA_ARRAY(a, uint32_t, p->step_count),
             *ready = ARENA_ARRAY(a, uint32_t, p->step_count);
    uint32_t count = 0, done = 0;
    for (uint32_t i = 0; i < p->step_count; i++) {
        waits[i] = p->steps[i].dependency_count;
        if (!waits[i])
            ready[count++] = i;
    }
    while (done < count) {
        const struct plan_step *s = &p->steps[ready[done++]];
        for (uint32_t k = 0; k < s->dependent_count; k++)
            if (--waits[s->dependents[k]] == 0)
                ready[count++] = s->dependents[k];
    }
    return count == p->step_count ? ERR_OK : name_cycle(p, waits, first_of_cycle(p, waits, ready), err);
}

static enum err_code connect(const struct json *steps, struct plan *p, struct arena *a, struct err *err)
{
    struct map names = {0};
    uint32_t number = 0;
    enum err_code code = name_steps(p, &names, a, err);
    for (const struct json *s = steps->child; s && code == ERR_OK; s = s->next)
        code = read_dependencies(s, p, number++, &names, a, err);
    map_free(&names);
    if (code != ERR_OK)
        return code;
    turn_round(p, a);
    return check_cycles(p, a, err);
}

enum err_code plan_decode(const struct json *j, struct arena *a, struct plan *ret_plan, struct err *err)
{
    static const char *const names[] = {"planId", "planVersion", "onFailure", "steps"};
    struct plan *p = ret_plan;
    *p = (struct plan){0};
    const struct json *steps = json_get(j, "steps");
    if (only(j, "a plan", names, LENGTH_OF(names), err) != ERR_OK ||
        read_id(j, "planId", &p->id, err) != ERR_OK ||
        read_id(j, "planVersion", &p->version, err) != ERR_OK ||
        read_on_failure(j, &p->on_failure, err) != ERR_OK)
        return err->code;
    if (!steps || steps->type != JSON_ARRAY || !steps->count || steps->count > PLAN_STEPS_MAX)
        return err_set(err, ERR_PLAN_INVALID, "steps has to be a list of 1 to %d steps", PLAN_STEPS_MAX);
    p->steps = ARENA_ARRAY(a, struct plan_step, steps->count);
    memset(p->steps, 0, sizeof *p->steps * steps->count);
    for (const struct json *s = steps->child; s; s = s->next)
        if (read_step(s, &p->steps[p->step_count++], err) != ERR_OK)
            return err->code;
    return connect(steps, p, a, err);
}
