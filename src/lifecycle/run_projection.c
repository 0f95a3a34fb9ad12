#include "lifecycle/run_projection.h"

#include "base/hash.h"
#include "base/heap.h"
#include "base/must.h"

#include "base/banned.h"

static uint64_t name_hash(struct str name)
{
    return hash_mix(hash_fnv1a(HASH_FNV_START, name.ptr, name.len));
}

void run_projection_start(struct run_projection *p, struct arena *a)
{
    struct map by_name = p->by_name;
    map_clear(&by_name);
    *p = (struct run_projection){.status = RUN_PENDING, .by_name = by_name, .arena = a};
    p->tail = &p->steps;
}

void run_projection_free(struct run_projection *p)
{
    map_free(&p->by_name);
}

struct projected_step *run_projection_step(const struct run_projection *p, struct str name)
{
    for (struct map_node *n = map_first(&p->by_name, name_hash(name)); n; n = map_next(n))
        if (str_equal(CONTAINER_OF(n, struct projected_step, node)->name, name))
            return CONTAINER_OF(n, struct projected_step, node);
    return NULL;
}

static struct projected_step *step_of(struct run_projection *p, struct str name)
{
    struct projected_step *s = run_projection_step(p, name);
    if (s)
        return s;
    s = ARENA_NEW(p->arena, struct projected_step);
    s->name = arena_str(p->arena, name);
    s->state = (struct step_state){0, STEP_PENDING};
    s->next = NULL;
    map_put(&p->by_name, &s->node, name_hash(s->name));
    *p->tail = s;
    p->tail = &s->next;
    p->step_count++;
    return s;
}

enum transition run_projection_apply(struct run_projection *p, int64_t seq, enum run_event_type type,
                                     struct str step, int64_t attempt, struct transition_fault *fault)
{
    enum transition t;
    if (type == RUN_EVENT_UNKNOWN)
        t = TRANSITION_NONE;
    else if (run_event_is_step(type))
        t = step_apply(&step_of(p, step)->state, p->status, type, attempt, fault);
    else
        t = run_apply(&p->status, type, fault);
    p->last_seq = seq;
    p->invalid += t == TRANSITION_INVALID;
    return t;
}
