#include "runtime/failure_modes.h"

#include "base/heart.h"
#include "base/log.h"

#include "base/banned.h"

_Static_assert((int)FAILURE_MODE_COUNT <= (int)HEART_COUNTERS, "each mode has its counter");

const struct failure_mode_info failure_modes[FAILURE_MODE_COUNT] = {
#define D(kind, name) " " #name
#define X(id, function, class, action, handling)                                                             \
    [FAILURE_MODE_##id] = {#function, FAILURE_##class, FAILURE_ACTION_##action, handling,                    \
                           "component failure_class" FAILURE_DIMENSIONS_##id(D)},
    FAILURE_MODES(X)
#undef X
#undef D
};

const char *failure_class_name(enum failure_class failure_class)
{
    static const char *const names[] = {
#define X(id, wire) [FAILURE_##id] = wire,
        FAILURE_CLASSES(X)
#undef X
    };
    return names[failure_class];
}

const char *failure_action_name(enum failure_action action)
{
    static const char *const names[] = {
#define X(id, wire) [FAILURE_ACTION_##id] = wire,
        FAILURE_ACTIONS(X)
#undef X
    };
    return names[action];
}

uint64_t failure_count(enum failure_mode mode)
{
    return heart_count(mode);
}

uint64_t failure_count_all(enum failure_mode mode)
{
    return heart_count_all(mode);
}

static enum log_level level_of(enum failure_mode mode)
{
    return failure_modes[mode].failure_class == FAILURE_FATAL ? LOG_ERROR : LOG_WARN;
}

/* log_line leaves an absent value out; a dimension is never left out. */
static struct str told(const char *text)
{
    return str_of(text && *text ? text : "none");
}

#define VALUE_TEXT(name) LOG_STR(told(name))
#define VALUE_INT(name)  LOG_INT(name)
#define D(kind, name)    , #name, VALUE_##kind(name)
#define P(kind, name)    , FAILURE_PARAMETER_##kind name
#define X(id, function, class, action, handling)                                                             \
    void failure_##function(const char *component FAILURE_DIMENSIONS_##id(P))                                \
    {                                                                                                        \
        heart_add_count(FAILURE_MODE_##id);                                                                  \
        log_line(level_of(FAILURE_MODE_##id), EVENT_RUNTIME_FAILURE, "mode", LOG_TEXT(#function),            \
                 "component", LOG_STR(told(component)), "failure_class",                                     \
                 LOG_TEXT(failure_class_name(FAILURE_##class)) FAILURE_DIMENSIONS_##id(D), NULL);            \
    }
FAILURE_MODES(X)
