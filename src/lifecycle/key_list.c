#include "lifecycle/key_list.h"

#include <string.h>

#include "base/banned.h"

struct key_list key_list_read(struct str listed, int64_t active)
{
    struct key_list list = {.ids = {active}, .count = active != 0};
    if (!listed.len)
        return list;
    list.count = listed.len / sizeof list.ids[0];
    if (list.count > KEYS_LISTED_MAX)
        list.count = KEYS_LISTED_MAX;
    memcpy(list.ids, listed.ptr, list.count * sizeof list.ids[0]);
    return list;
}

struct str key_list_text(const struct key_list *list, struct arena *a)
{
    size_t bytes = list->count * sizeof list->ids[0];
    return (struct str){arena_copy(a, list->ids, bytes), bytes};
}

void key_list_remove(struct key_list *list, int64_t id)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->ids[i] != id)
            list->ids[kept++] = list->ids[i];
    list->count = kept;
}
