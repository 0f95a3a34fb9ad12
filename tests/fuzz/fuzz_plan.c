/* Any bytes as a plan. What is accepted can be executed: within the bounds, names without '|', both
 * directions of a dependency agree and none is named twice; and a run of it ends. The last is the oracle of
 * cycles: rounds over all steps, each taking what is ready, must take all of them; the decoder does it with
 * queues and counters. */
#include "base/must.h"
#include "runs/plan.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_LOOKED_AT = 300 }; /* the oracle takes the square of it */

static bool has(const uint32_t *list, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == number)
            return true;
    return false;
}

static void check_id(struct str id)
{
    MUST(id.len >= 1 && id.len <= PLAN_TEXT_MAX && str_is_utf8(id));
    MUST(!memchr(id.ptr, '|', id.len) && !memchr(id.ptr, '\0', id.len));
}

static void check_step(struct arena *a, const struct plan *p, uint32_t number)
{
    const struct plan_step *s = &p->steps[number];
    const struct json *config;
    struct err err;
    check_id(s->id);
    MUST(plan_queue_is_good(s->queue) && s->max_attempts >= 1 && s->max_attempts <= PLAN_ATTEMPTS_MAX);
    MUST(!s->config.ptr ||
         (s->config.len <= PLAN_CONFIG_BYTES_MAX && json_parse(a, s->config, &config, &err) == ERR_OK &&
          config->type == JSON_OBJECT));
    for (uint32_t i = 0; i < s->dependency_count; i++) {
        uint32_t other = s->dependencies[i];
        MUST(other < p->step_count && other != number && !has(s->dependencies, i, other));
        MUST(has(p->steps[other].dependents, p->steps[other].dependent_count, number));
    }
    for (uint32_t i = 0; i < s->dependent_count; i++)
        MUST(s->dependents[i] < p->step_count && has(p->steps[s->dependents[i]].dependencies,
                                                     p->steps[s->dependents[i]].dependency_count, number));
    for (uint32_t i = 0; i < number; i++)
        MUST(!str_equal(p->steps[i].id, s->id));
}

static void check_ends(struct arena *a, const struct plan *p)
{
    bool *done = ARENA_ARRAY(a, bool, p->step_count);
    uint32_t left = p->step_count;
    memset(done, 0, p->step_count * sizeof *done);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < p->step_count; i++) {
            bool ready = !done[i];
            for (uint32_t k = 0; ready && k < p->steps[i].dependency_count; k++)
                ready = done[p->steps[i].dependencies[k]];
            if (ready) {
                done[i] = moved = true;
                left--;
            }
        }
    }
    MUST(!left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(4096);
    const struct json *j;
    struct plan p;
    struct err err;
    if (json_parse(a, (struct str){(const char *)data, size}, &j, &err) == ERR_OK) {
        enum err_code code = plan_decode(j, a, &p, &err);
        MUST(code == ERR_OK || (code == ERR_PLAN_INVALID && err.detail[0]));
        if (code == ERR_OK && p.step_count <= STEPS_LOOKED_AT) {
            check_id(p.id);
            check_id(p.version);
            MUST(p.step_count >= 1 && (unsigned)p.on_failure < PLAN_ON_FAILURE_COUNT);
            for (uint32_t i = 0; i < p.step_count; i++)
                check_step(a, &p, i);
            check_ends(a, &p);
        }
    }
    arena_free(a);
    return 0;
}
