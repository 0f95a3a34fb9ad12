/* lifecycle/key_list.h - the keys that a client's row of key_heads lists: all that work, and some that ended
 * last. Bounded by KEYS_LISTED_MAX, so that code that decides about keys or shows them reads no more. */
#ifndef WEIR_LIFECYCLE_KEY_LIST_H
#define WEIR_LIFECYCLE_KEY_LIST_H

#include "base/arena.h"
#include "lifecycle/key_power.h"

struct key_list {
    int64_t ids[KEYS_LISTED_MAX]; /* oldest first */
    size_t count;
};

/* `listed` and `active` as the row has them: rows from before there were lists have no list. */
struct key_list key_list_read(struct str listed, int64_t active);
struct str key_list_text(const struct key_list *list, struct arena *a);
void key_list_remove(struct key_list *list, int64_t id); /* one that is not there is fine */

#endif
