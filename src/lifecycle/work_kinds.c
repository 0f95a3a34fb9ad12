#include "lifecycle/work_kinds.h"

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

static const struct work_row {
    const char *text;
    int64_t duration_ms;
    bool should_fail;
    int64_t payload_kb;
    const char *outcome;
    enum work_family family;
    bool drawn;
    enum work_behaviour behaviour;
} work_rows[] = {
#define X(name, duration, fail, kb, outcome, family, drawn, behaviour)                                       \
    [WORK_##name] = {#name, duration, fail, kb, outcome, WORK_FAMILY_##family, drawn, BEHAVE_##behaviour},
    WORK_KINDS(X)
#undef X
};

static const struct work_row *work_row_of(enum work_kind kind)
{
    MUST((unsigned)kind < WORK_KIND_COUNT);
    return &work_rows[kind];
}

bool work_kind_parse(struct str text, enum work_kind *ret_kind)
{
    for (unsigned k = 0; k < WORK_KIND_COUNT; k++)
        if (text.ptr && str_is(text, work_rows[k].text)) {
            *ret_kind = (enum work_kind)k;
            return true;
        }
    return false;
}

const char *work_kind_text(enum work_kind kind)
{
    return kind == WORK_KIND_NONE ? NULL : work_row_of(kind)->text;
}
const char *work_expected_outcome(enum work_kind kind)
{
    return work_row_of(kind)->outcome;
}
enum work_family work_kind_family(enum work_kind kind)
{
    return work_row_of(kind)->family;
}
enum work_behaviour work_kind_behaviour(enum work_kind kind)
{
    return work_row_of(kind)->behaviour;
}

void work_define(enum work_kind kind, int64_t max_runtime_ms, struct work_definition *ret)
{
    *ret = (struct work_definition){.kind = kind};
    if (kind == WORK_KIND_NONE)
        return;
    const struct work_row *row = work_row_of(kind);
    int64_t from_ms = row->behaviour == BEHAVE_OUTLAST_LIMIT ? max_runtime_ms : 0;
    *ret = (struct work_definition){
        .kind = kind,
        .duration_ms = from_ms + row->duration_ms,
        .should_fail = row->should_fail,
        .payload_size = row->payload_kb * 1024,
    };
}

/* splitmix64: neighbouring seeds (requests a millisecond apart) give unrelated draws. */
static uint64_t work_next_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return hash_mix(*state);
}

static bool work_row_is_in_draw(const struct work_row *row, bool failing)
{
    return row->drawn && (row->family == WORK_FAMILY_FAIL) == failing;
}

enum work_kind work_draw(int64_t seed_ms, double failure_probability)
{
    uint64_t state = (uint64_t)seed_ms;
    /* 53 bits make every value in [0, 1): so 0 never fails and 1 always does. */
    double chance = (double)(work_next_random(&state) >> 11) * 0x1p-53;
    bool failing = chance < failure_probability;

    uint64_t candidates = 0;
    for (unsigned k = 0; k < WORK_KIND_COUNT; k++)
        candidates += work_row_is_in_draw(&work_rows[k], failing);
    uint64_t pick = work_next_random(&state) % candidates;
    for (unsigned k = 0; k < WORK_KIND_COUNT; k++)
        if (work_row_is_in_draw(&work_rows[k], failing) && pick-- == 0)
            return (enum work_kind)k;
    must_fail("a drawn kind exists", __FILE__, __LINE__, __func__);
}

bool work_fails_on_attempt(const struct work_definition *d, int64_t attempt)
{
    return d->should_fail && (work_row_of(d->kind)->behaviour != BEHAVE_FAIL_ONCE || attempt <= 1);
}

bool work_failure_is_retryable(enum work_kind kind)
{
    switch (work_row_of(kind)->behaviour) {
    case BEHAVE_FAIL_RETRYABLE:
    case BEHAVE_FAIL_ONCE:
    case BEHAVE_OUTLAST_LIMIT:
        return true;
    case BEHAVE_WAIT:
    case BEHAVE_BURN_CPU:
    case BEHAVE_TOUCH_MEMORY:
    case BEHAVE_WRITE_FILE:
    case BEHAVE_MANY_OUTPUTS:
    case BEHAVE_LARGE_OUTPUT:
    case BEHAVE_REJECT:
        return false;
    }
    must_fail("every behaviour is listed", __FILE__, __LINE__, __func__);
}
