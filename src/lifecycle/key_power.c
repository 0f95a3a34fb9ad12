#include "lifecycle/key_power.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define X(name, wire) wire,
static const char *const scope_texts[] = {KEY_SCOPES(X)};
#undef X

const char *key_scope_text(enum key_scope s)
{
    return scope_texts[s];
}

bool key_scope_parse(struct str text, enum key_scope *ret_scope)
{
    for (int s = 0; s < KEY_SCOPE_COUNT; s++)
        if (str_is(text, scope_texts[s])) {
            *ret_scope = (enum key_scope)s;
            return true;
        }
    return false;
}

int64_t key_scopes_stored(unsigned scopes)
{
    return scopes == SCOPE_ALL ? 0 : (int64_t)scopes;
}

unsigned key_scopes_of_stored(int64_t stored)
{
    return stored ? (unsigned)stored & SCOPE_ALL : SCOPE_ALL;
}

static int compare(struct str a, struct str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_names(const void *a, const void *b)
{
    return compare(*(const struct str *)a, *(const struct str *)b);
}

struct str key_queues_of(struct arena *a, struct str *names, size_t count)
{
    struct strbuf text = {0};
    qsort(names, count, sizeof names[0], compare_names);
    for (size_t i = 0; i < count; i++)
        if (!i || !str_equal(names[i - 1], names[i]))
            strbuf_addf(&text, "%s%.*s", text.len ? "," : "", STR_ARG(names[i]));
    struct str made = arena_str(a, strbuf_str(&text));
    strbuf_free(&text);
    return made;
}

bool key_queues_have(struct str queues, struct str queue)
{
    if (!queues.ptr)
        return true;
    while (queues.len)
        if (str_equal(str_cut(&queues, ','), queue))
            return true;
    return false;
}

bool key_queues_are_sound(struct str queues)
{
    struct str former = STR_ABSENT;
    size_t count = 0;
    if (!queues.ptr)
        return true;
    while (queues.len) {
        struct str name = str_cut(&queues, ',');
        if (!name.len || (former.ptr && compare(former, name) >= 0) || ++count > KEY_QUEUES_MAX)
            return false;
        former = name;
    }
    return count > 0;
}

bool key_power_lacks(const struct key_power *holder, const struct key_power *wanted, const char **ret_what,
                     struct str *ret_name)
{
    for (int s = 0; s < KEY_SCOPE_COUNT; s++)
        if (wanted->scopes & ~holder->scopes & 1u << s) {
            *ret_what = "the scope ";
            *ret_name = str_of(scope_texts[s]);
            return true;
        }
    if (holder->queues.ptr && !wanted->queues.ptr) {
        *ret_what = "every queue";
        *ret_name = STR("");
        return true;
    }
    struct str rest = wanted->queues;
    while (rest.len) {
        struct str name = str_cut(&rest, ',');
        if (!key_queues_have(holder->queues, name)) {
            *ret_what = "the queue ";
            *ret_name = name;
            return true;
        }
    }
    return false;
}
